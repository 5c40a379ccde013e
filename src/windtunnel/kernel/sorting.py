"""Sorting by a key."""

from __future__ import annotations

import cython

from windtunnel.kernel.marks import compiled


@compiled
def sort_by_key(
    items: cython.int[::1],
    begin: cython.longlong,
    end: cython.longlong,
    key: cython.double[::1],
) -> cython.void:
    """Put the items from ``begin`` to before ``end`` in order of (key, number): by Shell's sort.

    It takes no memory, and little time where most are in order already.

    Args:
        items: numbers of what is sorted, jobs for instance.
        begin: the first of those that are.
        end: behind the last of them.
        key: of each, by its number.
    """
    gap: cython.longlong = 1
    while gap < (end - begin) // 3:
        gap = 3 * gap + 1
    while gap > 0:
        for at in range(begin + gap, end):
            item = items[at]
            hole: cython.longlong = at
            while hole >= begin + gap:
                other = items[hole - gap]
                if key[other] < key[item] or (key[other] == key[item] and other <= item):
                    break
                items[hole] = other
                hole -= gap
            items[hole] = item
        gap //= 3
