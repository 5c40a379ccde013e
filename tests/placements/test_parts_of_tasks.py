"""Tasks' parts of a job's GPUs, cores and memory: together never more than the job asks for."""

from __future__ import annotations

from typing import Any

import pytest

import windtunnel as wt
from windtunnel.errors import SchemaError

NODE = wt.NodeType(1, 8, None, cpus=64.0, mem_gib=1000.0)


def starts(jobs: dict[str, list[Any]], cluster: Any, **options: Any) -> list[float]:
    count = len(jobs["num_gpus"])
    times = {"submit_time": [0.0] * count, "duration": [10.0] * count}
    found = [
        wt.simulate(times | jobs, cluster, engine=engine, **options).table["start_time"].to_pylist()
        for engine in ("compiled", "reference")
    ]
    assert found[0] == found[1]
    return list(found[0])


@pytest.mark.parametrize("gpus", range(1, 9))
@pytest.mark.parametrize("column", [{"num_cpus": [64.0]}, {"mem_gib": [1000.0]}])
def test_a_job_may_have_all_of_a_node(gpus: int, column: dict[str, list[float]]) -> None:
    assert starts({"num_gpus": [gpus]} | column, wt.ClusterSpec((NODE,))) == [0.0]


def test_two_jobs_share_a_node() -> None:
    jobs = {"num_gpus": [5, 3], "num_cpus": [32.0, 32.0], "mem_gib": [500.0, 500.0]}
    assert starts(jobs, wt.ClusterSpec((NODE,))) == [0.0, 0.0]


@pytest.mark.parametrize(("gpus", "tasks", "cluster"), [(1, 6, "1x1"), (2, 3, "1x2")])
def test_gpus_of_several_tasks(gpus: int, tasks: int, cluster: str) -> None:
    jobs = {"num_gpus": [gpus], "num_tasks": [tasks]}
    assert starts(jobs, cluster, sharing="pooled") == [0.0]


def test_shares_that_floats_cannot_tell_are_themselves() -> None:
    shares = [0.1, 0.2, 0.3, 0.29, 0.11]
    assert starts({"num_gpus": shares}, "1x1") == [0.0] * 5


def test_who_does_not_fit_is_told_all_that_it_asks_for() -> None:
    jobs = {"num_gpus": [6], "num_cpus": [65.0], "mem_gib": [3.0]}
    with pytest.raises(SchemaError, match="asks for 6 GPUs, 65 cores, 3 GiB; the cluster cannot"):
        starts(jobs, wt.ClusterSpec((NODE,)))
