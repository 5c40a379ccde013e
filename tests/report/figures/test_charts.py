"""The charts: units on axes, n in legends, one colour a trace, names that stay names."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

import pytest

from windtunnel.report.chart.series import FONT, text_width
from windtunnel.report.figures.catalogue import FIGURES, collect, look_of
from windtunnel.report.figures.curves_of_use import published_curves
from windtunnel.report.figures.sources import WIDTHS, Look, Sources
from windtunnel.report.figures.treemap import label_of, share_text
from windtunnel.report.figures.writing import to_paper_svg
from windtunnel.report.palette import SERIES

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from windtunnel.traces.trace import Trace

HOSTILE = (
    "</script><script>alert(1)</script>",
    "\x1b[31mred\x1b[0m",
    "\u202eevil",
    "x" * 5000,
    "a'b\\c",
    "'] + alert(1) + ['",
    "{{ 7 * 7 }}",
    "datum.value",
)


def found(spec: Any, key: str) -> list[Any]:
    """Return every value of ``key`` anywhere in a specification."""
    if isinstance(spec, list):
        return [value for part in spec for value in found(part, key)]
    if not isinstance(spec, dict):
        return []
    here = [spec[key]] if key in spec else []
    return here + [value for part in spec.values() for value in found(part, key)]


def spec_of(name: str, sources: Sources, paper: str = "column") -> dict[str, Any]:
    table = FIGURES[name].plan.collect(sources).table
    assert table is not None
    spec: dict[str, Any] = FIGURES[name].plan.draw(table, look_of(sources, paper)).to_dict()
    return spec


@pytest.mark.slow
def test_every_figure_is_a_valid_specification_with_its_data(both: Sources) -> None:
    """`to_dict` validates against the schema of Vega-Lite."""
    for one in collect(both, list(FIGURES.values())):
        if one.data.table is not None:
            for paper in WIDTHS:
                spec = one.figure.plan.draw(one.data.table, look_of(both, paper)).to_dict()
                inline = [v for v in found(spec, "values") if v and isinstance(v[0], dict)]
                assert inline, one.figure.name
                assert sum(map(len, inline)) <= 5000, one.figure.name


@pytest.mark.sample(3)
@pytest.mark.parametrize(
    ("name", "titles"),
    [
        ("cdf_job_duration_util", ["Run time, s to days (log)", "CDF, % of jobs"]),
        ("cdf_job_gpunum", ["GPUs of the job (log)", "CDF, % of GPU time"]),
        ("bar_job_state", ["% of jobs", "% of GPU time"]),
        ("cdf_job_duration_queue", ["Wait, s to days (log)", "Run time, s to days (log)"]),
        ("box_gpu_num", ["GPUs of the job (log)"]),
        ("requests_over_week", ["GPUs per hour", "CPU cores per hour", "Hour of the week"]),
        ("request_usage", ["CPU cores of the task (log)", "CDF, % of tasks"]),
        ("network_cpu", ["Network read, Gbit/s (log)", "Load of the node, %"]),
        ("allocation_by_node", ["Time since the first task, minutes (n = 3 tasks)"]),
    ],
)
def test_axes_say_what_and_in_which_unit(both: Sources, name: str, titles: list[str]) -> None:
    shown = [title for title in found(spec_of(name, both), "title") if isinstance(title, str)]
    assert set(titles) <= set(shown)


@pytest.mark.slow
def test_n_stands_in_every_legend(both: Sources) -> None:
    exempt = {"treemap_job_dist", "allocation_by_node", "jobs_by_hour", "box_gpu_num"}
    for one in collect(both, [f for f in FIGURES.values() if f.name not in exempt]):
        if one.data.table is None:
            continue
        spec = one.figure.plan.draw(one.data.table, look_of(both)).to_dict()
        for color in found(spec, "color"):
            if isinstance(color, dict) and color.get("legend") and "domain" in color["scale"]:
                entries = color["scale"]["domain"]
                if one.figure.name == "sharing_savings":
                    entries = entries[:1]  # the curves are of the same tasks
                assert all("n = " in entry for entry in entries), (one.figure.name, entries)
    text = json.dumps([spec_of(name, both) for name in sorted(exempt)])
    assert text.count("n = ") >= 8


def test_a_trace_has_one_colour_and_one_dash_over_all_figures(both: Sources) -> None:
    colours: dict[str, set[str]] = {}
    for name in ("cdf_job_duration_util", "jobs_over_week", "bar_job_state", "runtime"):
        for color in found(spec_of(name, both), "color"):
            if isinstance(color, dict) and color.get("legend"):
                scale = color["scale"]
                for entry, colour in zip(scale["domain"], scale["range"], strict=True):
                    colours.setdefault(entry.split(" (n")[0], set()).add(colour)
    assert colours == {"hand": {"#000000"}, "bare": {"#0072b2"}}
    dashes = found(spec_of("cdf_job_duration_util", both), "strokeDash")
    ranges = [d["scale"]["range"] for d in dashes if isinstance(d, dict)]
    assert all(len({tuple(dash) for dash in r}) == len(r) for r in ranges)


def test_a_trace_that_is_not_in_a_figure_leaves_its_colour_to_nobody(both: Sources) -> None:
    """`bare` keeps the second colour in a figure whose first trace is left out."""
    look = Look(traces=("hand", "bare"))
    assert look.strokes(["bare"])[0] == ["#0072b2"]


def test_eight_traces_have_eight_colours_and_dashes() -> None:
    names = tuple(f"t{i}" for i in range(8))
    colours, dashes = Look(traces=names).strokes(names)
    assert len(set(colours)) == 8
    assert len({tuple(dash) for dash in dashes}) == 8


def test_workloads_of_one_trace_have_different_colours(
    make_trace: Callable[..., Trace],
) -> None:
    def of(names: list[str]) -> Trace:
        size = len(names)
        same = {"submit_time": [0.0] * size, "duration": [1.0] * size, "num_gpus": [1.0] * size}
        return make_trace({**same, "workload": names})

    first = of([f"w{i}" for i in range(8)])
    second = of([f"w{i}" for i in range(4, 10)])
    sources = Sources.of([first, second])
    look = look_of(sources)
    for trace in (range(8), range(4, 10)):
        assert len({look.colour(f"w{i}") for i in trace}) == len(trace)


@pytest.mark.slow
def test_published_curves_have_their_traces_colour_and_keep_their_name(data_dir: Path) -> None:
    from windtunnel.traces.open import open_trace

    kalos = open_trace("synthetic:kalos", jobs=200)
    curves = published_curves(data_dir / "acme" / "utilization_quantiles.npz")
    spec = spec_of("cdf_power", Sources.of([kalos], curves))
    scales = [c["scale"] for c in found(spec, "color") if isinstance(c, dict) and c.get("legend")]
    entries = dict(zip(scales[0]["domain"], scales[0]["range"], strict=True))
    assert entries == {
        "Kalos: P50 101.4, max 600 W (n not reported)": SERIES[0][0],
        "Seren: P50 96.45, max 558 W (n not reported)": SERIES[1][0],
    }
    assert [{"value": 400.0}] in found(spec, "values")  # the mark at the TDP
    dots = [v for v in found(spec, "values") if v and isinstance(v[0], dict) and "c" in v[0]]
    medians = sorted(dot["value"] for dot in dots[0])
    assert medians == [pytest.approx(96.45, abs=0.06), pytest.approx(101.4, abs=0.05)]


def test_guide_lines_stand_at_an_hour_and_a_day(both: Sources) -> None:
    spec = spec_of("cdf_job_duration_queue", both)
    guides = [
        {row["x"] for row in values}
        for values in found(spec, "values")
        if values and isinstance(values[0], dict) and set(values[0]) == {"x"}
    ]
    assert guides == [{3600.0, 86400.0}, {3600.0}]


def test_run_time_axes_are_those_of_the_notebook(both: Sources) -> None:
    spec = spec_of("cdf_job_jobtime", both)
    domains = [
        x["scale"]["domain"] for x in found(spec, "x") if isinstance(x, dict) and "scale" in x
    ]
    assert domains == [[1.0, 2.0**21], [1.0, 2.0**15]]
    ys = [y["scale"]["domain"] for y in found(spec, "y") if isinstance(y, dict) and "scale" in y]
    assert ys == [[-0.5, 100.8]] * 2


@pytest.mark.slow
def test_hostile_names_are_drawn_as_harmless_text(
    make_trace: Callable[..., Trace], columns: Callable[[], dict[str, Any]], hand: Trace
) -> None:
    import pyarrow as pa

    assert hand.nodes is not None
    jobs = columns()
    jobs["workload"] = jobs["gpu_type"] = list(HOSTILE)
    jobs["num_gpus"] = [1.0] * 8
    traces = [
        make_trace(
            jobs,
            name,
            tasks=hand.tasks,
            nodes=hand.nodes.set_column(1, "gpu_type", pa.array([kind] * 2, pa.string())),
        )
        for name, kind in ((HOSTILE[0], HOSTILE[5]), (HOSTILE[3], HOSTILE[4]))
    ]
    sources = Sources.of(traces)
    look = look_of(sources)
    named = ("acme", "wait_by_gpu_type", "job_share", "runtime_by_gpu_type", "allocation_by_node")
    figures = [f for f in FIGURES.values() if f.set in named or f.name in named]
    for one in collect(sources, figures):
        if one.data.table is None:
            continue
        spec = one.figure.plan.draw(one.data.table, look).to_dict()
        text = json.dumps(spec, ensure_ascii=False)
        assert "\x1b" not in text
        assert "\u202e" not in text
        assert "x" * 60 not in text
        for expression in found(spec, "labelExpr"):
            if "alert" in expression or "a'b" in expression:
                assert "'\\'] + alert" in expression or "a\\'b" in expression
    svg = to_paper_svg(spec_of("bar_job_state", sources), look)
    assert "<script" not in svg
    assert "&lt;/script&gt;" in svg


def drawn_width(svg: str) -> float:
    found = re.search(r'viewBox="[-\d.]+ [-\d.]+ ([\d.]+) ', svg)
    assert found is not None
    return float(found[1])


@pytest.mark.slow
def test_pictures_are_drawn_at_the_width_that_they_have_on_paper(both: Sources) -> None:
    """Type of 7.5 pt stays above 7 pt where the fit to the exact width shrinks by 6.7 % at most."""
    assert FONT * 72 / 96 == 7.5
    names = ("cdf_job_gpunum", "bar_job_state", "treemap_job_dist", "box_gpu_num", "job_share")
    for paper in WIDTHS:
        look = look_of(both, paper)
        for name in (*names, "allocation_by_node", "jobs_by_hour"):
            width = drawn_width(to_paper_svg(spec_of(name, both, paper), look))
            assert 0.9 * look.width <= width <= look.width / 0.934, (name, paper, width)


def test_a_label_never_leaves_its_box() -> None:
    row = {"workload": "Pretrain", "percent": 69.49}
    assert label_of(row, 200, 100) == ["Pretrain", "69.5 %"]
    assert label_of(row, 200, 20) == ["Pretrain 69.5 %"]
    assert label_of(row, text_width("Pretrain") + 7, 20) == ["Pretrain"]
    assert label_of(row, 20, 100) == []
    assert label_of(row, 200, 10) == []
    for width in range(5, 120, 5):
        for height in range(5, 60, 5):
            lines = label_of(row, width, height)
            assert all(text_width(line) < width for line in lines)
            assert len(lines) * FONT < height or not lines


@pytest.mark.parametrize(
    ("percent", "text"), [(64.851, "64.9 %"), (0.8935, "0.89 %"), (0.0, "0 %"), (100.0, "100.0 %")]
)
def test_shares_show_what_tells_them_from_nothing(percent: float, text: str) -> None:
    assert share_text(percent) == text


def test_bars_of_a_line_stand_together_without_gaps_for_absent_traces(both: Sources) -> None:
    spec = spec_of("bar_job_state", both)
    first = next(
        v for v in found(spec, "values") if v and isinstance(v[0], dict) and "from" in v[0]
    )
    starts = [row["from"] for row in first]
    assert starts == pytest.approx([0.35 + 1.35 * i for i in range(len(starts))])
    (names, *_) = [
        axis["labelExpr"]
        for axis in found(spec, "axis")
        if "completed" in axis.get("labelExpr", "")
    ]
    for state in ("completed", "cancelled", "failed", "running"):
        assert f"'{state}'" in names
    for tick in found(spec, "tickCount"):
        assert tick in (4, 5) or tick >= 100  # Vega drops ticks that are more than it would make


def test_percent_axes_have_whole_numbers(both: Sources) -> None:
    svg = to_paper_svg(spec_of("cdf_job_duration_util", both), look_of(both))
    assert ">75<" in svg
    assert ">75.0<" not in svg
    for text in (">1 s<", ">10 s<", ">1 min<", ">1 h<", ">1 d<", ">7 d<"):
        assert text in svg
