"""Binary heaps on plain arrays, for the kernels.

Three kinds: completions, by time alone (all of an instant are taken before anything else happens,
so their order among themselves is nobody's business); queues by (key, job); and queues of bare
integers, where one integer is the whole order.
"""

from __future__ import annotations

from numba import njit


@njit(cache=True)
def push_time(times, items, size, time, item):
    """Add (time, item) to a heap of ``size`` entries; return the new size."""
    child = size
    while child > 0:
        parent = (child - 1) >> 1
        if times[parent] <= time:
            break
        times[child] = times[parent]
        items[child] = items[parent]
        child = parent
    times[child] = time
    items[child] = item
    return size + 1


@njit(cache=True)
def pop_time(times, items, size):
    """Remove an entry of the least time (read it at index 0 before); return the new size.

    The hole goes down to a leaf along the smaller children, then the last entry goes up from there:
    it usually belongs near a leaf, and the way down has no branch to mispredict.
    """
    size -= 1
    time = times[size]
    item = items[size]
    hole = 0
    child = 1
    while child + 1 < size:
        child += times[child + 1] < times[child]
        times[hole] = times[child]
        items[hole] = items[child]
        hole = child
        child = 2 * hole + 1
    if child < size:
        times[hole] = times[child]
        items[hole] = items[child]
        hole = child
    while hole > 0:
        parent = (hole - 1) >> 1
        if times[parent] <= time:
            break
        times[hole] = times[parent]
        items[hole] = items[parent]
        hole = parent
    times[hole] = time
    items[hole] = item
    return size


@njit(cache=True)
def push(keys, items, size, key, item):
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
def pop(keys, items, size):
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
def push_int(heap, start, size, value):
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
def pop_int(heap, start, size):
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
