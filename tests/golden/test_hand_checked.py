"""Runs small enough to work out by hand, on both engines."""

from __future__ import annotations

import pytest

import windtunnel as wt

ENGINES = ("reference", "compiled")
pytestmark = pytest.mark.parametrize("engine", ENGINES)

#: Two nodes of four GPUs, strict best fit.
#:
#: FIFO   t=0: a(3) on node 0, b(4) on node 1. t=1, 2, 3: c(2) blocks. t=4: b ends; c on node 1;
#:        d(8) blocks. t=7: c ends. t=10: a ends; d on both. t=18: d ends; e, f start on node 0.
#:        Instants: 0 1 2 3 4 7 10 18 19 20 = 10.
#: SJF    t=0: b(4 s) on node 0, then a(10 s) on node 1. t=1, 2: c(3 s) blocks before d(8 s).
#:        t=3: e(1 s) is first, on node 1. t=4: b, e end; f(2 s) fills node 1, c goes to node 0.
#:        t=6: f ends. t=7: c ends. t=10: a ends; d on both. Instants: 0 1 2 3 4 6 7 10 18 = 9.
GANGS = {
    "submit_time": [0, 0, 1, 2, 3, 4],
    "duration": [10, 4, 3, 8, 1, 2],
    "num_gpus": [3, 4, 2, 8, 1, 1],
}


@pytest.mark.parametrize(
    ("policy", "starts", "nodes", "points"),
    [
        ("fifo", [0, 0, 4, 10, 18, 18], [[0], [1], [1], [0, 1], [0], [0]], 10),
        ("sjf", [0, 0, 4, 10, 3, 4], [[1], [0], [0], [0, 1], [1], [1]], 9),
    ],
)
def test_six_gangs(
    engine: str, policy: str, starts: list[float], nodes: list[list[int]], points: int
) -> None:
    out = wt.simulate(GANGS, "2x4", policy, queueing="strict", placement="best_fit", engine=engine)
    assert out.table["start_time"].to_pylist() == starts
    assert out.table["nodes"].to_pylist() == nodes
    metrics = out.metrics()
    assert metrics["avg_jct"] == pytest.approx({"fifo": 68, "sjf": 39}[policy] / 6, rel=1e-15)
    assert metrics["avg_wait"] == pytest.approx({"fifo": 40, "sjf": 11}[policy] / 6, rel=1e-15)
    assert metrics["scheduling_points"] == points


#: The lecture's four jobs on two GPUs.
#:
#: FIFO = SJF: a, b run at 0; c takes b's GPU at 10 (c before d in both orders); d takes a's at 30.
#: SRTF        t=1: c needs 25, a still 29: a is preempted. t=4: d(40) waits, a(29) waits.
#:             t=10: b ends, a resumes (29 left). t=26: c ends, d starts. t=39: a. t=66: d.
#: SJF, preemptive: the same: c(25) beats a(30) at 1; a(30) beats d(40) at 10.
#: Priority    a(3) c(2) at t=1, so b(1) is preempted with 9 left. t=4: d(4) and a(3): c is
#:             preempted with 22 left. t=30: a ends, c resumes. t=44: d ends, b resumes. c ends at
#:             52, b at 53.
LECTURE = {
    "job_id": list("abcd"),
    "submit_time": [0, 0, 1, 4],
    "duration": [30, 10, 25, 40],
    "num_gpus": [1, 1, 1, 1],
    "priority": [3, 1, 2, 4],
}


@pytest.mark.parametrize(
    ("policy", "jct", "means", "preemptions"),
    [
        ("fifo", [30, 10, 34, 66], (35, 70), [0, 0, 0, 0]),
        ("sjf", [30, 10, 34, 66], (35, 70), [0, 0, 0, 0]),
        ("sjf-preemptive", [39, 10, 25, 62], (34, 66), [1, 0, 0, 0]),
        ("srtf", [39, 10, 25, 62], (34, 66), [1, 0, 0, 0]),
        ("priority-preemptive", [30, 53, 51, 40], (43.5, 53), [0, 1, 1, 0]),
    ],
)
def test_the_lecture(
    engine: str, policy: str, jct: list[float], means: tuple[float, float], preemptions: list[int]
) -> None:
    out = wt.simulate(LECTURE, "pool:2", policy, engine=engine)
    assert out.table["jct"].to_pylist() == jct
    ends = [at + took for at, took in zip(LECTURE["submit_time"], jct, strict=True)]
    assert out.table["end_time"].to_pylist() == ends
    assert out.table["num_preemptions"].to_pylist() == preemptions
    metrics = out.metrics()
    assert (metrics["avg_jct"], metrics["makespan"]) == means
    assert metrics["num_preemptions"] == sum(preemptions)


def test_the_lecture_without_preemption_by_priority(engine: str) -> None:
    # t=0: a(3) and b(1) run. t=10: b ends; d(4) goes before c(2). t=30: a ends, c starts.
    out = wt.simulate(LECTURE, "pool:2", "priority", engine=engine)
    assert out.table["end_time"].to_pylist() == [30, 10, 55, 50]


