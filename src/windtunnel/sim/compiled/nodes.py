"""Free state of a cluster for the kernels: the twin of `windtunnel.cluster.free` and placements.

For every number of free GPUs, a row of 64-bit words marks the nodes that have exactly that many;
one more row marks empty nodes. A row's *hint* is a word before which it has no bit, so that "lowest
index" is usually one look. A pool has no rows: its few pools are scanned.
"""

from __future__ import annotations

from collections import namedtuple
from typing import TYPE_CHECKING, Any

import numpy as np
from llvmlite import ir
from numba import njit, types
from numba.extending import intrinsic

if TYPE_CHECKING:
    from windtunnel.sim.problem import Problem

#: Placement codes.
BEST_FIT, SPREAD, POOL = 0, 1, 2
CODES = {"best_fit": BEST_FIT, "spread": SPREAD, "pool": POOL}

#: Free state; every field an array, so that the kernels change it in place.
#: free, sizes (nodes,); free_cpus, constrained (nodes,); bits (top + 2, words) uint64;
#: count, hint (top + 2,); total (1,): free GPU units.
State = namedtuple(  # noqa: PYI024 - numba needs the untyped kind
    "State", "free sizes free_cpus constrained bits count hint total"
)
#: Demand classes; arrays of shape (classes,), `allowed` (masks, words) uint64; mask -1 = all nodes.
Classes = namedtuple(  # noqa: PYI024 - numba needs the untyped kind
    "Classes", "gpus task cpus largest smallest mask allowed"
)


@intrinsic
def lowest_bit(_context, word):  # type: ignore[no-untyped-def]
    """Return the index of the lowest set bit of a uint64 that is not 0."""

    def codegen(_ctx, builder, _signature, arguments):  # type: ignore[no-untyped-def]
        return builder.cttz(arguments[0], ir.Constant(ir.IntType(1), 1))

    return types.int64(word), codegen


@njit(cache=True)
def _mark(state, row, node):  # type: ignore[no-untyped-def]
    word = node >> 6
    state.bits[row, word] |= np.uint64(1) << np.uint64(node & 63)
    state.count[row] += 1
    if word < state.hint[row]:
        state.hint[row] = word


@njit(cache=True)
def _unmark(state, row, node):  # type: ignore[no-untyped-def]
    state.bits[row, node >> 6] ^= np.uint64(1) << np.uint64(node & 63)
    state.count[row] -= 1


@njit(cache=True)
def set_free(state, node, gpus):  # type: ignore[no-untyped-def]
    """Change a node's number of free GPUs."""
    before = state.free[node]
    size = state.sizes[node]
    empty_row = len(state.count) - 1
    _unmark(state, before, node)
    _mark(state, gpus, node)
    if before == size:
        _unmark(state, empty_row, node)
    elif gpus == size:
        _mark(state, empty_row, node)
    state.free[node] = gpus
    state.total[0] += gpus - before


@njit(cache=True)
def _first(state, row, allowed, mask):  # type: ignore[no-untyped-def]
    """Return the lowest marked node of a row among the allowed ones, -1 if none."""
    if state.count[row] == 0:
        return -1
    word = state.hint[row]
    while state.bits[row, word] == 0:
        word += 1
    state.hint[row] = word
    if mask < 0:
        return (word << 6) + lowest_bit(state.bits[row, word])
    for later in range(word, state.bits.shape[1]):
        found = state.bits[row, later] & allowed[mask, later]
        if found != 0:
            return (later << 6) + lowest_bit(found)
    return -1


@njit(cache=True)
def _pick(state, gpus, allowed, mask, placement):  # type: ignore[no-untyped-def]
    """Return the one node for so many GPUs under the placement, -1 if none has them."""
    top = len(state.count) - 2
    if placement == BEST_FIT:
        for row in range(gpus, top + 1):
            node = _first(state, row, allowed, mask)
            if node >= 0:
                return node
    else:
        for row in range(top, gpus - 1, -1):
            node = _first(state, row, allowed, mask)
            if node >= 0:
                return node
    return -1


@njit(cache=True)
def take(state, classes, kind, placement, nodes, gpus, offset):  # type: ignore[no-untyped-def]
    """Place one job of class ``kind``: write its nodes from ``offset`` on; return how many, or -1.

    Nothing changes when it does not fit. On a pool the pool's index stands for the node.
    """
    want = classes.gpus[kind]
    if placement == POOL:
        return _take_pool(state, classes, kind, nodes, gpus, offset)
    if want > state.total[0]:
        return -1
    if want == 0:
        return 0
    mask = classes.mask[kind]
    if want <= classes.largest[kind]:
        node = _pick(state, want, classes.allowed, mask, placement)
        if node < 0:
            return -1
        nodes[offset] = node
        gpus[offset] = want
        set_free(state, node, state.free[node] - want)
        return 1
    return _take_gang(state, classes, kind, placement, nodes, gpus, offset)


