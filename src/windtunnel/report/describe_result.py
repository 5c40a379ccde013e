"""A described trace as a result: on a terminal in short or whole, on its page whole with pictures.

The numbers come from `windtunnel.report.description`, the pictures from
`windtunnel.report.describe_figures`; names of the trace are untrusted and stay text.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import groupby
from typing import TYPE_CHECKING, Any

from windtunnel.report import sections
from windtunnel.report.description import (
    SHARES,
    described_data,
    dropped_words,
    in_a_sentence,
    trace_facts,
)
from windtunnel.report.format import count, gpu_time, percent, plural, size_text
from windtunnel.report.headline_rows import (
    NOT_IN_TRACES,
    PUBLISHED_LEAD,
    SHOWN_BEFORE,
    headlines_table,
)
from windtunnel.report.names import MAX_TEXT, clean
from windtunnel.report.result import Part, Result
from windtunnel.report.sections import Cell, Line, Table
from windtunnel.report.summary_rows import (
    coarse,
    folded,
    jobs_table,
    metrics_table,
    summary_in_short,
    summary_lines,
)
from windtunnel.report.unanswered import in_short

if TYPE_CHECKING:
    from collections.abc import Sequence

    from windtunnel.report.describe_figures import Figured
    from windtunnel.report.description import Description
    from windtunnel.report.measured_use import MeasuredUse
    from windtunnel.traces.trace import Trace

#: Rows of a property's shares, and of its use by telemetry: on a terminal, on the page; the rest
#: is one row.
TOP, PAGE_TOP = 3, 12


def describe_result(found: Description, *, whole: bool = False) -> Result:
    """Return what a trace looks like.

    Args:
        found: the trace in numbers.
        whole: leave nothing out of the tables; the page has them whole in any case.
    """
    trace = found.trace
    gpus = [] if trace.cluster is None else [plural(trace.cluster.num_gpus, "GPU")]
    parts = _parts(found, whole=whole, top=None if whole else TOP)
    hint = [] if whole else ["--all leaves nothing out of these tables."]
    result = Result(
        title=clean(trace.name, 120),
        subtitle=[plural(found.overview["num_jobs"], "job"), *gpus],
        facts=trace_facts(found.overview),
        parts=parts,
        notes=[clean(note, MAX_TEXT) for note in found.notes],
        settings=_origin(trace),
        wrote=hint,
        data=described_data(found),
    )
    return replace(result, page=lambda command: _page(found, result, command))


def _page(found: Description, result: Result, command: str) -> str:
    """Return the page: every table, and the pictures, which are drawn only now."""
    from windtunnel.report.describe_figures import measured_figure, page_figures
    from windtunnel.report.result_page import result_page

    figures = page_figures(found)
    parts = [
        Part("Where it comes from", terms=_origin(found.trace)),
        _left_out(found.trace),
        *(
            Part(title, drawings=[one.drawing for one in group if one.drawing is not None])
            for title, group in groupby(figures, key=lambda one: one.section)
        ),
        *_parts(found, whole=True, top=PAGE_TOP),
        *([Part("Telemetry", drawings=[measured_figure(found)])] if found.telemetry else []),
        _undrawn(figures),
    ]
    whole = replace(result, headline=in_a_sentence(found), parts=parts)
    return result_page(whole, command=command)


def _parts(found: Description, *, whole: bool, top: int | None) -> list[Part]:
    """Return the tables of a trace.

    Args:
        found: the trace.
        whole: every row of the headlines and of the cluster, and every number that cannot be had.
        top: rows of a property at most; None = all.
    """
    published = f"{PUBLISHED_LEAD} (Weng et al., NSDI'22)"
    lead = f"Of this trace; {published}. Hold the pointer over a name for the whole claim."
    caption = f"Headline numbers; {PUBLISHED_LEAD}"
    parts = [
        *([] if whole else [_left_out(found.trace)]),
        _summary(found, whole=whole),
        Part(
            "Headline numbers",
            lead,
            [(caption, headlines_table(found.headlines, () if whole else SHOWN_BEFORE))],
        ),
        Part(
            "Cannot be had, and why",
            points=[one.full for one in found.not_had]
            if whole
            else in_short(found.not_had, NOT_IN_TRACES),
        ),
        _shares(found, whole=whole, top=top),
        *(_telemetry(use, top) for use in found.telemetry),
    ]
    return [part for part in parts if part is not None]


def _origin(trace: Trace) -> list[tuple[str, str]]:
    about = trace.metadata
    origin = {
        "source": about.source,
        "licence": about.licence or "not stated by the source",
        "time 0": about.epoch or "",
        "time zone": about.zone or "",
        "cluster": trace.cluster.describe() if trace.cluster else "",
        "records read": count(about.rows_read) if about.rows_read else "",
        "made with": ", ".join(
            f"{key}={sections.setting_text(value)}"
            for key, value in about.settings.items()
            if value is not None
        ),
    }
    return [(clean(key), clean(value, MAX_TEXT)) for key, value in origin.items() if value != ""]


def _left_out(trace: Trace) -> Part:
    dropped = dropped_words(trace.metadata.rows_read, trace.metadata.dropped)
    reasons = [f"{reason}: {number}" for reason, number in dropped]
    lead = "" if dropped else "No record was left out."
    return Part("Records that are not jobs here", lead, points=reasons)


def _undrawn(figures: Sequence[Figured]) -> Part:
    points = [
        f"{one.title} needs {one.needs}; {one.reason}." for one in figures if one.drawing is None
    ]
    return Part("Figures that cannot be drawn", points=points)


def _summary(found: Description, *, whole: bool) -> Part:
    """Return the cluster in one row: in short, or every column by its name in the file."""
    times = "by the source's own figures" if found.source_times else "by recorded times"
    of = "" if whole or found.summary.row["cpu_job_num"] else " of the GPU jobs"
    tables = [summary_lines(found.summary)] if whole else summary_in_short(found.summary)
    captions = [f"Cluster summary{of}, {times}", *[""] * len(tables)]
    lead = (
        f"The columns of AcmeTrace's cluster_summary.csv, {times}. Times are in s in the file, "
        "rates 0 to 1; hold the pointer over a number for it."
    )
    return Part("The cluster in one row", lead, list(zip(captions, tables, strict=False)))


def _shares(found: Description, *, whole: bool, top: int | None) -> Part | None:
    """Return whose the jobs and the GPU time are, by each property that the jobs tell."""
    lines = []
    for by, title in SHARES.items():
        rows = found.shares[by]
        if all(row[by] == "(none)" for row in rows):
            continue
        if by == "num_gpus":
            rows = rows if whole else coarse(rows)
        elif top is not None:
            rows = folded(rows, by, top)
        lines += [_share(row, by, title) for row in rows]
    title = "Whose the jobs and the GPU time are"
    table = Table("", ["jobs", "of all", "GPU hours", "of all"], lines)
    return Part(title, tables=[(title, table)]) if lines else None


def _share(row: dict[str, Any], by: str, title: str) -> Line:
    held = row["gpu_time"]
    cells = [
        Cell(count(row["num_jobs"])),
        Cell(percent(row["job_share"])),
        Cell(gpu_time(held).removesuffix(" GPU h"), f"{held or 0:,.0f} GPU s"),
        Cell(percent(row["gpu_time_share"])),
    ]
    label = size_text(row[by]) if by == "num_gpus" else clean(row[by])
    return Line(label, cells, group=title)


def _telemetry(use: MeasuredUse, top: int | None) -> Part:
    """Return what telemetry says: its metrics, and how jobs, and kinds of jobs, used them."""
    title = f"Telemetry: {clean(use.source, 120)}"
    tables = [(title, metrics_table(use))]
    for metric, jobs in use.jobs.items():
        tables.append((f"{clean(metric)} of the jobs", jobs_table(jobs, top)))
    dropped = [
        f"{plural(number, 'measurement')} dropped: {why}" for why, number in use.dropped.items()
    ]
    why = [f"Use by job is not known: {use.why_no_jobs}."] if use.why_no_jobs else []
    samples = f"{plural(use.samples, 'sample')} ({clean(use.format)})"
    lead = f"{samples}. Each metric in its own unit, over all devices and instants."
    points = [clean(note, MAX_TEXT) for note in (*why, *use.notes, *dropped)]
    return Part(title, lead, tables, points=points)
