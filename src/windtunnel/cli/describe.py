"""``windtunnel describe``: what a trace looks like, before anything is simulated."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from windtunnel.cli.options import output_options, trace_options
from windtunnel.cli.presenting import command_line

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rich.console import Console

    from windtunnel.report.description import Description
    from windtunnel.report.measured_use import MeasuredUse
    from windtunnel.traces.trace import Trace

_PAGE_ENDINGS = (".html", ".htm")


@click.command(short_help="Show what a trace looks like.")
@trace_options
@click.option(
    "--html",
    "page",
    type=click.Path(path_type=Path),
    metavar="FILE.html",
    help="Write it all, with charts, as one page.",
)
@click.option(
    "--telemetry",
    multiple=True,
    metavar="PATH",
    help="Telemetry of the cluster, a file or a folder: how busy it was, and which jobs kept it "
    "so; may be repeated.",
)
@click.option(
    "--source-times",
    is_flag=True,
    help="Make the cluster summary of the source's own run, queueing and GPU times, and its number "
    "of GPUs, where it has them, as AcmeTrace's file does.",
)
@click.option("--all", "whole", is_flag=True, help="Leave nothing out of the tables.")
@output_options
def describe(
    *,
    trace: str,
    page: Path | None,
    telemetry: tuple[str, ...],
    source_times: bool,
    whole: bool,
    as_json: bool,
    **asked: Any,
) -> None:
    """Show what TRACE is: origin, licence, what was left out, sizes, run times, whose jobs.

    TRACE is a name (`windtunnel traces`), a file, or - for standard input. Numbers that the trace
    cannot give are named, with the reason. A folder of Kueue's manifests, or a .yaml file, is shown
    as its tree of quotas.
    """
    from windtunnel.cli.describe_manifests import are_manifests, describe_manifests
    from windtunnel.cli.opening import TraceWish, open_wish
    from windtunnel.cli.screen import progress, shows_progress
    from windtunnel.report.description import STEPS, describe_trace

    if are_manifests(trace):
        describe_manifests(trace, as_json=as_json)
        return

    _check_page(page, (trace, *telemetry))
    show = shows_progress(as_json=as_json)
    wish = TraceWish(trace, **asked)
    opened = open_wish(wish, show=show)
    measured = _measured(opened, telemetry, show=show)
    with progress("Counting", STEPS, show=show) as done:
        found = describe_trace(opened, telemetry=measured, source_times=source_times, on_done=done)
    if page is not None:
        _write_page(found, page, command_line(), show=show)
    if as_json:
        _print_json(found, page)
        return
    _print(found, page, whole=whole)


def _check_page(page: Path | None, read: Sequence[str]) -> None:
    """Check that the page can be written, before anything is read.

    Raises:
        SpecError: it cannot, or would overwrite what is read.
    """
    from windtunnel.cli.opening import check_out
    from windtunnel.errors import SpecError

    try:
        for source in read:
            check_out(page, _PAGE_ENDINGS, source)
    except SpecError as error:
        told = str(error).removeprefix(f"{error.path}: ")
        raise SpecError(f"--html {page}", told) from error


def _measured(trace: Trace, paths: Sequence[str], *, show: bool) -> list[MeasuredUse]:
    """Return what each source of telemetry says.

    Raises:
        WindtunnelError: one cannot be read.
    """
    from windtunnel.cli.screen import progress
    from windtunnel.report.measured_use import measured_use

    found = []
    for path in paths:
        with progress(f"Reading {path}", show=show):
            found.append(measured_use(trace, path))
    return found


def _write_page(found: Description, page: Path, command: str, *, show: bool) -> None:
    """Write the page of a trace.

    Raises:
        OSError: it cannot be written.
    """
    from windtunnel.cli.screen import progress
    from windtunnel.report.describe_figures import FIGURES
    from windtunnel.report.describe_page import describe_page
    from windtunnel.report.page import write_page

    with progress("Drawing", len(FIGURES), show=show) as done:
        write_page(page, describe_page(found, command=command, on_done=done))


def _print_json(found: Description, page: Path | None) -> None:
    """Print a description as JSON.

    Keys: ``trace``, ``cluster``, those of `windtunnel.report.description.described_data`, and
    ``page`` (path or null).
    """
    from windtunnel.cli.machine import cluster_data, print_json, trace_data
    from windtunnel.report.description import described_data

    cluster = found.trace.cluster
    print_json(
        {
            "trace": trace_data(found.trace),
            "cluster": None if cluster is None else cluster_data(cluster),
            **described_data(found),
            "page": None if page is None else str(page),
        }
    )


def _print(found: Description, page: Path | None, *, whole: bool) -> None:
    from windtunnel.cli.screen import bullets, heading, line, screen
    from windtunnel.report.describe_terminal import (
        cannot_be_had,
        headline_table,
        overview_table,
        shares_table,
        summary_tables,
    )
    from windtunnel.report.headline_rows import PUBLISHED_LEAD

    console = screen()
    heading(console, found.trace.name)
    print_origin(console, found.trace)
    console.print()
    console.print(overview_table(found))
    times = "by the source's own figures" if found.source_times else "by recorded times"
    of = "" if whole or found.summary.row["cpu_job_num"] else " of the GPU jobs"
    heading(console, f"Cluster summary{of}, {times}")
    for table in summary_tables(found, whole=whole):
        console.print(table)
    heading(console, f"Headline numbers; {PUBLISHED_LEAD}")
    console.print(headline_table(found, whole=whole))
    bullets(console, "Cannot be had, and why", cannot_be_had(found, whole=whole))
    shares = shares_table(found, whole=whole)
    if shares is not None:
        heading(console, "Whose the jobs and the GPU time are")
        console.print(shares)
    for use in found.telemetry:
        _print_telemetry(console, use, whole=whole)
    bullets(console, "Notes", found.notes)
    if not whole:
        console.print()
        console.print(line("--all leaves nothing out of these tables."), style="dim")
    if page is not None:
        console.print()
        console.print(line(f"The page is {page}"), soft_wrap=True)


def _print_telemetry(console: Console, use: MeasuredUse, *, whole: bool) -> None:
    from windtunnel.cli.screen import bullets, heading, line
    from windtunnel.report.describe_terminal import telemetry_tables
    from windtunnel.report.format import plural

    heading(console, f"Telemetry: {use.source}")
    for table in telemetry_tables(use, whole=whole):
        console.print(table)
    if use.why_no_jobs:
        console.print(line(f"By job it cannot be told: {use.why_no_jobs}."))
    dropped = [
        f"{plural(number, 'measurement')} dropped: {why}" for why, number in use.dropped.items()
    ]
    bullets(console, "Notes on it", [*use.notes, *dropped])


def print_origin(console: Console, trace: Trace) -> None:
    """Print where a trace comes from and what of the source did not become a job."""
    from windtunnel.cli.screen import facts
    from windtunnel.report.format import count, percent

    about = trace.metadata
    read = about.rows_read
    dropped = [
        ("dropped", f"{count(number)} ({percent(number / read) if read else 'all'}): {reason}")
        for reason, number in about.dropped.items()
        if number
    ]
    made = ", ".join(f"{key}={value}" for key, value in about.settings.items() if value is not None)
    facts(
        console,
        [
            ("source", about.source),
            ("licence", about.licence or "not stated by the source"),
            ("time 0", about.epoch or ""),
            ("time zone", about.zone or ""),
            ("made with", made),
            ("cluster", trace.cluster.describe() if trace.cluster else ""),
            ("records read", count(read) if read else ""),
            *dropped,
        ],
    )
