"""``windtunnel throughput errors|losses|plan``: predictions and plans against measurements."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import click

from windtunnel.cli.options import COUNT, lazy_group, option
from windtunnel.cli.presenting import CHARTS, TABLES, presented
from windtunnel.errors import SpecError
from windtunnel.plain import fields_of
from windtunnel.report.result import Part, Result, table_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    import pyarrow as pa

    from windtunnel.report.sections import Table
    from windtunnel.throughput.accuracy import PredictionError
    from windtunnel.throughput.figure7 import PickedPlan
    from windtunnel.throughput.options import Option
    from windtunnel.throughput.training import TrainingModel
    from windtunnel.throughput.validation import ValidatedCell


@lazy_group(
    "How fast training runs, by execution plan and GPUs.",
    curve="throughput_curve",
    allocate="throughput_curve",
    plan="throughput",
    fit="throughput_fit",
    errors="throughput",
    losses="throughput",
)
def throughput() -> None:
    """Tell how fast a model trains under each execution plan, and what more GPUs would bring it.

    MODEL is one of those that Morphling's authors measured (vit, roberta, bert, t5, gpt2, llama7,
    llama30, t5_3B, llama7b_bsz16) or a file that windtunnel throughput fit wrote.
    """


def opened(text: str) -> TrainingModel:
    """Return the model that the user named: one that comes with us, or a file.

    Raises:
        SpecError: no such model.
        TraceError: the file is no training model.
    """
    from windtunnel.throughput.model_file import read_model
    from windtunnel.throughput.morphling_models import training_model

    if text.lower().endswith(".json"):
        return read_model(text)
    return training_model(text)


def option_data(option: Option) -> dict[str, Any]:
    """Return an option as plain data."""
    from windtunnel.throughput.options import placement_name

    return {
        "num_gpus": option.num_gpus,
        "plan": option.plan.name,
        "placement": placement_name(option.shape),
        **fields_of(option, "num_cpus", "iteration_time", "measured"),
    }


@click.command(short_help="How far predictions are off, by model and plan.")
@click.argument("models", metavar="[MODEL]...", nargs=-1)
@presented()
def errors(*, models: tuple[str, ...]) -> Result:
    """Predict every measured point of each MODEL and tell the errors, by plan, nodes and model.

    Where the mean error is small, predictions between measured points are trusted; else they are
    refused, and only sizes that were measured, or lie between, are offered. Beside them: the
    published table of errors, made again with its own inputs. Without a MODEL: all that come with
    windtunnel.
    """
    from windtunnel.throughput.accuracy import prediction_errors
    from windtunnel.throughput.morphling_models import training_models
    from windtunnel.throughput.validation import validate

    shipped = training_models()
    known = [opened(text) for text in models or shipped]
    found = [error for model in known for error in prediction_errors(model)]
    cells = [cell for model in known if model.name in shipped for cell in validate(model.name)]
    tables = [("Predictions against every measured point, %", _measured(found))]
    if cells:
        tables.append(("The published errors, made again, %: mean/largest", _published(cells)))
    return Result(
        "How far predictions are off",
        parts=[Part("", tables=tables)],
        notes=[f"Not predicted: {o.model}, {o.plan}: {o.reason}." for o in found if o.reason],
        data={
            "measured": [asdict(e) | {"trusted": e.trusted} for e in found],
            "published": [asdict(c) for c in cells],
        },
    )


def _measured(found: Sequence[PredictionError]) -> Table:
    rows = []
    for one in found:
        numbers: tuple[str, ...] = ("", "", "")
        verdict = ""
        if one.mean_percent is not None:
            errors = (one.mean_percent, one.max_percent, one.bias_percent)
            numbers = tuple(f"{number:.1f}" for number in errors)
            verdict = "trusted" if one.trusted else "refused"
        nodes = "several" if one.several_nodes else "one"
        rows.append(
            (one.model, one.plan, nodes, verdict, one.worst or "", str(one.points), *numbers)
        )
    headings = ("model", "plan", "nodes", "predictions", "worst at", "points", "mean", "largest")
    return table_of((*headings, "bias"), rows, texts=4)


def _published(cells: Sequence[ValidatedCell]) -> Table:
    rows = [
        (
            *(cell.model, cell.group, str(cell.points)),
            f"{cell.mean_percent:.3f}/{cell.max_percent:.3f}",
            f"{cell.published_mean:.3f}/{cell.published_max:.3f}",
        )
        for cell in cells
    ]
    return table_of(("model", "plans", "points", "ours", "published"), rows, texts=1)


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
            **fields_of(one, "run", "title", "mean"),
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

    The published model of speeds rates the plans; shown are the measured seconds of the best rated
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
