"""Cutting a model's layers into pipeline stages so that the slowest is as fast as possible.

F(s, k) = min over i of max(F(s - 1, i), cost(i .. k)): dynamic programming over the last cut, as
Alpa (OSDI'22, section 5) partitions operators. Since cost(i .. k) falls and F(s - 1, i) grows with
i, their crossing is found by bisection: O(stages x layers x log layers).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from windtunnel.checked import checked_number
from windtunnel.errors import SpecError

if TYPE_CHECKING:
    from collections.abc import Sequence


class Partition(NamedTuple):
    """Layers cut into stages.

    Attributes:
        bounds: stage s holds the layers bounds[s] .. bounds[s + 1] - 1; never empty.
        slowest: cost of the most expensive stage.
    """

    bounds: tuple[int, ...]
    slowest: float


def partition_layers(costs: Sequence[float], stages: int) -> Partition:
    """Return the contiguous partition whose slowest stage is the fastest possible, exactly.

    Args:
        costs: cost of each layer, shape (layers,), s (or any unit), >= 0.
        stages: number of stages, 1 .. layers.

    Raises:
        SpecError: a cost is negative, infinite or NaN, or there are more stages than layers.

    >>> partition_layers([4, 3, 5, 2, 6, 1, 7, 2], 3)
    Partition(bounds=(0, 3, 5, 8), slowest=12.0)
    """
    layers = np.asarray(costs, dtype=float)
    if layers.ndim != 1 or not (np.isfinite(layers) & (layers >= 0)).all():
        raise SpecError("costs", "expected finite numbers >= 0, one a layer.")
    checked_number(
        "stages", stages, f"1 to {len(layers)}, the number of layers", least=1, most=len(layers)
    )
    until = [0.0, *np.cumsum(layers).tolist()]
    count = len(layers)
    slowest = np.full((stages + 1, count + 1), np.inf)
    cut = np.zeros((stages + 1, count + 1), dtype=np.int64)
    slowest[1, 1:] = until[1:]
    for stage in range(2, stages + 1):
        before = slowest[stage - 1].tolist()
        for end in range(stage, count + 1):
            low, high = stage - 1, end - 1
            while low < high:  # the first cut where the stages before are no faster than the last
                middle = (low + high) // 2
                if before[middle] >= until[end] - until[middle]:
                    high = middle
                else:
                    low = middle + 1
            options = range(max(low - 1, stage - 1), low + 1)
            values = [max(before[at], until[end] - until[at]) for at in options]
            best = int(np.argmin(values))
            slowest[stage, end], cut[stage, end] = values[best], options[best]
    bounds = [count]
    for stage in range(stages, 1, -1):
        bounds.append(int(cut[stage, bounds[-1]]))
    return Partition((0, *reversed(bounds)), float(slowest[stages, count]))
