"""Aging: what it orders by, and what it promises."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import windtunnel as wt

ENGINES = ("reference", "compiled")


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize(
    ("policy", "starts"),
    [
        # One GPU, busy to 9. A long job (10 s) waits from 1 on; ones of 1 s come at 2, 5 and 8.
        ("sjf", [0, 12, 9, 10, 11]),
        # Claims 1 + 10 x aging against 2.., 5.., 8 + aging: at 0.5 only the one of 2 s comes before
        # (2.5 < 6), and that of 5 s (5.5 < 6), but not that of 8 s (8.5 > 6).
        ("sjf:aging=0.5", [0, 11, 9, 10, 21]),
        ("sjf:aging=0.01", [0, 9, 19, 20, 21]),
        ("sjf:aging=100", [0, 12, 9, 10, 11]),
    ],
)
def test_waiting_makes_up_for_length(engine: str, policy: str, starts: list[float]) -> None:
    jobs = {
        "submit_time": [0.0, 1.0, 2.0, 5.0, 8.0],
        "duration": [9.0, 10.0, 1.0, 1.0, 1.0],
        "num_gpus": [1.0] * 5,
    }
    out = wt.simulate(jobs, "pool:1", policy, engine=engine)
    assert out.table["start_time"].to_pylist() == starts


@pytest.mark.parametrize("engine", ENGINES)
def test_waiting_makes_up_for_priority(engine: str) -> None:
    jobs = {
        "submit_time": [0.0, 1.0, 4.0],
        "duration": [9.0, 1.0, 1.0],
        "num_gpus": [1.0] * 3,
        "priority": [None, 1.0, 3.0],
    }
    # Three seconds between them: two levels are worth more at 2 s a level, less at 1 s.
    for policy, starts in (
        ("priority", [0, 10, 9]),
        ("priority:aging=2", [0, 10, 9]),
        ("priority:aging=1s", [0, 9, 10]),
    ):
        out = wt.simulate(jobs, "pool:1", policy, engine=engine)
        assert out.table["start_time"].to_pylist() == starts, policy


ROWS = st.lists(
    st.tuples(st.integers(0, 40), st.integers(0, 12), st.integers(0, 4), st.integers(-2, 2)),
    min_size=2,
    max_size=14,
)


@pytest.mark.slow
@settings(max_examples=300, deadline=None)
@given(ROWS, st.sampled_from((0.25, 0.5, 1.0, 2.0, 8.0)), st.sampled_from(("sjf", "priority")))
def test_nobody_is_overtaken_by_later_jobs_than_promised(
    rows: list[tuple[int, int, int, int]], aging: float, kind: str
) -> None:
    jobs: dict[str, Any] = {
        name: [float(row[at]) for row in rows]
        for at, name in enumerate(("submit_time", "duration", "num_gpus", "priority"))
    }
    value = jobs["duration"] if kind == "sjf" else [-p for p in jobs["priority"]]
    out = wt.simulate(jobs, "pool:4", f"{kind}:aging={aging}")
    start, submit = out.table["start_time"].to_pylist(), jobs["submit_time"]
    for late in range(len(rows)):
        for early in range(len(rows)):
            in_turn = (submit[early], early) < (submit[late], late)
            if in_turn and start[late] < start[early]:
                assert submit[late] - submit[early] < aging * (value[early] - value[late])


def test_without_aging_a_job_may_be_overtaken_by_any() -> None:
    # A stream of short jobs that fills the GPU keeps the long one out for ever; aging lets it in.
    jobs = {
        "submit_time": [0.0, 0.0, *range(1, 200)],
        "duration": [2.0, 50.0, *[1.0] * 199],
        "num_gpus": [1.0] * 201,
    }
    waits = {
        policy: wt.simulate(jobs, "pool:1", policy).table["wait"][1].as_py()
        for policy in ("sjf", "sjf:aging=1")
    }
    assert waits == {"sjf": 201.0, "sjf:aging=1": 50.0}
