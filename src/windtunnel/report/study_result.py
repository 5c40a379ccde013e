"""A report of a study's comparison: forest plots, tables and what they allow to say."""

from __future__ import annotations

import math
from functools import partial
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from windtunnel.plain import fields_of
from windtunnel.report.chart import marks
from windtunnel.report.chart.arrange import WIDTH, beside, on_page, on_paper, over, titled
from windtunnel.report.chart.axes import Axis, names
from windtunnel.report.chart.series import FONT, Series
from windtunnel.report.curves import time_unit
from windtunnel.report.format import MINUS, count, is_known, plural
from windtunnel.report.names import MAX_TEXT, clean, labels
from windtunnel.report.palette import colours
from windtunnel.report.result import Drawing, Part, Result
from windtunnel.report.sections import Cell, Line, Table
from windtunnel.report.study_rows import (
    WORDS,
    average_cells,
    average_columns,
    averages,
    change_text,
    claims,
    condition_text,
    failure_lines,
    interval_text,
    metric_label,
    metric_text,
    metric_unit,
    progress_line,
    queue_lines,
)
from windtunnel.study.grid.paired import BETTER, FEW, UNCLEAR, WORSE

if TYPE_CHECKING:
    from windtunnel.study.grid.paired import Contrast, Paired
    from windtunnel.study.grid.store import Results
    from windtunnel.study.statistics import Interval


#: Changes are drawn as ratios on a logarithmic scale: half and twice are as far from none.
_CHANGE = (
    "(datum.value < 1 ? '\u2212' : datum.value > 1 ? '+' : '') + "
    "format(100 * abs(datum.value - 1), '.3~r') + ' %'"
)
#: Ratios are drawn between these; what is beyond stands on the edge.
EDGES = (0.02, 50.0)
_CAPTION = (
    "Left of the dotted line is less. A dot is the change, its line the interval; a diamond is all "
    "conditions together. Only an interval that does not reach the dotted line makes a claim. "
    f"Changes beyond {change_text(EDGES[0] - 1)} or {change_text(EDGES[1] - 1)} stand on the edge."
)


def study_result(results: Results, found: Paired) -> Result:
    """Return a study's comparison as a result.

    Args:
        results: the study.
        found: its comparison.
    """
    drawings = [_drawing(found, metric, place) for place, metric in enumerate(found.metrics)]
    claimed, failures = claims(found), failure_lines(results)
    mind, queues = queue_lines(results)
    parts = [
        Part("Claims", points=claimed or ["None: no interval excludes no change."]),
        Part("Changes and their intervals", _CAPTION, drawings=drawings),
        *(
            Part(
                metric_label(metric),
                tables=[(_title(found, metric), comparison_table(found, metric))],
            )
            for metric in found.metrics
        ),
        Part(
            "Every condition",
            "Means over the runs of a condition that gave a result, one a seed.",
            [("Means over seeds", averages_table(results, found.metrics))],
            page_only=True,
        ),
        Part("Runs with an error", points=[clean(text, MAX_TEXT) for text in failures]),
    ]
    versions = ", ".join(f"{k} {v}" for k, v in results.manifest["versions"].items())
    name, drawn = clean(results.name, 80), any(_rows(found, m) for m in found.metrics)
    return Result(
        f"{name}{'' if name.endswith('?') else ':'} {clean(found.between)} against "
        f"{clean(found.baseline)}",
        claimed[0] if claimed else "No claim: no interval excludes that nothing changes.",
        parts=parts if failures else parts[:-1],
        cautions=[clean(text, MAX_TEXT) for text in mind],
        notes=[
            progress_line(results),
            *(clean(note, MAX_TEXT) for note in queues),
            *(clean(note, MAX_TEXT) for note in (*found.notes, *_inputs(results))),
            f"{versions}. The same study gives the same numbers, however many workers fly it.",
        ],
        subtitle=_subtitle(results, found),
        table=lambda: contrast_rows(found),
        chart=(lambda: forest_figure(found)) if drawn else None,
    )


