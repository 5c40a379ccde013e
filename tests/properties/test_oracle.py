"""Both engines against a plain simulator written from the semantics alone (`naive_oracle`)."""

from __future__ import annotations

from typing import Any

import pytest
from flight_cases import Jobs, job_lists
from hypothesis import given, settings
from hypothesis import strategies as st
from naive_oracle import Job, Oracle

import windtunnel as wt

ENGINES = ("reference", "compiled")
PREEMPTIVE = {"sjf": "sjf-preemptive", "priority": "priority-preemptive", "srtf": "srtf"}
JOBS = job_lists(typed=False, max_size=12)
ORDERS = st.sampled_from(("fifo", "sjf", "priority"))
RULES = st.sampled_from(("skip", "strict"))
WALKS = st.sampled_from(("srtf", "srtf", "sjf", "priority"))
OVERHEADS = st.sampled_from((0.0, 0.0, 0.5, 3.0))
#: GPUs of each node: alike, or of any size, some without any.
SIZES = st.one_of(
    st.tuples(st.integers(1, 4), st.integers(1, 5)).map(lambda drawn: [drawn[1]] * drawn[0]),
    st.lists(st.integers(0, 5), min_size=1, max_size=5).filter(any),
)


def without_tasks(jobs: Jobs) -> Jobs:
    return {**jobs, "num_tasks": [None] * len(jobs["duration"])}


def nodes_of(sizes: list[int]) -> wt.ClusterSpec:
    return wt.ClusterSpec(tuple(wt.NodeType(1, size) for size in sizes), "nodes")


def flown_on(jobs: Jobs, sizes: list[int]) -> list[Job]:
    """The jobs that the empty cluster could hold, task by task."""
    flown = oracle_jobs(jobs, [True] * len(jobs["duration"]))
    return [j for j in flown if sum(size // j.task * j.task for size in sizes) >= j.gpus]


def oracle_jobs(jobs: Jobs, fits: list[bool]) -> list[Job]:
    names = ("submit_time", "duration", "num_gpus", "priority", "num_tasks")
    rows = zip(*(jobs[name] for name in names), strict=True)
    return [
        Job(
            row,
            submit,
            duration,
            int(gpus),
            priority or 0.0,
            max(int(gpus) // (tasks or gpus or 1), 1),
            duration,
        )
        for row, (submit, duration, gpus, priority, tasks) in enumerate(rows)
        if fits[row]
    ]


def compare(oracle: Oracle, jobs: Jobs, cluster: Any, policy: str, **options: Any) -> None:
    """Fly the same with both engines and compare every stay of every job."""
    oracle.fly()
    for engine in ENGINES:
        out = wt.simulate(jobs, cluster, policy, engine=engine, oversize="reject", **options)
        stays: dict[int, list[Any]] = {}
        for segment in out.segments.to_pylist():
            where = list(zip(segment["nodes"], segment["node_gpus"], strict=True))
            stays.setdefault(segment["row"], []).append((segment["start"], segment["end"], where))
        for job in oracle.jobs:
            expected = job.stays
            if out.settings["placement"] == "pool":
                expected = [(start, end, []) for start, end, _ in expected]
            assert stays.get(job.number, []) == expected, (engine, job)
            assert out.table["end_time"][job.number].as_py() == job.end
            assert out.table["num_preemptions"][job.number].as_py() == job.preemptions
        assert out.flight.scheduling_points == oracle.points


@settings(max_examples=120)
@given(JOBS, st.integers(1, 8), ORDERS, RULES)
def test_queues_on_a_pool(jobs: Jobs, gpus: int, order: str, rule: str) -> None:
    jobs = without_tasks(jobs)
    flown = oracle_jobs(jobs, [asked <= gpus for asked in jobs["num_gpus"]])
    oracle = Oracle(flown, [gpus], order, rule)
    compare(oracle, jobs, wt.ClusterSpec.pool(gpus), order, queueing=rule)


@settings(max_examples=160)
@given(JOBS, SIZES, ORDERS, RULES, st.sampled_from(("best_fit", "best_fit", "spread")))
def test_queues_on_nodes(
    jobs: Jobs, sizes: list[int], order: str, rule: str, placement: str
) -> None:
    oracle = Oracle(flown_on(jobs, sizes), sizes, order, rule, spread=placement == "spread")
    compare(oracle, jobs, nodes_of(sizes), order, queueing=rule, placement=placement)


@settings(max_examples=80)
@given(JOBS, st.integers(1, 8), WALKS, RULES, OVERHEADS)
def test_the_quota_walk_on_a_pool(
    jobs: Jobs, gpus: int, order: str, rule: str, overhead: float
) -> None:
    jobs = without_tasks(jobs)
    flown = flown_on(jobs, [gpus])
    oracle = Oracle(flown, [gpus], order, rule, preemptive=True, overhead=overhead)
    policy = PREEMPTIVE[order]
    walk: dict[str, Any] = {"queueing": rule, "preemption": "quota_walk"}
    compare(oracle, jobs, wt.ClusterSpec.pool(gpus), policy, save_time=overhead, **walk)


@settings(max_examples=120)
@given(JOBS, SIZES, WALKS, RULES, OVERHEADS)
def test_the_quota_walk_on_nodes(
    jobs: Jobs, sizes: list[int], order: str, rule: str, overhead: float
) -> None:
    flown = flown_on(jobs, sizes)
    oracle = Oracle(flown, sizes, order, rule, preemptive=True, overhead=overhead)
    policy = PREEMPTIVE[order]
    walk: dict[str, Any] = {"queueing": rule, "preemption": "quota_walk"}
    compare(oracle, jobs, nodes_of(sizes), policy, restore_time=overhead, **walk)


@pytest.mark.parametrize("engine", ENGINES)
def test_the_oracle_agrees_with_the_lecture(engine: str) -> None:
    jobs = {
        "submit_time": [0.0, 0.0, 1.0, 4.0], "duration": [30.0, 10.0, 25.0, 40.0],
        "num_gpus": [1.0] * 4, "priority": [3.0, 1.0, 2.0, 4.0], "num_tasks": [None] * 4,
    }  # fmt: skip
    oracle = Oracle(oracle_jobs(jobs, [True] * 4), [2], "srtf", "skip", preemptive=True)
    oracle.fly()
    assert [job.end for job in oracle.jobs] == [39, 10, 26, 66]
    out = wt.simulate(jobs, "pool:2", "srtf", engine=engine)
    assert out.table["end_time"].to_pylist() == [39, 10, 26, 66]
