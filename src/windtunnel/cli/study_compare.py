"""``windtunnel study compare``: who beats whom, with intervals."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from windtunnel.cli.presenting import PAGES, presented
from windtunnel.cli.study_show import names

if TYPE_CHECKING:
    from windtunnel.report.result import Result
    from windtunnel.study.grid.paired import Paired


@click.command(short_help="Who beats whom in a study, with intervals.")
@click.argument("folder", metavar="DIR", type=click.Path(path_type=Path))
@click.option(
    "--metric",
    "metrics",
    default="avg_wait,avg_jct",
    show_default=True,
    metavar="NAMES",
    help="Columns of the results, separated by commas.",
)
@click.option(
    "--between",
    default="policy",
    show_default=True,
    metavar="AXIS",
    help="What is compared, all else being equal: policy, placement, queueing, cluster, load, "
    "parameters or trace.",
)
@click.option(
    "--baseline", metavar="NAME", help="What the others are compared with.  [default: the first]"
)
@click.option(
    "--over",
    metavar="DRAWS",
    help="What is resampled: seeds, weeks or users.  [default: seeds, where there are several; "
    "else weeks]",
)
@click.option(
    "--confidence",
    type=click.FloatRange(0.5, 0.9999),
    default=0.95,
    show_default=True,
    help="Of each interval.",
)
@presented(
    PAGES,
    "Write the comparison as one page with a forest plot.",
    metavar="FILE.html",
    reads="folder",
)
def compare(*, folder: Path, metrics: str, **asked: Any) -> Result:
    """Compare the runs of the study in DIR, pair by pair, with bootstrap confidence intervals.

    "A beats B" is said only where the whole interval of the change says so, and the draws are
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