def contrast_rows(found: Paired) -> pa.Table:
    """Return the comparisons as a table, a row each.

    Columns: ``metric``, the axis that is compared, ``baseline``, ``condition`` (what tells it from
    the others), ``unit``, ``mean`` and ``baseline_mean`` (in it), ``change``, ``low`` and
    ``high`` (relative), ``confidence``, ``num_draws``, ``num_missing``, ``verdict``.
    """
    rows = [
        {
            "metric": contrast.metric,
            found.between: contrast.value,
            "baseline": contrast.baseline,
            "condition": condition_text(found, contrast),
            "unit": metric_unit(contrast.metric),
            "mean": contrast.mean,
            "baseline_mean": contrast.baseline_mean,
            "change": contrast.change.estimate,
            **fields_of(contrast.change, "low", "high", "confidence", "num_draws"),
            "num_missing": contrast.num_missing,
            "verdict": contrast.verdict,
        }
        for contrast in found.contrasts
    ]
    return pa.Table.from_pylist(rows)


def _subtitle(results: Results, found: Paired) -> list[str]:
    traces = list(dict.fromkeys(cell["trace"] for cell in results.manifest["grid"]))
    return [
        ", ".join(clean(trace) for trace in traces[:4]) + (" \u2026" if len(traces) > 4 else ""),  # noqa: PLR2004
        plural(results.num_runs, "run"),
        plural(len(results.manifest["seeds"]), "seed"),
        f"{clean(found.between)} against {clean(found.baseline)}",
    ]


def _title(found: Paired, metric: str) -> str:
    return f"{metric_label(metric)}: {clean(found.between)} against {clean(found.baseline)}"


def _drawing(found: Paired, metric: str, place: int) -> Drawing:
    title = f"{metric_label(metric)}: change against {clean(found.baseline)}"
    draw = partial(forest_chart, found, metric)
    return Drawing(f"forest-{place}", title, _draws(found, metric), draw)


def _draws(found: Paired, metric: str) -> str:
    """Return how many draws a picture rests on."""
    counts = {c.change.num_draws for c in found.contrasts if c.metric == metric}
    least, most = min(counts), max(counts)
    many = count(least) if least == most else f"{count(least)} to {count(most)}"
    if not forest_rows(found, metric):
        return f"n = {many} {found.over}; differences, as no ratio can be formed."
    return f"n = {many} {found.over}; intervals of {100 * found.confidence:g} %."


def comparison_table(found: Paired, metric: str) -> Table:
    """Return the comparisons of one metric, grouped by what is compared."""
    lines = []
    for contrast in found.contrasts:
        if contrast.metric != metric:
            continue
        where, what = condition_text(found, contrast), clean(contrast.value)
        lines.append(Line(where or what, _cells(contrast), group=what if where else ""))
        if (likely := contrast.elsewhere) is not None:
            texts = [change_text(likely.estimate), interval_text(likely)]
            cells = [Cell(text) for text in ("", "", *texts, f"{likely.num_draws} traces", "")]
            lines.append(Line("on traces like these", cells, group=what))
    sure = f"{100 * found.confidence:g} % interval"
    columns = ["Mean", clean(found.baseline), "Change", sure, f"n ({found.over})", "Verdict"]
    return Table("Condition", columns, lines)


def _cells(contrast: Contrast) -> list[Cell]:
    change, metric = contrast.change, contrast.metric
    claimed = contrast.verdict in (BETTER, WORSE)
    return [
        Cell(metric_text(metric, contrast.mean)),
        Cell(metric_text(metric, contrast.baseline_mean)),
        _difference(contrast),
        Cell(interval_text(change)),
        Cell(count(change.num_draws)),
        Cell(WORDS[contrast.verdict], marked=claimed and contrast.verdict == WORSE),
    ]


def _difference(contrast: Contrast) -> Cell:
    """Return a change, the difference under it; of a baseline of zero the difference alone."""
    mean, base = contrast.mean, contrast.baseline_mean
    relative = change_text(contrast.change.estimate)
    if mean is None or base is None or not (is_known(mean) and is_known(base)):
        return Cell(relative)
    sign = "+" if mean >= base else MINUS
    absolute = f"{sign}{metric_text(contrast.metric, abs(mean - base))}"
    return Cell(absolute) if base == 0 else Cell(relative, note=absolute)


def averages_table(results: Results, metrics: tuple[str, ...]) -> Table:
    """Return the means over seeds."""
    axes = len(average_columns(results, ())) - 1
    columns = average_columns(results, metrics)
    lines = [
        Line(" \u00b7 ".join(clean(cell) for cell in cells[:axes]), [Cell(c) for c in cells[axes:]])
        for cells in average_cells(results, averages(results, metrics), metrics)
    ]
    return Table(" \u00b7 ".join(columns[:axes]), ["Runs", *columns[axes + 1 :]], lines)


