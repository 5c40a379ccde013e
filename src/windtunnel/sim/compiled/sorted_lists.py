"""Sorted lists on plain arrays, for the kernels: found by bisection, moved on insertion.

For lists of some thousands, whose every entry is read in order all the time.
"""

from __future__ import annotations

from numba import njit


@njit(cache=True)
def insert_int(values, first, size, value):
    """Insert into ``values[first:size]``, ascending; return the new size."""
    low, high = first, size
    while low < high:
        middle = (low + high) >> 1
        if values[middle] < value:
            low = middle + 1
        else:
            high = middle
    for index in range(size, low, -1):
        values[index] = values[index - 1]
    values[low] = value
    return size + 1


@njit(cache=True)
def insert_time(times, items, size, time, item):
    """Insert (time, item) behind all entries of no later time; return the new size."""
    low, high = 0, size
    while low < high:
        middle = (low + high) >> 1
        if times[middle] <= time:
            low = middle + 1
        else:
            high = middle
    for index in range(size, low, -1):
        times[index] = times[index - 1]
        items[index] = items[index - 1]
    times[low] = time
    items[low] = item
    return size + 1


@njit(cache=True)
def remove_time(times, items, size, time, item):
    """Remove the entry (time, item), which is there; return the new size."""
    low, high = 0, size
    while low < high:
        middle = (low + high) >> 1
        if times[middle] < time:
            low = middle + 1
        else:
            high = middle
    while items[low] != item:
        low += 1
    for index in range(low, size - 1):
        times[index] = times[index + 1]
        items[index] = items[index + 1]
    return size - 1
