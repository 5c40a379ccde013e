"""Steps of a profile on nodes with devices, for the kernels: see `windtunnel.sim.compiled.profile`.

A step is a table ``node`` and a ``book``: the settings of ``rows``, among them what is free in sum
and how many jobs were placed, and its rows `SETS` and `IDLE_KINDS`. The latter are put into scratch
``rows`` where a step is worked on.
"""

from __future__ import annotations

from numba import njit

from windtunnel.cluster.devices import MILLI
from windtunnel.sim.compiled.device_grants import change_all, give
from windtunnel.sim.compiled.device_sets import sort_in
from windtunnel.sim.compiled.device_tables import (
    CACHE,
    CORES,
    DEVICES,
    DRAWS,
    EACH,
    FRAGS_AT,
    FREE,
    HELD,
    IDLE,
    IDLE_KINDS,
    IDLERS,
    MEM,
    ROOMIEST,
    SETS,
    TASKS,
    TOTAL,
)
from windtunnel.sim.compiled.devices import take, take_there

__all__ = ["change", "give", "meet", "store", "sum_up", "take", "take_now", "try_take"]

#: Rows of a book.
BOOK = 3


@njit(cache=True)
def _open(book, rows):
    rows[0] = book[0]
    rows[SETS] = book[1]
    rows[IDLE_KINDS] = book[2]


@njit(cache=True)
def _close(book, rows):
    book[0] = rows[0]
    book[1] = rows[SETS]
    book[2] = rows[IDLE_KINDS]


@njit(cache=True)
def store(table, book, node, rows):
    """Let a step be what is free now; return the free thousandths of GPUs."""
    table[:] = node
    _close(book, rows)
    book[0, CACHE] = 0  # scores are not kept for steps
    return rows[0, FREE]


@njit(cache=True)
def change(table, book, rows, classes, kind, nodes, gpus, begin, end, sign):
    """Give (1) or take (-1) a job's grants at a step; return the free thousandths of GPUs then."""
    _open(book, rows)
    change_all(table, rows, classes, kind, nodes, gpus, begin, end, sign)
    if sign < 0:
        rows[0, DRAWS] += 1
    _close(book, rows)
    return rows[0, FREE]


@njit(cache=True)
def try_take(table, book, rows, classes, kind, placement, nodes, gpus, offset):
    """Return how many grants a job would get at a step, or -1; nothing is taken."""
    _open(book, rows)
    taken = take(table, rows, classes, kind, placement, nodes, gpus, offset)
    if taken > 0:
        give(table, rows, classes, kind, placement, nodes, gpus, offset, offset + taken)
    return taken


@njit(cache=True)
def take_now(node, rows, classes, kind, placement, nodes, gpus, begin, end):
    """Let a job start with the grants in entries ``begin`` to ``end``."""
    take_there(node, rows, classes, kind, placement, nodes, gpus, begin, end)
    rows[0, DRAWS] += 1


@njit(cache=True)
def meet(node, rows, other):
    """Keep only what is free in another step's table, too; of tasks what the fuller one runs."""
    for which in range(node.shape[1]):
        node[CORES, which] = min(node[CORES, which], other[CORES, which])
        node[MEM, which] = min(node[MEM, which], other[MEM, which])
        node[TASKS, which] = max(node[TASKS, which], other[TASKS, which])
    for row in range(DEVICES, rows[0, HELD]):
        for which in range(node.shape[1]):
            node[row, which] = min(node[row, which], other[row, which])
    for row in range(rows[0, HELD], node.shape[0]):
        for which in range(node.shape[1]):
            node[row, which] = max(node[row, which], other[row, which])


@njit(cache=True)
def sum_up(node, rows, book):
    """Make everything that follows from what is free on each device anew.

    Args:
        node: a table, changed by `meet`.
        rows: scratch.
        book: that of the step that the table was before.
    """
    _open(book, rows)
    rows[0, FREE] = 0
    rows[0, IDLERS] = 0
    for which in range(node.shape[1]):
        total = idle = roomiest = 0
        for device in range(rows[0, EACH]):
            left = node[DEVICES + device, which]
            total += left
            idle += left == MILLI
            roomiest = max(roomiest, left)
        node[TOTAL, which] = total
        node[IDLE, which] = idle
        node[ROOMIEST, which] = roomiest
        node[FRAGS_AT, which] = 0
        rows[0, FREE] += total
        rows[0, IDLERS] += node[TASKS, which] == 0
        sort_in(node, rows, which)