def _inputs(results: Results) -> list[str]:
    """Return what was flown, a sentence a trace, and the notes of the traces' readers."""
    inputs = results.manifest["inputs"]
    sizes: dict[str, list[int]] = {}
    for name, facts in inputs.items():  # what is drawn for each seed is listed once
        sizes.setdefault(name.partition(" seed ")[0], []).append(facts["num_jobs"])
    traces = [f"{name}: {_jobs_text(of)}." for name, of in sizes.items()]
    shown = traces if len(traces) <= 6 else [*traces[:5], f"{len(traces) - 5} more traces."]  # noqa: PLR2004
    notes = [note for facts in inputs.values() for note in facts["notes"]]
    return [*shown, *dict.fromkeys(notes)]


def _jobs_text(counts: list[int]) -> str:
    """Return how many jobs the tables of one trace have."""
    least, most = min(counts), max(counts)
    jobs = plural(most, "job") if least == most else f"{count(least)} to {plural(most, 'job')}"
    return jobs if len(counts) == 1 else f"{jobs} for each of {plural(len(counts), 'seed')}"


_TICKS = (0.02, 0.05, 0.1, 0.2, 0.35, 0.5, 0.7, 0.85, 1, 1.2, 1.5, 2, 3, 5, 10, 20, 50)
#: Most width of the names beside a chart, height of a line, width of a tick's label, px.
_NAMES, _LINE, _TICK = 215, 17, 45
#: Width of a chart with its names on a page, and in a column of a paper, px; least width without.
_PAGE, _PAPER, _LEAST = WIDTH + 90, 245, 150


def forest_rows(found: Paired, metric: str) -> list[dict[str, Any]]:
    """Return the rows of a metric's forest plot, from top to bottom.

    Rows: ``place`` (from 0), ``name``, ``ratio`` (1 + change), ``low`` and ``high`` (None without
    an interval), ``verdict`` (in words), ``together`` (all conditions), ``n`` (draws).
    """
    contrasts = [c for c in found.contrasts if c.metric == metric]
    called = labels((_name(found, contrast) for contrast in contrasts), limit=40)
    return [
        {
            "place": place,
            "name": name,
            "ratio": _inside(1 + contrast.change.estimate),
            "low": _end(contrast.change, contrast.change.low),
            "high": _end(contrast.change, contrast.change.high),
            "verdict": WORDS[contrast.verdict],
            "together": contrast.condition is None,
            "n": contrast.change.num_draws,
        }
        for place, (name, contrast) in enumerate(zip(called, contrasts, strict=True))
        if contrast.verdict in (BETTER, WORSE, UNCLEAR, FEW)
    ]


def difference_rows(found: Paired, metric: str) -> list[dict[str, Any]]:
    """Return the rows of a metric of which no ratio can be formed, as its baseline is zero.

    Rows: ``name``, ``difference`` (the mean less the baseline's, in the metric's unit).
    """
    contrasts = [c for c in found.contrasts if c.metric == metric]
    pairs = [(c, c.mean, c.baseline_mean) for c in contrasts]
    known = [(c, a - b) for c, a, b in pairs if a is not None and b is not None]
    called = labels((_name(found, contrast) for contrast, _ in known), limit=40)
    return [
        {"name": name, "difference": difference}
        for name, (_, difference) in zip(called, known, strict=True)
    ]


def _rows(found: Paired, metric: str) -> list[dict[str, Any]]:
    """Return what is drawn of a metric: ratios, or differences where there are none."""
    return forest_rows(found, metric) or difference_rows(found, metric)


def _name(found: Paired, contrast: Any) -> str:
    where = condition_text(found, contrast)
    return f"{clean(contrast.value, 24)}{f', {where}' if where else ''}"


def _end(change: Interval, at: float | None) -> float | None:
    """Return an end of an interval as a ratio; None where there is none."""
    return _inside(1 + (at or 0.0)) if change.is_known else None


def _inside(ratio: float) -> float:
    return min(max(ratio, EDGES[0]), EDGES[1])


