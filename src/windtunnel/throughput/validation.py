"""The published validation of the analytic model, made again (MLSys'25, table of errors).

Read it with care: the fitted points are among the validated ones; "ZeRO-DP" of vit, roberta and
bert is predicted as plain data parallel; every 3D point has a forward time of its own. What the
models err over all measured points is reported by `windtunnel.throughput.accuracy`.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from importlib import resources
from typing import TYPE_CHECKING

import msgspec

from windtunnel.throughput.analytic import data_parallel, published_3d
from windtunnel.throughput.morphling_models import training_models
from windtunnel.throughput.plans import Plan

if TYPE_CHECKING:
    from windtunnel.throughput.analytic import Bandwidths, Parameters

#: Forward ms, GPUs, threads, factors of forward, backward and communication, plan, measured ms.
_DpRow = tuple[float, int, int, float, float, float, str, float]
#: Forward ms, pipeline, tensor, nodes, GPUs a node, layers, activation, measured ms.
_ThreeDRow = tuple[float, int, int, int, int, int, int, float]


class _Cell(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    model: str
    group: str
    published: tuple[float, float]
    dp: list[_DpRow] = []
    three_d: list[_ThreeDRow] = []


class _Cells(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    cells: list[_Cell]


@dataclass(frozen=True, slots=True)
class ValidatedCell:
    """One cell of the published table of errors, and ours.

    Attributes:
        model: the model.
        group: the cell's plans, as published.
        points: measured points.
        mean_percent: our mean error, percent.
        max_percent: our largest error, percent.
        published_mean: the published mean error, percent.
        published_max: the published largest error, percent.
    """

    model: str
    group: str
    points: int
    mean_percent: float
    max_percent: float
    published_mean: float
    published_max: float


@lru_cache(maxsize=1)
def _cells() -> tuple[_Cell, ...]:
    folder = resources.files("windtunnel.throughput")
    raw = folder.joinpath("morphling_validation.toml").read_bytes()
    return tuple(msgspec.toml.decode(raw, type=_Cells, strict=False).cells)


def validate(
    name: str, parameters: Parameters | None = None, bandwidths: Bandwidths | None = None
) -> tuple[ValidatedCell, ...]:
    """Return the cells of a model, predicted as published.

    Args:
        name: a model that comes with us; one without published cells has none.
        parameters: instead of the model's own.
        bandwidths: instead of the model's own.
    """
    found = []
    for cell in _cells():
        if cell.model == name:
            errors = _errors(cell, parameters, bandwidths)
            found.append(
                ValidatedCell(
                    cell.model,
                    cell.group,
                    len(errors),
                    100 * sum(errors) / len(errors),
                    100 * max(errors),
                    *cell.published,
                )
            )
    return tuple(found)


def _errors(
    cell: _Cell, parameters: Parameters | None, bandwidths: Bandwidths | None
) -> list[float]:
    """Return each point's relative error.

    Raises:
        ValueError: the model has no fitted parameters; those that come with us have.
    """
    model = training_models()[cell.model]
    fitted, links = parameters or model.fitted, bandwidths or model.bandwidths
    if fitted is None or links is None or model.parameters is None:
        raise ValueError(cell.model)
    theta = model.parameters / 2**20
    errors = []
    for forward, gpus, threads, again, times, sent, word, measured in cell.dp:
        phases = data_parallel(
            fitted,
            links,
            Plan.parse(word),
            forward=forward,
            theta=theta,
            gpus=gpus,
            threads=threads,
            factors=(again, times, sent),
        )
        errors.append(abs(phases.total / measured - 1))
    for forward, pipeline, tensor, nodes, gpus, layers, activation, measured in cell.three_d:
        phases = published_3d(
            fitted,
            links,
            (pipeline, tensor, nodes * gpus // (pipeline * tensor)),
            forward=forward,
            theta=theta,
            nodes=nodes,
            gpus_per_node=gpus,
            batch=model.global_batch_size,
            layers=layers,
            activation=activation,
        )
        errors.append(abs(phases.total / measured - 1))
    return errors
