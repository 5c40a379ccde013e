"""Thresholds: the grids that figures are drawn on, and which interval of a grid a value is in."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from windtunnel.errors import SpecError, quote

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

#: Thresholds for run times, s: 1 s to 24 days (AcmeTrace notebook).
POWERS_DURATION: tuple[int, ...] = tuple(2**k for k in range(22))
#: Thresholds for waits, and for run times of CPU jobs, s: 1 s to 9 hours (AcmeTrace notebook).
POWERS_QUEUE: tuple[int, ...] = tuple(2**k for k in range(16))
#: Thresholds for GPUs (AcmeTrace notebook; nothing above 1024 is added to the last).
GPU_GRID: tuple[int, ...] = tuple(range(1025))
#: More thresholds than this are refused: a curve of so many points is not read by anybody.
_MAX_THRESHOLDS = 20_000


def checked_grid(at: Sequence[float]) -> list[float]:
    """Return thresholds as floats.

    Raises:
        SpecError: there is none, too many, one is not finite, or they do not rise.
    """
    grid = [float(x) for x in at]
    if not 1 <= len(grid) <= _MAX_THRESHOLDS:
        raise SpecError("at", f"expected 1 to {_MAX_THRESHOLDS:,} thresholds, found {len(grid):,}.")
    for i, x in enumerate(grid):
        if not math.isfinite(x) or (i and x <= grid[i - 1]):
            raise SpecError(
                "at", f"expected finite thresholds that rise; number {i + 1} is {quote(x)}."
            )
    return grid


def interval(value: Any, grid: Sequence[float]) -> Any:
    """Return the index of the first threshold that is not less than each value, as Ibis int64.

    ``len(grid)`` where the value is above all of them; null where it is null.

    Args:
        value: Ibis number.
    """
    import ibis

    if _is_consecutive(grid):
        whole = value.ceil() - grid[0]
        place = whole.clip(lower=0.0, upper=float(len(grid))).cast("int64")
    else:
        place = _search(lambda x: value <= x, grid, _whole)
    return ibis.ifelse(value.isnull(), ibis.null("int64"), place)


def steps(value: Any, edges: Sequence[float], levels: Sequence[float]) -> Any:
    """Return a step function of a value, as Ibis float64; null where the value is null.

    Args:
        value: Ibis number.
        edges: where it steps, rising; at an edge the new level holds.
        levels: its levels: before the first edge, from it on, ...; ``len(edges) + 1``.
    """
    import ibis

    found = _search(lambda x: value < x, edges, lambda i: ibis.literal(levels[i], "float64"))
    return ibis.ifelse(value.isnull(), ibis.null("float64"), found)


def _is_consecutive(grid: Sequence[float]) -> bool:
    """Return whether a grid is of whole numbers without gaps, whose interval is arithmetic."""
    return grid[0].is_integer() and all(x == grid[0] + i for i, x in enumerate(grid))


def _whole(index: int) -> Any:
    import ibis

    return ibis.literal(index, "int64")


def _search(
    before: Callable[[float], Any], edges: Sequence[float], leaf: Callable[[int], Any]
) -> Any:
    """Return a binary search as nested cases, whose depth is a logarithm.

    Args:
        before: edge -> Ibis condition that a value lies before it.
        edges: rising.
        leaf: the value for the interval that ends at edge i; ``len(edges)``: after all.
    """
    import ibis

    def between(low: int, high: int) -> Any:
        if low == high:
            return leaf(low)
        middle = (low + high) // 2
        return ibis.ifelse(before(edges[middle]), between(low, middle), between(middle + 1, high))

    return between(0, len(edges))


def checked_steps(at: Sequence[int]) -> list[int]:
    """Return sizes as ints.

    Raises:
        SpecError: there is none, one is not a whole number from 1, or they do not rise.
    """
    steps = list(at)
    if not steps:
        raise SpecError("at", "expected at least one whole number.")
    for i, step in enumerate(steps):
        whole = isinstance(step, int | np.integer) and not isinstance(step, bool)
        if not whole or step < 1 or (i and step <= steps[i - 1]):
            raise SpecError(
                "at", f"expected whole numbers from 1 that rise; number {i + 1} is {quote(step)}."
            )
    return [int(step) for step in steps]


def at_least(
    histogram: Iterable[tuple[int, int]], steps: Sequence[int]
) -> tuple[list[int], list[int]]:
    """Return how many things have at least each size, and the sizes of those added up.

    Args:
        histogram: (size, things of that size) pairs; a size may stand there more than once.

    >>> at_least([(1, 5), (3, 2)], [1, 2, 4])
    ([7, 2, 0], [11, 6, 0])
    """
    pairs = list(histogram)
    things = [sum(count for size, count in pairs if size >= step) for step in steps]
    sizes = [sum(size * count for size, count in pairs if size >= step) for step in steps]
    return things, sizes
