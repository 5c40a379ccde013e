"""``windtunnel study show``: what a study's folder holds."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from windtunnel.cli.options import output_options

#: What is shown where nothing is asked for.
METRICS = "avg_wait,p99_wait,avg_jct,utilization"


def names(text: str) -> tuple[str, ...]:
    """Return the names of metrics that commas separate, each once.

    Raises:
        SpecError: there is none.
    """
    from windtunnel.errors import SpecError

    found = tuple(dict.fromkeys(name.strip() for name in text.split(",") if name.strip()))
    if not found:
        raise SpecError("--metric", "expected at least one name, such as avg_wait.")
    return found


@click.command(short_help="Show the results of a study, finished or not.")
@click.argument("folder", metavar="DIR", type=click.Path(path_type=Path))
@click.option(
    "--metric",
    "metrics",
    default=METRICS,
    show_default=True,
    metavar="NAMES",
    help="Columns of the results, separated by commas.",
)
@output_options
def show(*, folder: Path, metrics: str, as_json: bool) -> None:
    """Show how far the study in DIR is, and its metrics: means over seeds."""
    from windtunnel.cli.study_run import print_summary, summary_data
    from windtunnel.report.study_rows import averages
    from windtunnel.study.grid import open_results

    results = open_results(folder)
    wanted = names(metrics)
    rows = averages(results, wanted)
    if as_json:
        from windtunnel.cli.machine import print_json

        runs = [_plain(row) for row in results.rows]
        print_json({**summary_data(results), "averages": rows, "runs": runs})
        return
    from windtunnel.cli.screen import facts, plain_table, screen
    from windtunnel.report.study_rows import average_cells, average_columns

    console = screen()
    print_summary(console, results)
    columns = average_columns(results, wanted)
    console.print(
        plain_table(columns, average_cells(results, rows, wanted), numbers=len(wanted) + 1)
    )
    facts(console, [("all columns", str(folder / "results.parquet"))])


def _plain(row: dict[str, Any]) -> dict[str, Any]:
    """Return a run without its groups of jobs."""
    return {name: value for name, value in row.items() if name not in ("sizes", "users", "weeks")}
