"""What is expected to be free from now on, for the kernels: the twin of `windtunnel.sim.profile`.

A profile is three arrays of steps: ``times`` (steps,), ``free`` (steps, nodes, 2) with free GPU
units and thousandths of cores, ``totals`` (steps,) of free GPU units; ``size`` of them are used.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from windtunnel.sim.compiled.nodes import (
    BITS,
    COUNT,
    FREE,
    FREE_CPUS,
    HINT,
    POOL,
    SIZE,
    take,
)


@njit(cache=True)
def step_at(times, free, totals, size, time):
    """Return the step that begins at ``time``, made where there is none, and the new size.

    There must be room for one more step. A time before the first step counts as that step.
    """
    low, high = 0, size
    while low < high:
        middle = (low + high) >> 1
        if times[middle] < time:
            low = middle + 1
        else:
            high = middle
    if (low < size and times[low] == time) or low == 0:
        return low, size
    for index in range(size, low, -1):
        times[index] = times[index - 1]
        free[index] = free[index - 1]
        totals[index] = totals[index - 1]
    times[low] = time
    free[low] = free[low - 1]
    totals[low] = totals[low - 1]
    return low, size + 1


@njit(cache=True)
def change(free, totals, first, last, nodes, gpus, begin, end, cores, sign):
    """Add ``sign`` times what ``nodes[begin:end]`` hold to the steps ``first`` to before ``last``.

    ``cores`` are taken with every entry: 0 on nodes, the job's on its one pool.
    """
    for step in range(first, last):
        for entry in range(begin, end):
            free[step, nodes[entry], 0] += sign * gpus[entry]
            free[step, nodes[entry], 1] += sign * cores
            totals[step] += sign * gpus[entry]


@njit(cache=True)
def _fill(node, rows, room, placement):
    """Make the tables of `windtunnel.sim.compiled.nodes` from what is free, shape (nodes, 2)."""
    last = len(rows) - 1
    total = 0
    if placement != POOL:
        rows[:last] = 0
        rows[:last, HINT] = rows.shape[1] - BITS
    for which in range(len(node)):
        gpus = room[which, 0]
        node[which, FREE] = gpus
        node[which, FREE_CPUS] = room[which, 1]
        total += gpus
        if placement != POOL:
            word = which >> 6
            bit = 1 << (which & 63)
            rows[gpus, BITS + word] |= bit
            rows[gpus, COUNT] += 1
            rows[gpus, HINT] = min(rows[gpus, HINT], word)
            if gpus == node[which, SIZE]:
                rows[last - 1, BITS + word] |= bit
                rows[last - 1, COUNT] += 1
                rows[last - 1, HINT] = min(rows[last - 1, HINT], word)
    rows[last, COUNT] = total


@njit(cache=True)
def earliest(
    times, free, totals, size, node, rows, room, classes, kind, placement, length, nodes, gpus,
    offset,
):  # fmt: skip
    """Return the first step from which room stays free for ``length`` s, and how many nodes.

    The nodes are written from ``offset`` on. ``node``, ``rows`` and ``room`` are scratch.
    """
    for first in range(size):
        if totals[first] < classes[kind, 0]:
            continue
        _fill(node, rows, free[first], placement)
        taken = take(node, rows, classes, kind, placement, nodes, gpus, offset)
        if taken < 0:
            continue
        stop = times[first] + length
        if first + 1 == size or times[first + 1] >= stop:
            return first, taken
        room[:] = free[first]
        for later in range(first + 1, size):
            if times[later] >= stop:
                break
            for which in range(len(room)):
                room[which, 0] = min(room[which, 0], free[later, which, 0])
                room[which, 1] = min(room[which, 1], free[later, which, 1])
        _fill(node, rows, room, placement)
        taken = take(node, rows, classes, kind, placement, nodes, gpus, offset)
        if taken >= 0:
            return first, taken
    return -1, -1


@njit(cache=True)
def grown(times, free, totals):
    """Return the three arrays with twice the room."""
    more_times = np.empty(2 * len(times))
    more_free = np.empty((2 * len(times), free.shape[1], 2), dtype=np.int64)
    more_totals = np.empty(2 * len(times), dtype=np.int64)
    more_times[: len(times)] = times
    more_free[: len(times)] = free
    more_totals[: len(times)] = totals
    return more_times, more_free, more_totals
