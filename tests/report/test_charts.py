"""Charts: encodings, titles with units, colours; and their pictures."""

from __future__ import annotations

import json
import re
import xml.etree.ElementTree as ET
from typing import TYPE_CHECKING, Any

import pytest

from windtunnel.report import charts, curves, palette, render
from windtunnel.report.names import labels

if TYPE_CHECKING:
    from windtunnel.sim.outcome import Outcome

ALL = (charts.wait_cdf, charts.jct_cdf, charts.utilization, charts.queue, charts.waits_by_size)


def _find(spec: Any, key: str) -> list[Any]:
    """Return every value of ``key`` anywhere in a specification."""
    if isinstance(spec, list):
        return [found for part in spec for found in _find(part, key)]
    if not isinstance(spec, dict):
        return []
    here = [spec[key]] if key in spec else []
    return here + [found for part in spec.values() for found in _find(part, key)]


def test_cdf_has_a_log_axis_with_human_ticks_and_n_in_the_legend(runs: dict[str, Outcome]) -> None:
    spec = charts.wait_cdf(runs).to_dict()
    line = spec["layer"][0]["encoding"]
    assert line["x"]["scale"]["type"] == "log"
    assert line["x"]["scale"]["domain"][0] == 1.0
    assert line["x"]["title"] == "Wait (log scale; left edge: 0 to 1 s)"
    assert line["x"]["axis"]["values"][:4] == [1, 10, 60, 600]
    assert "' min'" in line["x"]["axis"]["labelExpr"]
    assert line["y"]["title"] == "Share of started jobs at or below"
    assert line["color"]["scale"]["domain"] == [f"{name} (n = 400)" for name in runs]
    dots = spec["layer"][1]["data"]["values"]
    waits = [curves.values(run, "wait") for run in runs.values()]
    assert [dot["share"] for dot in dots] == [(wait <= 1).mean() for wait in waits]


def test_completion_times_are_of_finished_jobs(runs: dict[str, Outcome]) -> None:
    line = charts.jct_cdf(runs).to_dict()["layer"][0]["encoding"]
    assert line["y"]["title"] == "Share of finished jobs at or below"
    assert line["x"]["title"].startswith("Completion time (")


@pytest.mark.slow
def test_no_chart_draws_more_rows_than_promised(runs: dict[str, Outcome]) -> None:
    for draw in ALL:
        for values in _find(draw(runs).to_dict(), "values"):
            if values and isinstance(values[0], dict):
                assert len(values) <= 400 * len(runs)


def test_a_run_has_one_colour_over_all_charts(runs: dict[str, Outcome]) -> None:
    for draw in ALL:
        scales = [
            color["scale"] for color in _find(draw(runs).to_dict(), "color") if "scale" in color
        ]
        assert scales
        for scale in scales:
            assert scale["range"] == ["#000000", "#0072b2", "#d55e00"]
            assert [name.split(" (n")[0] for name in scale["domain"]] == list(runs)


def test_curves_over_time_have_units_and_the_first_run_behind(runs: dict[str, Outcome]) -> None:
    spec = charts.utilization(runs).to_dict()
    assert "Time since the first submission, days" in _find(spec, "title")
    assert "GPUs in use, mean of each time bin" in _find(spec, "title")
    assert "first" in _find(spec, "field")
    alone = charts.utilization({"fifo": runs["fifo"]}).to_dict()
    assert "first" not in _find(alone, "field")


def test_sizes_run_down_in_order_with_runs_beside_each_other(runs: dict[str, Outcome]) -> None:
    spec = charts.waits_by_size(runs).to_dict()
    bar = spec["layer"][0]["encoding"]
    assert bar["y"]["sort"] == ["1", "2", "3-4", "5-8", "9-16", "33-64"]
    assert bar["y"]["title"] == "GPUs of the job"
    assert bar["yOffset"]["scale"]["domain"] == list(runs)
    assert bar["x"]["scale"]["type"] == "log"


def test_colours_repeat_with_dashes_beyond_eight_runs() -> None:
    assert len(set(palette.colours(8))) == 8
    assert palette.colours(9)[8] == palette.colours(1)[0]
    assert palette.dashes(9)[8] != palette.dashes(9)[0]


@pytest.mark.slow
def test_svg_scales_has_a_name_and_unique_ids(runs: dict[str, Outcome]) -> None:
    for draw in ALL:
        svg = render.to_svg(draw(runs), name="pic", label="A <label> & more")
        root = ET.fromstring(svg)  # noqa: S314 - our own output
        assert root.attrib["aria-label"] == "A <label> & more"
        assert "width" not in root.attrib
        assert root.attrib["viewBox"].startswith("0 0 ")
        assert all(name.startswith("pic-") for name in re.findall(r'\bid="([^"]+)"', svg))
        assert all(name.startswith("pic-") for name in re.findall(r"url\(#([^)]+)\)", svg))


@pytest.mark.slow
def test_every_colour_in_a_picture_has_a_dark_twin(runs: dict[str, Outcome]) -> None:
    known = {light for light, _ in palette.dark_pairs()} | {"none", "transparent"}
    for draw in ALL:
        svg = render.to_svg(draw(runs), name="p", label="x")
        assert set(re.findall(r'(?:fill|stroke)="([^"]+)"', svg)) <= known
    shares = render.to_svg(charts.shares_by_size(runs["fifo"]), name="p", label="x")
    assert set(re.findall(r'(?:fill|stroke)="([^"]+)"', shares)) <= known


def test_png(runs: dict[str, Outcome]) -> None:
    assert render.to_png(charts.wait_cdf(runs), scale=1).startswith(b"\x89PNG")


def test_hostile_names_stay_text_in_a_picture(hostile: dict[str, Outcome]) -> None:
    for draw in ALL:
        svg = render.to_svg(draw(hostile), name="p", label=next(iter(hostile)))
        tags = {element.tag for element in ET.fromstring(svg).iter()}  # noqa: S314
        assert tags <= {"svg", "g", "path", "line", "text", "rect", "defs", "clipPath", "tspan"}
        assert "\u202e" not in svg
        assert "\x1b" not in svg
        assert len(max(re.findall(r"<text[^>]*>([^<]*)", svg), key=len)) < 120
    assert len(set(labels(hostile))) == len(hostile)


@pytest.mark.sample(2)
@pytest.mark.parametrize("draw", ALL)
def test_degenerate_runs_still_draw(
    draw: Any, idle: Outcome, empty: Outcome, single: Outcome
) -> None:
    for run in (idle, empty, single):
        json.dumps(draw({"only": run}).to_dict(), allow_nan=False)
        assert render.to_svg(draw({"only": run}), name="x", label="y").startswith("<svg")
