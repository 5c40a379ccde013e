"""``windtunnel describe``: what a trace looks like, before anything is simulated."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from windtunnel.cli.options import output_options, seed_option, trace_options

if TYPE_CHECKING:
    from rich.console import Console

    from windtunnel.traces.trace import Trace

#: Properties of jobs whose shares are shown: column -> heading.
_BY = {
    "num_gpus": "By GPUs of the job",
    "vc": "By virtual cluster",
    "workload": "By workload",
    "status": "By status",
}
#: Rows of a table of shares on a terminal; the rest is one row.
_TOP = 12


@click.command(short_help="Show what a trace looks like.")
@trace_options
@seed_option("Synthetic traces: their seed.  [default: 0]")
@output_options
def describe(*, trace: str, as_json: bool, **asked: Any) -> None:
    """Show what TRACE is: origin, licence, what was left out, sizes, run times, whose jobs.

    TRACE is a name (`windtunnel traces`), a file, or - for standard input.
    """
    from windtunnel.characterize import overview, shares
    from windtunnel.cli.opening import TraceWish, open_wish
    from windtunnel.cli.screen import progress, shows_progress

    show = shows_progress(as_json=as_json)
    opened = open_wish(TraceWish(trace, **asked), show=show, seed_is_for_trace=True)
    with progress("Counting", show=show):
        numbers = overview(opened.jobs)
        tables = {by: shares(opened.jobs, by).to_pylist() for by in _BY}
    if as_json:
        from windtunnel.cli.machine import cluster_data, print_json, trace_data

        cluster = None if opened.cluster is None else cluster_data(opened.cluster)
        print_json(
            {
                "trace": trace_data(opened),
                "cluster": cluster,
                "overview": numbers,
                "shares": tables,
            }
        )
        return
    _print(opened, numbers, tables)


def _print(trace: Trace, numbers: dict[str, Any], tables: dict[str, list[dict[str, Any]]]) -> None:
    from windtunnel.cli.screen import bullets, heading, screen
    from windtunnel.report.terminal import overview_table

    console = screen()
    heading(console, trace.name)
    print_origin(console, trace)
    console.print()
    console.print(overview_table(numbers))
    for by, title in _BY.items():
        _print_shares(console, title, by, tables[by])
    bullets(console, "Notes", trace.metadata.notes)


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


def _print_shares(console: Console, title: str, by: str, rows: list[dict[str, Any]]) -> None:
    from windtunnel.cli.screen import heading, plain_table
    from windtunnel.report.format import count, gpu_time, percent

    if all(row[by] == "(none)" for row in rows):
        return
    shown, rest = (rows, []) if by == "num_gpus" else (rows[:_TOP], rows[_TOP:])
    if len(rest) == 1:
        shown, rest = rows, []
    keys = ("num_jobs", "job_share", "gpu_time", "gpu_time_share")
    if rest:
        others = {key: sum(row[key] or 0 for row in rest) for key in keys}
        shown = [*shown, {by: f"{len(rest):,} others", **others}]
    heading(console, title)
    cells = [
        (
            row[by].replace("-", "\u2013") if by == "num_gpus" else row[by],
            count(row["num_jobs"]),
            percent(row["job_share"]),
            gpu_time(row["gpu_time"]),
            percent(row["gpu_time_share"]),
        )
        for row in shown
    ]
    columns = (by.replace("num_gpus", "GPUs"), "jobs", "of all", "GPU time", "of all")
    console.print(plain_table(columns, cells, numbers=4))
