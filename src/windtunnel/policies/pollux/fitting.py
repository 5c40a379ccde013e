"""`Fitting`: the parameters of a goodput model that explain what was measured.

Qiao et al., *Pollux: Co-adaptive Cluster Scheduling for Goodput-Optimized Deep Learning*, OSDI'21,
section 3.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from windtunnel import kernel
from windtunnel.errors import SpecError
from windtunnel.throughput.goodput import NOTHING, BatchLimits, GoodputModel, GoodputTraining

if TYPE_CHECKING:
    from collections.abc import Mapping
    from contextlib import AbstractContextManager

    from windtunnel.throughput.made import MeasuredSteps

#: alpha and beta of computing, of several nodes, of one node, and gamma: where a fit begins.
_BEGIN = (0.1, 0.01, 0.1, 0.01, 0.1, 0.01, 1.001)
#: Weights of what a fit would rather have: gamma near 1, and betas small beside their alphas.
_GAMMA_WEIGHT, _SLOPE_WEIGHT = 1e-3, 1e-2
#: Several nodes are taken to be slower than one by as much where none were seen.
_SLOWER = 1.1


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
            np.maximum(gpus - 2, NOTHING),
            alpha,
            least=NOTHING,
            gamma_weight=_GAMMA_WEIGHT,
            slope_weight=_SLOPE_WEIGHT,
        )
        low = np.array([NOTHING] * 6 + [1.0])
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


def fitted_training(
    steps: MeasuredSteps, *, name: str, gpu_type: str | None, provenance: str
) -> GoodputTraining:
    """Return a throughput model of measured steps, trusted on as many GPUs and nodes as they had.

    Args:
        steps: what was measured.
        name: what to call it.
        gpu_type: GPUs that they were measured on; None = any.
        provenance: where the steps come from.

    Raises:
        SpecError: scipy is not installed.
    """
    with one_thread():
        model = Fitting(steps.times).fitted()
    nodes, gpus, local = np.array(list(steps.times)).T
    _, predicted = model.step_times(nodes > 1, gpus, local)
    step = np.array([step for step, _ in steps.times.values()])
    *limits, noise = steps.limits.values()
    return GoodputTraining(
        name=name,
        title=name,
        model=model,
        limits=BatchLimits(*map(int, limits)),
        noise=noise,
        most_gpus=int(gpus.max()),
        most_nodes=int(nodes.max()),
        mean_percent=100 * float(np.mean(np.abs(predicted / step - 1))),
        gpu_type=gpu_type,
        measured=frozenset(steps.times),
        provenance=provenance,
    )


def one_thread() -> AbstractContextManager[Any]:
    """Return a block in which fits take one thread: they are far too small for more.

    Raises:
        SpecError: scipy or threadpoolctl is not installed.
    """
    _scipy()  # loads its libraries, whose threads are to be limited
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
