"""Quotas of virtual clusters under Gavel's policies: worked by hand."""

from __future__ import annotations

from typing import Any

import pytest

import windtunnel as wt
from windtunnel.errors import PolicyError

FIFO = ("fifo", "fifo_perf", "fifo_packed")
MIXED = "1x2:K80,1x2:V100"


def fly(
    jobs: list[tuple[float, float, float, str]],
    policy: str,
    quotas: dict[str, Any],
    *,
    cluster: str = MIXED,
    **more: Any,
) -> wt.Outcome:
    """Fly jobs: submission, duration (s), GPUs, vc; on the engine that is the specification."""
    names = ("submit_time", "duration", "num_gpus", "vc")
    table = {name: [job[at] for job in jobs] for at, name in enumerate(names)}
    queues = [{"vc": vc, "nominal_quota": gpus} for vc, gpus in quotas.items()]
    asked = {"quotas": {"queues": queues}, **more}
    out = wt.simulate(table, cluster, f"gavel:{policy}", **asked)
    again = wt.simulate(table, cluster, f"gavel:{policy}", engine="reference", **asked)
    wt.testing.assert_outcomes_equal(out, again)
    return out


def starts(out: wt.Outcome) -> list[float | None]:
    found: list[float | None] = out.table["start_time"].to_pylist()
    return found


@pytest.mark.parametrize("policy", [*FIFO, "max_min_fairness", "makespan", "allox", "gandiva"])
def test_a_type_without_quota_is_one_on_which_a_job_cannot_run(policy: str) -> None:
    size = 1.0 if policy == "allox" else 2.0
    for kind, node in (("K80", 0), ("V100", 1)):
        out = fly([(0, 100, size, "a"), (0, 30, size, "a")], f"{policy}:round=10",
                  {"a": {kind: int(size)}})  # fmt: skip
        assert {*map(tuple, out.segments["nodes"].to_pylist())} == {(node,)}
        assert max(out.table["end_time"].to_pylist()) == 130


def test_nobody_is_stopped_for_a_type_that_the_quota_does_not_let_it_have() -> None:
    """One job in two queues' cluster; V100s, to which shares would send it, are another's."""
    quotas = {"a": {"K80": 2}, "b": {"V100": 2}}
    for policy in ("makespan", "max_sum_throughput_perf", "max_min_fairness_perf"):
        out = fly([(0, 100, 2, "a")], f"{policy}:round=10", quotas)
        assert out.table["num_preemptions"].to_pylist() == [0]


@pytest.mark.parametrize("policy", FIFO)
@pytest.mark.parametrize("fill", ["false", "true", "all"])
def test_who_waits_for_quota_is_passed_over(policy: str, fill: str) -> None:
    jobs = [(0, 100, 1, "a"), (0, 100, 1, "a"), (0, 100, 1, "b"), (3, 100, 1, "b")]
    out = fly(jobs, f"{policy}:round=10:fill={fill}", {"a": 1, "b": 2}, cluster="1x4:K80")
    assert starts(out) == [0, 100, 0, 3 if fill == "true" else 10]


@pytest.mark.parametrize("policy", FIFO)
def test_who_waits_for_gpus_is_not(policy: str) -> None:
    jobs = [(0, 100, 1, "a"), (1, 100, 2, "a"), (2, 10, 1, "b")]
    out = fly(jobs, f"{policy}:round=10", {"a": 4, "b": 2}, cluster="1x2:K80")
    assert starts(out) == [0, 100, 200]


def test_what_is_borrowed_is_counted_while_jobs_are_chosen() -> None:
    """Each may have two GPUs more; together they have three to lend each other."""
    jobs = {
        "submit_time": [0.0] * 4,
        "duration": [50.0] * 4,
        "num_gpus": [2.0] * 4,
        "vc": ["a", "b", "a", "b"],
    }
    queue = {"cohort": "all", "borrowing_limit": 2}
    queues = [{"vc": "a", "nominal_quota": 2, **queue}, {"vc": "b", "nominal_quota": 4, **queue}]
    for policy in FIFO:
        out = wt.simulate(jobs, "2x4:K80", f"gavel:{policy}:round=10", quotas={"queues": queues})
        assert starts(out) == [0, 0, 0, 50]


def test_a_job_without_quota_where_it_runs_is_refused_by_name() -> None:
    jobs = {"submit_time": [0, 0], "duration": [9, 9], "num_gpus": [2, 1], "vc": ["a", "a"]}
    jobs["gpu_type"] = ["V100", None]
    quotas = {"queues": [{"vc": "a", "nominal_quota": {"K80": 2}}]}
    words = "the quota of 'a' allows 0 at most where it runs"
    with pytest.raises(PolicyError, match=words):
        wt.simulate(jobs, MIXED, "gavel:fifo", quotas=quotas)
    out = wt.simulate(jobs, MIXED, "gavel:fifo", quotas=quotas, oversize="reject")
    assert out.table["status"].to_pylist() == ["rejected", "finished"]
    assert words in out.reasons[0]


@pytest.mark.parametrize("policy", FIFO)
def test_a_failed_node_sends_a_job_to_another_type(policy: str) -> None:
    """First come, first served gives out GPUs that are up: else the job would wait for its node."""
    table = {"submit_time": [0.0], "duration": [100.0], "num_gpus": [2.0]}
    for node in (0, 1):
        down = {"node_failures": [{"node": node, "time": 5.0, "until": 500.0}]}
        out = wt.simulate(table, MIXED, f"gavel:{policy}:round=10", disruptions=down)
        assert out.table["end_time"].to_pylist()[0] <= 110


@pytest.mark.parametrize("policy", FIFO)
@pytest.mark.parametrize("fill", ["false", "true", "all"])
def test_a_job_that_comes_to_an_empty_cluster_never_waits(policy: str, fill: str) -> None:
    table = {"submit_time": [0.0, 3.0], "duration": [1.0, 5.0], "num_gpus": [2.0, 2.0]}
    out = wt.simulate(table, MIXED, f"gavel:{policy}:round=10:fill={fill}")
    assert starts(out) == [0, 3]
