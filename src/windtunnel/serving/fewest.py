"""The fewest of something that suffices: doubling, then bisection."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable

Found = TypeVar("Found")


def fewest(
    reaches: Callable[[int], Found | None], most: int, start: int = 1
) -> tuple[int, Found] | None:
    """Return a number that suffices where one fewer does not, and what it gives; None: none does.

    Args:
        reaches: number, from 1 to ``most`` -> what it gives; None if it does not suffice.
        most: the largest number tried, >= 1.
        start: the number tried first; from there ever longer steps are taken.

    >>> fewest(lambda n: n if n * n >= 50 else None, 100)
    (8, 8)
    >>> fewest(lambda n: n if n * n >= 50 else None, 100, start=90)
    (8, 8)
    """
    low, high = 0, min(start, most)
    step = max(1, high // 8)
    best = reaches(high)
    if best is None:
        while best is None:
            if high >= most:
                return None
            low, high, step = high, min(high + step, most), 2 * step
            best = reaches(high)
    else:
        while high - low > 1 and step > 0:
            probe = max(high - step, low + 1)
            found = reaches(probe)
            if found is None:
                low, step = probe, 0
            else:
                high, best, step = probe, found, 2 * step
    while high - low > 1:
        middle = (low + high) // 2
        found = reaches(middle)
        if found is None:
            low = middle
        else:
            high, best = middle, found
    return high, best
