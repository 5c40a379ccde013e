"""What a run would cost is told before it is flown, and refused above a stated limit."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import pytest

import windtunnel as wt
from windtunnel.errors import SpecError
from windtunnel.schema import as_jobs
from windtunnel.site.conditions import Conditions
from windtunnel.study.budget import MAX_BYTES, MAX_EVENTS, Load, estimate
from windtunnel.study.resolving import resolved
from windtunnel.toml_file import MAX_BYTES as MAX_TOML
from windtunnel.toml_file import read_toml

if TYPE_CHECKING:
    from pathlib import Path

DAY = 86_400.0
JOBS = {
    "submit_time": [0.0, 10 * DAY],
    "duration": [DAY, 2 * DAY],
    "num_gpus": [4.0, 8.0],
}


def budget(cluster: str = "4x8", **fields: Any) -> Any:
    conditions = resolved(Conditions().having(cluster=cluster, **fields))
    return estimate(Load.of(as_jobs(JOBS)), conditions.site.cluster, conditions)


def test_two_jobs_come_and_go() -> None:
    load = Load.of(as_jobs(JOBS))
    assert load == Load(2, 10 * DAY, 2 * DAY, 3 * DAY, 20 * DAY, 2 * DAY)
    found = budget()
    assert found.total == 4
    assert found.horizon == 12 * DAY
    assert found.memory == 32 * 8 + 4 * 300 + 2 * 400


def test_rounds_go_on_while_something_can_run() -> None:
    found = budget(policy="las:quantum=60")
    assert found.total == 4 + 3 * DAY / 60
    assert budget(policy="las:quantum=60", until=DAY).total == 4 + DAY / 60


def test_nodes_are_looked_at_all_the_time() -> None:
    assert budget(node_sleep="earth,step=600").total == 4 + 12 * DAY / 600


def test_failures_are_those_of_the_renewal_process() -> None:
    found = budget(disruptions="mtbf:30d/mttr:1d/checkpoint:1h")
    again = 2 * DAY / 3600 * math.expm1(3600 / (30 * DAY))
    assert found.total == pytest.approx(4 + 2 * 4 * (12 + again) / 31)
    # Without checkpoints a job that is longer than nodes live begins for ever.
    assert budget(disruptions="mtbf:1/mttr:1000d").total > 1e12


@pytest.mark.parametrize(
    ("cluster", "fields", "cause"),
    [
        ("4x8", {"policy": "las:quantum=1e-3"}, "rounds of las"),
        ("4x8", {"node_sleep": "earth,step=1e-3"}, "looks of node_sleep, one in 0.001 s"),
        ("4x8", {"disruptions": "mtbf:1/mttr:1000d"}, "failures and repairs"),
        ("800x1000000", {}, "800,000,000 GPUs on 800 nodes"),
    ],
)
def test_what_no_machine_can_fly_is_refused_with_the_number(
    cluster: str, fields: dict[str, Any], cause: str
) -> None:
    with pytest.raises(SpecError, match=cause) as caught:
        wt.simulate(JOBS, cluster, **fields)
    assert "--allow-large" in str(caught.value)
    assert f"{MAX_EVENTS:,}" in str(caught.value) or f"{MAX_BYTES >> 30} GiB" in str(caught.value)


def test_it_is_flown_where_it_is_allowed() -> None:
    small = {"submit_time": [0.0], "duration": [0.01], "num_gpus": [1.0]}
    with pytest.raises(SpecError, match="allow-large"):
        wt.simulate(small, "800x1000000")
    assert wt.simulate(small, "800x1000000", allow_large=True).metrics()["num_finished"] == 1
    with pytest.raises(SpecError, match="expected true or false"):
        wt.simulate(small, "8x1", allow_large="yes")


def test_ordinary_runs_are_far_from_the_limit() -> None:
    year = Load(10_000_000, 365 * DAY, 30 * DAY, 1e7 * 3 * 3600, 1e7 * 8 * 3 * 3600, 30 * DAY)
    for fields in ({"policy": "las"}, {"disruptions": "mtbf:30d/mttr:4h/checkpoint:1h"}):
        conditions = resolved(Conditions().having(cluster="2000x8:A100", **fields))
        found = estimate(year, conditions.site.cluster, conditions)
        assert found.total < MAX_EVENTS
        assert found.memory <= MAX_BYTES + (1 << 30)


def test_a_description_has_a_size_that_people_write(tmp_path: Path) -> None:
    path = tmp_path / "cluster.toml"
    with path.open("wb") as file:
        file.truncate(MAX_TOML + 1)
    with pytest.raises(SpecError, match=r"has 8,388,609 bytes; expected a description of at most"):
        read_toml(path)
