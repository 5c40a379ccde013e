"""Free devices for the kernels: the twin of `windtunnel.cluster.devices` and scored placements.

The same calls as `windtunnel.sim.compiled.nodes`, on the tables of
`windtunnel.sim.compiled.device_tables`. An entry of a job's node list has the grant where nodes
without devices have a number of GPUs.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from windtunnel.cluster.devices import MILLI
from windtunnel.sim.compiled.device_scores import (
    copy_left,
    cores_of,
    device_for,
    draw_bits,
    score_of,
)
from windtunnel.sim.compiled.device_tables import (
    ALLOWED,
    BY_DRAW,
    BY_NAME,
    CACHE,
    CAPACITY,
    CHOSEN,
    CHUNK,
    CORES,
    COUNT,
    DEVICES,
    DRAWS,
    FILL,
    GPUS,
    GROUP,
    HELD,
    IDLE,
    LARGEST,
    MASKED,
    MEM,
    PART,
    POOLED,
    RANK,
    SCORED,
    SIZE_CORES,
    SIZE_MEM,
    TASKS,
    TIES,
    TOTAL,
    VERSION,
    WANT_CORES,
    WANT_MEM,
    WHOLE,
)

#: Random draws from here on are for nodes; see `windtunnel.placements.scored`.
_NODE_DRAWS = 1 << 32


@njit(cache=True)
def _may_use(classes, kind, which):
    return (
        not classes[kind, MASKED]
        or (classes[kind, ALLOWED + (which >> 6)] >> (which & 63)) & 1 != 0
    )


@njit(cache=True)
def _room(node, rows, classes, kind, which):
    """Return how many of a job's tasks fit a node now."""
    if not _may_use(classes, kind, which):
        return 0
    room = classes[kind, COUNT]
    cores = classes[kind, WANT_CORES]
    if cores > 0 and node[which, SIZE_CORES] >= 0:
        room = min(room, node[which, CORES] // cores)
    mem = classes[kind, WANT_MEM]
    if mem > 0 and node[which, SIZE_MEM] >= 0:
        room = min(room, node[which, MEM] // mem)
    whole = classes[kind, WHOLE]
    part = classes[kind, PART]
    if room <= 0 or (whole == 0 and part == 0):
        return room
    if rows[0, POOLED]:
        return min(room, node[which, TOTAL] // (whole * MILLI + part))
    if part == 0:
        return min(room, node[which, IDLE] // whole)
    fitting = 0
    for device in range(node[which, GPUS]):
        fitting += node[which, DEVICES + device] // part
        if fitting >= room:
            return room
    return fitting


@njit(cache=True)
def _change(node, rows, classes, kind, which, grant, sign):
    """Take (-1) or give back (1) one grant on one node."""
    whole = classes[kind, WHOLE]
    part = classes[kind, PART]
    tasks = 1
    if rows[0, POOLED]:
        if grant > 0:
            tasks = grant // (whole * MILLI + part)
            node[which, DEVICES] += sign * grant
            node[which, TOTAL] += sign * grant
    elif grant != 0:
        each = part if part > 0 else MILLI
        held = 0
        for device in range(node[which, GPUS]):
            if (grant >> device) & 1:
                held += 1
                before = node[which, DEVICES + device]
                after = before + sign * each
                node[which, DEVICES + device] = after
                if before == MILLI:
                    node[which, IDLE] -= 1
                if after == MILLI:
                    node[which, IDLE] += 1
        node[which, TOTAL] += sign * each * held
        if part == 0:
            tasks = held // whole
    if node[which, SIZE_CORES] >= 0:
        node[which, CORES] += sign * tasks * classes[kind, WANT_CORES]
    if node[which, SIZE_MEM] >= 0:
        node[which, MEM] += sign * tasks * classes[kind, WANT_MEM]
    node[which, TASKS] -= sign * tasks
    if classes[kind, GROUP] >= 0:
        node[which, rows[0, HELD] + classes[kind, GROUP]] -= sign * tasks
    node[which, VERSION] += 1


@njit(cache=True)
def _known_score(node, rows, classes, kind, placement, which):
    """Return the score for the class's chunk, computed only where the node has changed."""
    row = rows[0, CACHE] + 2 * classes[kind, SCORED]
    if rows[row, which] != node[which, VERSION] + 1:
        chunk = classes[kind, CHUNK]
        rows[row + 1, which] = score_of(node, rows, classes, kind, placement, which, chunk)
        rows[row, which] = node[which, VERSION] + 1
    return rows[row + 1, which]


@njit(cache=True)
def _tie(node, rows, which):
    if rows[0, TIES] == BY_NAME:
        return node[which, RANK]
    if rows[0, TIES] == BY_DRAW:
        return draw_bits(rows, _NODE_DRAWS + which)
    return which


@njit(cache=True)
def _best(node, rows, classes, kind, placement, tasks):
    """Return the node with room for so many tasks that scores highest, -1 if there is none."""
    best = -1
    best_score = 0
    best_tie = 0
    known = tasks == classes[kind, CHUNK]
    for which in range(len(node)):
        if _room(node, rows, classes, kind, which) < tasks:
            continue
        if known:
            score = _known_score(node, rows, classes, kind, placement, which)
        else:
            score = score_of(node, rows, classes, kind, placement, which, tasks)
        if best >= 0 and score < best_score:
            continue
        tie = _tie(node, rows, which)
        if best < 0 or score > best_score or tie < best_tie:
            best, best_score, best_tie = which, score, tie
    return best


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
            for device in range(node[which, GPUS]):
                if rest > 0 and node[which, DEVICES + device] == MILLI:
                    grant |= 1 << device
                    rest -= 1
        nodes[entry] = which
        gpus[entry] = grant
        _change(node, rows, classes, kind, which, grant, -1)
        return entry + 1
    for task in range(tasks):
        grant = 0
        if part > 0:
            copy_left(node, rows, which)
            cores = cores_of(node, which)
            grant = 1 << device_for(
                node, rows, classes, kind, placement, which, cores, first + task
            )
        nodes[entry] = which
        gpus[entry] = grant
        _change(node, rows, classes, kind, which, grant, -1)
        entry += 1
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
    if count > classes[kind, CAPACITY]:
        return -1
    if rows[0, FILL]:
        taken = _take_filling(node, rows, classes, kind, placement, nodes, gpus, offset)
    elif count <= classes[kind, LARGEST]:
        taken = -1
        which = _best(node, rows, classes, kind, placement, count)
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
    for which in range(len(node)):
        if rest == 0:
            break
        if node[which, TASKS] == 0:
            room = _room(node, rows, classes, kind, which)
            if 0 < room <= rest:
                entry = _grant(
                    node, rows, classes, kind, placement, which, room, count - rest,
                    nodes, gpus, entry,
                )  # fmt: skip
                rest -= room
    if rest > 0:
        # A whole node taken above has less than one task left, so it cannot be picked again.
        which = _best(node, rows, classes, kind, placement, rest)
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
    for which in range(len(node)):
        rest -= _room(node, rows, classes, kind, which)
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
        for which in range(len(node)):
            if _room(node, rows, classes, kind, which) < 1:
                continue
            score = _known_score(node, rows, classes, kind, placement, which)
            if best >= 0 and score < best_score:
                continue
            if last >= 0 and score > last_score:
                continue
            tie = _tie(node, rows, which)
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
        rest -= min(rest, _room(node, rows, classes, kind, best))
    rest = count
    entry = offset
    for place in range(chosen):
        which = rows[CHOSEN, place]
        tasks = min(rest, _room(node, rows, classes, kind, which))
        entry = _grant(
            node, rows, classes, kind, placement, which, tasks, count - rest, nodes, gpus, entry
        )
        rest -= tasks
    return entry - offset


@njit(cache=True)
def give(node, rows, classes, kind, placement, nodes, gpus, begin, end):  # noqa: ARG001 - as nodes'
    """Give back what a job of class ``kind`` holds in entries ``begin`` to ``end``."""
    for entry in range(begin, end):
        _change(node, rows, classes, kind, np.int64(nodes[entry]), gpus[entry], 1)


@njit(cache=True)
def take_there(node, rows, classes, kind, placement, nodes, gpus, begin, end):  # noqa: ARG001
    """Take the grants in entries ``begin`` to ``end``; the reverse of `give`, and no draw."""
    for entry in range(begin, end):
        _change(node, rows, classes, kind, np.int64(nodes[entry]), gpus[entry], -1)


@njit(cache=True)
def is_free(node, rows, classes, kind, placement, nodes, gpus, begin, end):
    """Return whether the grants in entries ``begin`` to ``end`` could be taken, all together."""
    free = True
    take_there(node, rows, classes, kind, placement, nodes, gpus, begin, end)
    for entry in range(begin, end):
        which = nodes[entry]
        if node[which, SIZE_CORES] >= 0 and node[which, CORES] < 0:
            free = False
        if node[which, SIZE_MEM] >= 0 and node[which, MEM] < 0:
            free = False
        for device in range(1 if rows[0, POOLED] else node[which, GPUS]):
            if node[which, DEVICES + device] < 0:
                free = False
    give(node, rows, classes, kind, placement, nodes, gpus, begin, end)
    return free
