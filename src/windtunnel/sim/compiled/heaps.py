"""Binary heaps on plain arrays, for the kernels.

Two kinds: by a float key with an integer payload (completions, keyed queues), ordered by (key,
payload); and of bare integers (static queues, where one integer is the whole order).
"""

from __future__ import annotations

import numpy as np
from numba import njit


@njit(cache=True)
def push(keys, items, size, key, item):  # type: ignore[no-untyped-def]
    """Add (key, item) to a heap of ``size`` entries; return the new size. Arrays must have room."""
    child = size
    while child > 0:
        parent = (child - 1) >> 1
        if keys[parent] < key or (keys[parent] == key and items[parent] < item):
            break
        keys[child] = keys[parent]
        items[child] = items[parent]
        child = parent
    keys[child] = key
    items[child] = item
    return size + 1


@njit(cache=True)
def pop(keys, items, size):  # type: ignore[no-untyped-def]
    """Remove the least entry (read it at index 0 before); return the new size."""
    size -= 1
    key = keys[size]
    item = items[size]
    hole = 0
    child = 1
    while child < size:
        right = child + 1
        if right < size and (
            keys[right] < keys[child]
            or (keys[right] == keys[child] and items[right] < items[child])
        ):
            child = right
        if key < keys[child] or (key == keys[child] and item < items[child]):
            break
        keys[hole] = keys[child]
        items[hole] = items[child]
        hole = child
        child = 2 * hole + 1
    keys[hole] = key
    items[hole] = item
    return size


@njit(cache=True)
def push_int(heap, start, size, value):  # type: ignore[no-untyped-def]
    """Add an integer to the heap that begins at ``heap[start]``; return the new size."""
    child = size
    while child > 0:
        parent = (child - 1) >> 1
        if heap[start + parent] < value:
            break
        heap[start + child] = heap[start + parent]
        child = parent
    heap[start + child] = value
    return size + 1


@njit(cache=True)
def pop_int(heap, start, size):  # type: ignore[no-untyped-def]
    """Remove the least integer of the heap at ``heap[start]``; return the new size."""
    size -= 1
    value = heap[start + size]
    hole = 0
    child = 1
    while child < size:
        right = child + 1
        if right < size and heap[start + right] < heap[start + child]:
            child = right
        if value < heap[start + child]:
            break
        heap[start + hole] = heap[start + child]
        hole = child
        child = 2 * hole + 1
    heap[start + hole] = value
    return size


@njit(cache=True)
def grown(array):  # type: ignore[no-untyped-def]
    """Return a copy of a 1-d array with twice the room."""
    bigger = np.empty(2 * len(array) + 64, dtype=array.dtype)
    bigger[: len(array)] = array
    return bigger
