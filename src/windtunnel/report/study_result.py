"""The comparison of a study, told to people: forest plots, tables and what they allow to say."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from windtunnel.report.format import MINUS, count, is_known, plural
from windtunnel.report.names import MAX_TEXT, clean
from windtunnel.report.result import Drawing, Part, Result
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
from windtunnel.study.grid.paired import BETTER, WORSE

if TYPE_CHECKING:
    from windtunnel.study.grid.paired import Contrast, Paired
    from windtunnel.study.grid.store import Results

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
    told, failures = claims(found), failure_lines(results)
    parts = [
        Part("Claims", points=told or ["None: no interval excludes no change."]),
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
    return Result(
        f"{clean(results.name, 80)}: {clean(found.between)} against {clean(found.baseline)}",
        told[0] if told else "No claim: no interval excludes that nothing changes.",
        parts=parts if failures else parts[:-1],
        notes=[
            progress_line(results),
            *(clean(note, MAX_TEXT) for note in (*found.notes, *_inputs(results))),
            f"{versions}. The same study gives the same numbers, however many workers fly it.",
        ],
        subtitle=_subtitle(results, found),
    )


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
        _difference(contrast),
        Cell(interval_text(change)),
        Cell(count(change.num_draws)),
        Cell(VERDICTS[contrast.verdict], marked=claimed and contrast.verdict == WORSE),
    ]


def _difference(contrast: Contrast) -> Cell:
    """Return a change, the difference under it; of a baseline of zero the difference alone."""
    mean, base = contrast.mean, contrast.baseline_mean
    relative = change_text(contrast.change.estimate)
    if mean is None or base is None or not (is_known(mean) and is_known(base)):
        return Cell(relative)
    sign = "+" if mean >= base else MINUS
    told = f"{sign}{metric_text(contrast.metric, abs(mean - base))}"
    return Cell(told) if base == 0 else Cell(relative, note=told)


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
    """Return what was flown, a sentence a trace, and what the traces' readers told."""
    inputs = results.manifest["inputs"]
    told = [f"{name}: {plural(facts['num_jobs'], 'job')}." for name, facts in inputs.items()]
    shown = told if len(told) <= 6 else [*told[:5], f"{len(told) - 5} more jobs tables."]  # noqa: PLR2004
    notes = [note for facts in inputs.values() for note in facts["notes"]]
    return [*shown, *dict.fromkeys(notes)]
