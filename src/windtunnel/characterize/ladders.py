"""Complementary counts: how many things have at least a size, from a histogram of sizes."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from windtunnel.errors import SpecError, quote

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence


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
