"""The HTML page of a trace: one file, no script, nothing loaded from anywhere.

The numbers come from `windtunnel.report.description`, the pictures from
`windtunnel.report.describe_figures`; names of the trace are untrusted and stay text.
"""

from __future__ import annotations

from itertools import groupby
from typing import TYPE_CHECKING, Any

import windtunnel
from windtunnel.report import palette, sections
from windtunnel.report.describe_figures import draw_figures, draw_measured
from windtunnel.report.description import SHARES, in_a_sentence
from windtunnel.report.format import count, gpu_time, percent, plural
from windtunnel.report.headline_rows import PUBLISHED, PUBLISHED_LEAD, headline_rows
from windtunnel.report.names import MAX_TEXT, clean
from windtunnel.report.sections import Cell, Line, Table
from windtunnel.report.share_rows import folded
from windtunnel.report.summary_rows import summary_lines
from windtunnel.report.templating import render
from windtunnel.report.use_rows import JOB_COLUMNS, METRIC_COLUMNS, by_rows, job_rows, metric_rows

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from windtunnel.report.describe_figures import DrawnFigure
    from windtunnel.report.description import Description
    from windtunnel.report.headline_rows import HeadlineRow
    from windtunnel.report.measured_use import MeasuredUse
    from windtunnel.traces.trace import Trace

#: Rows of a property's shares, and of its use by telemetry; the rest is one row.
TOP = 12
_MAX_COMMAND = 2000


def describe_page(
    found: Description, *, command: str, on_done: Callable[[str], None] = lambda _: None
) -> str:
    """Return the page of a trace, as one self-contained HTML text.

    Args:
        found: the trace in numbers.
        command: what makes the page again, printed at its end.
        on_done: called with a figure's name, once for each of
            `windtunnel.report.describe_figures.FIGURES`.
    """
    trace = found.trace
    drawn = draw_figures(found, on_done)
    headlines = headline_rows(found.headlines)
    context = {
        "title": clean(trace.name, 120),
        "subtitle": _subtitle(found),
        "headline": in_a_sentence(found),
        "facts": sections.trace_facts(found.overview),
        "origin": _origin(trace),
        "dropped": sections.dropped_facts(trace.metadata.rows_read, trace.metadata.dropped),
        "notes": [clean(note, MAX_TEXT) for note in found.notes],
        "headlines": _headlines(headlines),
        "published": PUBLISHED,
        "published_lead": PUBLISHED_LEAD,
        "not_had": [(one.reason, one.labels) for one in found.not_had],
        "summary": _summary(found),
        "source_times": found.source_times,
        "shares": _shares(found),
        "telemetry": [_telemetry(use) for use in found.telemetry],
        "measured": draw_measured(found),
        "sections": _sections(drawn),
        "undrawn": [one for one in drawn if one.svg is None],
        "palette": palette.dark_pairs(),
        "command": clean(command, _MAX_COMMAND),
        "version": windtunnel.__version__,
    }
    return render("describe.html.j2", context)


def _subtitle(found: Description) -> list[str]:
    parts = [plural(found.overview["num_jobs"], "job")]
    cluster = found.trace.cluster
    if cluster is not None:
        parts.append(plural(cluster.num_gpus, "GPU"))
    return parts


def _origin(trace: Trace) -> list[tuple[str, str]]:
    about = trace.metadata
    origin = {
        "Source": about.source,
        "Licence": about.licence or "not stated by the source",
        "Time 0": about.epoch or "",
        "Time zone of the source": about.zone or "",
        "Cluster": trace.cluster.describe() if trace.cluster else "",
        "Records read": count(about.rows_read) if about.rows_read else "",
        **{f"Made with {key}": _setting(v) for key, v in about.settings.items()},
    }
    return [(clean(key), clean(value, MAX_TEXT)) for key, value in origin.items() if value != ""]


def _setting(value: Any) -> str:
    return "" if value is None else sections.setting_text(value)


def _headlines(rows: Sequence[HeadlineRow]) -> Table:
    lacks = any(row.left_out for row in rows)
    lines = [
        Line(
            row.label,
            [
                Cell(row.value, row.exact),
                Cell(row.n),
                *([Cell(row.left_out)] if lacks else []),
                Cell(row.published, row.source),
            ],
            title=row.claim,
            group=row.group,
        )
        for row in rows
    ]
    left_out = ["left out"] if lacks else []
    return Table("", ["this trace", "n", *left_out, PUBLISHED], lines)


def _summary(found: Description) -> Table:
    """Return the cluster's row, the name of each column as the title of its line."""
    whole = summary_lines(found.summary)
    lines = [
        Line(line.label, line.cells[1:], title=line.cells[0].text, group=line.group)
        for line in whole.lines
    ]
    return Table(whole.corner, whole.columns[1:], lines)


def _shares(found: Description) -> list[tuple[str, Table]]:
    """Return (heading, table) of each property that the jobs tell."""
    tables = []
    for by, title in SHARES.items():
        rows = found.shares[by]
        if all(row[by] == "(none)" for row in rows):
            continue
        shown = list(rows) if by == "num_gpus" else folded(rows, by, TOP)
        lines = [
            Line(
                row[by].replace("-", "\u2013") if by == "num_gpus" else clean(row[by]),
                [
                    Cell(count(row["num_jobs"])),
                    Cell(percent(row["job_share"])),
                    Cell(
                        gpu_time(row["gpu_time"]).removesuffix(" GPU h"),
                        f"{row['gpu_time'] or 0:,.0f} GPU s",
                    ),
                    Cell(percent(row["gpu_time_share"])),
                ],
            )
            for row in shown
        ]
        tables.append((title, Table("", ["jobs", "of all", "GPU hours", "of all"], lines)))
    return tables


def _telemetry(use: MeasuredUse) -> dict[str, Any]:
    dropped = [
        f"{plural(number, 'measurement')} dropped: {why}" for why, number in use.dropped.items()
    ]
    return {
        "source": clean(use.source, 120),
        "lead": f"{plural(use.samples, 'sample')} ({use.format})",
        "metrics": _rows_table(METRIC_COLUMNS, metric_rows(use)),
        "jobs": [
            (clean(metric), _rows_table(("", *JOB_COLUMNS), [*job_rows(jobs), *by_rows(jobs, TOP)]))
            for metric, jobs in use.jobs.items()
        ],
        "why_no_jobs": use.why_no_jobs,
        "notes": [clean(note, MAX_TEXT) for note in (*use.notes, *dropped)],
    }


def _rows_table(columns: Sequence[str], rows: Sequence[tuple[str, ...]]) -> Table:
    """Return rows of texts as a table; a row of one cell heads those that follow it."""
    lines = []
    group = ""
    for first, *cells in rows:
        if not cells:
            group = first
            continue
        lines.append(Line(first, [Cell(cell) for cell in cells], group=group))
    return Table(columns[0], list(columns[1:]), lines)


def _sections(drawn: Sequence[DrawnFigure]) -> list[tuple[str, list[DrawnFigure]]]:
    """Return (heading, figures) of each section that has any."""
    parts = []
    for title, group in groupby(drawn, key=lambda one: one.figure.section):
        shown = [one for one in group if one.svg is not None]
        if shown:
            parts.append((title, shown))
    return parts
