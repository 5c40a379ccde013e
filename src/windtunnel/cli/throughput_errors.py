"""``windtunnel throughput errors``: how far the models' predictions are off."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING

import click

from windtunnel.cli.presenting import presented
from windtunnel.cli.throughput import opened
from windtunnel.report.result import Part, Result, table_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from windtunnel.report.sections import Table
    from windtunnel.throughput.accuracy import PredictionError
    from windtunnel.throughput.validation import ValidatedCell


@click.command(short_help="How far predictions are off, by model and plan.")
@click.argument("models", metavar="[MODEL]...", nargs=-1)
@presented()
def errors(*, models: tuple[str, ...]) -> Result:
    """Predict every measured point of each MODEL and tell the errors, by plan, nodes and model.

    Where the errors are small, a prediction between measured points can be trusted. Beside them:
    the published table of errors, made again with its own inputs. Without a MODEL: all that come
    with windtunnel.
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
        data={"measured": [asdict(e) for e in found], "published": [asdict(c) for c in cells]},
    )


def _measured(found: Sequence[PredictionError]) -> Table:
    rows = []
    for one in found:
        numbers: tuple[str, ...] = ("", "", "")
        if one.mean_percent is not None:
            told = (one.mean_percent, one.max_percent, one.bias_percent)
            numbers = tuple(f"{number:.1f}" for number in told)
        nodes = "several" if one.several_nodes else "one"
        rows.append((one.model, one.plan, nodes, one.worst or "", str(one.points), *numbers))
    headings = ("model", "plan", "nodes", "worst at", "points", "mean", "largest", "bias")
    return table_of(headings, rows, texts=3)


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
