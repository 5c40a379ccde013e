"""Policies by name, object, import path, entry point and decorator."""

from __future__ import annotations

import importlib.metadata
import inspect
import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import windtunnel as wt
from windtunnel.policies import POLICIES, resolve_policy
from windtunnel.sim.contract import FunctionPolicy

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = pytest.mark.usefixtures("plugins_forgotten")

ENGINES = ("reference", "compiled")
#: Policies of tier 3.
DECIDERS = ("quota", "kueue", "slurm", "reserving-packing", "decoupled-evaluation")
#: Those that resize jobs; docs/reference/morphling.md has their parameters.
ELASTIC = tuple(name for name, made in POLICIES.items() if made.elastic)
JOBS = {
    "submit_time": [0.0, 1.0, 2.0, 3.0],
    "duration": [6.0, 3.0, 1.0, 2.0],
    "num_gpus": [2.0, 1.0, 2.0, 1.0],
    "estimate": [6.0, 9.0, 7.0, 8.0],
    "priority": [0.0, None, 1.0, -1.0],
}
MODULE = """
import windtunnel as wt

def rank(jobs):
    "Smallest GPU service first."
    return jobs.num_gpus * jobs.duration

class Own(wt.Policy):
    name = "own"
    queueing = "skip"

    def rank(self, jobs):
        return jobs.duration

instance = Own()
number = 7

class Nothing(wt.Policy):
    name = "nothing"
"""


@pytest.fixture
def module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    (tmp_path / "site_policies.py").write_text(MODULE)
    monkeypatch.syspath_prepend(tmp_path)
    yield "site_policies"
    sys.modules.pop("site_policies", None)


def starts(policy: Any, **options: Any) -> list[float]:
    found: list[float] = (
        wt.simulate(JOBS, "pool:2", policy, **options).table["start_time"].to_pylist()
    )
    return found


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize(
    ("policy", "expected"),
    [
        # Two GPUs; job 0 holds both to 6. Then each order, strict unless preemptive.
        ("fifo", [0, 6, 9, 10]),
        ("fcfs", [0, 6, 9, 10]),
        ("FIFO", [0, 6, 9, 10]),
        ("sjf", [0, 7, 6, 7]),
        ("sjf-estimate", [0, 7, 6, 7]),  # 2 (7 s) at 6, then 3 (8 s) and, beside it, 1 (9 s)
        ("priority", [0, 7, 6, 7]),  # 2 (1), then 1 (unknown counts as 0), then 3 (-1)
    ],
)
def test_built_in_orders(engine: str, policy: str, expected: list[float]) -> None:
    assert starts(policy, engine=engine) == expected


@pytest.mark.parametrize("engine", ENGINES)
def test_estimates_order_by_what_was_asked_for(engine: str) -> None:
    jobs = {
        "submit_time": [0.0, 1.0, 1.0],
        "duration": [5.0, 1.0, 9.0],
        "num_gpus": [1.0] * 3,
        "estimate": [5.0, 9.0, 8.0],
    }
    for policy, expected in (("sjf", [0, 5, 6]), ("sjf-estimate", [0, 14, 5])):
        out = wt.simulate(jobs, "pool:1", policy, engine=engine)
        assert out.table["start_time"].to_pylist() == expected
    with pytest.raises(wt.PolicyError, match=r"job '1': 2 job\(s\) have no estimate"):
        wt.simulate(
            {**jobs, "estimate": [1.0, None, None]}, "pool:1", "sjf-estimate", engine=engine
        )


@pytest.mark.parametrize("engine", ENGINES)
def test_default_heads_of_line(engine: str) -> None:
    jobs = {**JOBS, "deadline": [1.0] * 4}
    chosen = {name for name, policy in POLICIES.items() if policy.tier < 3}
    chosen -= {"qssf"}  # whose predictor is of the extra ml
    if engine == "compiled":
        chosen -= {"fair-share", "multifactor"}  # which keep accounts along the run
    defaults = {name: wt.simulate(jobs, "pool:2", name, engine=engine) for name in chosen}
    expected = {
        "fifo": "strict",
        "easy": "easy",
        "easy-sjbf": "easy_sjbf",
        "easy-perfect": "easy",
        "conservative": "conservative",
        "las": "skip",
        "tiresias": "skip",
        "srsf": "skip",
        "sjf": "strict",
        "sjf-estimate": "strict",
        "sjf-preemptive": "skip",
        "srtf": "skip",
        "priority": "strict",
        "priority-preemptive": "skip",
        "sju": "strict",
        "sjg": "strict",
        "sjgg": "strict",
        "edf": "strict",
        "fair-share": "strict",
        "multifactor": "strict",
    }
    assert {name: out.settings["queueing"] for name, out in defaults.items()} == {
        name: queueing for name, queueing in expected.items() if name in chosen
    }
    assert set(POLICIES) == {*expected, "qssf", *DECIDERS, *ELASTIC}
    assert set(POLICIES.aliases.values()) <= set(POLICIES)


