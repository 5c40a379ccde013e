"""Free state of a cluster for the kernels: the twin of `windtunnel.cluster.free` and placements.

Everything is in three integer tables, because a call that hands over many arrays is slow and one
that is inlined everywhere is slow to compile:

* ``node`` (nodes, 4): columns `FREE`, `SIZE`, `FREE_CPUS`, `HAS_CPUS` (cores are constrained).
* ``rows`` (top + 3, 2 + words): row k marks the nodes with exactly k free GPUs, one bit a node from
  column `BITS` on, with how many (`COUNT`) and a word before which there is none (`HINT`); row
  top + 1 marks empty nodes; the last row holds the total of free GPU units. A pool has no marks:
  its few pools are scanned.
* ``classes`` (classes, 7 + words): one demand class a row, columns `GPUS` ... `MASKED`, then the
  allowed nodes as bits (where `MASKED`; else all are).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from llvmlite import ir
from numba import njit, types
from numba.extending import intrinsic

if TYPE_CHECKING:
    from windtunnel.cluster.free import Demand
    from windtunnel.sim.problem import Problem

#: Placement codes.
BEST_FIT, SPREAD, POOL = 0, 1, 2
CODES = {"best_fit": BEST_FIT, "spread": SPREAD, "pool": POOL}
#: Columns of ``node``.
FREE, SIZE, FREE_CPUS, HAS_CPUS = range(4)
#: Columns of ``rows``.
COUNT, HINT, BITS = range(3)
#: Columns of ``classes``; `EMPTIES` = empty nodes a gang needs at least.
GPUS, TASK, CPUS, LARGEST, SMALLEST, EMPTIES, MASKED, ALLOWED = range(8)


@intrinsic
def lowest_bit(_context: Any, word: Any) -> Any:
    """Return the index of the lowest set bit of an int64 that is not 0."""

    def codegen(_ctx: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
        return builder.cttz(arguments[0], ir.Constant(ir.IntType(1), 1))

    return types.int64(word), codegen


@njit(cache=True)
def _mark(rows, row, node):
    word = node >> 6
    rows[row, BITS + word] |= 1 << (node & 63)
    rows[row, COUNT] += 1
    if word < rows[row, HINT]:
        rows[row, HINT] = word


@njit(cache=True)
def _unmark(rows, row, node):
    rows[row, BITS + (node >> 6)] ^= 1 << (node & 63)
    rows[row, COUNT] -= 1


@njit(cache=True)
def set_free(node, rows, which, gpus):
    """Change a node's number of free GPUs."""
    before = node[which, FREE]
    size = node[which, SIZE]
    last = len(rows) - 1
    _unmark(rows, before, which)
    _mark(rows, gpus, which)
    if before == size:
        _unmark(rows, last - 1, which)
    elif gpus == size:
        _mark(rows, last - 1, which)
    node[which, FREE] = gpus
    rows[last, COUNT] += gpus - before


@njit(cache=True)
def _first(rows, row, classes, kind):
    """Return the lowest marked node of a row that the class may use, -1 if none."""
    if rows[row, COUNT] == 0:
        return -1
    word = rows[row, HINT]
    while rows[row, BITS + word] == 0:
        word += 1
    rows[row, HINT] = word
    if not classes[kind, MASKED]:
        return (word << 6) + lowest_bit(rows[row, BITS + word])
    for later in range(word, rows.shape[1] - BITS):
        found = rows[row, BITS + later] & classes[kind, ALLOWED + later]
        if found != 0:
            return (later << 6) + lowest_bit(found)
    return -1


@njit(cache=True)
def _pick(rows, gpus, classes, kind, placement):
    """Return the one node for so many GPUs under the placement, -1 if none has them."""
    top = len(rows) - 3
    if placement == BEST_FIT:
        for row in range(gpus, top + 1):
            node = _first(rows, row, classes, kind)
            if node >= 0:
                return node
    else:
        for row in range(top, gpus - 1, -1):
            node = _first(rows, row, classes, kind)
            if node >= 0:
                return node
    return -1


# Inlined: handing three tables to a function that LLVM does not inline costs a third of the run.
@njit(cache=True, inline="always")
def take(node, rows, classes, kind, placement, nodes, gpus, offset):
    """Place one job of class ``kind``: write its nodes from ``offset`` on; return how many, or -1.

    Nothing changes when it does not fit. On a pool the pool's index stands for the node.
    """
    want = classes[kind, GPUS]
    if want > rows[len(rows) - 1, COUNT]:
        return -1
    if placement == POOL:
        return _take_pool(node, rows, classes, kind, nodes, gpus, offset)
    if want == 0:
        return 0
    if want <= classes[kind, LARGEST]:
        which = _pick(rows, want, classes, kind, placement)
        if which < 0:
            return -1
        nodes[offset] = which
        gpus[offset] = want
        set_free(node, rows, which, node[which, FREE] - want)
        return 1
    return _take_gang(node, rows, classes, kind, placement, nodes, gpus, offset)


@njit(cache=True)
def _take_gang(node, rows, classes, kind, placement, nodes, gpus, offset):
    empty = len(rows) - 2
    if rows[empty, COUNT] < classes[kind, EMPTIES]:
        return -1
    rest = classes[kind, GPUS]
    task = classes[kind, TASK]
    smallest = classes[kind, SMALLEST]
    found = 0
    for word in range(rows[empty, HINT], rows.shape[1] - BITS):
        if rest < smallest:
            break
        marked = rows[empty, BITS + word]
        if classes[kind, MASKED]:
            marked &= classes[kind, ALLOWED + word]
        while marked != 0 and rest >= smallest:
            which = (word << 6) + lowest_bit(marked)
            marked &= marked - 1
            size = node[which, SIZE]
            usable = size - size % task
            if 0 < usable <= rest:
                nodes[offset + found] = which
                gpus[offset + found] = usable
                found += 1
                rest -= usable
                set_free(node, rows, which, size - usable)
    if rest > 0:
        # A whole node taken above has less than one task left, so it cannot be picked again.
        which = _pick(rows, rest, classes, kind, placement)
        if which < 0:
            for entry in range(offset, offset + found):
                set_free(node, rows, nodes[entry], node[nodes[entry], SIZE])
            return -1
        nodes[offset + found] = which
        gpus[offset + found] = rest
        found += 1
        set_free(node, rows, which, node[which, FREE] - rest)
    return found


