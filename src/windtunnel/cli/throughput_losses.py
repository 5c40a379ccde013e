"""``windtunnel throughput losses``: whether a plan changes what is learnt (figure 9)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from windtunnel.cli.presenting import CHARTS, TABLES, presented

if TYPE_CHECKING:
    import pyarrow as pa

    from windtunnel.report.result import Result


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
@presented(
    (*CHARTS, *TABLES),
    "Write the chart (.html, .svg, .png, .pdf) or its numbers (.csv, .parquet).",
    reads="file",
)
def losses(*, file: str, reference: str, window: int, steps: int) -> Result:
    """Compare the losses of runs in LOSSES.csv: iteration, and a column loss_RUN for each run.

    RUN is a plan's degrees, such as 241, and what sets a run apart, such as 181_seed. A plan that
    leaves the training as it is differs from the reference less than another seed does.
    """
    from windtunnel.report.loss_chart import loss_chart
    from windtunnel.report.result import Part, Result, table_of
    from windtunnel.throughput.losses import loss_differences
    from windtunnel.traces.training_losses import read_losses

    found = loss_differences(read_losses(file), reference, window=window, steps=steps)
    rows = [(one.title, f"{one.mean:.5f}", f"{one.differences.max():.5f}") for one in found]
    count = len(found[0].differences) * window
    runs = [
        {
            "run": one.run,
            "title": one.title,
            "mean": one.mean,
            "differences": one.differences.tolist(),
        }
        for one in found
    ]

    def table() -> pa.Table:
        import pyarrow as pa

        ends = [(place + 1) * window for place in range(len(found[0].differences))]
        return pa.table({"last_iteration": ends} | {one.run: one.differences for one in found})

    return Result(
        f"Losses against {reference}",
        f"|loss - loss({reference})| over {count} iterations.",
        parts=[Part("", tables=[("", table_of(("run", "mean", f"largest of {window}"), rows))])],
        data={"reference": reference, "window": window, "runs": runs},
        table=table,
        chart=lambda: loss_chart(found, reference, window),
    )
