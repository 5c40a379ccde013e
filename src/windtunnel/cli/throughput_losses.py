"""``windtunnel throughput losses``: whether a plan changes what is learnt (figure 9)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from windtunnel.cli.options import out_option, output_options

if TYPE_CHECKING:
    from pathlib import Path

    from windtunnel.throughput.losses import LossDifference

_CHARTS, _TABLES = (".html", ".svg", ".png"), (".csv", ".parquet")


@click.command(short_help="How far the losses of one training are apart under several plans.")
@click.argument("file", metavar="LOSSES.csv")
@click.option(
    "--reference", default="181", show_default=True, metavar="RUN", help="What is compared with."
)
@click.option(
    "--window",
    type=click.IntRange(min=1),
    default=25,
    show_default=True,
    metavar="N",
    help="Iterations that a point is the mean over.",
)
@click.option(
    "--steps",
    type=click.IntRange(min=1),
    default=3000,
    show_default=True,
    metavar="N",
    help="Iterations looked at.",
)
@out_option("FILE", "Write the chart (.html, .svg, .png) or its numbers (.csv, .parquet).")
@output_options
def losses(
    *, file: str, reference: str, window: int, steps: int, out: Path | None, as_json: bool
) -> None:
    """Compare the losses of runs in LOSSES.csv: iteration, and a column loss_RUN for each run.

    RUN is a plan's degrees, such as 241, and what sets a run apart, such as 181_seed. A plan that
    leaves the training as it is differs from the reference less than another seed does.
    """
    from windtunnel.cli.opening import check_out
    from windtunnel.throughput.losses import loss_differences
    from windtunnel.traces.training_losses import read_losses

    check_out(out, (*_CHARTS, *_TABLES), file)
    found = loss_differences(read_losses(file), reference, window=window, steps=steps)
    if out is not None:
        _write(found, reference, window, out)
    if as_json:
        from windtunnel.cli.machine import print_json

        runs = [
            {
                "run": one.run,
                "title": one.title,
                "mean": one.mean,
                "differences": one.differences.tolist(),
            }
            for one in found
        ]
        told = {"reference": reference, "window": window, "runs": runs}
        print_json({**told, "out": None if out is None else str(out)})
        return
    _print(found, reference, window, out)


def _write(found: tuple[LossDifference, ...], reference: str, window: int, out: Path) -> None:
    if out.suffix.lower() in _TABLES:
        import pyarrow as pa

        from windtunnel.cli.saving import save_table

        ends = [(place + 1) * window for place in range(len(found[0].differences))]
        columns: dict[str, Any] = {"last_iteration": ends}
        columns |= {one.run: one.differences for one in found}
        save_table(pa.table(columns), out)
        return
    from windtunnel.report.chart.saving import write_chart
    from windtunnel.report.loss_chart import loss_chart

    write_chart(out, loss_chart(found, reference, window), f"Losses against {reference}")


def _print(
    found: tuple[LossDifference, ...], reference: str, window: int, out: Path | None
) -> None:
    from windtunnel.cli.screen import heading, line, plain_table, screen

    console = screen()
    count = len(found[0].differences) * window
    heading(console, f"|loss - loss({reference})| over {count} iterations")
    rows = [(one.title, f"{one.mean:.5f}", f"{one.differences.max():.5f}") for one in found]
    console.print(plain_table(("run", "mean", f"largest of {window}"), rows, numbers=2))
    if out is not None:
        console.print()
        console.print(line(f"The result is in {out}"), soft_wrap=True)
