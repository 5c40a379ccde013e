"""Predicted waits: from the past alone, and as often right as they say."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from windtunnel.errors import SpecError
from windtunnel.predictors.wait_backtest import DAY, wait_backtest
from windtunnel.predictors.waits import (
    LEAST,
    QUEUES,
    Request,
    WaitHistory,
    calibrated,
    interval,
    score,
)
from windtunnel.schema import as_jobs
from windtunnel.traces import open_trace


def history(rows: list[tuple[float, float | None, float]], **more: Any) -> WaitHistory:
    """Return a log of jobs: submission, wait (None = never started), GPUs; they run for 10 s."""
    starts = [None if wait is None else submit + wait for submit, wait, _ in rows]
    return WaitHistory(
        as_jobs(
            {
                "submit_time": [row[0] for row in rows],
                "start_time": starts,
                "duration": [10.0] * len(rows),
                "num_gpus": [row[2] for row in rows],
                **more,
            }
        )
    )


def test_only_what_had_started_is_known() -> None:
    found = history([(0, 5, 1), (1, 1, 1), (2, 100, 1), (3, None, 1)])
    wait = found.predict(Request(1, at=10.0), level=0.8)
    assert (wait.alike, wait.quantiles[50], wait.quantiles[90]) == (2, 1.0, 5.0)
    assert (wait.low, wait.high) == (1.0, 5.0)
    assert (wait.queued_jobs, wait.queued_gpus, wait.held_gpus) == (2, 2.0, 2.0)
    assert wait.largest == 1.0
    with pytest.raises(SpecError, match="no GPU job had started"):
        found.predict(Request(1, at=1.0), level=0.8)
    assert found.predict(Request(1, at=10.0), level=float("inf")).high == float("inf")


def test_requests_like_it_come_first() -> None:
    """Jobs of one virtual cluster wait 1 s, others 9 s; of a third too few are known."""
    rows = [(100.0 * k, 1.0 if k % 2 else 9.0, 1.0) for k in range(4 * LEAST)]
    vcs = ["b" if k % 2 else "a" for k in range(len(rows))]
    vcs[4] = "c"
    found = history(rows, vc=vcs)
    predicted = [found.predict(Request(1, 1e6, vc=name), 0.8) for name in "abc"]
    assert [one.quantiles[50] for one in predicted[:2]] == [9.0, 1.0]
    assert [one.by for one in predicted] == [*[("size", "vc", "queue")] * 2, ("size", "queue")]
    with pytest.raises(SpecError, match=r"found .* \(did you mean .*\?\); the log has"):
        found.predict(Request(1, 1e6, vc="A"), 0.8)


def test_a_job_does_not_see_its_own_wait() -> None:
    """A job that starts at once and one that waits, at one instant: both met the same queue."""
    found = history([(0, 50, 64), (10, 0, 1), (10, 30, 1), (10, 0, 1)])
    queues = [found.codes_of(row)["queue"] for row in range(4)]
    assert queues == [0, *[QUEUES.index(64)] * 3]


def test_the_future_changes_no_prediction() -> None:
    rng = np.random.default_rng(0)
    rows: list[tuple[float, float | None, float]] = [
        (float(k * 600), float(rng.exponential(900)), float(rng.integers(1, 9)))
        for k in range(1500)
    ]
    cut = 1200 * 600.0
    late: list[tuple[float, float | None, float]] = [
        (s, w if w is not None and s + w <= cut else None if s > cut else 9e6, g)
        for s, w, g in rows
    ]
    one, other = history(rows), history(late)
    request = Request(4, at=cut)
    tests = [wait_backtest(found, until=cut, held_back=3 * DAY) for found in (one, other)]
    levels = [test.level_at(cut) for test in tests]
    assert levels[0] == pytest.approx(levels[1], abs=0.02)
    predicted = [
        found.predict(request, level) for found, level in zip((one, other), levels, strict=True)
    ]
    assert predicted[0].quantiles == predicted[1].quantiles


_WAITS = st.lists(st.integers(0, 20), min_size=1, max_size=40)


@given(waits=_WAITS, level=st.floats(0.01, 0.99), wait=st.integers(0, 22))
def test_intervals_are_nested_and_hold_their_level(
    waits: list[int], level: float, wait: int
) -> None:
    sample = np.sort(np.array(waits, dtype=float))
    low, high = interval(sample, level)
    assert sample[0] <= low <= high <= sample[-1]
    assert ((low <= sample) & (sample <= high)).mean() >= level - 1e-9 or high == sample[-1]
    found = score(sample, float(wait))
    if np.isfinite(found):
        low, high = interval(sample, found)
        assert low <= wait <= high
    else:
        assert not sample[0] <= wait <= sample[-1]


def test_too_few_scores_give_no_interval() -> None:
    assert calibrated(np.linspace(0, 1, 20), 0.8) == float("inf")
    assert calibrated(np.linspace(0, 1, 100), 0.8) == pytest.approx(0.8, abs=0.02)


@pytest.mark.slow
def test_eighty_per_cent_of_a_held_back_month_of_the_twin() -> None:
    found = WaitHistory(open_trace("synthetic:seren", jobs=60_000).jobs)
    summary = wait_backtest(found, coverage=0.8, held_back=30 * DAY).summary()
    assert summary["n"] >= 10_000
    assert 0.75 <= summary["covered"] <= 0.85
    assert summary["unbounded"] == 0


def test_eighty_per_cent_where_waits_depend_on_the_queue() -> None:
    """Bursts of 20 jobs on one GPU that serves one in 60 s: a later one waits longer."""
    rng = np.random.default_rng(1)
    rows: list[tuple[float, float | None, float]] = []
    free, now = 0.0, 0.0
    for _ in range(400):
        now += float(rng.exponential(3600))
        for _ in range(int(rng.integers(1, 20))):
            now += 1.0
            start = max(now, free)
            free = start + float(rng.exponential(60))
            rows.append((now, start - now, 1.0))
    summary = wait_backtest(history(rows), held_back=10 * DAY).summary()
    assert summary["n"] > 1000
    assert 0.75 <= summary["covered"] <= 0.85


def test_what_cannot_be_asked() -> None:
    with pytest.raises(SpecError, match="no start"):
        history([(0, None, 1)])
    found = history([(0, 1, 1)])
    with pytest.raises(SpecError, match="between 0 and 1"):
        wait_backtest(found, coverage=1.5)
    with pytest.raises(SpecError, match="above 0"):
        wait_backtest(found, held_back=0)