@pytest.mark.parametrize("name", [name for name in DECIDERS if name != "kueue"])
def test_policies_that_decide_for_themselves(name: str) -> None:
    assert POLICIES[name].tier == 3
    out = wt.simulate(JOBS, "1x2:V100", name)
    assert (out.settings["queueing"], out.settings["engine"]) == ("policy", "compiled")


def test_a_function_may_be_named_by_its_path(module: str) -> None:
    # GPU service 12, 3, 2, 2: job 0 to 6, then 2 (2 GPUs) to 7, then 3 and 1.
    assert starts(f"{module}:rank") == [0, 7, 6, 7]
    policy = resolve_policy(f"{module}:rank")
    assert (policy.label, policy.tier) == ("rank", 1)
    assert policy.__doc__ == "Smallest GPU service first."


def test_a_class_or_an_instance_may_be_named_by_its_path(module: str) -> None:
    for name in ("Own", "instance"):
        out = wt.simulate(JOBS, "pool:2", f"{module}:{name}")
        assert (out.settings["policy"], out.settings["queueing"]) == ("own", "skip")


def test_the_working_folder_counts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "local_policies.py").write_text(MODULE)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    assert resolve_policy("local_policies:rank").label == "rank"
    del sys.modules["local_policies"]


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("ffio", "policy: unknown name 'ffio'. Did you mean 'fifo'? Known: "),
        ("", "policy: unknown name ''. Known: "),
        ("no_such_package.module:rank", "cannot import 'no_such_package.module:rank': No module"),
        (":rank", "cannot import ':rank'"),
        ("site_policies:rnak", "policy site_policies: unknown name 'rnak'. Did you mean 'rank'?"),
        ("fi\x1bfo", r"unknown name 'fi\x1bfo'"),
    ],
)
def test_unknown_names(module: str, name: str, message: str) -> None:
    with pytest.raises(wt.SpecError) as error:
        resolve_policy(name)
    assert message in str(error.value)


def test_what_is_no_policy(module: str) -> None:
    with pytest.raises(
        wt.PolicyError, match="policy 'int': site_policies:number is 7; expected a policy's name"
    ):
        resolve_policy(f"{module}:number")
    for given in (7, None, [wt.Policy]):
        with pytest.raises(wt.PolicyError, match="expected a policy's name, Policy or function"):
            resolve_policy(given)
    with pytest.raises(wt.PolicyError, match="policy 'nothing': defines none of rank"):
        resolve_policy(f"{module}:Nothing")
    for function in (lambda: 1, lambda a, b, c, d: 1):
        with pytest.raises(wt.PolicyError, match=r"a function of [04] arguments; expected rank"):
            resolve_policy(function)


def test_defaults_do_not_count_as_arguments() -> None:
    def rank(jobs: wt.Jobs, weight: float = 2.0) -> Any:
        return jobs.duration * weight

    assert resolve_policy(rank).tier == 1
    assert starts(rank) == starts("sjf")


class Entry:
    """An installed package's registration."""

    def __init__(self, name: str, value: Any) -> None:
        self.name = name
        self.value = value

    def load(self) -> Any:
        return self.value


def test_installed_policies_are_found_by_name(monkeypatch: pytest.MonkeyPatch) -> None:
    class Installed(wt.Policy):
        name = "ssf"

        def rank(self, jobs: wt.Jobs) -> Any:
            return jobs.num_gpus * jobs.duration

    asked: list[str] = []

    def entry_points(*, group: str) -> list[Entry]:
        asked.append(group)
        return [Entry("ssf", Installed), Entry("Later", lambda job, now: -job.submit_time)]

    monkeypatch.setattr(importlib.metadata, "entry_points", entry_points)
    assert starts("ssf") == [0, 7, 6, 7]
    assert resolve_policy("Later").tier == 2
    assert set(asked) == {"windtunnel.policies"}
    with pytest.raises(wt.SpecError, match=r"Did you mean 'ssf'\?.*Known: .*Later.*ssf"):
        resolve_policy("sssf")
    assert resolve_policy("fifo") is POLICIES["fifo"]  # built-in names cannot be taken over


