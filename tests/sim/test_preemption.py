"""Feasible preemption: nobody is stopped for a job that then does not start. Worked by hand."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import windtunnel as wt

ENGINES = ("reference", "compiled")


def starts(jobs: dict[str, Any], cluster: str, engine: str, **options: Any) -> list[float]:
    """When each job starts first under priority, preemptive."""
    out = wt.simulate(jobs, cluster, "priority-preemptive", engine=engine, **options)
    found: list[float] = out.table["start_time"].to_pylist()
    return found


@pytest.mark.parametrize("engine", ENGINES)
def test_a_job_takes_the_place_it_can_use(engine: str) -> None:
    # By quota both jobs are within the 8 GPUs, and the urgent one waits for V100s.
    jobs = {
        "submit_time": [0, 1],
        "duration": [1000, 10],
        "num_gpus": [4, 4],
        "priority": [0, 9],
        "gpu_type": [None, "V100"],
    }
    assert starts(jobs, "1x4:V100,1x4:T4", engine) == [0, 1]
    assert starts(jobs, "1x4:V100,1x4:T4", engine, preemption="quota_walk") == [0, 1000]


@pytest.mark.parametrize("engine", ENGINES)
def test_those_not_needed_stay(engine: str) -> None:
    # Lowest first: the 1-GPU jobs are stopped, then the 3-GPU one; with that the others may stay.
    jobs = {
        "submit_time": [0, 0, 0, 5],
        "duration": [100, 100, 100, 10],
        "num_gpus": [3, 1, 1, 3],
        "priority": [3, 2, 1, 9],
    }
    out = wt.simulate(jobs, "1x5", "priority-preemptive", engine=engine)
    assert out.table["num_preemptions"].to_pylist() == [1, 0, 0, 0]
    assert out.table["start_time"].to_pylist() == [0, 0, 0, 5]
    # The two small ones together are not enough; had they been, the large one would have stayed.
    jobs["num_gpus"][3] = 2
    out = wt.simulate(jobs, "1x5", "priority-preemptive", engine=engine)
    assert out.table["num_preemptions"].to_pylist() == [0, 1, 1, 0]


@pytest.mark.parametrize("engine", ENGINES)
def test_nobody_is_stopped_in_vain(engine: str) -> None:
    # 4 GPUs of one node are asked for; the node's other job has the higher rank.
    jobs = {
        "submit_time": [0, 0, 0, 5],
        "duration": [100, 100, 50, 10],
        "num_gpus": [2, 2, 4, 4],
        "priority": [9, 0, 9, 5],
    }
    out = wt.simulate(jobs, "2x4", "priority-preemptive", engine=engine)
    assert out.metrics()["num_preemptions"] == 0
    assert out.table["start_time"].to_pylist() == [0, 0, 0, 50]


@pytest.mark.parametrize("engine", ENGINES)
def test_a_stopped_job_may_start_elsewhere(engine: str) -> None:
    # The first node is all of the urgent job's; whoever was there goes on on the second at once.
    jobs = {
        "submit_time": [0, 5],
        "duration": [20, 10],
        "num_gpus": [2, 4],
        "priority": [0, 9],
        "gpu_type": [None, "A"],
    }
    out = wt.simulate(jobs, "1x4:A,1x4:B", "priority-preemptive", restore_time=3, engine=engine)
    assert out.table["num_preemptions"].to_pylist() == [1, 0]
    assert out.table["end_time"].to_pylist() == [23, 15]


@pytest.mark.parametrize("engine", ENGINES)
def test_backfilling_goes_with_preemption(engine: str) -> None:
    # At 2 the middle job cannot start: the urgent one has 3 of the 4 GPUs until 10. The last one is
    # short enough to run beside it.
    jobs = {
        "submit_time": [0, 1, 2, 3],
        "duration": [50, 10, 20, 4],
        "estimate": [50, 10, 20, 4],
        "num_gpus": [2, 3, 4, 1],
        "priority": [0, 9, 5, 1],
    }
    for rule in ("easy", "easy_sjbf", "conservative"):
        out = wt.simulate(jobs, "pool:4", "priority-preemptive", queueing=rule, engine=engine)
        assert out.table["start_time"].to_pylist() == [0, 1, 11, 3]
        assert out.table["end_time"].to_pylist()[:3] == [80, 11, 31]


@given(
    st.lists(
        st.tuples(st.integers(0, 12), st.integers(0, 12), st.integers(1, 6), st.integers(0, 2)),
        min_size=1,
        max_size=12,
    ),
    st.sampled_from(("srtf", "priority-preemptive", "sjf-preemptive", "las:quantum=3")),
)
def test_on_a_pool_it_gives_the_quota_walks_schedule(rows: list[Any], policy: str) -> None:
    names = ("submit_time", "duration", "num_gpus", "priority")
    jobs = dict(zip(names, map(list, zip(*rows, strict=True)), strict=True))
    flown = [
        wt.simulate(jobs, "pool:6", policy, preemption=how, engine="reference").flight
        for how in ("feasible", "quota_walk")
    ]
    for name in ("start", "end", "preemptions", "run_time"):
        np.testing.assert_array_equal(getattr(flown[0], name), getattr(flown[1], name))


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("policy", ["fifo", "srtf", "quota", "conservative"])
def test_decisions_wait_for_their_interval(engine: str, policy: str) -> None:
    jobs = {
        "submit_time": [1, 2, 13, 14],
        "duration": [8, 30, 3, 3],
        "estimate": [8, 30, 3, 3],
        "num_gpus": [2, 4, 1, 1],
    }
    out = wt.simulate(jobs, "pool:4", policy, decide_every="10s", engine=engine)
    at = out.flight.segment_start
    assert (at % 10 == 0).all()
    assert out.table["end_time"].to_pylist()[0] == 18


def test_an_interval_is_above_0() -> None:
    jobs = {"submit_time": [1], "duration": [8], "num_gpus": [2]}
    with pytest.raises(wt.SpecError, match="decide_every"):
        wt.simulate(jobs, "pool:4", decide_every=0)
    with pytest.raises(wt.SpecError, match="preemption"):
        wt.simulate(jobs, "pool:4", preemption="feasable")