@njit(cache=True)
def _take_gang(state, classes, kind, placement, nodes, gpus, offset):  # type: ignore[no-untyped-def]
    rest = classes.gpus[kind]
    task = classes.task[kind]
    mask = classes.mask[kind]
    smallest = classes.smallest[kind]
    empty_row = len(state.count) - 1
    # Empty nodes hold at most `largest` each, and so does the one node that takes the remainder.
    if state.count[empty_row] < (rest - 1) // classes.largest[kind]:
        return -1
    found = 0
    for word in range(state.hint[empty_row], state.bits.shape[1]):
        if rest < smallest:
            break
        marked = state.bits[empty_row, word]
        if mask >= 0:
            marked &= classes.allowed[mask, word]
        while marked != 0 and rest >= smallest:
            node = (word << 6) + lowest_bit(marked)
            marked &= marked - np.uint64(1)
            size = state.sizes[node]
            usable = size - size % task
            if 0 < usable <= rest:
                nodes[offset + found] = node
                gpus[offset + found] = usable
                found += 1
                rest -= usable
                set_free(state, node, size - usable)
    if rest > 0:
        # A whole node taken above has less than one task left, so it cannot be picked again.
        node = _pick(state, rest, classes.allowed, mask, placement)
        if node < 0:
            give(state, classes, kind, placement, nodes, gpus, offset, offset + found)
            return -1
        nodes[offset + found] = node
        gpus[offset + found] = rest
        found += 1
        set_free(state, node, state.free[node] - rest)
    return found


@njit(cache=True)
def _take_pool(state, classes, kind, nodes, gpus, offset):  # type: ignore[no-untyped-def]
    want = classes.gpus[kind]
    cores = classes.cpus[kind]
    mask = classes.mask[kind]
    if want == 0 and cores == 0:
        return 0
    best = -1
    for pool in range(len(state.free)):
        if state.free[pool] < want:
            continue
        if mask >= 0 and not (classes.allowed[mask, pool >> 6] >> np.uint64(pool & 63)) & np.uint64(
            1
        ):
            continue
        if state.constrained[pool] and state.free_cpus[pool] < cores:
            continue
        if best < 0 or state.free[pool] < state.free[best]:
            best = pool
    if best < 0:
        return -1
    nodes[offset] = best
    gpus[offset] = want
    state.free[best] -= want
    state.free_cpus[best] -= cores
    state.total[0] -= want
    return 1


@njit(cache=True)
def give(state, classes, kind, placement, nodes, gpus, begin, end):  # type: ignore[no-untyped-def]
    """Give back what a job of class ``kind`` holds on ``nodes[begin:end]``."""
    if placement == POOL:
        for entry in range(begin, end):
            pool = nodes[entry]
            state.free[pool] += gpus[entry]
            state.free_cpus[pool] += classes.cpus[kind]
            state.total[0] += gpus[entry]
    else:
        for entry in range(begin, end):
            node = nodes[entry]
            set_free(state, node, state.free[node] + gpus[entry])


def state_of(problem: Problem) -> Any:
    """Return the free state with nothing running."""
    sizes = problem.sizes
    limits = problem.cpu_limits
    top = 0 if problem.is_pool else int(sizes.max())
    words = (len(sizes) + 63) // 64
    bits = np.zeros((top + 2, words), dtype=np.uint64)
    count = np.zeros(top + 2, dtype=np.int64)
    hint = np.full(top + 2, words, dtype=np.int64)
    if not problem.is_pool:
        for row in (*range(top + 1), top + 1):
            marked = np.flatnonzero(sizes == row) if row <= top else np.arange(len(sizes))
            np.bitwise_or.at(
                bits[row], marked >> 6, np.uint64(1) << (marked & 63).astype(np.uint64)
            )
            count[row] = len(marked)
            hint[row] = marked[0] >> 6 if len(marked) else words
    return State(
        sizes.copy(),
        sizes,
        np.array([limit or 0 for limit in limits], dtype=np.int64),
        np.array([limit is not None for limit in limits], dtype=np.bool_),
        bits,
        count,
        hint,
        np.array([sizes.sum()], dtype=np.int64),
    )


def classes_of(problem: Problem) -> Any:
    """Return the demand classes as arrays."""
    words = (len(problem.sizes) + 63) // 64
    masks: dict[int, int] = {}
    for demand in problem.demands:
        if demand.allowed >= 0:
            masks.setdefault(demand.allowed, len(masks))
    allowed = np.zeros((max(len(masks), 1), words), dtype=np.uint64)
    for bitset, index in masks.items():
        allowed[index] = np.frombuffer(bitset.to_bytes(words * 8, "little"), dtype="<u8")
    fields = ("gpus", "task", "cpus", "largest", "smallest")
    columns = {
        name: np.array([getattr(d, name) for d in problem.demands], dtype=np.int64)
        for name in fields
    }
    mask = np.array([masks.get(d.allowed, -1) for d in problem.demands], dtype=np.int64)
    return Classes(**columns, mask=mask, allowed=allowed)


def span_limit(problem: Problem) -> int:
    """Return the most nodes one flown job can take."""
    most = 1
    for demand in problem.demands:
        if demand.gpus <= demand.capacity and demand.smallest:
            most = max(most, demand.gpus // demand.smallest + 1)
    return min(most, max(len(problem.sizes), 1)) + 1
