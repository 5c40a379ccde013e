"""The forest plot and the words of a study: rows, scale, labels with units and n."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from windtunnel.report.result_page import result_page
from windtunnel.report.study_result import (
    comparison_table,
    difference_rows,
    forest_chart,
    forest_figure,
    forest_rows,
    study_result,
)
from windtunnel.report.study_rows import (
    averages,
    change_text,
    failure_lines,
    metric_label,
    metric_text,
    progress_line,
)
from windtunnel.study.grid.measure import METRICS, SCHEMA
from windtunnel.study.grid.paired import AXES, Contrast, Paired
from windtunnel.study.grid.store import Results
from windtunnel.study.statistics import Interval


def _contrast(value: str, load: float | None, ends: tuple[Any, ...], verdict: str) -> Contrast:
    estimate, low, high = ends
    condition = None if load is None else dict.fromkeys(AXES) | {"load": load, "parameters": {}}
    change = Interval(estimate, low, high, 0.95, 8)
    return Contrast("avg_wait", value, "fifo", condition, 60.0, 120.0, change, 0, verdict)


@pytest.fixture
def found() -> Paired:
    """Comparisons with every verdict."""
    contrasts = (
        _contrast("sjf", 0.9, (-0.5, -0.6, -0.4), "better"),
        _contrast("sjf", 1.1, (0.5, 0.2, 0.9), "worse"),
        _contrast("sjf", None, (0.0, -0.2, 0.3), "unclear"),
        _contrast("las", 0.9, (-0.999, -0.9999, -0.99), "better"),
        _contrast("las", 1.1, (float("nan"), None, None), "nothing"),
        _contrast("las", None, (0.1, None, None), "few"),
    )
    return Paired(("avg_wait",), "policy", "seeds", "fifo", contrasts, 0.95, ("A note.",))


@pytest.fixture
def results() -> Results:
    """Two runs of three, one of which failed."""
    place = {**dict.fromkeys(AXES), "trace": "t", "cluster": "own", "parameters": {}}
    grid = [
        {**place, "policy": policy, "seed": 0, "run_id": policy}
        for policy in ("fifo", "sjf", "las")
    ]
    rows = [
        {"run_id": "fifo", "policy": "fifo", "status": "ok", "avg_wait": 90.0},
        {"run_id": "sjf", "policy": "sjf", "status": "failed", "error": "SpecError: <b>no\nway"},
    ]
    manifest = {
        "name": "a <b>study</b>",
        "grid": grid,
        "runs": ["fifo", "sjf", "las"],
        "seeds": [0],
        "made": [],
        "inputs": {"t": {"num_jobs": 3, "sha256": "0", "notes": ["Note of a reader."]}},
        "versions": {"windtunnel": "1"},
        "study": {},
    }
    return Results(Path("x"), manifest, pa.Table.from_pylist(rows, schema=SCHEMA))


def test_rows_stay_on_the_chart_and_leave_out_what_has_no_ratio(found: Paired) -> None:
    rows = forest_rows(found, "avg_wait")
    assert [(row["name"], row["verdict"]) for row in rows] == [
        ("sjf, load 0.9", "better"),
        ("sjf, load 1.1", "worse"),
        ("sjf, all together", "no claim"),
        ("las, load 0.9", "better"),
        ("las, all together", "too few draws"),
    ]
    assert (rows[0]["ratio"], rows[0]["low"], rows[0]["high"]) == (0.5, 0.4, 0.6)
    assert rows[3]["ratio"] == 0.02  # a thousandth stands on the edge
    assert rows[4]["low"] is None
    assert [row["together"] for row in rows] == [False, False, True, False, True]


def test_the_plot_is_logarithmic_and_says_against_whom(found: Paired) -> None:
    chart = forest_chart(found, "avg_wait").to_dict()
    _, spans, dots = chart["layer"]
    x = dots["encoding"]["x"]
    assert x["title"] == "Change against fifo (log scale)"
    assert x["scale"]["type"] == "log"
    low, high = x["scale"]["domain"]
    assert low < 0.02
    assert high > 1.9
    assert 1.0 in x["axis"]["values"]
    assert all(low <= tick <= high for tick in x["axis"]["values"])
    assert "%" in x["axis"]["labelExpr"]
    words = dots["encoding"]["color"]["scale"]["domain"]
    assert words == ["better", "worse", "no claim", "too few draws"]
    assert len(dots["encoding"]["color"]["scale"]["range"]) == 4
    assert spans["encoding"]["x2"]["field"] == "high"
    assert forest_chart(found, "avg_jct") is None


def test_of_a_zero_baseline_differences_are_drawn(found: Paired) -> None:
    first, _, together = found.contrasts[:3]
    change = Interval(float("nan"), None, None, 0.95, 8)
    contrasts = (
        replace(first, mean=120.0, baseline_mean=0.0, change=change, verdict="nothing"),
        replace(together, mean=None, baseline_mean=None, change=change, verdict="nothing"),
    )
    found = replace(found, contrasts=contrasts)
    assert forest_rows(found, "avg_wait") == []
    rows = difference_rows(found, "avg_wait")
    assert rows == [{"name": "sjf", "difference": 120.0}]
    chart = forest_chart(found, "avg_wait").to_dict()
    _, dots = chart["layer"]
    assert dots["encoding"]["x"]["title"] == "Difference to fifo (seconds)"
    assert dots["encoding"]["x"]["scale"]["domain"] == [-6.0, 126.0]
    assert "differences, as no ratio" in str(forest_figure(found).to_dict()["title"])


def test_tables_say_verdict_interval_and_n(found: Paired) -> None:
    table = comparison_table(found, "avg_wait")
    assert table.columns == ["Mean", "fifo", "Change", "95 % interval", "n (seeds)", "Verdict"]
    first = table.lines[0]
    assert (first.group, first.label) == ("sjf", "load 0.9")
    assert [cell.text for cell in first.cells] == [
        *("1 m 00 s", "2 m 00 s", "\u221250 %", "\u221260 % to \u221240 %", "8", "better"),
    ]
    assert [cell.text for cell in table.lines[4].cells[2:4]] == ["\u2013", "\u2013"]


def test_every_metric_can_be_named_and_printed() -> None:
    for metric in METRICS:
        assert metric_label(metric)
        assert metric_text(metric, 1.5)
        assert metric_text(metric, None) == "\u2013"
    assert change_text(-0.0001) == "\u22120.01 %"
    assert change_text(-0.00001) == "0.0 %"
    assert metric_text("energy_j", 3.6e6) == "1.00 kWh"


def test_progress_and_failures_are_listed(results: Results) -> None:
    assert progress_line(results) == "2 of 3 runs finished, 1 with an error."
    assert failure_lines(results) == ["1 run: sjf: SpecError: <b>no"]
    rows = averages(results, ["avg_wait"])
    assert [(row["policy"], row["num_runs"], row["avg_wait"]) for row in rows] == [
        *(("fifo", 1, 90.0), ("sjf", 0, None), ("las", 0, None)),
    ]


def test_the_page_escapes_everything_and_loads_nothing(found: Paired, results: Results) -> None:
    html = result_page(study_result(results, found), command="windtunnel study compare '<i>'")
    assert "<b>" not in html
    assert "<i>" not in html
    assert "&lt;b&gt;" in html
    assert "Note of a reader." in html
    assert "http:" not in html.replace("http://www.w3.org", "")
    assert "n = 8 seeds; intervals of 95 %." in html.replace("\u00a0", " ")
    assert html.count("<tr>") > 6


def test_a_figure_is_as_wide_as_a_column_and_says_what_it_rests_on(found: Paired) -> None:
    chart = forest_figure(found).to_dict()
    assert chart["width"] == 150  # beside the longest name, sjf, all together
    assert chart["title"]["subtitle"] == [
        "n = 8 seeds; intervals of 95 %.",
        "Beyond \u221298 % or +4900 %: on the edge.",
    ]
