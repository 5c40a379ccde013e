"""``windtunnel study compare``: who beats whom, with intervals."""

from __future__ import annotations

import shlex
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from windtunnel.cli.options import out_option, output_options
from windtunnel.cli.study_show import names

if TYPE_CHECKING:
    from windtunnel.study.grid.paired import Paired
    from windtunnel.study.grid.store import Results

PAGE_ENDINGS: tuple[str, ...] = (".html", ".htm")


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
@out_option("FILE.html", "Write the comparison as one page with a forest plot.")
@output_options
def compare(*, folder: Path, metrics: str, out: Path | None, as_json: bool, **asked: Any) -> None:
    """Compare the runs of the study in DIR, pair by pair, with bootstrap confidence intervals.

    "A beats B" is said only where the whole interval of the change says so, and the draws are
    enough.
    """
    from windtunnel.cli.opening import check_out
    from windtunnel.study.grid import open_results
    from windtunnel.study.grid.paired import compare_results

    check_out(out, PAGE_ENDINGS, str(folder))
    results = open_results(folder)
    found = compare_results(results, metrics=names(metrics), **asked)
    words = ["windtunnel", "study", "compare", str(folder), "--metric", ",".join(found.metrics)]
    words += ["--between", found.between, "--baseline", found.baseline, "--over", found.over]
    words += ["--confidence", f"{found.confidence:g}"] + (
        [] if out is None else ["--out", str(out)]
    )
    command = shlex.join(words)
    if out is not None:
        from windtunnel.report.page import write_page
        from windtunnel.report.study_page import study_page

        write_page(out, study_page(results, found, command=command))
    if as_json:
        from windtunnel.cli.machine import print_json

        print_json({**comparison_data(found), "command": command, "page": out and str(out)})
        return
    _print(results, found, command, out)


def comparison_data(found: Paired) -> dict[str, Any]:
    """Return comparisons as plain data.

    Keys: ``metrics``, ``between``, ``over``, ``baseline``, ``confidence``, ``contrasts`` (list:
    ``metric``, ``value``, ``baseline``, ``condition`` (null = all together), ``mean``,
    ``baseline_mean``, ``change`` (``estimate``, ``low``, ``high``, ``confidence``,
    ``num_draws``), ``num_missing``, ``verdict``), ``claims`` (sentences), ``notes``.
    """
    from windtunnel.report.study_rows import claims

    return {**asdict(found), "claims": claims(found)}


def _print(results: Results, found: Paired, command: str, out: Path | None) -> None:
    from windtunnel.cli.screen import bullets, facts, heading, line, plain_table, screen
    from windtunnel.cli.study_run import print_summary
    from windtunnel.report.study_rows import claims, contrast_rows, metric_label

    console = screen()
    print_summary(console, results)
    for metric in found.metrics:
        heading(console, f"{metric_label(metric)}: {found.between} against {found.baseline}")
        columns, rows = contrast_rows(found, metric)
        console.print(plain_table(columns, rows, numbers=4))
    bullets(console, "Claims", claims(found) or ["None: no interval excludes no change."])
    bullets(console, "Notes", found.notes)
    console.print()
    facts(console, [("again with", command)])
    if out is not None:
        console.print()
        console.print(line(f"The page is {out}"), soft_wrap=True)
