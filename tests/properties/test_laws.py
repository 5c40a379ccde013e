"""Laws of scheduling that relate runs to each other, or a run to its order."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import pytest
from flight_cases import (
    NOT_PREEMPTIVE,
    Case,
    Jobs,
    cases,
    job_lists,
    node_clusters,
    quarters,
)
from hypothesis import given, settings
from hypothesis import strategies as st

import windtunnel as wt
from windtunnel.testing import assert_outcomes_equal

ENGINES = ("reference", "compiled")


@settings(max_examples=80)
@given(job_lists(), node_clusters())
def test_strict_fifo_starts_in_order_of_arrival(jobs: Jobs, cluster: wt.ClusterSpec) -> None:
    for engine in ENGINES:
        out = wt.simulate(jobs, cluster, "fifo", engine=engine, oversize="reject")
        flown = np.flatnonzero(~np.isnan(out.flight.start))
        order = flown[np.lexsort((flown, out.submit_time[flown]))]
        assert (np.diff(out.flight.start[order]) >= 0).all()
        assert out.flight.segment_job.tolist() == order.tolist()


@settings(max_examples=80)
@given(
    job_lists(whole=False, typed=False),
    st.integers(1, 8),
    st.sampled_from(NOT_PREEMPTIVE),
)
def test_skip_leaves_no_job_waiting_that_fits(jobs: Jobs, gpus: int, policy: str) -> None:
    jobs = {**jobs, "num_cpus": [None] * len(jobs["duration"])}
    for engine in ENGINES:
        cluster = wt.ClusterSpec.pool(gpus)
        out = wt.simulate(jobs, cluster, policy, queueing="skip", engine=engine, oversize="reject")
        start, end, submit = out.flight.start, out.flight.end, out.submit_time
        flown = ~np.isnan(start)
        for now in np.unique(np.concatenate([submit[flown], end[flown]])):
            held = out.num_gpus[flown & (start <= now) & (end > now)].sum()
            waiting = out.num_gpus[flown & (submit <= now) & (start > now)]
            assert (waiting > gpus - held + 1e-9).all()


@settings(max_examples=80)
@given(st.lists(quarters(0, 20), min_size=1, max_size=15))
def test_shortest_first_waits_least_on_one_gpu(durations: list[float]) -> None:
    count = len(durations)
    jobs = {"submit_time": [2.0] * count, "duration": durations, "num_gpus": [1.0] * count}
    for engine in ENGINES:
        runs = wt.compare(jobs, "pool:1", ["fifo", "sjf"], engine=engine)
        fifo, sjf = (runs[name].metrics()["avg_wait"] for name in ("fifo", "sjf"))
        assert sjf <= fifo + 1e-9
        shortest = np.sort(durations)
        assert sjf == pytest.approx((np.cumsum(shortest) - shortest).mean())


@settings(max_examples=100)
@given(cases(), st.integers(1, 1000))
def test_later_by_a_constant(case: Case, shift: int) -> None:
    later = [t if t is None else t + shift for t in case.jobs["submit_time"]]
    changes: dict[str, Any] = {"jobs": {**case.jobs, "submit_time": later}}
    if case.until is not None:
        changes["until"] = case.until + shift
    if getattr(case.policy, "tier", 1) == 2:  # it may read the clock
        case = dataclasses.replace(case, policy="sjf")
    for engine in ENGINES:
        before, after = case.fly(engine).flight, case.fly(engine, **changes).flight
        for name in ("start", "end", "segment_start", "segment_end"):
            expected = getattr(before, name) + shift
            np.testing.assert_array_equal(getattr(after, name), expected)
        for name in ("status", "preemptions", "run_time", "segment_job", "nodes", "node_gpus"):
            np.testing.assert_array_equal(getattr(after, name), getattr(before, name))


@settings(max_examples=100)
@given(cases(), st.randoms(use_true_random=False))
def test_input_order_means_nothing_where_submit_times_differ(case: Case, random: Any) -> None:
    count = len(case.jobs["duration"])
    names = [f"job-{row}" for row in range(count)]
    distinct = [(row * 7 % 23) / 4 for row in range(count)]
    jobs = {**case.jobs, "submit_time": distinct, "job_id": names}
    order = list(range(count))
    random.shuffle(order)
    shuffled = {name: [values[row] for row in order] for name, values in jobs.items()}
    for engine in ENGINES:
        one, other = case.fly(engine, jobs=jobs), case.fly(engine, jobs=shuffled)
        by_name = {row["job_id"]: row for row in other.table.to_pylist()}
        assert [by_name[name] for name in names] == one.table.to_pylist()


@settings(max_examples=60)
@given(cases())
def test_the_same_again_is_the_same(case: Case) -> None:
    for engine in ENGINES:
        one, other = case.fly(engine), case.fly(engine)
        assert_outcomes_equal(one, other)
        assert one.table.equals(other.table)
        assert one.segments.equals(other.segments)
        assert one.metrics() == other.metrics()
