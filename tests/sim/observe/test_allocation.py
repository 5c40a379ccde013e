"""GPUs in use and jobs waiting by group, worked out by hand."""

from __future__ import annotations

from typing import Any

import pytest

import windtunnel as wt
from windtunnel.energy import PowerModel, account
from windtunnel.errors import SpecError

MIXED = wt.ClusterSpec((wt.NodeType(1, 2, "A"), wt.NodeType(1, 0, None), wt.NodeType(2, 2, "B")))
JOBS = {
    "submit_time": [5, 5, 6, 6],
    "duration": [10, 20, 10, 4],
    "num_gpus": [4, 2, 2, 1],
    "gpu_type": ["B", "A", "A|B", "B"],
    "vc": ["x", "y", "x", None],
}


def rows(table: Any, *names: str) -> list[tuple[Any, ...]]:
    return list(zip(*(table[name].to_pylist() for name in names), strict=True))


def test_by_type_on_nodes() -> None:
    # B is full from 5 to 15; the third job takes one B node from 15 to 25, the last half the other.
    out = wt.simulate(JOBS, MIXED, "fifo", queueing="skip")
    found = rows(out.allocation_by_type(), "gpu_type", "time", "gpus", "utilization")
    assert found == [
        *(("A", 5, 2, 1.0), ("A", 25, 0, 0.0)),
        *(("B", 5, 4, 1.0), ("B", 15, 3, 0.75), ("B", 19, 2, 0.5), ("B", 25, 0, 0.0)),
    ]


def test_by_type_on_pools_says_what_is_not_known() -> None:
    out = wt.simulate(JOBS, MIXED, "fifo", queueing="skip", placement="pool")
    found = rows(out.allocation_by_type(), "gpu_type", "time", "gpus")
    assert found == [
        *(("A", 5, 2), ("A", 25, 0)),
        *(("B", 5, 4), ("B", 15, 1), ("B", 19, 0)),
        *(("(any)", 5, 0), ("(any)", 15, 2), ("(any)", 25, 0)),
    ]
    assert out.allocation_by_type()["utilization"].null_count == 3


def test_by_type_on_pools_a_type_that_does_not_bind_says_nothing() -> None:
    """Two jobs that name the only A, which does not bind, run at once: one of them on a B."""
    jobs = {"submit_time": [0] * 3, "duration": [9] * 3, "num_gpus": [1] * 3}
    jobs["gpu_type"] = ["A", "A", "B"]  # type: ignore[assignment]
    out = wt.simulate(jobs, "1x1:A,1x2:B", "fifo", placement="pool", bind_types="B")
    found = rows(out.allocation_by_type(), "gpu_type", "time", "gpus")
    assert found == [
        *(("A", 0, 0), ("B", 0, 1), ("B", 9, 0)),
        *(("(any)", 0, 2), ("(any)", 9, 0)),
    ]


def test_a_cluster_of_one_kind() -> None:
    jobs = {"submit_time": [0], "duration": [3], "num_gpus": [0.5]}
    found = wt.simulate(jobs, "pool:2", "fifo").allocation_by_type()
    assert rows(found, "gpu_type", "time", "gpus") == [("(none)", 0, 0.5), ("(none)", 3, 0)]
    found = wt.simulate({**jobs, "num_gpus": [0]}, "2x1:A100", "fifo").allocation_by_type()
    assert rows(found, "gpu_type", "time", "gpus") == [("A100", 0, 0)]


def test_by_virtual_cluster() -> None:
    out = wt.simulate(JOBS, MIXED, "fifo", queueing="skip")
    assert rows(out.allocation("vc"), "vc", "time", "gpus") == [
        *(("(none)", 5, 0), ("(none)", 15, 1), ("(none)", 19, 0)),
        *(("x", 5, 4), ("x", 15, 2), ("x", 25, 0)),
        *(("y", 5, 2), ("y", 25, 0)),
    ]
    assert out.allocation("vc")["share"].to_pylist()[3] == pytest.approx(4 / 6)
    with pytest.raises(SpecError, match="Did you mean 'size'"):
        out.allocation("sizes")


def test_the_queue_by_size() -> None:
    out = wt.simulate(JOBS, MIXED, "fifo", queueing="skip")
    found = rows(out.queue("size"), "size", "time", "jobs", "gpus")
    assert found == [
        *(("1", 6, 1, 1), ("1", 15, 0, 0)),
        *(("2", 5, 0, 0), ("2", 6, 1, 2), ("2", 15, 0, 0)),
        ("3-4", 5, 0, 0),
    ]


@pytest.mark.parametrize("engine", ["compiled", "reference"])
@pytest.mark.parametrize("cluster", ["1x2:A", "pool:2"])
def test_gpus_that_two_jobs_share_are_held_once(engine: Any, cluster: str) -> None:
    """One from 0 to 10 on two GPUs, the other beside it from 4 to 14."""

    def decide(now: float, queue: Any, cluster: Any) -> Any:
        for job in queue:
            yield wt.Start(job, beside=cluster.running[0] if cluster.running else None)

    jobs = {"submit_time": [0, 4], "duration": [10, 10], "num_gpus": [2, 2], "vc": ["x", "y"]}
    out = wt.simulate(jobs, cluster, decide, engine=engine)
    assert rows(out.utilization(), "time", "gpus", "utilization") == [
        *((0, 2, 1), (4, 2, 1), (10, 2, 1), (14, 0, 0)),
    ]
    assert rows(out.allocation("vc"), "vc", "time", "gpus") == [
        *(("x", 0, 2), ("x", 4, 1), ("x", 10, 0)),
        *(("y", 0, 0), ("y", 4, 1), ("y", 10, 2), ("y", 14, 0)),
    ]
    if not out.cluster.is_pool:
        assert out.fragmentation()["idle_gpus"].to_pylist() == [0, 0, 0, 2]
    assert out.metrics()["gpu_time"] == 28
    within = wt.simulate(jobs, cluster, decide, engine=engine, window="jobs:0..2")
    assert within.metrics()["utilization"] == 1
    draws = {"gpus": {"default": {"idle_w": 10, "active_w": 100}}}
    book = account(out, PowerModel.from_mapping(draws))
    assert book.energy_by_job.tolist() == [100 * (8 + 6), 100 * (6 + 8)]
    assert book.summary()["idle_j"] == 0
    assert set(book.power["idle_w"].to_pylist()) == {0}
