"""The figures that only a trace's page has: their tables against sums by hand and by numpy."""

from __future__ import annotations

import numpy as np
import pytest
from described_traces import HOUR, bare, full, trace_of

from windtunnel.report.figures import of_trace as charts
from windtunnel.report.figures.sources import Look, Sources
from windtunnel.traces.open import open_trace


@pytest.fixture(scope="module")
def source() -> Sources:
    return Sources.of([full()])


@pytest.fixture(scope="module")
def kalos() -> Sources:
    return Sources.of([open_trace("synthetic:kalos", jobs=3000)])


def test_waits_by_size_are_box_plots_of_each_class(source: Sources) -> None:
    data = charts.WAITS_BY_SIZE.collect(source)
    assert data.table is not None
    rows = {row["num_gpus"]: row for row in data.table.to_pylist()}
    assert list(rows) == ["1", "2", "3-4", "5-8", "9-16"]
    assert (rows["3-4"]["q1"], rows["3-4"]["median"], rows["3-4"]["q3"]) == (255.0, 270.0, 285.0)
    assert [part.n for part in data.parts] == [9]


def test_failures_by_size_are_shares_of_jobs_and_of_their_time(source: Sources) -> None:
    data = charts.FAILURES_BY_SIZE.collect(source)
    assert data.table is not None
    shares = {(row["panel"], row["num_gpus"]): row["percent"] for row in data.table.to_pylist()}
    assert [shares["a", size] for size in ("1", "2", "3-4", "5-8", "9-16")] == [50, 0, 50, 50, 0]
    assert shares["b", "1"] == pytest.approx(100 * 2 / 3)
    assert shares["b", "3-4"] == pytest.approx(100 * 20 / 44)
    assert shares["b", "5-8"] == pytest.approx(100 * 56 / 120)
    assert [(part.panel, part.n, part.left_out) for part in data.parts] == [
        ("a", 9, 0), ("b", 9, 0),
    ]  # fmt: skip


def test_jobs_of_unknown_run_time_are_in_the_share_of_jobs_alone() -> None:
    trace = trace_of(
        {
            "submit_time": [0.0, 1.0, 2.0], "duration": [10.0, None, 30.0], "num_gpus": [1, 1, 1],
            "status": ["failed", "failed", "completed"],
        }
    )  # fmt: skip
    data = charts.FAILURES_BY_SIZE.collect(Sources.of([trace]))
    assert data.table is not None
    assert data.table["percent"].to_pylist() == [pytest.approx(200 / 3), pytest.approx(25.0)]
    assert [(part.n, part.left_out) for part in data.parts] == [(3, 0), (2, 1)]


def test_concentration_begins_at_nothing_and_ends_with_all(source: Sources) -> None:
    data = charts.USER_CONCENTRATION.collect(source)
    assert data.table is not None
    first = [row for row in data.table.to_pylist() if row["panel"] == "a"]
    # ann 1 + 2 + 56 + 64 + 144, cy 20 + 24, bob 6 + 8 GPU hours.
    assert [row["percent"] for row in first] == pytest.approx(
        [0, 100 * 267 / 325, 100 * 311 / 325, 100]
    )
    assert [row["user_percent"] for row in first] == pytest.approx([0, 100 / 3, 200 / 3, 100])


def test_a_thinned_concentration_lies_on_the_whole_curve(kalos: Sources) -> None:
    table = charts.USER_CONCENTRATION.collect(kalos).table
    assert table is not None
    jobs = kalos.series[0].trace.jobs
    users = np.array(jobs["user"].to_pylist())
    held = jobs["num_gpus"].to_numpy() * jobs["duration"].to_numpy()
    names, place = np.unique(users, return_inverse=True)
    whole = np.cumsum(np.sort(np.bincount(place, held))[::-1])
    rows = [row for row in table.to_pylist() if row["panel"] == "a"][1:]
    assert {row["users"] for row in rows} == {len(names)}
    for row in rows:
        assert row["percent"] == pytest.approx(100 * whole[row["rank"] - 1] / whole[-1])


def test_gpus_over_time_add_up_to_the_gpu_time(kalos: Sources) -> None:
    table = charts.GPUS_OVER_TIME.collect(kalos).table
    assert table is not None
    held = [row for row in table.to_pylist() if row["panel"] == "a"]
    assert len(held) <= 310
    (step,) = set(np.diff([row["at"] for row in held]).round(9))
    unit = {"days": 24 * HOUR, "hours": HOUR, "s": 1.0}[held[0]["unit"]]
    total = sum(row["gpus"] for row in held) * step * unit
    jobs = kalos.series[0].trace.jobs
    asked = jobs["num_gpus"].to_numpy() * (
        jobs["end_time"].to_numpy() - jobs["start_time"].to_numpy()
    )
    assert total == pytest.approx(asked.sum(), rel=1e-6)


def test_a_bare_trace_says_why_each_cannot_be_drawn() -> None:
    source = Sources.of([bare()])
    reasons = {
        charts.WAITS_BY_SIZE: "no GPU job has a wait",
        charts.FAILURES_BY_SIZE: "tells no status",
        charts.USER_CONCENTRATION: "no job tells its user",
        charts.GPUS_OVER_TIME: "no GPU job has a submission, a start and an end",
    }
    for plan, reason in reasons.items():
        data = plan.collect(source)
        assert data.table is None
        assert reason in data.reason


def test_axes_have_units_and_legends_n(source: Sources) -> None:
    look = Look(4.0, source.traces, source.workloads)
    for plan, words in (
        (charts.WAITS_BY_SIZE, ["Wait (log", "1 GPU (n = 2)"]),
        (
            charts.FAILURES_BY_SIZE,
            ["% of jobs of the class", "% of GPU time of the class", "by-hand (n = 9)"],
        ),
        (
            charts.USER_CONCENTRATION,
            ["Users, most first, %", "% of the GPU time", "(n = 3 users)"],
        ),
        (charts.GPUS_OVER_TIME, ["GPUs held", "submission, hours"]),
    ):
        table = plan.collect(source).table
        text = str(plan.draw(table, look).to_dict(validate=False))
        for word in words:
            assert word in text, word
