"""``windtunnel simulate``: one trace, one cluster, one policy."""

from __future__ import annotations

import shlex
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
    out_option,
    output_options,
    quotas_option,
    trace_options,
)

if TYPE_CHECKING:
    from windtunnel.cli.flying import Flown
    from windtunnel.energy import Account
    from windtunnel.sim.outcome import Outcome


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
@out_option("FILE", "Write what happened to every job: a .parquet or .csv file.")
@output_options
def simulate(
    *,
    trace: str,
    policy: str,
    timeline: Path | None,
    timeline_window: tuple[float, float] | None,
    out: Path | None,
    as_json: bool,
    **asked: Any,
) -> None:
    """Fly TRACE on a cluster under one policy and show who waited how long.

    TRACE is a name (`windtunnel traces`), a file, or - for standard input.
    """
    from windtunnel.cli.cluster_energy import Accounting, energy_data
    from windtunnel.cli.flying import Wish, fly
    from windtunnel.cli.opening import check_out
    from windtunnel.cli.saving import ENDINGS, save_table
    from windtunnel.cli.timeline import TimelineWish

    check_out(out, ENDINGS, trace)
    lines = TimelineWish.of(timeline, timeline_window, trace)
    wish = Wish.of(trace, [policy], asked)
    accounting = Accounting.of(wish.asked)
    flown = accounting.told(fly(wish, as_json=as_json))
    (outcome,) = flown.outcomes.values()
    words = ["windtunnel", "simulate", *flown.trace_words, "--policy", *wish.policies]
    words += flown.words + lines.words
    words += [] if out is None else ["--out", str(out)]
    told = lines.write(outcome, flown.trace, title=flown.title, as_json=as_json)
    flown = replace(flown, notes=(*flown.notes, *told))
    book = None if flown.books is None else next(iter(flown.books.values()))
    if out is not None:
        table = outcome.table
        if book is not None:
            table = table.append_column("energy_j", [book.energy_by_job])
        save_table(table, out)
    if as_json:
        from windtunnel.cli.machine import cluster_data, print_json, run_data, trace_data

        print_json(
            {
                **run_data(outcome),
                **({} if book is None else energy_data(book)),
                "settings": outcome.settings,
                "trace": trace_data(flown.trace),
                "cluster": cluster_data(flown.cluster),
                "notes": flown.notes,
                "command": shlex.join(words),
                "out": None if out is None else str(out),
                **({} if timeline is None else {"timeline": str(timeline)}),
            }
        )
        return
    written = {"Every job is": out, "The time-line is": timeline}
    _print(flown, outcome, book, shlex.join(words), written)


def _print(
    flown: Flown,
    outcome: Outcome,
    book: Account | None,
    command: str,
    written: dict[str, Path | None],
) -> None:
    from windtunnel.cli.cluster_energy import print_energy
    from windtunnel.cli.flying import print_notes
    from windtunnel.cli.screen import heading, line, screen
    from windtunnel.report.terminal import outcome_table, size_table

    console = screen()
    heading(console, flown.title)
    console.print(outcome_table(outcome))
    console.print(size_table(flown.outcomes))
    if book is not None:
        print_energy(console, book)
    print_notes(console, flown, command)
    for what, path in written.items():
        if path is not None:
            console.print()
            console.print(line(f"{what} in {path}"), soft_wrap=True)
