"""Our model of 3D plans, in physical form, linear in seven costs that are fitted.

Seconds of an iteration under pipeline p, tensor t and data d degrees on n nodes of m GPUs::

    compute      A / (p t d) + B (1 - 1/p) / (t d)     B / A = 1: stages only wait for each other
    tensor       32 H (t - 1) / t * layers * batch / d           over NVLink, or over the network
                                                                 where a group spans nodes
    data         8 parameters (d - 1) / d / (p t)                over NVLink, or t at a time over
                                                                 the node's cards where t d > m
    pipeline     p - 1                                           hand-overs

with H = hidden size x sequence. The published form takes a forward time that grows with d and
falls with p (`windtunnel.throughput.published`); this one is fitted to measured rows by
non-negative least squares of relative errors.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

import numpy as np

from windtunnel.throughput.fitting import scipy_optimize

if TYPE_CHECKING:
    from collections.abc import Sequence

    from windtunnel.throughput.options import Shape
    from windtunnel.throughput.plans import Plan

#: The seven costs, in this order; those of data in seconds per GB, of others as above.
COSTS = ("compute", "bubble", "tensor", "tensor_network", "data", "data_network", "stage")
Costs: TypeAlias = tuple[float, float, float, float, float, float, float]
_MEBI = 2.0**20


def cards(shape: Shape, gpus_per_card: int) -> int:
    """Return how many network cards of each node a job can use.

    Nodes have several, each shared by a few GPUs. Measured times of data-parallel plans on A800
    nodes (8 GPUs, 4 cards) show that a job uses the cards of the node with the fewest GPUs: bert on
    44 and 35 synchronises in 123 and 128 ms, on 26, 224 and 2222 in 178, on 11111111 in 187.

    >>> cards((4, 4), 2), cards((6, 2), 2), cards((5, 3), 2), cards((1, 1), 2)
    (2, 1, 2, 1)
    """
    return math.ceil(min(shape) / gpus_per_card)


class Sizes(NamedTuple):
    """What of a model decides how often costs are paid; see `TrainingFacts`."""

    batch: int
    parameters: int
    hidden: int
    layers: int
    sequence: int
    gpus_per_card: int


def features(plan: Plan, shape: Shape, of: Sizes) -> Costs:
    """Return how often each of the seven costs is paid in an iteration.

    Args:
        plan: a 3D plan.
        shape: GPUs on each node.
        of: the model.
    """
    pipeline, tensor, data = plan.degrees(sum(shape))
    exchanged = 32 * of.hidden * of.sequence * (tensor - 1) / tensor * of.layers * of.batch / data
    exchanged /= 1000 * _MEBI
    reduced = 8 * of.parameters * (data - 1) / data / (pipeline * tensor) / (1000 * _MEBI)
    split = any(gpus % tensor for gpus in shape)
    spans = tensor * data > min(shape)
    through = tensor * reduced / cards(shape, of.gpus_per_card)
    return (
        1 / (pipeline * tensor * data),
        (1 - 1 / pipeline) / (tensor * data),
        0.0 if split else exchanged,
        exchanged if split else 0.0,
        0.0 if spans else reduced,
        through if spans else 0.0,
        pipeline - 1.0,
    )


def predict(costs: Sequence[float], paid: Sequence[float]) -> float:
    """Return seconds per iteration: what is paid times what it costs."""
    return float(sum(cost * times for cost, times in zip(costs, paid, strict=True)))


def fit_costs(rows: Sequence[Costs], seconds: Sequence[float]) -> Costs:
    """Return the seven costs that explain measured rows with the least relative errors.

    Args:
        rows: what each row pays, at least one row.
        seconds: its measured iteration.

    Raises:
        SpecError: scipy is missing.
    """
    times = np.array(seconds)
    found, _ = scipy_optimize().nnls(np.array(rows) / times[:, None], np.ones(len(times)))
    return tuple(map(float, found))  # type: ignore[return-value] # seven columns
