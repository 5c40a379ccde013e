"""The fewest of something that suffices: doubling, then bisection."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable

Found = TypeVar("Found")


def fewest(reaches: Callable[[int], Found | None], most: int) -> tuple[int, Found] | None:
    """Return a number that suffices where one fewer does not, and what it gives; None: none does.

    Args:
        reaches: number, from 1 to ``most`` -> what it gives; None if it does not suffice.
        most: the largest number tried, >= 1.

    >>> fewest(lambda n: n if n * n >= 50 else None, 100)
    (8, 8)
    """
    low, high = 0, 1
    while (best := reaches(high)) is None:
        if high >= most:
            return None
        low, high = high, min(2 * high, most)
    while high - low > 1:
        middle = (low + high) // 2
        found = reaches(middle)
        if found is None:
            low = middle
        else:
            high, best = middle, found
    return high, best
