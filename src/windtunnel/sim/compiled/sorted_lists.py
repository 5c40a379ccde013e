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
def find_key(keys, items, first, size, key, item):
    """Return the place of (key, item) in entries ``first`` to ``size``, or where it belongs."""
    low, high = first, size
    while low < high:
        middle = (low + high) >> 1
        if keys[middle] < key or (keys[middle] == key and items[middle] < item):
            low = middle + 1
        else:
            high = middle
    return low


@njit(cache=True)
def insert_key(keys, items, first, size, key, item):
    """Insert (key, item) into entries ``first`` to ``size``, ascending; return the new size."""
    place = find_key(keys, items, first, size, key, item)
    for index in range(size, place, -1):
        keys[index] = keys[index - 1]
        items[index] = items[index - 1]
    keys[place] = key
    items[place] = item
    return size + 1


@njit(cache=True)
def remove_key(keys, items, size, key, item):
    """Remove the entry (key, item), which is there, of ``size`` entries; return the new size."""
    size -= 1
    for index in range(find_key(keys, items, 0, size, key, item), size):
        keys[index] = keys[index + 1]
        items[index] = items[index + 1]
    return size


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
