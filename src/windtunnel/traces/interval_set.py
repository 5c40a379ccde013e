"""Batsim's interval sets: ``0-7 12`` is the resources 0, 1, ..., 7 and 12.

batsim.readthedocs.io/en/latest/interval-set.html.
"""

from __future__ import annotations

import heapq
import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    #: From when, until when, and how many GPUs.
    Stay = tuple[float, float, int]

_INTERVAL = re.compile(r"([0-9]{1,9})(?:-([0-9]{1,9}))?", re.ASCII)
#: More resources than any platform has: a typing error should not eat the machine's memory.
MAX_RESOURCES = 10_000_000


def parse_intervals(text: str) -> list[tuple[int, int]]:
    """Return the intervals of a set, canonical: ascending, disjoint, as large as possible.

    Raises:
        ValueError: it is no interval set.

    >>> parse_intervals("20-27 8-15 16")
    [(8, 16), (20, 27)]
    """
    found: list[tuple[int, int]] = []
    for word in text.split():
        matched = _INTERVAL.fullmatch(word)
        if matched is None:
            raise ValueError(text)
        low = int(matched[1])
        high = low if matched[2] is None else int(matched[2])
        if high < low:
            raise ValueError(text)
        found.append((low, high))
    merged: list[tuple[int, int]] = []
    for low, high in sorted(found):
        if merged and low <= merged[-1][1] + 1:
            merged[-1] = (merged[-1][0], max(high, merged[-1][1]))
        else:
            merged.append((low, high))
    if count_of(merged) > MAX_RESOURCES:
        raise ValueError(text)
    return merged


def count_of(intervals: Iterable[tuple[int, int]]) -> int:
    """Return how many resources are in canonical intervals."""
    return sum(high - low + 1 for low, high in intervals)


def format_intervals(resources: Iterable[int]) -> str:
    """Return resources as a canonical interval set.

    >>> format_intervals([5, 1, 2, 3, 7])
    '1-3 5 7'
    """
    spans: list[list[int]] = []
    for resource in sorted(set(resources)):
        if spans and resource == spans[-1][1] + 1:
            spans[-1][1] = resource
        else:
            spans.append([resource, resource])
    return " ".join(str(low) if low == high else f"{low}-{high}" for low, high in spans)


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