def _ticks(low: float, high: float, most: int) -> list[float]:
    """Return ratios to label, no change first, so far apart that ``most`` labels fit."""
    gap = math.log(high / low) / most
    chosen = [1.0]
    for side in ([t for t in _TICKS if t > 1], [t for t in reversed(_TICKS) if t < 1]):
        last = 1.0
        for tick in side:
            if low <= tick <= high and abs(math.log(tick / last)) >= gap:
                chosen.append(tick)
                last = tick
    return sorted(chosen)


def forest_chart(found: Paired, metric: str) -> Any:
    """Return a metric's forest plot: a dot a change, its interval, the rule where nothing changes.

    All conditions together are a diamond. Where no ratio can be formed the dots are differences.
    None where there is nothing to draw.
    """
    rows = _rows(found, metric)
    return on_page(_forest(found, metric, _names_width(rows), _PAGE)) if rows else None


def forest_figure(found: Paired) -> Any:
    """Return the forest plots of all metrics below each other, as a figure of a paper's column."""
    drawn = {metric: rows for metric in found.metrics if (rows := _rows(found, metric))}
    names_width = max(map(_names_width, drawn.values()))
    charts = []
    for metric, rows in drawn.items():
        clipped = any(row.get(key) in EDGES for row in rows for key in ("ratio", "low", "high"))
        edge = f"Beyond {change_text(EDGES[0] - 1)} or {change_text(EDGES[1] - 1)}: on the edge."
        below = [_draws(found, metric), *([edge] if clipped else [])]
        title = titled(metric_label(metric), subtitle=below, subtitleFontSize=FONT - 1)
        charts.append(_forest(found, metric, names_width, _PAPER, title))
    return on_paper(beside(charts, 1, own=("x", "y")))


def _names_width(rows: list[dict[str, Any]]) -> int:
    """Return the width of the names beside a chart, px."""
    return min(_NAMES, 12 + 7 * max(len(row["name"]) for row in rows))


def _forest(found: Paired, metric: str, names_width: int, width: int, title: Any = None) -> Any:
    """Return a metric's forest plot, unthemed, so wide with the names beside it."""
    rows = _rows(found, metric)
    width = max(width - names_width, _LEAST)
    y = names("name", [row["name"] for row in rows], extent=names_width)
    if "ratio" in rows[0]:
        layers = _ratios(found, rows, y, width)
    else:
        layers = _differences(found, metric, rows, y)
    height = max(60, _LINE * len(rows))
    return over(*layers, width=width, height=height, title=title)


def _ratios(found: Paired, rows: list[dict[str, Any]], y: Axis, width: int) -> list[Any]:
    ends = [row[key] for row in rows for key in ("ratio", "low", "high") if row[key] is not None]
    low, high = min(0.85, *ends), max(1.2, *ends)
    against = f"Change against {clean(found.baseline, 28)} (log scale)"
    ticks = _ticks(low, high, width // _TICK)
    x = Axis("ratio", against, "log", (low * 0.93, high * 1.05), ticks, _CHANGE)
    _, blue, vermillion = colours(3)
    grey = colours(8)[7]
    painted = {BETTER: blue, WORSE: vermillion, UNCLEAR: grey, FEW: grey}
    present = {row["verdict"] for row in rows}
    known = {WORDS[v]: paint for v, paint in painted.items() if WORDS[v] in present}
    verdicts = Series("verdict", list(known), list(known.values()), legend=True)
    together = marks.two("together", shape=("circle", "diamond"), size=(50, 110))
    return marks.forest(rows, x, y, verdicts, low="low", high="high", guides=[1.0], marks=together)


def _differences(found: Paired, metric: str, rows: list[dict[str, Any]], y: Axis) -> list[Any]:
    unit, most = metric_unit(metric), max(abs(row["difference"]) for row in rows)
    word, size = time_unit(most) if unit == "s" else (unit, 1.0)
    scaled = [row | {"difference": row["difference"] / size} for row in rows]
    ends = [row["difference"] for row in scaled]
    margin = 0.05 * most / size or 1.0
    domain = (min(0.0, *ends) - margin, max(0.0, *ends) + margin)
    against = f"Difference to {clean(found.baseline, 28)}{f' ({word})' if word else ''}"
    return marks.forest(scaled, Axis("difference", against, domain=domain), y, guides=[0.0])
