"""``windtunnel throughput losses``: whether a plan changes what is learnt (figure 9)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from windtunnel.cli.options import COUNT, option
from windtunnel.cli.presenting import CHARTS, TABLES, presented
from windtunnel.errors import SpecError
from windtunnel.report.result import Part, Result, table_of

if TYPE_CHECKING:
    import pyarrow as pa

    from windtunnel.report.sections import Table
    from windtunnel.throughput.figure7 import PickedPlan
    from windtunnel.throughput.training import TrainingModel


@click.command(short_help="How far the losses of one training are apart under several plans.")
@click.argument("file", metavar="LOSSES.csv")
@option("--reference RUN", "What is compared with.", default="181")
@option("--window N", "Iterations that a point is the mean over.", COUNT, default=25)
@option("--steps N", "Iterations looked at.", COUNT, default=3000)
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
    from windtunnel.report.throughput_chart import loss_chart
    from windtunnel.throughput.losses import loss_differences
    from windtunnel.traces.training_points import read_losses

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


@click.command(short_help="Which plan runs under shrinking limits, and how fast it was measured.")
@click.argument("model", metavar="MODEL", default="llama7b_bsz16")
@presented(CHARTS, "Write the chart (.html, .svg, .png, .pdf).")
def plan(*, model: str) -> Result:
    """Pick MODEL's plan on 32, 16, 4 and 1 GPUs, as figure 7 of the Morphling paper does.

    The published model of speeds rates the plans; told are the measured seconds of the best rated
    one, and of the fastest plan that each rival may run. MODEL must have been measured at those
    limits: llama7b_bsz16 was.
    """
    from windtunnel.report.throughput_chart import plan_chart
    from windtunnel.throughput.figure7 import figure7
    from windtunnel.throughput.morphling_models import training_model

    known = training_model(model)
    rows = figure7(known)
    if any(row.plan is None for row in rows if row.approach == "Morphling"):
        raise SpecError("MODEL", f"{known.name} was not measured at the limits of figure 7.")
    data = [_data(known, row) for row in rows]
    title = f"{known.title}: plans under shrinking limits"
    return Result(
        title,
        f"Seconds per iteration of {known.global_batch_size} samples.",
        parts=[Part("", tables=[("", _plans(known, rows))])],
        cautions=[f"{row.approach} cannot run on {row.placement}." for row in rows if not row.plan],
        data={"model": known.name, "limits": data},
        chart=lambda: plan_chart(title, data),
    )


def _data(model: TrainingModel, row: PickedPlan) -> dict[str, Any]:
    seconds = row.iteration_time
    return {
        "approach": row.approach,
        "num_gpus": sum(map(int, row.placement)),
        "placement": row.placement,
        "cpu_threads": row.threads,
        "plan": None if row.plan is None else row.plan.name,
        "predicted_throughput": row.predicted,
        "iteration_time": seconds,
        "throughput": None if seconds is None else model.global_batch_size / seconds,
    }


def _plans(model: TrainingModel, rows: tuple[PickedPlan, ...]) -> Table:
    cells = [
        (
            *(row.approach, row.plan.name, row.placement, str(row.threads)),
            "" if row.predicted is None else f"{row.predicted:.4f}",
            f"{row.iteration_time:g}",
            f"{model.global_batch_size / row.iteration_time:.4g}",
        )
        for row in rows
        if row.plan is not None and row.iteration_time is not None
    ]
    headings = ("approach", "plan", "placement", "threads")
    return table_of((*headings, "predicted/s", "s/iteration", "samples/s"), cells, texts=2)
