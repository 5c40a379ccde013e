"""Goodput: how fast a training job advances on some GPUs if it chooses its batch size itself.

Goodput is throughput times statistical efficiency; the throughput of data-parallel training has
seven parameters, fitted to what was measured. Qiao et al., *Pollux: Co-adaptive Cluster Scheduling
for Goodput-Optimized Deep Learning*, OSDI'21, section 3.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from windtunnel.throughput.candidates import shapes_tried
from windtunnel.throughput.options import Option
from windtunnel.throughput.plans import Plan

if TYPE_CHECKING:
    from collections.abc import Mapping


#: Batch sizes that are tried for the best one, geometrically spaced.
_TRIED = 50
#: What stands for zero: of parameters, of a network's seconds, of GPUs beyond two.
NOTHING = 1e-8
#: Parts that are rounding: ceil(x - _ROUNDING).
_ROUNDING = 1e-8


@dataclass(frozen=True)
class BatchLimits:
    """Which batch sizes a job may train with.

    Attributes:
        first: the batch size whose efficiency is 1, examples.
        largest: of all GPUs together, with accumulation.
        least_local: smallest micro-batch of a GPU.
        most_local: largest micro-batch of a GPU; an array where it depends on which GPUs.
    """

    first: int
    largest: int
    least_local: int
    most_local: int | np.ndarray


@dataclass(frozen=True)
class GoodputModel:
    """Seconds of a step as a function of GPUs and micro-batch.

    Attributes:
        values: alpha and beta of computing, of several nodes, of one node, and gamma: how far
            computing and network overlap, 1 = not at all.
    """

    values: tuple[float, ...]

    def step_times(self, many: Any, gpus: Any, local: Any) -> tuple[np.ndarray, np.ndarray]:
        """Return the seconds of a step that accumulates, and of one that synchronises.

        Args:
            many: whether the GPUs are on several nodes.
            gpus: number of GPUs.
            local: micro-batch of a GPU, examples.
        """
        gamma = self.values[6]
        computing = self.values[0] + self.values[1] * np.asarray(local, float)
        network = _network(np.asarray(self.values), np.asarray(many), np.asarray(gpus))
        return computing, (computing**gamma + network**gamma) ** (1 / gamma)

    def goodput(  # noqa: PLR0917 - what it is a function of
        self, many: Any, gpus: Any, local: Any, accumulated: Any, noise: float, first: int
    ) -> np.ndarray:
        """Return the goodput, examples at the first batch size a second.

        Args:
            many: whether the GPUs are on several nodes.
            gpus: number of GPUs.
            local: micro-batch of a GPU, examples.
            accumulated: steps before the one that synchronises.
            noise: scale of the gradient's noise, examples; inf: a larger batch loses nothing.
            first: batch size whose efficiency is 1.
        """
        computing, step = self.step_times(many, gpus, local)
        batch = gpus * local * (accumulated + 1)
        efficiency = 1.0 if math.isinf(noise) else (noise + first) / (noise + batch)
        return np.asarray(batch / (accumulated * computing + step) * efficiency)

    def best_batch(
        self, many: Any, gpus: Any, noise: float, limits: BatchLimits
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return the best goodput on some GPUs, its micro-batch and its accumulated steps.

        Args:
            many: whether the GPUs are on several nodes; shape (n,).
            gpus: number of GPUs; shape (n,).
            noise: scale of the gradient's noise, examples.
            limits: which batch sizes there are; goodput is 0 where none suits.
        """
        many, gpus = np.atleast_1d(many), np.atleast_1d(gpus)
        low = np.maximum(limits.first, limits.least_local * gpus)
        local = np.geomspace(low, limits.largest, _TRIED) / gpus
        accumulated = np.ceil(local / np.maximum(limits.most_local, 1) - _ROUNDING) - 1
        alone = (gpus == 1) & (local > limits.first + _ROUNDING)
        accumulated = np.where(alone, np.maximum(accumulated, 1), accumulated)
        local = np.ceil(local / (accumulated + 1) - _ROUNDING)
        found = self.goodput(many, gpus, local, accumulated, noise, limits.first)
        suits = (limits.least_local <= local) & (local <= limits.most_local)
        found = np.where(suits, found, 0.0)
        best = found.argmax(axis=0), np.arange(len(gpus))
        return found[best], local[best].astype(int), accumulated[best].astype(int)


def _network(values: np.ndarray, many: np.ndarray, gpus: np.ndarray) -> np.ndarray:
    """Return the seconds that GPUs take to agree."""
    beyond = np.maximum(gpus - 2, NOTHING)
    alpha = np.where(many, values[2], np.where(gpus > 1, values[4], NOTHING))
    beta = np.where(many, values[3], np.where(gpus > 1, values[5], NOTHING))
    return np.asarray(alpha + beta * beyond)


@dataclass(frozen=True, eq=False)
class GoodputTraining:
    """A training job that tunes its batch size, as a throughput model.

    An iteration is one at the first batch size: on other GPUs a job trains with the batch size of
    the best goodput, whose iterations count for as many as their examples are worth.

    Attributes:
        name: the model.
        title: what it is, for readers.
        model: seconds of a step.
        limits: which batch sizes there are.
        noise: scale of the gradient's noise, examples: what a batch size is large beside.
        most_gpus: GPUs up to which the model is trusted; no more are offered.
        most_nodes: nodes up to which it is.
        mean_percent: mean error of its steps where they were measured, percent; None = unknown.
        gpu_type: on which it was measured; None = any.
        measured: (nodes, GPUs, micro-batch) that were measured.
        provenance: where the numbers come from.
    """

    name: str
    title: str
    model: GoodputModel
    limits: BatchLimits
    noise: float
    most_gpus: int
    most_nodes: int
    mean_percent: float | None = None
    gpu_type: str | None = None
    measured: frozenset[tuple[int, int, int]] = frozenset()
    provenance: str = ""

    def options(self, *, node_gpus: int, node_cpus: int, num_nodes: int) -> tuple[Option, ...]:
        """Return every trusted option on a cluster of equal nodes, fewest GPUs first, then fastest.

        Args:
            node_gpus: GPUs of a node.
            node_cpus: CPUs of a node; a GPU takes one.
            num_nodes: nodes.
        """
        nodes = min(num_nodes, self.most_nodes)
        most = min(self.most_gpus, node_gpus * nodes)
        most = min(most, self.limits.largest // self.limits.least_local)
        sizes = np.arange(1, most + 1)
        ways: Mapping[bool, Any] = {
            many: self.model.best_batch(np.full(most, many), sizes, self.noise, self.limits)
            for many in (False, True)
        }
        plan = Plan.parse("ga")
        found = []
        for gpus in sizes.tolist():
            for shape in shapes_tried(gpus, min(node_gpus, node_cpus), nodes):
                goodput, local, _ = (each[gpus - 1] for each in ways[len(shape) > 1])
                if goodput > 0:
                    seconds = self.limits.first / float(goodput)
                    seen = (len(shape), gpus, int(local)) in self.measured
                    found.append(Option(plan, shape, gpus, seconds, seen, self.gpu_type))
        return tuple(sorted(found, key=Option.order))
