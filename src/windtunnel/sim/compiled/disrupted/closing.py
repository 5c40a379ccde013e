"""Room that is closed to some jobs: the twin of ``withhold``, ``restore`` and ``opened``.

A closed node's room is set aside in ``saved``, and its columns say that nothing is free there, so
that every placement passes it over. What is given back there goes to what is set aside.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from windtunnel.sim.compiled.device_sets import sort_in
from windtunnel.sim.compiled.device_tables import (
    CORES,
    DEVICES,
    DRAWS,
    EACH,
    IDLE,
    IDLERS,
    MEM,
    ROOMIEST,
    TASKS,
    TOTAL,
    VERSION,
)
from windtunnel.sim.compiled.device_tables import FREE as FREE_MILLI
from windtunnel.sim.compiled.disrupted.tables import (
    ACCESS,
    BIT,
    CLOSED,
    DISRUPTED,
    DOWN,
    ESTIMATE,
    FIRST,
    KEPT,
    KEPT_NODES,
    KIND,
    LAST,
    MARK,
    NEXT_PLANNED,
    NOBODYS,
    NOW,
    PLACEMENT,
    PLANS,
    SEEN,
)
from windtunnel.sim.compiled.nodes import FREE, POOL, SIZE, set_free
from windtunnel.sim.compiled.room import ON_DEVICES, give, is_free, take, take_there


@njit(cache=True)
def show(room, placement, which, seen):
    """Let a node's room be seen by placements (1), or set it aside (0)."""
    if room.shut[which, SEEN] == seen:
        return
    room.shut[which, SEEN] = seen
    node, saved, rows = room.node, room.saved, room.rows
    if placement < ON_DEVICES:
        if node[which, SIZE] == 0:
            return
        if seen:
            set_free(node, rows, which, saved[0, which])
        else:
            saved[0, which] = node[which, FREE]
            set_free(node, rows, which, 0)
        return
    if node[TASKS, which] == 0:
        rows[0, IDLERS] -= 1
    rows[0, FREE_MILLI] -= node[TOTAL, which]
    for row in (TOTAL, IDLE, CORES, MEM, ROOMIEST, TASKS):
        _move(node, saved, row, which, seen)
    for row in range(DEVICES, DEVICES + rows[0, EACH]):
        _move(node, saved, row, which, seen)
    if not seen:
        node[TASKS, which] = 1  # it is not one of the empty nodes
    if node[TASKS, which] == 0:
        rows[0, IDLERS] += 1
    rows[0, FREE_MILLI] += node[TOTAL, which]
    node[VERSION, which] += 1
    sort_in(node, rows, which)


@njit(cache=True)
def _move(node, saved, row, which, seen):
    if seen:
        node[row, which] = saved[row, which]
    else:
        saved[row, which] = node[row, which]
        node[row, which] = 0


@njit(cache=True)
def set_aside(room, placement, which):
    """Return the GPU units of a closed node that nobody holds."""
    if placement >= ON_DEVICES:
        return room.saved[TOTAL, which]
    return room.saved[0, which]


@njit(cache=True)
def _default(room, placement, which):
    """Show a node if no hold closes it."""
    open_to_all = room.shut[which, CLOSED] == 0 and room.shut[which, KEPT] == 0
    show(room, placement, which, 1 if open_to_all else 0)


@njit(cache=True)
def close(s, room, hold, closes):
    """Begin a hold, or end it."""
    placement, bit = s.rules[PLACEMENT], s.holds[hold, BIT]
    for entry in range(s.holds[hold, FIRST], s.holds[hold, LAST]):
        which, units = s.places[entry, 0], s.places[entry, 1]
        if placement == POOL:
            room.node[which, FREE] += -units if closes else units
            room.shut[which, CLOSED] += units if closes else -units
        elif bit != NOBODYS:
            room.shut[which, KEPT] ^= bit
            room.sums[KEPT_NODES] += 1 if closes else -1
            _default(room, placement, which)
        elif closes:
            room.shut[which, CLOSED] += 1
            _default(room, placement, which)
            if room.shut[which, CLOSED] == 1:
                room.sums[DOWN] += set_aside(room, placement, which)
        else:
            if room.shut[which, CLOSED] == 1:
                room.sums[DOWN] -= set_aside(room, placement, which)
            room.shut[which, CLOSED] -= 1
            _default(room, placement, which)


