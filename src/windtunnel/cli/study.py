"""``windtunnel study``: experiments at scale."""

from __future__ import annotations

from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from windtunnel.cli.options import lazy_group, listed, option
from windtunnel.cli.presenting import CHARTS, LATEX, PAGES, TABLES, presented
from windtunnel.cli.study_run import summary, summary_data
from windtunnel.errors import SpecError
from windtunnel.report.result import Part, Result, table_of

if TYPE_CHECKING:
    from windtunnel.report.result import Result
    from windtunnel.study.grid.paired import Paired


@lazy_group(
    "Experiments: many runs, on every core or a Ray cluster.",
    run="study_run",
    show="study",
    compare="study",
    tune="study_run",
)
def study() -> None:
    """Fly a grid of runs - traces, clusters, policies, loads, seeds - and tell who beats whom.

    STUDY.toml describes the grid. Results lie in a folder; a run that is there is not flown again,
    so that an interrupted study goes on where it was.
    """


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
    found = tuple(dict.fromkeys(listed(text)))
    if not found:
        raise SpecError(option, f"expected at least one name, such as {such}.")
    return found


@click.command(short_help="Show the results of a study, finished or not.")
@click.argument("folder", metavar="DIR", type=click.Path(path_type=Path))
@option(
    "--metric NAMES",
    "Columns of the results, separated by commas.",
    dest="metrics",
    default=METRICS,
)
@presented()
def show(*, folder: Path, metrics: str) -> Result:
    """Show how far the study in DIR is, and its metrics: means over seeds."""
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


@click.command(short_help="Who beats whom in a study, with intervals.")
@click.argument("folder", metavar="DIR", type=click.Path(path_type=Path))
@option(
    "--metric NAMES",
    "Columns of the results, separated by commas.",
    dest="metrics",
    default="avg_wait,avg_jct",
)
@option(
    "--between AXIS",
    "What is compared, all else being equal: policy, placement, queueing, cluster, load, "
    "parameters or trace.",
    default="policy",
)
@option("--baseline NAME", "What the others are compared with.  [default: the first]")
@option(
    "--over DRAWS",
    "What is resampled: seeds, weeks or users.  [default: seeds, where there are several; "
    "else weeks]",
)
@option("--confidence", "Of each interval.", click.FloatRange(0.5, 0.9999), default=0.95)
@presented(
    (*PAGES, *LATEX, *TABLES, *CHARTS[1:]),
    "Write the comparison as one page (.html), its tables (.tex) or numbers (.csv, .parquet), or "
    "the forest plot (.pdf, .svg, .png).",
    key="page",
    reads="folder",
)
def compare(*, folder: Path, metrics: str, **asked: Any) -> Result:
    """Compare the runs of the study in DIR, pair by pair, with bootstrap confidence intervals.

    "A beats B" is reported only where the whole interval of the change shows it, and the draws are
    enough.
    """
    from windtunnel.report.study_result import study_result
    from windtunnel.study.grid import open_results
    from windtunnel.study.grid.paired import compare_results

    results = open_results(folder)
    found = compare_results(results, metrics=names(metrics), **asked)
    return study_result(results, found).with_data(comparison_data(found))


def comparison_data(found: Paired) -> dict[str, Any]:
    """Return comparisons as plain data.

    Keys: ``metrics``, ``between``, ``over``, ``baseline``, ``confidence``, ``contrasts`` (list:
    ``metric``, ``value``, ``baseline``, ``condition`` (null = all together), ``mean``,
    ``baseline_mean``, ``change`` (``estimate``, ``low``, ``high``, ``confidence``,
    ``num_draws``), ``num_missing``, ``verdict``), ``claims`` (sentences), ``notes``.
    """
    from windtunnel.report.study_rows import claims

    return {**asdict(found), "claims": claims(found)}
