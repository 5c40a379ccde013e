"""Free devices for the kernels: the twin of `windtunnel.cluster.free_devices` and placements.

The same calls as `windtunnel.sim.compiled.nodes`, on the tables of
`windtunnel.sim.compiled.device_tables`. An entry of a job's node list has the grant where nodes
without devices have a number of GPUs.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from windtunnel.cluster.devices import MILLI
from windtunnel.sim.compiled.device_scores import copy_left, device_for
from windtunnel.sim.compiled.device_search import (
    best_node,
    known_score,
    room_for,
    sums_allow,
    tie_of,
)
from windtunnel.sim.compiled.device_sets import first_idle, sort_in
from windtunnel.sim.compiled.device_tables import (
    CAPACITY,
    CHOSEN,
    CORES,
    COUNT,
    DEVICES,
    DRAWS,
    FGD,
    FILL,
    FIRST_KIND,
    FREE,
    GPUS,
    GROUP,
    HELD,
    IDLE,
    IDLE_KINDS,
    IDLERS,
    KIND,
    KINDS,
    LARGEST,
    LEFT,
    MEM,
    OF_NO_KIND,
    PART,
    POOLED,
    RANDOM,
    ROOMIEST,
    SETS,
    SIZE_CORES,
    SIZE_MEM,
    TASKS,
    TOTAL,
    VERSION,
    WANT_CORES,
    WANT_MEM,
    WHOLE,
    WORDS,
)
from windtunnel.sim.compiled.nodes import lowest_bit


@njit(cache=True)
def _find_roomiest(node, which):
    largest = np.int64(0)
    for device in range(node[GPUS, which]):
        largest = max(largest, node[DEVICES + device, which])
    node[ROOMIEST, which] = largest


@njit(cache=True)
def _change(node, rows, classes, kind, which, grant, sign):
    """Take (-1) or give back (1) one grant of whole or pooled GPUs, or of none, on one node."""
    whole = classes[kind, WHOLE]
    part = classes[kind, PART]
    tasks = 1
    if rows[0, POOLED]:
        if grant > 0:
            tasks = grant // (whole * MILLI + part)
            node[DEVICES, which] += sign * grant
            node[TOTAL, which] += sign * grant
            rows[0, FREE] += sign * grant
    elif grant != 0:
        held = 0
        for device in range(node[GPUS, which]):
            if (grant >> device) & 1:
                held += 1
                before = node[DEVICES + device, which]
                after = before + sign * MILLI
                node[DEVICES + device, which] = after
                if before == MILLI:
                    node[IDLE, which] -= 1
                if after == MILLI:
                    node[IDLE, which] += 1
        node[TOTAL, which] += sign * MILLI * held
        rows[0, FREE] += sign * MILLI * held
        _find_roomiest(node, which)
        tasks = held // whole
    _count_tasks(node, rows, classes, kind, which, tasks, sign)


@njit(cache=True)
def _change_shares(node, rows, classes, kind, which, gpus, begin, end, sign):
    """Take (-1) or give back (1) the shares in entries ``begin`` to ``end``, all on one node."""
    part = classes[kind, PART]
    idle = 0
    for entry in range(begin, end):
        device = lowest_bit(gpus[entry])
        before = node[DEVICES + device, which]
        after = before + sign * part
        node[DEVICES + device, which] = after
        if before == MILLI:
            idle -= 1
        elif after == MILLI:
            idle += 1
    tasks = end - begin
    node[IDLE, which] += idle
    node[TOTAL, which] += sign * part * tasks
    rows[0, FREE] += sign * part * tasks
    _find_roomiest(node, which)
    _count_tasks(node, rows, classes, kind, which, tasks, sign)


@njit(cache=True)
def _count_tasks(node, rows, classes, kind, which, tasks, sign):
    """Take (-1) or give back (1) what so many tasks on a node ask for besides GPUs."""
    if node[SIZE_CORES, which] >= 0:
        node[CORES, which] += sign * tasks * classes[kind, WANT_CORES]
    if node[SIZE_MEM, which] >= 0:
        node[MEM, which] += sign * tasks * classes[kind, WANT_MEM]
    if node[TASKS, which] == 0:
        rows[0, IDLERS] -= 1
    node[TASKS, which] -= sign * tasks
    if node[TASKS, which] == 0:
        rows[0, IDLERS] += 1
    if classes[kind, GROUP] >= 0:
        node[rows[0, HELD] + classes[kind, GROUP], which] -= sign * tasks
    node[VERSION, which] += 1
    sort_in(node, rows, which)


@njit(cache=True)
def _grant(node, rows, classes, kind, placement, which, tasks, first, nodes, gpus, entry):
    """Give so many tasks their devices on a node; return the next free entry."""
    whole = classes[kind, WHOLE]
    part = classes[kind, PART]
    if (whole > 0 or part > 0) and (rows[0, POOLED] or part == 0):
        grant = 0
        if rows[0, POOLED]:
            grant = tasks * (whole * MILLI + part)
        else:
            rest = tasks * whole
            for device in range(node[GPUS, which]):
                if rest > 0 and node[DEVICES + device, which] == MILLI:
                    grant |= 1 << device
                    rest -= 1
        nodes[entry] = which
        gpus[entry] = grant
        _change(node, rows, classes, kind, which, grant, -1)
        return entry + 1
    if part == 0:
        for _ in range(tasks):
            nodes[entry] = which
            gpus[entry] = 0
            _change(node, rows, classes, kind, which, 0, -1)
            entry += 1
        return entry
    begin = entry
    copy_left(node, rows, which)
    cores = node[CORES, which]
    step = classes[kind, WANT_CORES] if node[SIZE_CORES, which] >= 0 else 0
    device = -1
    for task in range(tasks):
        # The device that has least left and still fits is that for the next task, too.
        if device < 0 or placement in (FGD, RANDOM) or rows[LEFT, device] < part:
            device = device_for(node, rows, classes, kind, placement, which, cores, first + task)
        rows[LEFT, device] -= part
        cores -= step
        nodes[entry] = which
        gpus[entry] = np.int64(1) << device
        entry += 1
    _change_shares(node, rows, classes, kind, which, gpus, begin, entry, -1)
    return entry


@njit(cache=True)
def take(node, rows, classes, kind, placement, nodes, gpus, offset):
    """Place one job of class ``kind``: write its grants from ``offset`` on; return how many, or -1.

    Nothing is taken when it does not fit.
    """
    count = classes[kind, COUNT]
    if classes[kind, GROUP] < 0 and classes[kind, WANT_CORES] == 0 and classes[kind, WANT_MEM] == 0:
        rows[0, DRAWS] += 1
        return 0
    if count > classes[kind, CAPACITY] or not sums_allow(rows, classes, kind):
        return -1
    if rows[0, FILL]:
        taken = _take_filling(node, rows, classes, kind, placement, nodes, gpus, offset)
    elif count <= classes[kind, LARGEST]:
        taken = -1
        which = best_node(node, rows, classes, kind, placement, count)
        if which >= 0:
            taken = (
                _grant(node, rows, classes, kind, placement, which, count, 0, nodes, gpus, offset)
                - offset
            )
    else:
        taken = _take_gang(node, rows, classes, kind, placement, nodes, gpus, offset)
    if taken >= 0:
        rows[0, DRAWS] += 1
    return taken


@njit(cache=True)
def _take_gang(node, rows, classes, kind, placement, nodes, gpus, offset):
    count = classes[kind, COUNT]
    rest = count
    entry = offset
    # Nodes of one kind that run nothing have the same room.
    for own in range(rows[0, KINDS]):
        which = first_idle(rows, own)
        room = 0 if which < 0 else room_for(node, rows, classes, kind, which)
        rows[IDLE_KINDS, own] = room
    words = rows[0, WORDS]
    for word in range(words):
        if rest == 0:
            break
        bits = rows[SETS, OF_NO_KIND * words + word]
        for own in range(rows[0, KINDS]):
            if 0 < rows[IDLE_KINDS, own] <= rest:
                bits |= rows[SETS, (FIRST_KIND + own) * words + word]
        while bits != 0:
            which = (word << 6) + lowest_bit(bits)
            bits &= bits - 1
            own = node[KIND, which]
            if own >= 0:
                room = rows[IDLE_KINDS, own]
            else:
                room = 0 if node[TASKS, which] else room_for(node, rows, classes, kind, which)
            if 0 < room <= rest:
                entry = _grant(
                    node, rows, classes, kind, placement, which, room, count - rest,
                    nodes, gpus, entry,
                )  # fmt: skip
                rest -= room
    if rest > 0:
        # A whole node taken above has less than one task left, so it cannot be picked again.
        which = best_node(node, rows, classes, kind, placement, rest)
        if which < 0:
            give(node, rows, classes, kind, placement, nodes, gpus, offset, entry)
            return -1
        entry = _grant(
            node, rows, classes, kind, placement, which, rest, count - rest, nodes, gpus, entry
        )
    return entry - offset


@njit(cache=True)
def _take_filling(node, rows, classes, kind, placement, nodes, gpus, offset):
    count = classes[kind, COUNT]
    rest = count
    for which in range(node.shape[1]):
        rest -= room_for(node, rows, classes, kind, which)
        if rest <= 0:
            break
    if rest > 0:
        return -1
    # The order is that of the scores before anything is placed, so nothing is until it is known.
    rest = count
    chosen = 0
    last = -1
    last_score = 0
    last_tie = 0
    while rest > 0:
        best = -1
        best_score = 0
        best_tie = 0
        for which in range(node.shape[1]):
            if room_for(node, rows, classes, kind, which) < 1:
                continue
            score = known_score(node, rows, classes, kind, placement, which)
            if best >= 0 and score < best_score:
                continue
            if last >= 0 and score > last_score:
                continue
            tie = tie_of(node, rows, which)
            if (
                last >= 0
                and score == last_score
                and (tie < last_tie or (tie == last_tie and which <= last))
            ):
                continue
            if best < 0 or score > best_score or tie < best_tie:
                best, best_score, best_tie = which, score, tie
        rows[CHOSEN, chosen] = best
        chosen += 1
        last, last_score, last_tie = best, best_score, best_tie
        rest -= min(rest, room_for(node, rows, classes, kind, best))
    rest = count
    entry = offset
    for place in range(chosen):
        which = rows[CHOSEN, place]
        tasks = min(rest, room_for(node, rows, classes, kind, which))
        entry = _grant(
            node, rows, classes, kind, placement, which, tasks, count - rest, nodes, gpus, entry
        )
        rest -= tasks
    return entry - offset


@njit(cache=True)
def give(node, rows, classes, kind, placement, nodes, gpus, begin, end):  # noqa: ARG001 - as nodes'
    """Give back what a job of class ``kind`` holds in entries ``begin`` to ``end``."""
    _change_all(node, rows, classes, kind, nodes, gpus, begin, end, 1)


@njit(cache=True)
def _change_all(node, rows, classes, kind, nodes, gpus, begin, end, sign):
    shares = classes[kind, PART] > 0 and not rows[0, POOLED]
    entry = begin
    while entry < end:
        which = np.int64(nodes[entry])
        stop = entry + 1
        if shares:
            while stop < end and nodes[stop] == which:
                stop += 1
            _change_shares(node, rows, classes, kind, which, gpus, entry, stop, sign)
        else:
            _change(node, rows, classes, kind, which, gpus[entry], sign)
        entry = stop


@njit(cache=True)
def take_there(node, rows, classes, kind, placement, nodes, gpus, begin, end):  # noqa: ARG001
    """Take the grants in entries ``begin`` to ``end``; the reverse of `give`, and no draw."""
    _change_all(node, rows, classes, kind, nodes, gpus, begin, end, -1)


@njit(cache=True)
def is_free(node, rows, classes, kind, placement, nodes, gpus, begin, end):
    """Return whether the grants in entries ``begin`` to ``end`` could be taken, all together."""
    free = True
    take_there(node, rows, classes, kind, placement, nodes, gpus, begin, end)
    for entry in range(begin, end):
        which = nodes[entry]
        if node[CORES, which] < 0 or node[MEM, which] < 0:
            free = False
        for device in range(1 if rows[0, POOLED] else node[GPUS, which]):
            if node[DEVICES + device, which] < 0:
                free = False
    give(node, rows, classes, kind, placement, nodes, gpus, begin, end)
    return free
