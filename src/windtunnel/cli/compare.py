"""``windtunnel compare``: one trace, one cluster, several policies, side by side."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING, Any

import click

from windtunnel.cli.options import (
    FLIGHT,
    SectionCommand,
    field_options,
    kueue_option,
    out_option,
    output_options,
    quotas_option,
    trace_options,
)

if TYPE_CHECKING:
    from pathlib import Path

    from windtunnel.cli.flying import Flown

PAGE_ENDINGS: tuple[str, ...] = (".html", ".htm")


@click.command(cls=SectionCommand, short_help="Fly a trace under several policies, side by side.")
@trace_options
@click.option(
    "--policies",
    default="fifo,sjf,srtf",
    show_default=True,
    metavar="NAMES",
    help="Names of policies, separated by commas; differences are to the first.",
)
@field_options(*FLIGHT)
@quotas_option
@kueue_option
@click.option(
    "--interactive",
    is_flag=True,
    help="With --out: charts of who ran where that can be zoomed and inspected (+ 1 MB).",
)
@out_option("FILE.html", "Write the comparison as one page with charts.")
@output_options
def compare(
    *,
    trace: str,
    policies: str,
    interactive: bool,
    out: Path | None,
    as_json: bool,
    **asked: Any,
) -> None:
    """Fly TRACE under several policies and show what each would have changed.

    TRACE is a name (`windtunnel traces`), a file, or - for standard input.
    """
    from windtunnel.cli.cluster_energy import Accounting
    from windtunnel.cli.flying import Wish, fly
    from windtunnel.cli.opening import check_out

    check_out(out, PAGE_ENDINGS, trace)
    names = [name.strip() for name in policies.split(",") if name.strip()]
    wish = Wish.of(trace, names, asked)
    accounting = Accounting.of(wish.asked)
    flown = accounting.told(fly(wish, as_json=as_json))
    words = ["windtunnel", "compare", *flown.trace_words, "--policies", ",".join(wish.policies)]
    words += [*flown.words, *["--interactive"] * interactive]
    words += [] if out is None else ["--out", str(out)]
    command = shlex.join(words)
    if out is not None:
        write_comparison(flown, out, command, as_json=as_json, interactive=interactive)
    if as_json:
        from windtunnel.cli.machine import print_json

        print_json(comparison_data(flown, command, out))
        return
    print_comparison(flown, command, out)


def write_comparison(
    flown: Flown, out: Path, command: str, *, as_json: bool, interactive: bool = False
) -> None:
    """Write the page of a comparison.

    Raises:
        OSError: it cannot be written.
    """
    from windtunnel.cli.screen import progress, shows_progress
    from windtunnel.report.page import comparison_page, write_page

    with progress("Drawing the page", show=shows_progress(as_json=as_json)):
        title = f"{flown.trace.name}: {', '.join(flown.outcomes)}"
        page = comparison_page(
            flown.outcomes,
            trace=flown.trace,
            command=command,
            title=title,
            interactive=interactive,
            books=flown.books,
        )
        write_page(out, page)


def comparison_data(flown: Flown, command: str, page: Path | None) -> dict[str, Any]:
    """Return a comparison as plain data.

    Keys: ``trace``, ``cluster``, ``settings`` (what all runs share), ``baseline``, ``runs`` (list:
    ``policy``, ``settings``, every metric, ``fairness``, ``by_size``, ``by_vc``,
    ``starvation``, and with ``--power`` what `energy_data` tells), ``headline``, ``notes``,
    ``command``, ``page`` (path or None).
    """
    from windtunnel.cli.cluster_energy import energy_data
    from windtunnel.cli.machine import cluster_data, run_data, trace_data
    from windtunnel.report.findings import headline

    books = flown.books or {}
    runs = list(flown.outcomes.items())
    first = runs[0][1].settings
    shared = {
        key: value
        for key, value in first.items()
        if key != "policy" and all(outcome.settings.get(key) == value for _, outcome in runs)
    }
    return {
        "trace": trace_data(flown.trace),
        "cluster": cluster_data(flown.cluster),
        "settings": shared,
        "baseline": runs[0][0],
        "runs": [
            {
                "policy": name,
                "settings": outcome.settings,
                **run_data(outcome),
                **(energy_data(books[name]) if name in books else {}),
            }
            for name, outcome in runs
        ],
        "headline": headline(flown.outcomes),
        "notes": flown.notes,
        "command": command,
        "page": None if page is None else str(page),
    }


def print_comparison(flown: Flown, command: str, page: Path | None) -> None:
    """Print a comparison on the terminal."""
    from windtunnel.cli.flying import print_notes
    from windtunnel.cli.screen import bullets, heading, line, screen
    from windtunnel.report.findings import cautions, headline
    from windtunnel.report.terminal import comparison_table, energy_table, size_table

    console = screen()
    heading(console, flown.title)
    console.print(comparison_table(flown.outcomes))
    console.print(size_table(flown.outcomes))
    if flown.books:
        console.print(energy_table(flown.outcomes, flown.books))
    console.print(line(headline(flown.outcomes)), style="bold")
    bullets(console, "Mind", cautions(flown.outcomes))
    print_notes(console, flown, command)
    if page is not None:
        console.print()
        console.print(line(f"The page is {page}"), soft_wrap=True)
