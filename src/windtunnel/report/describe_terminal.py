"""A described trace on a terminal: rich renderables. Nothing here prints."""

from __future__ import annotations

from typing import TYPE_CHECKING

from windtunnel.report import sections, summary_rows
from windtunnel.report.description import SHARES
from windtunnel.report.format import count, gpu_time, percent
from windtunnel.report.headline_rows import (
    NOT_IN_TRACES,
    PUBLISHED,
    TOLD_BEFORE,
    headline_rows,
)
from windtunnel.report.names import clean
from windtunnel.report.share_rows import coarse, folded
from windtunnel.report.unanswered import in_short
from windtunnel.report.use_rows import JOB_COLUMNS, METRIC_COLUMNS, by_rows, job_rows, metric_rows

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from rich.table import Table
    from rich.text import Text

    from windtunnel.report.description import Description
    from windtunnel.report.measured_use import MeasuredUse

#: Rows of a property's shares, most GPU time first; the rest is one row.
TOP = 3
_CHARACTERS = 200


def overview_table(found: Description) -> Table:
    """Return how big the trace is, how long, whose: the facts of `windtunnel.report.sections`."""
    table = _table()
    table.add_column(no_wrap=True)
    table.add_column(justify="right", no_wrap=True)
    table.add_column(overflow="fold", style="dim")
    for fact in sections.trace_facts(found.overview):
        table.add_row(*map(_text, (fact.label, fact.text, fact.note)))
    table.show_header = False
    return table


def summary_tables(found: Description, *, whole: bool) -> list[Table]:
    """Return the cluster in one row: in short, or every column by its name in the file."""
    if whole:
        return [_data_table(summary_rows.summary_lines(found.summary))]
    return [_data_table(table) for table in summary_rows.summary_in_short(found.summary)]


def headline_table(found: Description, *, whole: bool) -> Table:
    """Return the headline numbers that can be had, in groups, beside those published of PAI.

    Args:
        found: the trace.
        whole: all of them; else without those that the overview has told before.
    """
    rows = headline_rows(found.headlines)
    if not whole:
        rows = [row for row in rows if row.key not in TOLD_BEFORE]
    lacks = any(row.left_out for row in rows)
    table = _table()
    table.add_column("", overflow="fold")
    columns = ["this trace", "n", *(["left out"] if lacks else []), PUBLISHED]
    for name in columns:
        table.add_column(_text(name), justify="right", no_wrap=name != PUBLISHED)
    group = ""
    for row in rows:
        if row.group != group:
            group = row.group
            table.add_row(_text(group, "bold"))
        cells = [row.value, row.n, *([row.left_out] if lacks else []), row.published]
        table.add_row(_text(f"  {row.label}", keep=True), *map(_text, cells))
    return table


def shares_table(found: Description, *, whole: bool) -> Table | None:
    """Return whose the jobs and the GPU time are, by each property that the jobs tell.

    Args:
        found: the trace.
        whole: every row; else the `TOP` of each property, and fewer classes of size.
    """
    table = _table()
    table.add_column("", overflow="fold")
    for name in ("jobs", "of all", "GPU time", "of all"):
        table.add_column(name, justify="right", no_wrap=True)
    told = False
    for by, title in SHARES.items():
        rows = found.shares[by]
        if all(row[by] == "(none)" for row in rows):
            continue
        told = True
        table.add_row(_text(title, "bold"))
        shorter = coarse(rows) if by == "num_gpus" else folded(rows, by, TOP)
        for row in rows if whole else shorter:
            label = row[by].replace("-", "\u2013") if by == "num_gpus" else clean(row[by])
            table.add_row(
                _text(f"  {label}", keep=True),
                count(row["num_jobs"]),
                percent(row["job_share"]),
                gpu_time(row["gpu_time"]),
                percent(row["gpu_time_share"]),
            )
    return table if told else None


def cannot_be_had(found: Description, *, whole: bool) -> list[str]:
    """Return why numbers cannot be had, a sentence a reason.

    Args:
        found: the trace.
        whole: name every number; else, of many, how many of what.
    """
    if whole:
        return [one.full for one in found.not_had]
    return in_short(found.not_had, NOT_IN_TRACES)


def telemetry_tables(use: MeasuredUse, *, whole: bool) -> list[Table]:
    """Return what telemetry says: its metrics, and how jobs, and kinds of jobs, used them."""
    tables = [_rows_table(METRIC_COLUMNS, metric_rows(use))]
    for metric, jobs in use.jobs.items():
        rows = [*job_rows(jobs), *by_rows(jobs, None if whole else TOP)]
        tables.append(_rows_table((clean(metric), *JOB_COLUMNS), rows))
    return tables


def _rows_table(columns: Sequence[str], rows: Iterable[Sequence[str]]) -> Table:
    """Return rows of texts, the first flush left; a row of one cell is a heading."""
    table = _table()
    table.add_column(_text(columns[0]), overflow="fold")
    for name in columns[1:]:
        table.add_column(_text(name), justify="right", no_wrap=True)
    for first, *cells in rows:
        label = _text(f"  {first}", keep=True) if cells else _text(first, "bold")
        table.add_row(label, *map(_text, cells))
    return table


def _data_table(data: sections.Table) -> Table:
    """Return a table as data on the terminal; a line's group stands above the first of it."""
    grouped = any(line.group for line in data.lines)
    table = _table()
    table.add_column(_text(data.corner) if data.corner else "", overflow="fold")
    for name in data.columns:
        left = name == "column"
        table.add_column(name, justify="left" if left else "right", no_wrap=True)
    group = ""
    for line in data.lines:
        if line.group != group:
            group = line.group
            table.add_row(_text(group, "bold"))
        label = _text(f"  {line.label}" if grouped else line.label, keep=True)
        table.add_row(label, *(_text(cell.text) for cell in line.cells))
    return table


def _text(text: str, style: str = "", *, keep: bool = False) -> Text:
    """Return a text that no markup is read in; ``keep``: with the blanks that it begins with."""
    from rich.text import Text

    if not text.strip():
        return Text("")
    blanks = " " * (len(text) - len(text.lstrip())) if keep else ""
    return Text(blanks + clean(text, _CHARACTERS), style)


def _table() -> Table:
    from rich.table import Table

    return Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="dim")
