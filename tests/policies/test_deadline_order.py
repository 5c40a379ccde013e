"""Earliest deadline first, and how deadlines were met."""

from __future__ import annotations

from itertools import permutations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import windtunnel as wt

ENGINES = ("reference", "compiled")
JOBS = {
    "submit_time": [0.0, 1.0, 1.0, 1.0],
    "duration": [5.0, 2.0, 3.0, 4.0],
    "num_gpus": [1.0] * 4,
    "deadline": [4.0, None, 20.0, 9.0],
}


@pytest.mark.parametrize("engine", ENGINES)
def test_the_earliest_deadline_goes_first_and_none_last(engine: str) -> None:
    out = wt.simulate(JOBS, "pool:1", "edf", engine=engine)
    assert out.table["start_time"].to_pylist() == [0, 12, 9, 5]
    metrics = out.metrics()
    # Ends 5 (by 4), 12 (by 20), 9 (by 9).
    assert metrics["num_deadlines"] == 3
    assert metrics["num_missed_deadlines"] == 1
    assert metrics["avg_tardiness"] == pytest.approx(1 / 3)


@pytest.mark.parametrize("engine", ENGINES)
def test_deadlines_may_be_made_up(engine: str) -> None:
    jobs = {**JOBS, "estimate": [9.0, 8.0, 1.0, 6.0]}
    for policy, starts in (
        ("edf:slack=2", [0, 5, 7, 10]),  # 1 + 2 x 2, 1 + 2 x 3, 1 + 2 x 4
        ("edf:slack=2:by=estimate", [0, 12, 5, 8]),  # 17, 3, 13
    ):
        out = wt.simulate(jobs, "pool:1", policy, engine=engine)
        assert out.table["start_time"].to_pylist() == starts, policy


def test_what_has_not_ended_by_its_deadline_missed_it() -> None:
    cut = wt.simulate(JOBS, "pool:1", "fifo", until=9.0)  # 0 to 5, 1 to 7, 2 runs, 3 waits
    assert cut.table["status"].to_pylist() == ["finished", "finished", "running", "waiting"]
    metrics = cut.metrics()
    # The one of 20 is neither met nor missed by then.
    assert (metrics["num_deadlines"], metrics["num_missed_deadlines"]) == (2, 2)
    assert metrics["avg_tardiness"] == 1.0  # of the one that finished
    large = {**JOBS, "num_gpus": [1.0, 1.0, 1.0, 9.0]}
    metrics = wt.simulate(large, "pool:1", "fifo", oversize="reject").metrics()
    assert (metrics["num_deadlines"], metrics["num_missed_deadlines"]) == (2, 1)


def test_what_a_failure_ends_or_leaves_waiting_for_ever_meets_no_deadline() -> None:
    jobs = {"submit_time": [0, 1], "duration": [10, 10], "num_gpus": [1, 1], "deadline": [99, 99]}
    down = {"node_failures": [{"node": 0, "time": 5}], "on_failure": "end"}
    out = wt.simulate(jobs, "1x1", "fifo", disruptions=down)
    assert out.table["status"].to_pylist() == ["failed", "waiting"]
    metrics = out.metrics()
    assert (metrics["num_deadlines"], metrics["num_missed_deadlines"]) == (2, 2)
    assert metrics["slo_attainment"] == 0


def test_without_deadlines_there_is_nothing_to_meet() -> None:
    without = {name: values for name, values in JOBS.items() if name != "deadline"}
    assert "num_deadlines" not in wt.simulate(without, "pool:1").metrics()
    for engine in ENGINES:
        with pytest.raises(wt.PolicyError, match=r"no column 'deadline'; edf:slack=2 makes"):
            wt.simulate(without, "pool:1", "edf", engine=engine)
    words = {**JOBS, "deadline": ["soon"] * 4}
    assert "num_deadlines" not in wt.simulate(words, "pool:1").metrics()
    with pytest.raises(wt.SpecError, match="'deadline' holds 'soon' in row 1; expected numbers"):
        wt.simulate(words, "pool:1", "edf")
    for bad, message in (
        ("slack=0", "found 0.0"),
        ("slack=much", "found 'much'"),
        ("by=x", "slack"),
    ):
        with pytest.raises(wt.SpecError, match=message):
            wt.simulate(JOBS, "pool:1", f"edf:{bad}")


@settings(max_examples=100, deadline=None)
@given(st.lists(st.tuples(st.integers(1, 9), st.integers(0, 30)), min_size=1, max_size=5))
def test_the_largest_lateness_is_the_least_possible(rows: list[tuple[int, int]]) -> None:
    # Jackson 1955: on one machine, all jobs there at once, earliest due date first is optimal.
    def worst(order: tuple[tuple[int, int], ...]) -> int:
        clock, lateness = 0, []
        for duration, deadline in order:
            clock += duration
            lateness.append(clock - deadline)
        return max(lateness)

    jobs = {
        "submit_time": [0.0] * len(rows),
        "duration": [float(duration) for duration, _ in rows],
        "num_gpus": [1.0] * len(rows),
        "deadline": [float(deadline) for _, deadline in rows],
    }
    ends = wt.simulate(jobs, "pool:1", "edf").table["end_time"].to_pylist()
    ours = max(end - deadline for end, (_, deadline) in zip(ends, rows, strict=True))
    assert ours == min(worst(order) for order in permutations(rows))
