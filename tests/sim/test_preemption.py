"""Feasible preemption: nobody is stopped for a job that then does not start. Worked by hand."""

from __future__ import annotations

import itertools
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


@pytest.mark.parametrize("engine", ENGINES)
def test_nobody_is_backfilled_to_be_stopped_for_the_head(engine: str) -> None:
    # At 1 the third job needs 5 of 6 GPUs: those of the first, which ranks higher, until 10, and
    # then those of the second, which has to give way. The last one would be in its way from 10 on.
    jobs = {
        "submit_time": [0, 0, 1, 1, 2],
        "duration": [10, 100, 20, 50, 8],
        "estimate": [10, 100, 20, 50, 8],
        "num_gpus": [2, 2, 5, 2, 1],
        "priority": [9, 1, 5, 0, 0],
    }
    for rule in ("easy", "easy_sjbf", "conservative"):
        out = wt.simulate(jobs, "pool:6", "priority-preemptive", queueing=rule, engine=engine)
        assert out.table["start_time"].to_pylist() == [0, 0, 10, 30, 2]
        assert out.table["num_preemptions"].to_pylist() == [0, 1, 0, 0, 0]


@pytest.mark.parametrize("engine", ENGINES)
def test_a_promise_counts_those_who_stay_beside_the_head(engine: str) -> None:
    # The head needs 8 of 10 GPUs. Once the first job is over at 10, the third gives way to it, and
    # the second, which ranks higher, stays: nothing is left for the last job before 30.
    jobs = {
        "submit_time": [0, 0, 0, 1, 1],
        "duration": [10, 100, 100, 20, 60],
        "estimate": [10, 100, 100, 20, 60],
        "num_gpus": [3, 2, 2, 8, 1],
        "priority": [9, 2, 1, 5, 0],
    }
    for cluster, rule in itertools.product(("pool:10", "1x10"), ("easy", "conservative")):
        out = wt.simulate(jobs, cluster, "priority-preemptive", queueing=rule, engine=engine)
        assert out.table["start_time"].to_pylist() == [0, 0, 0, 10, 30]
        assert out.table["num_preemptions"].to_pylist() == [0, 0, 1, 0, 0]


@pytest.mark.parametrize("engine", ENGINES)
def test_the_plan_for_the_head_goes_by_power(engine: str) -> None:
    # Each GPU in use draws 100 W, and 400 W may be drawn. At 1 the third job needs 300 W: the first
    # has 200 W until 10, and the second, which ranks below, 100 W. With both gone at 10 there is
    # 100 W left: the second stays, and the last one, of 100 W, waits for the head until 30.
    jobs = {
        "submit_time": [0, 0, 1, 1],
        "duration": [10, 100, 20, 50],
        "estimate": [10, 100, 20, 50],
        "num_gpus": [2, 1, 3, 1],
        "priority": [9, 1, 5, 0],
    }
    power = {"gpus": {"default": {"idle_w": 0, "active_w": 100}}}
    out = wt.simulate(
        jobs,
        "pool:8",
        "priority-preemptive",
        queueing="conservative",
        power=power,
        power_cap=400,
        engine=engine,
    )
    assert out.table["start_time"].to_pylist() == [0, 0, 10, 30]
    assert out.table["num_preemptions"].to_pylist() == [0, 0, 0, 0]


@pytest.mark.parametrize("engine", ENGINES)
def test_the_plan_for_the_head_is_where_the_lowest_ranks_give_way(engine: str) -> None:
    # At 12 the first job leaves a GPU of node 0, whose other GPU the second has, and the third both
    # of node 1. The head needs a node: it goes to node 1, for which nobody has to give way, and not
    # to node 0, with which all of lower rank gone it would begin. The last job, of the lowest rank,
    # would be in its way on node 1, and starts on node 0.
    jobs = {
        "submit_time": [0, 1, 2, 3, 4],
        "duration": [12, 100, 10, 20, 100],
        "estimate": [12, 100, 10, 20, 100],
        "num_gpus": [1, 1, 1, 2, 1],
        "priority": [9, 2, 9, 5, 0],
    }
    out = wt.simulate(jobs, "2x2", "priority-preemptive", queueing="conservative", engine=engine)
    assert out.table["start_time"].to_pylist() == [0, 1, 2, 12, 12]
    assert out.table["num_preemptions"].to_pylist() == [0, 0, 0, 0, 0]


@pytest.mark.parametrize("engine", ENGINES)
def test_a_new_plan_takes_the_power_of_promises_on_other_nodes(engine: str) -> None:
    # 100 W a GPU, 500 W in all. The second job is the head until the fourth comes, which has 400 W
    # from 10 to 30: the third, promised 200 W on the other node from 10 on, waits until 30. The
    # last one has the 100 W that are left until then.
    jobs = {
        "submit_time": [0, 1, 2, 3, 4],
        "duration": [10, 20, 50, 20, 26],
        "estimate": [10, 20, 50, 20, 26],
        "num_gpus": [4, 3, 2, 4, 1],
        "priority": [9, 1, 0, 5, 0],
    }
    out = wt.simulate(
        jobs,
        "2x4",
        "priority-preemptive",
        queueing="conservative",
        power={"gpus": {"default": {"idle_w": 0, "active_w": 100}}},
        power_cap=500,
        engine=engine,
    )
    assert out.table["start_time"].to_pylist() == [0, 30, 30, 10, 4]


@pytest.mark.parametrize("engine", ENGINES)
def test_a_head_that_others_fall_behind_at_once_waits_for_an_event(engine: str) -> None:
    # At 1 the third job takes node 0, and the first goes on on node 1: with 40 + 50 s to go it is
    # now behind the last one, of 60 s, which could stop it just after 1. It waits for the end of
    # the second at 12, and so does the next decision.
    jobs = {
        "submit_time": [0, 0, 1, 1],
        "duration": [41, 12, 20, 60],
        "num_gpus": [1, 1, 2, 1],
    }
    out = wt.simulate(
        jobs,
        "2x2",
        "srtf",
        queueing="conservative",
        placement="spread",
        estimates="perfect",
        save_time=50,
        until=100,
        engine=engine,
    )
    assert out.table["start_time"].to_pylist() == [0, 0, 1, 12]
    assert out.table["end_time"].to_pylist() == [91, 12, 21, 72]


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
