"""``windtunnel simulate``: one trace, one cluster, one policy."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING, Any

import click

from windtunnel.cli.options import (
    flight_options,
    out_option,
    output_options,
    power_options,
    trace_options,
)

if TYPE_CHECKING:
    from pathlib import Path

    from windtunnel.cli.flying import Flown
    from windtunnel.energy import Account
    from windtunnel.sim.outcome import Outcome


@click.command(short_help="Fly a trace under one policy.")
@trace_options
@click.option(
    "--policy",
    default="fifo",
    show_default=True,
    metavar="NAME",
    help="fifo, sjf, sjf-preemptive, srtf, priority, priority-preemptive, package.module:name ...",
)
@flight_options
@power_options
@out_option("FILE", "Write what happened to every job: a .parquet or .csv file.")
@output_options
def simulate(
    *,
    trace: str,
    policy: str,
    carbon: str | None,
    tariff: str | None,
    out: Path | None,
    as_json: bool,
    **asked: Any,
) -> None:
    """Fly TRACE on a cluster under one policy and show who waited how long.

    TRACE is a name (`windtunnel traces`), a file, or - for standard input.
    """
    from windtunnel.cli.cluster_energy import EnergyWish, energy_data
    from windtunnel.cli.flying import Wish, fly
    from windtunnel.cli.opening import check_out
    from windtunnel.cli.saving import ENDINGS, save_table

    check_out(out, ENDINGS, trace)
    energy = EnergyWish.of(asked, carbon, tariff)
    wish = Wish.of(trace, [policy], energy.asked)
    flown = energy.told(fly(wish, as_json=as_json))
    (outcome,) = flown.outcomes.values()
    words = ["windtunnel", "simulate", *flown.trace_words, "--policy", *wish.policies]
    words += flown.words + energy.words
    words += [] if out is None else ["--out", str(out)]
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
            }
        )
        return
    _print(flown, outcome, book, shlex.join(words), out)


def _print(
    flown: Flown, outcome: Outcome, book: Account | None, command: str, out: Path | None
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
    if out is not None:
        console.print()
        console.print(line(f"Every job is in {out}"))
