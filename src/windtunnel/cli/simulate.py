"""``windtunnel simulate``: one trace, one cluster, one policy."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from windtunnel.cli.options import (
    FLIGHT,
    SectionCommand,
    Window,
    field_option,
    field_options,
    kueue_option,
    quotas_option,
    trace_options,
)
from windtunnel.cli.presenting import TABLES, presented

if TYPE_CHECKING:
    import pyarrow as pa

    from windtunnel.report.result import Result


@click.command(cls=SectionCommand, short_help="Fly a trace under one policy.")
@trace_options
@field_option("policy")
@field_options(*FLIGHT)
@quotas_option
@kueue_option
@click.option(
    "--timeline",
    type=click.Path(path_type=Path),
    metavar="FILE.json[.gz]|FILE.html",
    help="Write who ran where when: a trace that Perfetto opens, or a page with a chart.",
)
@click.option(
    "--timeline-window",
    type=Window(),
    metavar="START:END",
    help="With --timeline: this span alone, counted from time 0 of the trace (such as 2d:3d).",
)
@presented(TABLES, "Write what happened to every job: a .parquet or .csv file.")
def simulate(
    *,
    trace: str,
    policy: str,
    timeline: Path | None,
    timeline_window: tuple[float, float] | None,
    **asked: Any,
) -> Result:
    """Fly TRACE on a cluster under one policy and show who waited how long.

    TRACE is a name (`windtunnel traces`), a file, or - for standard input.
    """
    from windtunnel.cli.cluster_energy import Accounting, energy_data, energy_facts
    from windtunnel.cli.flying import Wish, fly, notes_of, settings_of
    from windtunnel.cli.machine import cluster_data, run_data, trace_data
    from windtunnel.cli.opening import check_out
    from windtunnel.cli.timeline import TimelineWish
    from windtunnel.report import sections
    from windtunnel.report.goodput_rows import goodput_tables
    from windtunnel.report.level_rows import level_tables
    from windtunnel.report.result import Part, Result

    lines = TimelineWish.of(timeline, timeline_window, trace)
    record = asked.get("record")
    check_out(Path(record) if record else None, (".parquet",), trace, "--record")
    wish = Wish.of(trace, [policy], asked)
    accounting = Accounting.of(wish.asked)
    flown = accounting.told(fly(wish))
    (outcome,) = flown.outcomes.values()
    drawn = lines.write(outcome, flown.trace, title=flown.title)
    flown = replace(flown, notes=(*flown.notes, *drawn))
    book = None if flown.books is None else next(iter(flown.books.values()))
    tables = [
        ("", sections.short_table(flown.outcomes)),
        ("Waits by job size", sections.sizes_table(flown.outcomes)),
        *goodput_tables(flown.outcomes),
        *level_tables(flown.outcomes),
    ]

    def table() -> pa.Table:
        found = outcome.table
        return found if book is None else found.append_column("energy_j", [book.energy_by_job])

    return Result(
        flown.title,
        facts=[] if book is None else energy_facts(book),
        parts=[Part("", tables=tables)],
        notes=notes_of(flown),
        settings=settings_of(flown),
        wrote=[
            *([] if record is None else [f"The recording is in {record}"]),
            *([] if timeline is None else [f"The time-line is in {timeline}"]),
        ],
        data={
            **run_data(outcome),
            **({} if book is None else energy_data(book)),
            "settings": outcome.settings,
            "trace": trace_data(flown.trace),
            "cluster": cluster_data(flown.cluster),
            "notes": flown.notes,
            **({} if record is None else {"record": record}),
            **({} if timeline is None else {"timeline": str(timeline)}),
        },
        table=table,
    )
