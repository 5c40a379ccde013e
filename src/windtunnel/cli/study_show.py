"""``windtunnel study show``: what a study's folder holds."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from windtunnel.cli.presenting import presented

if TYPE_CHECKING:
    from windtunnel.report.result import Result

#: What is shown where nothing is asked for.
METRICS = "avg_wait,p99_wait,avg_jct,utilization"


def names(text: str, option: str = "--metric", such: str = "avg_wait") -> tuple[str, ...]:
    """Return the names, of metrics for one, that commas separate, each once.

    Args:
        text: as typed.
        option: for which.
        such: an example of a name.

    Raises:
        SpecError: there is none.
    """
    from windtunnel.errors import SpecError

    found = tuple(dict.fromkeys(name.strip() for name in text.split(",") if name.strip()))
    if not found:
        raise SpecError(option, f"expected at least one name, such as {such}.")
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
@presented()
def show(*, folder: Path, metrics: str) -> Result:
    """Show how far the study in DIR is, and its metrics: means over seeds."""
    from windtunnel.cli.study_run import summary, summary_data
    from windtunnel.report.result import Part, table_of
    from windtunnel.report.study_rows import average_cells, average_columns, averages
    from windtunnel.study.grid import open_results

    results = open_results(folder)
    wanted = names(metrics)
    rows = averages(results, wanted)
    columns = average_columns(results, wanted)
    cells = average_cells(results, rows, wanted)
    table = table_of(columns, cells, texts=len(columns) - len(wanted) - 2)
    found = summary(results)
    return replace(
        found,
        parts=[*found.parts, Part("", tables=[("", table)])],
        notes=[f"All columns: {folder / 'results.parquet'}"],
        data={
            **summary_data(results),
            "averages": rows,
            "runs": [_plain(row) for row in results.rows],
        },
    )


def _plain(row: dict[str, Any]) -> dict[str, Any]:
    """Return a run without its groups of jobs."""
    return {name: value for name, value in row.items() if name not in ("sizes", "users", "weeks")}
