"""The names that users type, as types, are those that there are."""

from __future__ import annotations

from typing import Any, get_args

import pytest

import windtunnel as wt
from windtunnel import words
from windtunnel.placements import PLACEMENTS
from windtunnel.policies import POLICIES
from windtunnel.site.conditions import ENGINES
from windtunnel.site.scheduler import QUEUEING

JOBS = {"submit_time": [0], "duration": [5], "num_gpus": [1]}


def test_they_are_those_of_the_catalogues() -> None:
    policies = {*POLICIES, *POLICIES.aliases} - {*POLICIES.registered}
    assert set(get_args(words.PolicyName)) == policies
    assert set(get_args(words.PlacementName)) == {*PLACEMENTS} - {*PLACEMENTS.registered}
    assert set(get_args(words.QueueingRule)) == set(QUEUEING)
    assert set(get_args(words.EngineName)) == set(ENGINES)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"cluster": 12}, "cluster: found 12; expected a ClusterSpec or words such as 64x8:A100"),
        ({"queuing": "skip"}, "queuing: unknown name 'queuing'. Did you mean 'queueing'?"),
        ({"queueing": "skp"}, "queueing: unknown name 'skp'. Did you mean 'skip'?"),
        ({"placement": "bestfit"}, "placement: unknown name 'bestfit'. Did you mean 'best_fit'?"),
        ({"policy": "ffio"}, "policy: unknown name 'ffio'. Did you mean 'fifo'?"),
        ({"engine": "refrence"}, "engine: unknown name 'refrence'. Did you mean 'reference'?"),
        ({"metrics": ["late"]}, "metric: unknown name 'late'."),
    ],
)
def test_slips_have_one_kind_of_message(arguments: dict[str, Any], message: str) -> None:
    given = {"cluster": "pool:1", **arguments}
    with pytest.raises(wt.SpecError) as error:
        wt.simulate(JOBS, **given)
    assert str(error.value).startswith(message)
    if not {"policy"} & arguments.keys():
        cluster = given.pop("cluster")
        with pytest.raises(wt.SpecError) as error:
            wt.compare(JOBS, cluster, ["fifo"], **given)
        assert str(error.value).startswith(message)


def test_one_policy_is_no_list_of_policies() -> None:
    with pytest.raises(wt.SpecError, match="policies: found 'fifo'; expected several, such as"):
        wt.compare(JOBS, "pool:1", "fifo")


def test_of_two_functions_of_one_name_the_message_shows_how_to_name_them() -> None:
    several = [lambda jobs: jobs.duration, lambda jobs: -jobs.duration]
    with pytest.raises(wt.SpecError, match=r"found '<lambda>' twice.*wt.policy\(\"name\"\)"):
        wt.compare(JOBS, "pool:1", several)
    with pytest.raises(wt.SpecError, match=r"found 'fifo' twice; name each once\.$"):
        wt.compare(JOBS, "pool:1", ["fifo", "fifo"])