def test_a_decorated_function_is_a_policy_with_a_name() -> None:
    @wt.policy("ssf-test", queueing="skip")
    def rank(jobs: wt.Jobs) -> Any:
        """Smallest GPU service first."""
        return jobs.num_gpus * jobs.duration

    assert isinstance(rank, FunctionPolicy)
    for given in (rank, "ssf-test"):
        out = wt.simulate(JOBS, "pool:2", given)
        assert (out.settings["policy"], out.settings["queueing"]) == ("ssf-test", "skip")
    assert rank.__doc__ == "Smallest GPU service first."
    assert rank(wt.Jobs(out.jobs)).tolist() == [12, 3, 2, 2]  # still to be called by hand


def test_a_decorated_function_may_preempt_and_have_rounds() -> None:
    @wt.policy("aging", preemptive=True, every=5.0)
    def key(job: wt.JobView, now: float) -> float:
        return job.duration - now

    assert (key.preemptive, key.every, key.tier) == (True, 5.0, 2)
    assert wt.simulate(JOBS, "pool:2", "aging").settings["queueing"] == "skip"


@pytest.mark.parametrize("name", ["fifo", "fcfs", "srtf"])
def test_built_in_names_are_taken(name: str) -> None:
    with pytest.raises(wt.SpecError, match=f"'{name}' is a built-in policy; choose another name"):
        wt.policy(name)


def test_the_smallest_method_decides_the_tier() -> None:
    class Two(wt.Policy):
        def key(self, job: wt.JobView, now: float) -> float:
            return job.duration

    assert (Two().tier, Two().label) == (2, "Two")
    assert resolve_policy(Two).tier == 2


def test_jobs_show_their_columns_and_name_what_they_lack() -> None:
    out = wt.simulate({**JOBS, "mine": [1, 2, 3, 4]}, "pool:2")
    jobs = wt.Jobs(out.jobs)
    assert len(jobs) == 4
    assert jobs.mine.tolist() == [1, 2, 3, 4]
    assert jobs.user.tolist() == [None] * 4
    with pytest.raises(ValueError, match="read-only"):
        jobs.duration[0] = 1
    with pytest.raises(AttributeError, match="jobs have no column 'gpus'; they have: job_id, "):
        _ = jobs.gpus
    view = jobs.views[2]
    assert (view.job_id, view.estimate, view.mine, view.user) == ("2", 7.0, 3.0, None)


def test_what_cannot_be_made_a_policy_is_named() -> None:
    class Needy(wt.Policy):
        def __init__(self, weight: float) -> None:
            self.weight = weight

        def rank(self, jobs: wt.Jobs) -> Any:
            return jobs.submit_time * self.weight

    with pytest.raises(wt.PolicyError, match=r"Needy.*needs arguments"):
        resolve_policy(Needy)
    with pytest.raises(wt.PolicyError, match="min"):
        resolve_policy(min)
    assert resolve_policy(Needy(2.0)).label == "Needy"


def test_the_reference_names_every_policy_with_its_parameters_and_default() -> None:
    page = Path(__file__).parents[2] / "docs" / "reference" / "policies.md"
    text = page.read_text(encoding="utf-8")
    lines = text[: text.index("\n## ")].splitlines()  # the table before the first heading
    for name, made in POLICIES.items():
        decides = name in DECIDERS  # for itself; the guide has its parameters
        (row,) = [line for line in lines if line.startswith(f"| `{name}`")]
        cells = [cell.strip() for cell in row.strip("|").split("|")]
        if name in ELASTIC:
            assert cells[3:] == ["its own", "[Morphling](morphling.md)"], name
            guide = (page.parent / "morphling.md").read_text(encoding="utf-8")
            parameters = inspect.signature(type(made)).parameters
            assert all(f"`{parameter}`" in guide for parameter in parameters), name
            continue
        if decides:
            guides = {
                "kueue": "[Kueue](../systems/kueue.md)",
                "slurm": "[Slurm](../systems/slurm.md)",
                "decoupled-evaluation": "[Failures](../guides/failures.md#evaluation-decoupled)",
            }
            assert cells[3:] == ["its own", guides.get(name, "[quotas](../guides/quotas.md)")], name
            continue
        assert cells[2] == ("yes" if made.preemptive else ""), name
        assert cells[3] == made.queueing, name
        parameters = list(inspect.signature(type(made)).parameters)
        if name != "multifactor":  # whose parameters have a paragraph
            assert set(re.findall(r"`(\w+)`", cells[4])) == set(parameters), name
        assert all(f"`{parameter}" in text for parameter in parameters), name
