"""Answers: instants as people read them, tables that a telephone cannot hold, what to believe."""

from __future__ import annotations

import pytest

import windtunnel as wt
from windtunnel.report.result import Part, Result, moment
from windtunnel.report.result_page import result_page
from windtunnel.report.sections import Cell, Line, Table
from windtunnel.report.study_rows import change_text
from windtunnel.report.validation_report import validation_answer
from windtunnel.schema import as_jobs
from windtunnel.study.validation import validate
from windtunnel.traces.trace import Trace, TraceMetadata

ABOUT = TraceMetadata("t", "t.csv")
JOBS = as_jobs(
    {
        "submit_time": [0.0, 0.0, 5.0],
        "start_time": [0.0, 10.0, 30.0],
        "duration": [10.0, 20.0, 5.0],
        "num_gpus": [8.0, 8.0, 8.0],
    }
)


@pytest.mark.parametrize(
    ("epoch", "zone", "expected"),
    [
        (None, None, "1 d 02 h after time 0"),
        ("2025-03-29T22:00:00+00:00", None, "2025-03-31 00:00 UTC time"),
        # The clock goes forward in that night: 26 hours later it is 02:00 there.
        ("2025-03-29T22:00:00+00:00", "Europe/Berlin", "2025-03-31 02:00 Europe/Berlin time"),
    ],
)
def test_an_instant_is_given_by_the_clock_of_the_source(
    epoch: str | None, zone: str | None, expected: str
) -> None:
    trace = Trace(JOBS, metadata=TraceMetadata("t", "t.csv", epoch=epoch, zone=zone))
    assert moment(trace, 26 * 3600.0) == expected
    assert moment(trace, 1e19).endswith(" after time 0")  # no calendar has that


@pytest.mark.parametrize(("columns", "wide"), [(2, False), (3, False), (4, True), (9, True)])
def test_the_hint_to_scroll_stands_under_wide_tables_alone(columns: int, *, wide: bool) -> None:
    cells = [Cell("12,345")] * columns
    table = Table("GPUs", ["GPU hours"] * columns, [Line("a short name", cells)])
    assert table.is_wide is wide
    page = result_page(
        Result("t", "h", [], [Part("p", tables=[("c", table)], terms=[("<b>", "&")])]),
        command="",
    )
    assert ("Scroll the table sideways" in page) is wide
    assert "<dt><bdi>&lt;b&gt;</bdi></dt><dd><bdi>&amp;</bdi></dd>" in page


@pytest.mark.parametrize(
    ("recorded", "belief"),
    [
        ([0.0, 10.0, 30.0], "reproduced exactly"),
        ([0.0, 11.0, 30.0], "the replay stands for the record"),
        ([0.0, 20.0, 60.0], "the replay stands for the record"),
        ([0.0, 9_000.0, 9_500.0], "do not believe a what-if on it"),
    ],
)
def test_how_much_to_believe_follows_from_the_errors(recorded: list[float], belief: str) -> None:
    jobs = {**JOBS.to_pydict(), "start_time": recorded}
    jobs["end_time"] = [s + d for s, d in zip(recorded, jobs["duration"], strict=True)]
    found = validate(as_jobs(jobs), wt.ClusterSpec.pool(8), ["fifo"])
    assert belief in validation_answer(found, Trace(as_jobs(jobs), metadata=ABOUT)).headline


def test_a_replay_that_waits_where_nobody_waited_is_not_the_cluster() -> None:
    n = 20
    jobs = as_jobs(
        {
            "submit_time": [0.0] * n,
            "start_time": [1.0] * n,
            "duration": [3600.0] * n,
            "num_gpus": [8.0] * n,
        }
    )
    found = validate(jobs, wt.ClusterSpec.pool(8), ["fifo"])
    result = validation_answer(found, Trace(jobs, metadata=ABOUT))
    assert "do not believe a what-if on it" in result.headline
    assert "up to 160 GPUs at once, of 8" in result.cautions[0]


def test_nearly_all_is_not_shown_as_all() -> None:
    assert change_text(-0.9996) == "\u221299.9 %"
    assert change_text(-1.0) == "\u2212100 %"
    assert change_text(-0.994) == "\u221299 %"


def test_a_page_with_nothing_but_a_chart_loads_no_script() -> None:
    import altair as alt

    chart = alt.Chart(alt.InlineData([{"a": 1, "b": 2}])).mark_point().encode(x="a:Q", y="b:Q")
    result = Result(title="Dots", chart=lambda: chart)
    page = result_page(result, command="windtunnel x")
    assert "<svg" in page
    assert "<script" not in page
    assert "<h3></h3>" not in page
    assert len(page) < 100_000
