"""``windtunnel compare``: one trace, one cluster, several policies, side by side."""

from __future__ import annotations

from typing import Any

import click

from windtunnel.cli.cluster_energy import energy_data, with_energy
from windtunnel.cli.flying import FlightRequest, Flown, fly, notes_of, settings_of
from windtunnel.cli.machine import cluster_data, run_data, trace_data
from windtunnel.cli.options import (
    FLIGHT,
    SectionCommand,
    field_options,
    flag,
    kueue_option,
    listed,
    option,
    trace_options,
)
from windtunnel.cli.presenting import CHARTS, LATEX, PAGES, TABLES, presented
from windtunnel.report.result import Part, Result


@click.command(cls=SectionCommand, short_help="Fly a trace under several policies, side by side.")
@trace_options
@option(
    "--policies NAMES",
    "Joined by commas; differences are to the first.",
    default="fifo,sjf,srtf",
)
@field_options(*FLIGHT)
@kueue_option
@flag(
    "--interactive",
    "With --out: charts of who ran where can be zoomed (+ 1 MB).",
)
@presented(
    (*PAGES, *LATEX, *TABLES, *CHARTS[1:]),
    "Write a page with charts (.html), the numbers (.tex, .csv, .parquet) or the chart of waits "
    "(.pdf, .svg, .png).",
    key="page",
)
def compare(*, trace: str, policies: str, interactive: bool, **asked: Any) -> Result:
    """Fly TRACE under several policies and show what each would have changed.

    TRACE is a name (`windtunnel traces`), a file, or - for standard input.
    """
    request = FlightRequest.of(trace, listed(policies), asked)
    return comparison(with_energy(fly(request), request.asked.site), interactive=interactive)


def comparison(flown: Flown, *, interactive: bool = False) -> Result:
    """Return runs side by side.

    Args:
        flown: the runs.
        interactive: the page's charts of who ran where can be zoomed.
    """
    from windtunnel.report import charts, sections
    from windtunnel.report.energy_section import energy_table
    from windtunnel.report.findings import cautions, headline
    from windtunnel.report.goodput_rows import goodput_tables
    from windtunnel.report.level_rows import level_tables
    from windtunnel.report.page import comparison_page

    runs = flown.outcomes
    tables = [
        ("", sections.short_table(runs)),
        ("Waits by job size", sections.sizes_table(runs)),
        *goodput_tables(runs),
        *level_tables(runs),
    ]
    if flown.books:
        tables.append(("Energy", energy_table(runs, flown.books)))

    def page(command: str) -> str:
        title = f"{flown.trace.name}: {', '.join(runs)}"
        return comparison_page(
            runs,
            trace=flown.trace,
            command=command,
            title=title,
            interactive=interactive,
            books=flown.books,
        )

    return Result(
        flown.title,
        headline(runs),
        parts=[Part("", tables=tables)],
        cautions=cautions(runs),
        notes=notes_of(flown),
        settings=settings_of(flown),
        data=comparison_data(flown),
        table=lambda: sections.numbers_table(runs),
        chart=lambda: charts.wait_cdf(runs),
        page=page,
    )


def comparison_data(flown: Flown) -> dict[str, Any]:
    """Return a comparison as plain data.

    Keys: ``trace``, ``cluster``, ``settings`` (what all runs share), ``baseline``, ``runs`` (list:
    ``policy``, ``settings``, every metric, ``fairness``, ``by_size``, ``by_vc``,
    ``starvation``, and with ``--power`` what `energy_data` tells), ``headline``, ``notes``.
    """
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
    }
