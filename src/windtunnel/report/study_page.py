"""The HTML page of a study: one file, no script, nothing loaded from anywhere."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import windtunnel
from windtunnel.report import palette
from windtunnel.report.format import count, plural
from windtunnel.report.names import MAX_TEXT, clean
from windtunnel.report.page import Figure
from windtunnel.report.render import to_svg
from windtunnel.report.sections import Cell, Line, Table
from windtunnel.report.study_charts import EDGES, forest_chart
from windtunnel.report.study_rows import WORDS as VERDICTS
from windtunnel.report.study_rows import (
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
    progress_line,
)
from windtunnel.report.templating import render
from windtunnel.study.grid.paired import BETTER, WORSE

if TYPE_CHECKING:
    from windtunnel.study.grid.paired import Contrast, Paired
    from windtunnel.study.grid.store import Results

_MAX_COMMAND = 2000
_CAPTION = (
    "Left of the dotted line is less. A dot is the change, its line the interval; a diamond is all "
    "conditions together. Only an interval that does not reach the dotted line makes a claim. "
    f"Changes beyond {change_text(EDGES[0] - 1)} or {change_text(EDGES[1] - 1)} stand on the edge."
)


def study_page(results: Results, found: Paired, *, command: str) -> str:
    """Return the page of a study's comparison, as one self-contained HTML text.

    Args:
        results: the study.
        found: its comparison.
        command: what makes the page again, printed at its end.
    """
    metrics = found.metrics
    context = {
        "title": clean(results.name, 80),
        "subtitle": _subtitle(results, found),
        "claims": claims(found),
        "sections": [_section(found, metric, place) for place, metric in enumerate(metrics)],
        "averages": _averages(results, metrics),
        "caption": _CAPTION,
        "progress": progress_line(results),
        "failures": [clean(text, MAX_TEXT) for text in failure_lines(results)],
        "notes": [clean(note, MAX_TEXT) for note in (*found.notes, *_inputs(results))],
        "versions": ", ".join(f"{k} {v}" for k, v in results.manifest["versions"].items()),
        "palette": palette.dark_pairs(),
        "command": clean(command, _MAX_COMMAND),
        "version": windtunnel.__version__,
    }
    return render("study.html.j2", context)


def _subtitle(results: Results, found: Paired) -> list[str]:
    traces = list(dict.fromkeys(cell["trace"] for cell in results.manifest["grid"]))
    return [
        ", ".join(clean(trace) for trace in traces[:4]) + (" \u2026" if len(traces) > 4 else ""),  # noqa: PLR2004
        plural(results.num_runs, "run"),
        plural(len(results.manifest["seeds"]), "seed"),
        f"{clean(found.between)} against {clean(found.baseline)}",
    ]


def _section(found: Paired, metric: str, place: int) -> dict[str, Any]:
    """Return one metric's heading, picture and table."""
    from markupsafe import Markup

    label = metric_label(metric)
    chart = forest_chart(found, metric)
    title = f"{label}: change against {clean(found.baseline)}"
    # The SVG is Vega's own serialisation: it escapes every text it writes.
    svg = None if chart is None else Markup(to_svg(chart, name=f"forest-{place}", label=title))  # noqa: S704
    return {
        "label": label,
        "figure": Figure(title, _draws(found, metric), svg),
        "table": comparison_table(found, metric),
    }


def _draws(found: Paired, metric: str) -> str:
    """Return how many draws a picture rests on."""
    counts = {c.change.num_draws for c in found.contrasts if c.metric == metric}
    least, most = min(counts), max(counts)
    many = count(least) if least == most else f"{count(least)} to {count(most)}"
    return f"n = {many} {found.over}; intervals of {100 * found.confidence:g} %."


def comparison_table(found: Paired, metric: str) -> Table:
    """Return the comparisons of one metric, grouped by what is compared."""
    lines = [
        Line(
            condition_text(found, contrast) or clean(contrast.value),
            _cells(contrast),
            group=clean(contrast.value) if condition_text(found, contrast) else "",
        )
        for contrast in found.contrasts
        if contrast.metric == metric
    ]
    sure = f"{100 * found.confidence:g} % interval"
    columns = ["Mean", clean(found.baseline), "Change", sure, f"n ({found.over})", "Verdict"]
    return Table("Condition", columns, lines)


def _cells(contrast: Contrast) -> list[Cell]:
    change, metric = contrast.change, contrast.metric
    claimed = contrast.verdict in (BETTER, WORSE)
    return [
        Cell(metric_text(metric, contrast.mean)),
        Cell(metric_text(metric, contrast.baseline_mean)),
        Cell(change_text(change.estimate)),
        Cell(interval_text(change)),
        Cell(count(change.num_draws)),
        Cell(VERDICTS[contrast.verdict], marked=claimed and contrast.verdict == WORSE),
    ]


def _averages(results: Results, metrics: tuple[str, ...]) -> Table:
    """Return the means over seeds."""
    axes = len(average_columns(results, ())) - 1
    columns = average_columns(results, metrics)
    lines = [
        Line(" \u00b7 ".join(clean(cell) for cell in cells[:axes]), [Cell(c) for c in cells[axes:]])
        for cells in average_cells(results, averages(results, metrics), metrics)
    ]
    return Table(" \u00b7 ".join(columns[:axes]), ["Runs", *columns[axes + 1 :]], lines)


def _inputs(results: Results) -> list[str]:
    """Return what was flown, a sentence a trace, and what the traces' readers told."""
    inputs = results.manifest["inputs"]
    told = [f"{name}: {plural(facts['num_jobs'], 'job')}." for name, facts in inputs.items()]
    shown = told if len(told) <= 6 else [*told[:5], f"{len(told) - 5} more jobs tables."]  # noqa: PLR2004
    notes = [note for facts in inputs.values() for note in facts["notes"]]
    return [*shown, *dict.fromkeys(notes)]
