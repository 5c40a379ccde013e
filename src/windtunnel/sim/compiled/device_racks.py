"""Racks, for the kernels: the twin of `windtunnel.placements.racks`.

From row ``rows[0, RACKS]`` on (where it is not 0) ``rows`` has two rows for them: the first node of
each rack, and the number of nodes behind the last one's; and scratch paper, a number a rack.
"""

from __future__ import annotations

from numba import njit

from windtunnel.sim.compiled.device_gangs import fill_nodes, take_filling, take_gang, take_idle
from windtunnel.sim.compiled.device_grants import give, grant
from windtunnel.sim.compiled.device_search import best_node, room_for
from windtunnel.sim.compiled.device_tables import (
    AMOUNT,
    COUNT,
    FILL,
    NUM_RACKS,
    RACKS,
    SETS,
    SPILL,
    TASKS,
    TOTAL,
    WITHIN,
    WORDS,
)


@njit(cache=True)
def _keep_within(rows, racks, rack):
    """Let searches look at one rack alone."""
    words = rows[0, WORDS]
    first = WITHIN * words
    rows[SETS, first : first + words] = 0
    for which in range(rows[racks, rack], rows[racks, rack + 1]):
        rows[SETS, first + (which >> 6)] |= 1 << (which & 63)


@njit(cache=True)
def _anywhere(rows):
    """Let searches look at every node."""
    words = rows[0, WORDS]
    rows[SETS, WITHIN * words : (WITHIN + 1) * words] = -1


@njit(cache=True)
def _rack_room(node, rows, classes, kind, racks, rack, idle):
    """Return how many of a job's tasks fit a rack's nodes, or those of them that run nothing."""
    room = 0
    for which in range(rows[racks, rack], rows[racks, rack + 1]):
        if not (idle and node[TASKS, which]):
            room += room_for(node, rows, classes, kind, which)
    return room


@njit(cache=True)
def _in_one_rack(node, rows, classes, kind, placement, nodes, gpus, offset):
    """Place a job in the rack with the fewest free GPUs that can hold it; -1 if there is none."""
    racks = rows[0, RACKS]
    free = racks + 1  # free thousandths of GPUs of each rack, -1 where it will not do
    for rack in range(rows[0, NUM_RACKS]):
        rows[free, rack] = 0
        for which in range(rows[racks, rack], rows[racks, rack + 1]):
            rows[free, rack] += node[TOTAL, which]
        room = 0
        if rows[free, rack] >= classes[kind, AMOUNT]:
            room = _rack_room(node, rows, classes, kind, racks, rack, idle=False)
        if room < classes[kind, COUNT]:
            rows[free, rack] = -1
    while True:
        best = -1
        for rack in range(rows[0, NUM_RACKS]):
            if rows[free, rack] >= 0 and (best < 0 or rows[free, rack] < rows[free, best]):
                best = rack
        if best < 0:
            return -1
        rows[free, best] = -1
        _keep_within(rows, racks, best)
        if rows[0, FILL]:
            taken = take_filling(node, rows, classes, kind, placement, nodes, gpus, offset)
        else:
            taken = take_gang(node, rows, classes, kind, placement, nodes, gpus, offset)
        if taken >= 0:
            return taken


@njit(cache=True)
def _over_racks(node, rows, classes, kind, placement, nodes, gpus, offset):
    """Place a job over several racks, those with the most room first; -1 if there is no room."""
    racks = rows[0, RACKS]
    filling = rows[0, FILL] != 0
    room = racks + 1
    total = 0
    for rack in range(rows[0, NUM_RACKS]):
        rows[room, rack] = _rack_room(node, rows, classes, kind, racks, rack, idle=not filling)
        total += rows[room, rack]
    count = classes[kind, COUNT]
    if filling and total < count:
        return -1
    rest = count
    entry = offset
    while rest > 0:
        best = 0
        for rack in range(rows[0, NUM_RACKS]):
            if rows[room, rack] > rows[room, best]:
                best = rack
        if rows[room, best] <= 0:
            break
        _keep_within(rows, racks, best)
        before = entry
        if filling:
            entry, rest = fill_nodes(
                node, rows, classes, kind, placement, nodes, gpus, entry, rest
            )  # fmt: skip
        else:
            entry, rest = take_idle(
                node, rows, classes, kind, placement, nodes, gpus, entry, rest
            )  # fmt: skip
        rows[room, best] = -1 if entry > before else 0  # -1: the job uses it
    if rest == 0:
        return entry - offset
    # The remainder goes to one more node, in a rack that the job uses already where one has room.
    words = rows[0, WORDS]
    rows[SETS, WITHIN * words : (WITHIN + 1) * words] = 0
    for rack in range(rows[0, NUM_RACKS]):
        if rows[room, rack] < 0:
            for which in range(rows[racks, rack], rows[racks, rack + 1]):
                rows[SETS, WITHIN * words + (which >> 6)] |= 1 << (which & 63)
    which = best_node(node, rows, classes, kind, placement, rest)
    if which < 0:
        _anywhere(rows)
        which = best_node(node, rows, classes, kind, placement, rest)
    if which < 0:
        give(node, rows, classes, kind, placement, nodes, gpus, offset, entry)
        return -1
    entry = grant(
        node, rows, classes, kind, placement, which, rest, count - rest, nodes, gpus, entry
    )
    return entry - offset


@njit(cache=True)
def take_by_racks(node, rows, classes, kind, placement, nodes, gpus, offset):
    """Place a job that may go over several nodes by racks; result as of `devices.take`."""
    taken = _in_one_rack(node, rows, classes, kind, placement, nodes, gpus, offset)
    if taken < 0 and rows[0, SPILL]:
        taken = _over_racks(node, rows, classes, kind, placement, nodes, gpus, offset)
    _anywhere(rows)
    return taken
