"""Numbers for GPUs that a table counts but does not name, so that a Gantt chart can show them."""

from __future__ import annotations

import heapq
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    #: From when, until when, and how many GPUs.
    Stay = tuple[float, float, int]


def number_resources(stays: Sequence[Stay]) -> list[list[int]]:
    """Return numbers for each stay: the lowest that are free all the while.

    At one instant GPUs are given back before others are taken; stays that begin together are
    served in their order.

    Args:
        stays: in any order.

    >>> number_resources([(0, 10, 2), (5, 20, 1), (10, 20, 3)])
    [[0, 1], [2], [0, 1, 3]]
    """
    free: list[int] = []
    unused = 0  # numbers from here on were never given
    held: list[tuple[float, int]] = []
    numbers: list[list[int]] = [[] for _ in stays]
    for index in sorted(range(len(stays)), key=lambda index: stays[index][0]):
        start, end, count = stays[index]
        while held and held[0][0] <= start:
            _, over = heapq.heappop(held)
            for number in numbers[over]:
                heapq.heappush(free, number)
        again = [heapq.heappop(free) for _ in range(min(count, len(free)))]
        fresh = range(unused, unused + count - len(again))
        unused = fresh.stop
        numbers[index] = [*again, *fresh]
        heapq.heappush(held, (end, index))
    return numbers
