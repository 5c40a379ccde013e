"""`GoodputModel`: how fast a training job advances on some GPUs with some batch size.

Goodput is throughput times statistical efficiency; the throughput of data-parallel training has
seven parameters, fitted to what was measured. Qiao et al., *Pollux: Co-adaptive Cluster Scheduling
for Goodput-Optimized Deep Learning*, OSDI'21, section 3.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from windtunnel import kernel
from windtunnel.errors import SpecError

if TYPE_CHECKING:
    from collections.abc import Mapping
    from contextlib import AbstractContextManager

#: Batch sizes that are tried for the best one, geometrically spaced.
_TRIED = 50
#: What stands for zero: of parameters, of a network's seconds, of GPUs beyond two.
_NONE = 1e-8
#: Parts that are rounding: ceil(x - _ROUNDING).
_ROUNDING = 1e-8
#: alpha and beta of computing, of several nodes, of one node, and gamma: where a fit begins.
_BEGIN = (0.1, 0.01, 0.1, 0.01, 0.1, 0.01, 1.001)
#: Weights of what a fit would rather have: gamma near 1, and betas small beside their alphas.
_GAMMA_WEIGHT, _SLOPE_WEIGHT = 1e-3, 1e-2
#: Several nodes are taken to be slower than one by as much where none were seen.
_SLOWER = 1.1


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
            noise: scale of the gradient's noise, examples.
            first: batch size whose efficiency is 1.
        """
        computing, step = self.step_times(many, gpus, local)
        batch = gpus * local * (accumulated + 1)
        efficiency = (noise + first) / (noise + batch)
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
    beyond = np.maximum(gpus - 2, _NONE)
    alpha = np.where(many, values[2], np.where(gpus > 1, values[4], _NONE))
    beta = np.where(many, values[3], np.where(gpus > 1, values[5], _NONE))
    return np.asarray(alpha + beta * beyond)


class Fitting:
    """Finds the parameters that explain some measurements.

    Args:
        measured: (nodes, GPUs, micro-batch) -> seconds of a step, and of these of synchronising.
    """

    def __init__(self, measured: Mapping[tuple[int, int, int], tuple[float, float]]) -> None:
        nodes, gpus, local = np.array(list(measured), float).T
        step, sync = np.array(list(measured.values()), float).T
        many, alone = nodes > 1, gpus == 1
        self._is_alone = not many.any()
        alpha = np.where(many, 2, np.where(alone, -1, 4))
        self._error = kernel.GoodputError(
            np.ascontiguousarray(local),
            np.log(step - sync),
            np.log(step),
            np.maximum(gpus - 2, _NONE),
            alpha,
            least=_NONE,
            gamma_weight=_GAMMA_WEIGHT,
            slope_weight=_SLOPE_WEIGHT,
        )
        low = np.array([_NONE] * 6 + [1.0])
        high = np.array([np.inf] * 6 + [10.0])
        begin = np.array(_BEGIN)
        fixed: list[int] = []
        if len(set(local.tolist())) == 1:
            low[0] = float(np.mean(step - sync)) / 2
            fixed.append(0)
        if self._is_alone:
            fixed += [2, 3]
        if not (~many & ~alone).any():
            fixed += [4, 5]
        if not (gpus > 2).any():  # noqa: PLR2004 - what beta is multiplied by begins there
            fixed += [3, 5]
        high[fixed] = begin[fixed] = low[fixed]
        self._begin, self._bounds = begin, np.column_stack([low, high])

    def objective(self, values: np.ndarray) -> tuple[float, np.ndarray]:
        """Return how badly parameters explain what was measured, and the gradient of that."""
        found: tuple[float, np.ndarray] = self._error.at(np.ascontiguousarray(values, float))
        return found

    def fitted(self, tolerance: float | None = None) -> GoodputModel:
        """Return the model that explains the measurements best.

        Args:
            tolerance: of the search; None = as fine as it goes.

        Raises:
            SpecError: scipy is not installed.
        """
        found = (
            _scipy()
            .minimize(
                self.objective,
                self._begin,
                jac=True,
                method="L-BFGS-B",
                bounds=self._bounds,
                tol=tolerance,
            )
            .x
        )
        if self._is_alone:
            found[2:4] = np.maximum(found[2:4], _SLOWER * found[4:6])
        return GoodputModel(tuple(found.tolist()))


def one_thread() -> AbstractContextManager[Any]:
    """Return a block in which fits take one thread: they are far too small for more.

    Raises:
        SpecError: scipy or threadpoolctl is not installed.
    """
    _scipy()  # its libraries are there to be told
    try:
        from threadpoolctl import threadpool_limits
    except ImportError as error:
        raise _missing("threadpoolctl") from error
    found: AbstractContextManager[Any] = threadpool_limits(1)
    return found


def _scipy() -> Any:
    try:
        import scipy.optimize
    except ImportError as error:
        raise _missing("scipy") from error
    return scipy.optimize


def _missing(library: str) -> SpecError:
    message = f"fitting a goodput model needs {library}: install windtunnel[ml]."
    return SpecError("compat", message)