@njit(cache=True)
def count_down(s):
    """Return the GPU units that nobody holds and nobody may use."""
    room = s.room
    if s.rules[PLACEMENT] != POOL:
        return room.sums[DOWN]
    down = np.int64(0)
    for which in range(len(room.shut)):
        if room.shut[which, CLOSED] > 0:
            down += room.shut[which, CLOSED] + min(0, room.node[which, FREE])
    return down


@njit(cache=True)
def give_back(s, room, kind, nodes, gpus, begin, end):
    """Give back what a job of a class holds in entries ``begin`` to ``end``, closed or not."""
    placement = s.rules[PLACEMENT]
    closed = s.rules[DISRUPTED] and placement != POOL
    closed = closed and _open_closed(room, placement, nodes, begin, end)
    give(room.node, room.rows, room.classes, kind, placement, nodes, gpus, begin, end)
    if closed:
        _shut_again(room, placement, nodes, begin, end)


@njit(cache=True)
def _open_closed(room, placement, nodes, begin, end):
    """Show the closed nodes among entries ``begin`` to ``end``; return whether there are any."""
    closed = False
    for entry in range(begin, end):
        which = nodes[entry]
        if room.shut[which, SEEN] == 0:
            closed = True
            if room.shut[which, CLOSED] > 0:
                room.sums[DOWN] -= set_aside(room, placement, which)
            show(room, placement, which, 1)
    return closed


@njit(cache=True)
def _shut_again(room, placement, nodes, begin, end):
    for entry in range(begin, end):
        which = nodes[entry]
        if room.shut[which, SEEN]:
            _default(room, placement, which)
            if room.shut[which, CLOSED] > 0:
                room.sums[DOWN] += set_aside(room, placement, which)


@njit(cache=True)
def take_known(s, room, kind, nodes, gpus, begin, end):
    """Take what stands in entries ``begin`` to ``end``; the reverse of `give_back`."""
    placement = s.rules[PLACEMENT]
    closed = placement != POOL and _open_closed(room, placement, nodes, begin, end)
    take_there(room.node, room.rows, room.classes, kind, placement, nodes, gpus, begin, end)
    if closed:
        _shut_again(room, placement, nodes, begin, end)


@njit(cache=True)
def untake(s, kind, begin, end):
    """Undo the last `place` of the run's own room, as if it had never been."""
    give_back(s, s.room, kind, s.nodes, s.gpus, begin, end)
    if s.rules[PLACEMENT] >= ON_DEVICES:
        s.room.rows[0, DRAWS] -= 1


@njit(cache=True)
def is_open(s, room, job, begin, end):
    """Return whether a job could take what stands in entries ``begin`` to ``end``."""
    placement, access = s.rules[PLACEMENT], s.ints[job, ACCESS]
    closed = False
    if placement != POOL:
        for entry in range(begin, end):
            which = s.nodes[entry]
            if room.shut[which, CLOSED] > 0 or room.shut[which, KEPT] & ~access != 0:
                return False
        closed = _open_closed(room, placement, s.nodes, begin, end)
    free = is_free(
        room.node,
        room.rows,
        room.classes,
        s.ints[job, KIND],
        placement,
        s.nodes,
        s.gpus,
        begin,
        end,
    )
    if closed:
        _shut_again(room, placement, s.nodes, begin, end)
    return free


@njit(cache=True)
def _take(room, kind, placement, nodes, gpus, offset):
    return take(room.node, room.rows, room.classes, kind, placement, nodes, gpus, offset)