#: One GPU; a (10 s) at 0, b (5 s) at 6, when a has 4 s left; c (8 s) at 7.
#:
#: By total duration: b(5) beats a(10) at 6 and runs to 11; then c(8) beats a(10), to 19; a to 23.
#: By remaining time: a(4 left) goes on to 10; then b(5) to 15, then c to 23.
SEPARATING = {"submit_time": [0, 6, 7], "duration": [10, 5, 8], "num_gpus": [1, 1, 1]}


@pytest.mark.parametrize(
    ("policy", "ends", "preemptions"),
    [("sjf-preemptive", [23, 11, 19], [1, 0, 0]), ("srtf", [10, 15, 23], [0, 0, 0])],
)
def test_total_duration_and_remaining_time_differ(
    engine: str, policy: str, ends: list[float], preemptions: list[int]
) -> None:
    out = wt.simulate(SEPARATING, "pool:1", policy, engine=engine)
    assert out.table["end_time"].to_pylist() == ends
    assert out.table["num_preemptions"].to_pylist() == preemptions


def test_completions_and_arrivals_of_an_instant_come_before_its_decision(engine: str) -> None:
    # At t=5 a ends and c, b (shorter) arrive, in this order: decided once, b goes first.
    jobs = {"submit_time": [0, 5, 5], "duration": [5, 9, 2], "num_gpus": [1, 1, 1]}
    out = wt.simulate(jobs, "pool:1", "sjf", engine=engine)
    assert out.table["start_time"].to_pylist() == [0, 7, 5]
    assert out.metrics()["scheduling_points"] == 4  # 0, 5, 7, 16


def test_fragmentation_keeps_a_chosen_job_out_and_its_quota_unused(engine: str) -> None:
    # Two nodes of two GPUs. At 0 a, b (the most urgent) fill node 0; c, d fill node 1.
    # At 1 a and c end: one GPU is free on each node. e (2 GPUs, most urgent of all) is within the
    # quota (e 2, b 1, d 1 = 4) but on no node, so it waits; f (1 GPU) is beyond the quota and waits
    # although two GPUs are free. At 3 b ends: e goes to node 0, f beside d.
    jobs = {
        "submit_time": [0, 0, 0, 0, 1, 1],
        "duration": [1, 3, 1, 6, 2, 9],
        "num_gpus": [1, 1, 1, 1, 2, 1],
        "priority": [9, 8, 7, 6, 10, 1],
    }
    out = wt.simulate(jobs, "2x2", "priority-preemptive", preemption="quota_walk", engine=engine)
    assert out.table["start_time"].to_pylist() == [0, 0, 0, 0, 3, 3]
    assert out.table["nodes"].to_pylist() == [[0], [0], [1], [1], [0], [1]]
    assert out.metrics()["num_preemptions"] == 0


def test_feasible_preemption_frees_nodes_where_fragmentation_leaves_none(engine: str) -> None:
    # The same jobs. At 1 e needs a whole node: d, the least urgent, leaves node 1 for it, and goes
    # on beside b on node 0 at once. f waits: all four GPUs are in use until b ends at 3.
    jobs = {
        "submit_time": [0, 0, 0, 0, 1, 1],
        "duration": [1, 3, 1, 6, 2, 9],
        "num_gpus": [1, 1, 1, 1, 2, 1],
        "priority": [9, 8, 7, 6, 10, 1],
    }
    out = wt.simulate(jobs, "2x2", "priority-preemptive", engine=engine)
    assert out.table["start_time"].to_pylist() == [0, 0, 0, 0, 1, 3]
    assert out.table["end_time"].to_pylist() == [1, 3, 1, 6, 3, 12]
    assert out.segments["nodes"].to_pylist() == [[0], [0], [1], [1], [1], [0], [0]]
    assert out.metrics()["num_preemptions"] == 1


def test_a_strict_walk_stops_where_a_skipping_one_goes_on(engine: str) -> None:
    # Four GPUs. a (2 GPUs) runs from 0. At 1 b (3 GPUs, more urgent) and c (1 GPU, less) arrive.
    # Walk: b takes 3 of 4; a does not fit in the 1 left. skip: a is preempted, c takes the GPU.
    # strict: it stops at a, so c waits until b is done at 6; then a resumes and c starts.
    jobs = {
        "submit_time": [0, 1, 1],
        "duration": [10, 5, 3],
        "num_gpus": [2, 3, 1],
        "priority": [5, 9, 1],
    }
    starts = {}
    for queueing in ("skip", "strict"):
        out = wt.simulate(jobs, "pool:4", "priority-preemptive", queueing=queueing, engine=engine)
        starts[queueing] = out.table["start_time"].to_pylist()
        assert out.table["num_preemptions"].to_pylist() == [1, 0, 0]
        assert out.table["end_time"][0].as_py() == 15
    assert starts == {"skip": [0, 1, 1], "strict": [0, 1, 6]}
