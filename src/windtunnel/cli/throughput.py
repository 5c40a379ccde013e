"""``windtunnel throughput``: how fast training runs, by plan and GPUs."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import click

from windtunnel.cli.group import LazyGroup
from windtunnel.cli.options import debug_option
from windtunnel.cli.presenting import presented
from windtunnel.report.result import Part, Result, table_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from windtunnel.report.sections import Table
    from windtunnel.throughput.accuracy import PredictionError
    from windtunnel.throughput.options import Option
    from windtunnel.throughput.training import TrainingModel
    from windtunnel.throughput.validation import ValidatedCell


@click.group(
    cls=LazyGroup,
    homes={
        "curve": "windtunnel.cli.throughput_curve",
        "allocate": "windtunnel.cli.throughput_curve",
        "plan": "windtunnel.cli.throughput_losses",
        "fit": "windtunnel.cli.throughput_fit",
        "errors": "windtunnel.cli.throughput",
        "losses": "windtunnel.cli.throughput_losses",
    },
    short_help="How fast training runs, by execution plan and GPUs.",
)
@debug_option
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
        "num_cpus": option.num_cpus,
        "iteration_time": option.iteration_time,
        "measured": option.measured,
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
        said = ""
        if one.mean_percent is not None:
            told = (one.mean_percent, one.max_percent, one.bias_percent)
            numbers = tuple(f"{number:.1f}" for number in told)
            said = "trusted" if one.trusted else "refused"
        nodes = "several" if one.several_nodes else "one"
        rows.append((one.model, one.plan, nodes, said, one.worst or "", str(one.points), *numbers))
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