@njit(cache=True)
def _take_pool(node, rows, classes, kind, nodes, gpus, offset):
    want = classes[kind, GPUS]
    cores = classes[kind, CPUS]
    if want == 0 and cores == 0:
        return 0
    best = -1
    for pool in range(len(node)):
        if node[pool, FREE] < want or (node[pool, HAS_CPUS] and node[pool, FREE_CPUS] < cores):
            continue
        if classes[kind, MASKED] and not classes[kind, ALLOWED + (pool >> 6)] >> (pool & 63) & 1:
            continue
        if best < 0 or node[pool, FREE] < node[best, FREE]:
            best = pool
    if best < 0:
        return -1
    nodes[offset] = best
    gpus[offset] = want
    node[best, FREE] -= want
    node[best, FREE_CPUS] -= cores
    rows[len(rows) - 1, COUNT] -= want
    return 1


@njit(cache=True, inline="always")
def give(node, rows, classes, kind, placement, nodes, gpus, begin, end):
    """Give back what a job of class ``kind`` holds on ``nodes[begin:end]``."""
    for entry in range(begin, end):
        which = nodes[entry]
        if placement == POOL:
            node[which, FREE] += gpus[entry]
            node[which, FREE_CPUS] += classes[kind, CPUS]
            rows[len(rows) - 1, COUNT] += gpus[entry]
        else:
            set_free(node, rows, which, node[which, FREE] + gpus[entry])


@njit(cache=True)
def take_there(node, rows, classes, kind, placement, nodes, gpus, begin, end):
    """Take what a job of class ``kind`` holds on ``nodes[begin:end]``; the reverse of `give`."""
    for entry in range(begin, end):
        which = nodes[entry]
        if placement == POOL:
            node[which, FREE] -= gpus[entry]
            node[which, FREE_CPUS] -= classes[kind, CPUS]
            rows[len(rows) - 1, COUNT] -= gpus[entry]
        else:
            set_free(node, rows, which, node[which, FREE] - gpus[entry])


@njit(cache=True)
def is_free(node, classes, kind, placement, nodes, gpus, begin, end):
    """Return whether ``nodes[begin:end]`` could be taken by a job of class ``kind``."""
    for entry in range(begin, end):
        which = nodes[entry]
        if node[which, FREE] < gpus[entry]:
            return False
        cores = placement == POOL and node[which, HAS_CPUS]
        if cores and node[which, FREE_CPUS] < classes[kind, CPUS]:
            return False
    return True


def tables(problem: Problem) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return ``node``, ``rows`` and ``classes`` with nothing running."""
    sizes = problem.sizes
    words = (len(sizes) + 63) // 64
    node = np.zeros((len(sizes), 4), dtype=np.int64)
    node[:, FREE] = sizes
    node[:, SIZE] = sizes
    node[:, FREE_CPUS] = [limit or 0 for limit in problem.cpu_limits]
    node[:, HAS_CPUS] = [limit is not None for limit in problem.cpu_limits]
    top = 0 if problem.is_pool else int(sizes.max())
    rows = np.zeros((top + 3, BITS + words), dtype=np.int64)
    rows[:, HINT] = words
    rows[top + 2, COUNT] = sizes.sum()
    if not problem.is_pool:
        for row in range(top + 1):
            _fill(rows[row], np.flatnonzero(sizes == row))
        _fill(rows[top + 1], np.arange(len(sizes)))
    classes = np.zeros((len(problem.demands), ALLOWED + words), dtype=np.int64)
    for kind, demand in enumerate(problem.demands):
        classes[kind, :ALLOWED] = (
            demand.gpus,
            demand.task,
            demand.cpus,
            demand.largest,
            demand.smallest,
            _empties(demand, sizes),
            demand.allowed >= 0,
        )
        if demand.allowed >= 0:
            bits = demand.allowed.to_bytes(words * 8, "little")
            classes[kind, ALLOWED:] = np.frombuffer(bits, "<i8")
    return node, rows, classes


def _fill(row: np.ndarray, marked: np.ndarray) -> None:
    """Mark nodes (ascending) in an unmarked row."""
    bits = np.int64(1) << (marked & 63)
    np.bitwise_or.at(row, BITS + (marked >> 6), bits)
    row[COUNT] = len(marked)
    if len(marked):
        row[HINT] = marked[0] >> 6


def _empties(demand: Demand, sizes: np.ndarray) -> int:
    """Return how many empty nodes a gang needs at least; fewer is a quick no.

    An empty node holds at most ``largest``, and so does the node that takes the remainder; that one
    need not be empty, unless nothing less than a whole node holds ``largest``.
    """
    if demand.largest == 0:
        return 0
    if demand.largest == sizes.max():
        return demand.gpus // demand.largest
    return (demand.gpus - 1) // demand.largest


def class_entries(problem: Problem) -> np.ndarray:
    """Return the most entries that a job of each class can have, Int array (classes,)."""
    most = [
        d.gpus // d.smallest + 2 if d.smallest and not problem.is_pool else 1
        for d in problem.demands
    ]
    return np.minimum(np.array(most, dtype=np.int64), len(problem.sizes) + 1)
