"""Outcome tables, metrics and curves over time, worked out by hand."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

import windtunnel as wt
from windtunnel.quantiles import quantile_of_counted, quantiles
from windtunnel.sim.metrics import size_classes
from windtunnel.sim.timeline import resample, steps

if TYPE_CHECKING:
    from collections.abc import Iterator

    import pyarrow as pa

#: On two GPUs, first come, first served: a 0-30, b 0-10, c 10-35 (waits 9 s), d 30-70 (26 s).
JOBS = {
    "job_id": list("abcd"),
    "submit_time": [0, 0, 1, 4],
    "duration": [30, 10, 25, 40],
    "num_gpus": [1, 1, 1, 1],
    "vc": ["x", "y", None, "x"],
}


@pytest.fixture
def flown() -> wt.Outcome:
    return wt.simulate(JOBS, "pool:2", "fifo")


def test_counts_and_means(flown: wt.Outcome) -> None:
    metrics = flown.metrics()
    expected = {
        "num_jobs": 4,
        "num_finished": 4,
        "num_running": 0,
        "num_waiting": 0,
        "num_not_submitted": 0,
        "num_rejected": 0,
        "num_waited": 2,
        "num_preemptions": 0,
        "scheduling_points": 7,  # 0, 1, 4, 10, 30, 35, 70
        "avg_wait": 8.75,
        "avg_jct": 35.0,
        "makespan": 70.0,
        "gpu_time": 105.0,
        "utilization": 0.75,  # 105 of 2 x 70
        "avg_preempted_time": 0.0,
        "max_wait": 26.0,
        "max_jct": 66.0,
    }
    assert {name: metrics[name] for name in expected} == expected


def test_percentiles_lie_between_order_statistics(flown: wt.Outcome) -> None:
    metrics = flown.metrics()
    # Of four sorted values the p-th percentile is at place 3p: waits 0, 0, 9, 26.
    expected = {"p50": 4.5, "p90": 9 + 0.7 * 17, "p95": 9 + 0.85 * 17, "p99": 9 + 0.97 * 17}
    for name, value in expected.items():
        assert metrics[f"{name}_wait"] == pytest.approx(value, rel=1e-12)
    # Completion times 10, 30, 34, 66.
    assert metrics["p50_jct"] == 32
    assert metrics["p90_jct"] == pytest.approx(34 + 0.7 * 32)


def test_bounded_slowdown() -> None:
    # One GPU. a: no wait, 1. b: 2 s after 18 s of waiting: 20 / max(2, 10) = 2. c: 4 s of wait for
    # 1 s of work: 5 / 10 -> 1. d: 40 s of work after 5 s: 45 / 40.
    jobs = {
        "submit_time": [0, 2, 18, 18],
        "duration": [20, 2, 1, 40],
        "num_gpus": [1, 1, 1, 1],
    }
    metrics = wt.simulate(jobs, "pool:1", "fifo").metrics()
    assert metrics["avg_bounded_slowdown"] == pytest.approx((1 + 2 + 1 + 45 / 40) / 4, rel=1e-15)
    assert metrics["max_bounded_slowdown"] == 2


def test_preempted_time_and_slowdown_count_the_recorded_duration() -> None:
    # a 0-4, b 4-6, a (4 s overhead) 6-16: jct 16, duration 10, on GPUs 14.
    jobs = {"submit_time": [0, 4], "duration": [10, 2], "num_gpus": [1, 1]}
    metrics = wt.simulate(jobs, "pool:1", "srtf", restore_time=4).metrics()
    assert metrics["max_bounded_slowdown"] == 1.6
    assert metrics["avg_preempted_time"] == 1.0
    assert metrics["utilization"] == 1.0


def test_averages_of_a_cut_run_are_over_what_came_to_it() -> None:
    metrics = wt.simulate(JOBS, "pool:2", "fifo", until=20).metrics()
    # Finished: b. Started: a, b, c. GPU-seconds: 20 + 10 + 10 of 2 x 20.
    names = ("num_finished", "num_running", "num_waiting", "avg_jct", "avg_wait", "utilization")
    assert [metrics[name] for name in names] == [1, 2, 1, 10, 3, 1]


def test_the_span_begins_at_the_first_submission() -> None:
    jobs = {"submit_time": [100, 100], "duration": [10, 20], "num_gpus": [1, 1]}
    metrics = wt.simulate(jobs, "pool:2").metrics()
    assert (metrics["makespan"], metrics["utilization"]) == (120, 0.75)


def test_by_vc(flown: wt.Outcome) -> None:
    rows = {row["vc"]: row for row in flown.by_vc().to_pylist()}
    assert list(rows) == ["(none)", "x", "y"]
    assert rows["x"] == {
        "vc": "x",
        "num_jobs": 2,
        "num_started": 2,
        "avg_wait": 13.0,
        "p50_wait": 13.0,
        "p90_wait": pytest.approx(23.4),
        "p99_wait": pytest.approx(25.74),
        "max_wait": 26.0,
        "avg_jct": 48.0,
        "p90_jct": pytest.approx(30 + 0.9 * 36),
        "gpu_time": 70.0,
    }
    assert (rows["(none)"]["avg_wait"], rows["y"]["gpu_time"]) == (9, 10)


def test_by_size() -> None:
    jobs = {
        "submit_time": [0] * 8,
        "duration": [2] * 8,
        "num_gpus": [0, 0.5, 1, 2, 3, 4, 8, 600],
    }
    rows = wt.simulate(jobs, "pool:600", "fifo").by_size().to_pylist()
    assert [row["size"] for row in rows] == ["CPU", "<1", "1", "2", "3-4", "5-8", ">512"]
    assert [row["num_jobs"] for row in rows] == [1, 1, 1, 1, 2, 1, 1]
    assert [row["avg_wait"] for row in rows] == [0, 0, 0, 0, 0, 0, 2]
    assert [row["gpu_time"] for row in rows] == [0, 1, 2, 4, 14, 16, 1200]


def test_starvation_of_large_jobs_shows_by_size() -> None:
    # Small jobs keep one GPU busy to 10; the pair waits for both.
    jobs = {
        "submit_time": [0, 0, 1, 2, 5],
        "duration": [2, 5, 5, 4, 5],
        "num_gpus": [1, 1, 2, 1, 1],
    }
    rows = wt.simulate(jobs, "pool:2", "fifo", queueing="skip").by_size().to_pylist()
    assert {row["size"]: row["max_wait"] for row in rows} == {"1": 0, "2": 9}


def test_a_class_where_nothing_started_is_shown_without_waits() -> None:
    jobs = {"submit_time": [0, 0], "duration": [5, 5], "num_gpus": [2, 1], "vc": ["a", "b"]}
    out = wt.simulate(jobs, "pool:2", until=3)
    row = out.by_vc().to_pylist()[1]
    assert (row["num_jobs"], row["num_started"], row["avg_wait"]) == (1, 0, None)
    assert (row["avg_jct"], row["gpu_time"]) == (None, 0)


def test_size_classes() -> None:
    sizes = np.array([0, 0.01, 0.99, 1, 1.5, 2, 2.5, 4, 5, 8, 9, 16, 17, 64, 65, 512, 513, 1e6])
    classes, labels = size_classes(sizes)
    assert [labels[code] for code in classes] == [
        *("CPU", "<1", "<1", "1", "2", "2", "3-4", "3-4", "5-8", "5-8", "9-16", "9-16"),
        *("17-32", "33-64", "65-128", "257-512", ">512", ">512"),
    ]


def at(table: pa.Table, column: str, times: list[float]) -> list[float]:
    """The value of a step table at some times."""
    index = np.searchsorted(table["time"].to_numpy(), times, side="right") - 1
    values: list[float] = table[column].to_numpy()[index].tolist()
    return values


def test_utilization_over_time(flown: wt.Outcome) -> None:
    curve = flown.utilization()
    assert curve.column_names == ["time", "gpus", "utilization"]
    assert at(curve, "gpus", [0, 9, 10, 29, 30, 35, 69, 70]) == [2, 2, 2, 2, 2, 1, 1, 0]
    assert at(curve, "utilization", [0, 35, 70]) == [1, 0.5, 0]


def test_queue_over_time(flown: wt.Outcome) -> None:
    curve = flown.queue()
    assert curve.column_names == ["time", "jobs", "gpus"]
    assert at(curve, "jobs", [0, 1, 3, 4, 9, 10, 29, 30, 70]) == [0, 1, 1, 2, 2, 1, 1, 0, 0]


def test_a_preempted_job_is_in_the_queue_again() -> None:
    # a (2 GPUs) 0-4 and 6-12; b 4-6.
    jobs = {"submit_time": [0, 4], "duration": [10, 2], "num_gpus": [2, 1]}
    out = wt.simulate(jobs, "pool:2", "srtf")
    assert at(out.queue(), "jobs", [0, 3, 4, 5, 6, 12]) == [0, 0, 1, 1, 0, 0]
    assert at(out.queue(), "gpus", [0, 4, 6]) == [0, 2, 0]
    assert at(out.utilization(), "gpus", [0, 4, 6, 12]) == [2, 1, 2, 0]


def test_curves_of_a_cut_run_and_of_shares() -> None:
    jobs = {"submit_time": [0, 1, 9], "duration": [5, 5, 1], "num_gpus": [0.7, 0.6, 0.1]}
    out = wt.simulate(jobs, "pool:1", until=3)
    assert out.utilization().to_pydict() == {"time": [0], "gpus": [0.7], "utilization": [0.7]}
    assert at(out.queue(), "gpus", [0, 1]) == [0, 0.6]
    whole = wt.simulate(jobs, "pool:1")
    assert whole.utilization()["gpus"].to_pylist()[-1] == 0  # exactly idle at last


def test_the_averages_of_a_run_reach_to_the_last_stay_that_was_cut() -> None:
    """At 100 the policy stops the second job for ever: 10 + 100 GPU-seconds of 2 x 100."""

    class StopsAll(wt.Policy):
        def decide(self, now: float, queue: Any, cluster: Any) -> Iterator[Any]:
            if now < 100:
                yield from (wt.Start(job) for job in queue)
                yield wt.Wake(100)
            else:
                yield from (wt.Preempt(job) for job in cluster.running)

    jobs = {"submit_time": [0, 0], "duration": [10, 1000], "num_gpus": [1, 1]}
    metrics = wt.simulate(jobs, "pool:2", StopsAll).metrics()
    assert (metrics["makespan"], metrics["utilization"]) == (100, 0.55)


def test_utilization_follows_what_is_up_until_the_horizon() -> None:
    """The other node fails at 50, while one job runs on past the horizon at 100."""
    jobs = {"submit_time": [0], "duration": [1000], "num_gpus": [1]}
    down = {"node_failures": [{"node": 1, "time": 50, "until": 200}]}
    curve = wt.simulate(jobs, "2x1", until=100, disruptions=down).utilization()
    assert curve.to_pydict() == {"time": [0, 50], "gpus": [1, 1], "utilization": [0.5, 1]}


def test_rejected_jobs_are_in_no_queue() -> None:
    jobs = {"submit_time": [0, 0], "duration": [5, 5], "num_gpus": [1, 9]}
    out = wt.simulate(jobs, "pool:1", oversize="reject")
    assert max(out.queue()["jobs"].to_pylist()) == 0


def test_steps_add_up_what_happens_at_one_time() -> None:
    time, values, others = steps(
        np.array([3.0, 1.0, 3.0, 2.0]), np.array([1.0, 1.0, -2.0, 5.0]), np.array([0.0, 1, 1, 0])
    )
    assert (time.tolist(), values.tolist()) == ([1, 2, 3], [1, 6, 5])
    assert others.tolist() == [1, 1, 2]
    assert [len(part) for part in steps(np.empty(0), np.empty(0))] == [0, 0]


def test_resampling_averages_exactly(flown: wt.Outcome) -> None:
    curve = flown.utilization()
    time, gpus = curve["time"].to_numpy(), curve["gpus"].to_numpy()
    left, means = resample(time, gpus, start=0, stop=70, bins=7)
    assert left.tolist() == [0, 10, 20, 30, 40, 50, 60]
    assert means.tolist() == [2, 2, 2, 1.5, 1, 1, 1]
    # Bins that begin before the curve and end after it count it as 0 there.
    left, means = resample(time, gpus, start=-70, stop=140, bins=3)
    assert left.tolist() == [-70, 0, 70]
    assert means.tolist() == pytest.approx([0, 105 / 70, 0])


def test_a_last_value_holds_to_the_end_of_the_bins() -> None:
    _, means = resample(np.array([1.0]), np.array([4.0]), start=0, stop=4, bins=2)
    assert means.tolist() == [2, 4]


@pytest.mark.parametrize(("stop", "bins", "times"), [(0.0, 5, 1), (1.0, 0, 1), (1.0, 5, 0)])
def test_an_empty_span_has_no_bins(stop: float, bins: int, times: int) -> None:
    left, means = resample(np.zeros(times), np.ones(times), start=0.0, stop=stop, bins=bins)
    assert (len(left), len(means)) == (0, 0)


def test_the_outcome_table() -> None:
    jobs = {
        "job_id": ["big", "gang", "late", "huge"],
        "submit_time": [0.0, 1.0, 90.0, 0.0],
        "duration": [5.0, 2.0, 1.0, 1.0],
        "num_gpus": [3.0, 5.0, 1.0, 99.0],
    }
    out = wt.simulate(jobs, "2x4", until=50.0, oversize="reject")
    assert [(f.name, str(f.type)) for f in out.table.schema] == [
        ("job_id", "string"),
        ("start_time", "double"),
        ("end_time", "double"),
        ("wait", "double"),
        ("jct", "double"),
        ("run_time", "double"),
        ("num_preemptions", "int32"),
        ("num_failures", "int32"),
        ("lost_time", "double"),
        ("status", "string"),
        ("nodes", "list<item: int32>"),
        ("reason", "string"),
    ]
    big, gang, late, huge = out.table.to_pylist()
    assert (big["start_time"], big["end_time"], big["wait"], big["jct"]) == (0, 5, 0, 5)
    assert big["nodes"] == [0]
    # Five GPUs: node 1 is empty and whole; the rest of one fits beside big's three.
    assert (gang["start_time"], gang["nodes"], gang["status"]) == (1, [1, 0], "finished")
    assert (late["status"], late["start_time"], late["wait"]) == ("not_submitted", None, None)
    assert (huge["status"], huge["nodes"], huge["run_time"]) == ("rejected", [], 0)
    assert repr(out) == "Outcome('fifo', finished=2 of 4)"


def test_the_segments_table() -> None:
    jobs = {"submit_time": [0.0, 4.0], "duration": [10.0, 2.0], "num_gpus": [6.0, 1.0]}
    out = wt.simulate(jobs, "2x4", "sjf-preemptive", until=7.0)
    # b (2 s) takes one GPU of eight, and the quota leaves 7 for a: nobody is preempted.
    assert out.metrics()["num_preemptions"] == 0
    jobs["num_gpus"] = [8.0, 1.0]
    out = wt.simulate(jobs, "2x4", "sjf-preemptive", until=7.0)
    assert [(f.name, str(f.type)) for f in out.segments.schema] == [
        ("row", "int64"),
        ("start", "double"),
        ("end", "double"),
        ("num_gpus", "double"),
        ("nodes", "list<item: int32>"),
        ("node_gpus", "list<item: int32>"),
    ]
    assert [list(row.values()) for row in out.segments.to_pylist()] == [
        [0, 0.0, 4.0, 8.0, [0, 1], [4, 4]],
        [1, 4.0, 6.0, 1.0, [0], [1]],
        [0, 6.0, None, 8.0, [0, 1], [4, 4]],
    ]
    # The table shows a job's first start and its last nodes.
    assert out.table["start_time"].to_pylist() == [0, 4]
    assert out.table["nodes"].to_pylist() == [[0, 1], [0]]


def test_the_last_stay_decides_the_nodes_of_a_job_that_moved() -> None:
    # Priority: b pushes a off node 0 at 1; a moves to node 1 when c leaves it at 2.
    jobs = {
        "submit_time": [0, 0, 1],
        "duration": [9, 2, 20],
        "num_gpus": [1, 1, 1],
        "priority": [1, 2, 3],
    }
    out = wt.simulate(jobs, "2x1", "priority-preemptive")
    assert out.segments["nodes"].to_pylist() == [[0], [1], [1], [0]]
    assert out.table["nodes"].to_pylist() == [[0], [0], [1]]


@pytest.mark.parametrize(
    ("values", "q", "expected"),
    [
        ([3.0, 1.0, 2.0], 0.5, 2.0),
        ([1.0, 2.0], [0.0, 0.25, 1.0], [1.0, 1.25, 2.0]),
        ([7.0], [0.1, 0.9], [7.0, 7.0]),
    ],
)
def test_quantiles(values: list[float], q: Any, expected: Any) -> None:
    assert quantiles(np.array(values), q).tolist() == expected


def test_quantiles_of_nothing_are_unknown() -> None:
    assert np.isnan(quantiles(np.empty(0), [0.5, 0.9])).tolist() == [True, True]


@given(
    st.lists(st.tuples(st.floats(-1e9, 1e9), st.integers(0, 3)), min_size=1, max_size=20),
    st.floats(0, 1),
)
def test_a_quantile_of_counted_values_is_that_of_their_list(
    counted: list[tuple[float, int]], q: float
) -> None:
    values, times = (np.array(column) for column in zip(*sorted(counted), strict=True))
    assume(times.any())
    expected = quantiles(np.repeat(values, times), q)
    assert quantile_of_counted(values, np.cumsum(times), q) == expected


def test_a_quantile_of_what_is_partly_unknown_is_unknown() -> None:
    values = np.array([1.0, 2.0, np.nan])
    assert np.isnan(quantile_of_counted(values, np.array([1, 2, 3]), 0.1))
    assert quantile_of_counted(values, np.array([1, 2, 2]), 0.5) == 1.5