@njit(cache=True)
def place(s, room, job, at, nodes, gpus, offset):
    """Place a job as if it were started at ``at`` (s); return how many entries, or -1.

    It goes to nodes that are kept for it first, and, in runs that plan, to none on which a hold
    that is not its own begins before its expected end.
    """
    kind, placement = s.ints[job, KIND], s.rules[PLACEMENT]
    plans = s.rules[PLANS] and s.counts[NEXT_PLANNED] < len(s.planned_at)
    if placement == POOL:
        if not plans:
            return _take(room, kind, placement, nodes, gpus, offset)
        _foresee_units(s, room, job, at)
        taken = _take(room, kind, placement, nodes, gpus, offset)
        for which in range(len(room.shut)):
            room.node[which, FREE] += room.shut[which, MARK]
            room.shut[which, MARK] = 0
        return taken
    access = s.ints[job, ACCESS]
    kept = 0
    if access != 0 and room.sums[KEPT_NODES] > 0:
        kept = _open_kept(room, placement, access)
    foreseen = plans and _foresee(s, room, job, at)
    taken = -1
    if kept > 0:
        taken = _take_inside(room, kind, placement, nodes, gpus, offset)
    if taken < 0:
        taken = _take(room, kind, placement, nodes, gpus, offset)
    if kept > 0 or foreseen:
        for which in range(len(room.shut)):
            room.shut[which, MARK] = 0
            _default(room, placement, which)
    return taken


@njit(cache=True)
def _open_kept(room, placement, access):
    """Show and mark the nodes that only these reservations close; return how many."""
    kept = 0
    for which in range(len(room.shut)):
        bits = room.shut[which, KEPT]
        if room.shut[which, CLOSED] == 0 and bits != 0 and bits & ~access == 0:
            show(room, placement, which, 1)
            room.shut[which, MARK] = 1
            kept += 1
    return kept


@njit(cache=True)
def _take_inside(room, kind, placement, nodes, gpus, offset):
    """Place a job on marked nodes alone; leave the others as they are."""
    others = 0
    for which in range(len(room.shut)):
        if room.shut[which, MARK] == 0 and room.shut[which, SEEN]:
            show(room, placement, which, 0)
            room.shut[which, MARK] = 2
            others += 1
    taken = _take(room, kind, placement, nodes, gpus, offset)
    for which in range(len(room.shut) if others > 0 else 0):
        if room.shut[which, MARK] == 2:
            show(room, placement, which, 1)
            room.shut[which, MARK] = 0
    return taken


@njit(cache=True)
def _foresee(s, room, job, at):
    """Close the nodes that planned holds take before the job's end; return whether there are any.

    A node is closed whole by any of them, whether or not one ends before.
    """
    any_closed = False
    stop, access = at + s.secs[job, ESTIMATE], s.ints[job, ACCESS]
    for index in range(s.counts[NEXT_PLANNED], len(s.planned_at)):
        if s.planned_at[index] <= at:
            continue
        if s.planned_at[index] >= stop:
            break
        hold = s.planned[index, 1]
        if not s.planned[index, 0] or s.holds[hold, BIT] & access != 0:
            continue
        for entry in range(s.holds[hold, FIRST], s.holds[hold, LAST]):
            show(room, s.rules[PLACEMENT], s.places[entry, 0], 0)
            any_closed = True
    return any_closed


@njit(cache=True)
def _foresee_units(s, room, job, at):
    """Take from each pool the most that planned holds take at once before the job's end."""
    stop = at + s.secs[job, ESTIMATE]
    for which in range(len(room.shut)):
        peak = 0
        lost = 0
        for index in range(s.counts[NEXT_PLANNED], len(s.planned_at)):
            if s.planned_at[index] <= at:
                continue
            if s.planned_at[index] >= stop:
                break
            hold = s.planned[index, 1]
            for entry in range(s.holds[hold, FIRST], s.holds[hold, LAST]):
                if s.places[entry, 0] == which:
                    units = s.places[entry, 1]
                    lost += units if s.planned[index, 0] else -units
                    peak = max(peak, lost)
        room.shut[which, MARK] = peak
        room.node[which, FREE] -= peak


@njit(cache=True)
def pass_planned(s):
    """Pass over planned changes that have come."""
    while (
        s.counts[NEXT_PLANNED] < len(s.planned_at)
        and s.planned_at[s.counts[NEXT_PLANNED]] <= s.seconds[NOW]
    ):
        s.counts[NEXT_PLANNED] += 1
