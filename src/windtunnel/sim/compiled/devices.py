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
    device_for,
    draw_bits,
    score_of,
)
from windtunnel.sim.compiled.device_tables import (
    ALLOWED,
    AMOUNT,
    BEST_FIT,
    BY_DRAW,
    BY_INDEX,
    BY_NAME,
    CACHE,
    CAPACITY,
    CHOSEN,
    CHUNK,
    CORES,
    COUNT,
    DEVICES,
    DRAWS,
    EMPTIES,
    FILL,
    FIRST_FIT,
    FREE,
    GPUS,
    GROUP,
    HELD,
    IDLE,
    IDLERS,
    LARGEST,
    LEAST_IDLE,
    LEFT,
    MASKED,
    MEM,
    MOST_IDLE,
    PART,
    POOLED,
    RANK,
    ROOMIEST,
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
    WORST_FIT,
)
from windtunnel.sim.compiled.nodes import lowest_bit

#: More than there are nodes: a score and a node's index make one number.
SPAN = 1 << 21
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
    if cores > 0:
        room = min(room, node[CORES, which] // cores)
    mem = classes[kind, WANT_MEM]
    if mem > 0:
        room = min(room, node[MEM, which] // mem)
    whole = classes[kind, WHOLE]
    part = classes[kind, PART]
    if room <= 0 or (whole == 0 and part == 0):
        return room
    if rows[0, POOLED]:
        return min(room, node[TOTAL, which] // (whole * MILLI + part))
    if part == 0:
        return min(room, node[IDLE, which] // whole)
    fitting = 0
    for device in range(node[GPUS, which]):
        fitting += node[DEVICES + device, which] // part
        if fitting >= room:
            return room
    return fitting


@njit(cache=True)
def _may_fit(rows, classes, kind):
    """Return whether sums allow a job to fit: a quick no where they do not."""
    if classes[kind, AMOUNT] > rows[0, FREE]:
        return False
    if rows[0, FILL] or classes[kind, COUNT] <= classes[kind, LARGEST]:
        return True
    return rows[0, IDLERS] >= classes[kind, EMPTIES]


@njit(cache=True)
def gpus_may_fit(node, rows, classes, kind, freed, num_freed):
    """Return whether `may_fit` may say yes of a class or of another one that asks for such GPUs."""
    if classes[kind, AMOUNT] > rows[0, FREE]:
        return False
    if rows[0, FILL] or classes[kind, COUNT] > 1 or classes[kind, AMOUNT] == 0:
        return True
    for entry in range(num_freed):
        which = freed[entry]
        if not _may_use(classes, kind, which):
            continue
        if rows[0, POOLED]:
            if node[TOTAL, which] >= classes[kind, AMOUNT]:
                return True
        elif classes[kind, PART] > 0:
            if node[ROOMIEST, which] >= classes[kind, PART]:
                return True
        elif node[IDLE, which] >= classes[kind, WHOLE]:
            return True
    return False


@njit(cache=True)
def may_fit(node, rows, classes, kind, freed, num_freed):
    """Return whether a class that did not fit may do so now, after room was given back.

    Args:
        node: free state.
        rows: ditto.
        classes: demand classes.
        kind: the class.
        freed: nodes on which room was given back since it did not fit.
        num_freed: how many of them.
    """
    if not _may_fit(rows, classes, kind):
        return False
    if rows[0, FILL] or classes[kind, COUNT] > classes[kind, LARGEST]:
        return True
    for entry in range(num_freed):
        if _room(node, rows, classes, kind, freed[entry]) >= classes[kind, COUNT]:
            return True
    return False


@njit(cache=True)
def _find_roomiest(node, which):
    largest = np.int64(0)
    for device in range(node[GPUS, which]):
        largest = max(largest, node[DEVICES + device, which])
    node[ROOMIEST, which] = largest


@njit(cache=True)
def _change(node, rows, classes, kind, which, grant, sign):
    """Take (-1) or give back (1) one grant on one node."""
    whole = classes[kind, WHOLE]
    part = classes[kind, PART]
    tasks = 1
    if rows[0, POOLED]:
        if grant > 0:
            tasks = grant // (whole * MILLI + part)
            node[DEVICES, which] += sign * grant
            node[TOTAL, which] += sign * grant
            rows[0, FREE] += sign * grant
    elif part > 0:
        device = lowest_bit(grant)
        before = node[DEVICES + device, which]
        after = before + sign * part
        node[DEVICES + device, which] = after
        if before == MILLI:
            node[IDLE, which] -= 1
        if after == MILLI:
            node[IDLE, which] += 1
        node[TOTAL, which] += sign * part
        rows[0, FREE] += sign * part
        if after > node[ROOMIEST, which]:
            node[ROOMIEST, which] = after
        elif before == node[ROOMIEST, which]:
            _find_roomiest(node, which)
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


@njit(cache=True)
def _known_score(node, rows, classes, kind, placement, which):
    """Return the score for the class's chunk, computed only where the node has changed."""
    if rows[0, CACHE] == 0:
        chunk = classes[kind, CHUNK]
        return score_of(node, rows, classes, kind, placement, which, chunk)
    row = rows[0, CACHE] + 2 * classes[kind, SCORED]
    if rows[row, which] != node[VERSION, which] + 1:
        chunk = classes[kind, CHUNK]
        rows[row + 1, which] = score_of(node, rows, classes, kind, placement, which, chunk)
        rows[row, which] = node[VERSION, which] + 1
    return rows[row + 1, which]


@njit(cache=True)
def _tie(node, rows, which):
    if rows[0, TIES] == BY_NAME:
        return node[RANK, which]
    if rows[0, TIES] == BY_DRAW:
        return draw_bits(rows, _NODE_DRAWS + which)
    return which


@njit(cache=True)
def _plain_best(node, rows, classes, kind, placement, tasks):
    """Return what `_best` does, for scores that are a column of the table, ties by index.

    The last loop has no branch, and so the compiler turns it into vector instructions.
    """
    part = classes[kind, PART]
    several = part > 0 and tasks > 1 and not rows[0, POOLED]
    column = TOTAL
    want = np.int64(0)
    if rows[0, POOLED]:
        want = tasks * (classes[kind, WHOLE] * MILLI + part)
    elif several:
        want = tasks * part
    elif part > 0:
        column, want = ROOMIEST, part
    elif classes[kind, WHOLE] > 0:
        column, want = IDLE, tasks * classes[kind, WHOLE]
    cores = tasks * classes[kind, WANT_CORES]
    mem = tasks * classes[kind, WANT_MEM]
    score = TOTAL
    if placement in (LEAST_IDLE, MOST_IDLE) and not rows[0, POOLED]:
        score = IDLE
    sign = np.int64(1)
    if placement == FIRST_FIT:
        sign = np.int64(0)
    elif placement in (WORST_FIT, MOST_IDLE):
        sign = np.int64(-1)
    none = np.int64(1) << 62
    # No node with room has a lower score than one that the tasks fill; the first one of these wins.
    enough = none if placement == FIRST_FIT else -none
    if placement == BEST_FIT:
        enough = (tasks * (classes[kind, WHOLE] * MILLI + part) + 1) * SPAN
    best = none
    masked = classes[kind, MASKED]
    count = node.shape[1]
    for word in range((count + 63) >> 6):
        bits = classes[kind, ALLOWED + word] if masked else np.int64(-1)
        if bits == 0:
            continue
        first, last = word << 6, min(count, (word + 1) << 6)
        if several:  # which devices the shares of several tasks fit must be looked at one by one
            for which in range(first, last):
                key = sign * node[score, which] * SPAN + which
                if (
                    key < best
                    and node[column, which] >= want
                    and node[CORES, which] >= cores
                    and node[MEM, which] >= mem
                    and node[ROOMIEST, which] >= part
                    and _room(node, rows, classes, kind, which) >= tasks
                ):
                    best = key
        else:
            for which in range(first, last):
                fits = (
                    (node[column, which] >= want)
                    & (node[CORES, which] >= cores)
                    & (node[MEM, which] >= mem)
                    & ((bits >> (which & 63)) & 1 != 0)
                )
                key = sign * node[score, which] * SPAN + which
                best = min(best, key if fits else none)
        if best < enough:
            break
    return best & (SPAN - 1) if best < none else np.int64(-1)


@njit(cache=True)
def _best(node, rows, classes, kind, placement, tasks):
    """Return the node with room for so many tasks that scores highest, -1 if there is none."""
    if placement <= MOST_IDLE and rows[0, TIES] == BY_INDEX:
        return _plain_best(node, rows, classes, kind, placement, tasks)
    best = -1
    best_score = 0
    best_tie = 0
    known = tasks == classes[kind, CHUNK]
    for which in range(node.shape[1]):
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
            for device in range(node[GPUS, which]):
                if rest > 0 and node[DEVICES + device, which] == MILLI:
                    grant |= 1 << device
                    rest -= 1
        nodes[entry] = which
        gpus[entry] = grant
        _change(node, rows, classes, kind, which, grant, -1)
        return entry + 1
    if part > 0:
        copy_left(node, rows, which)
    for task in range(tasks):
        grant = 0
        if part > 0:
            cores = node[CORES, which]
            device = device_for(node, rows, classes, kind, placement, which, cores, first + task)
            rows[LEFT, device] -= part
            grant = 1 << device
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
    if count > classes[kind, CAPACITY] or not _may_fit(rows, classes, kind):
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
    for which in range(node.shape[1]):
        if rest == 0:
            break
        if node[TASKS, which] == 0:
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
    for which in range(node.shape[1]):
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
        for which in range(node.shape[1]):
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
        if node[CORES, which] < 0 or node[MEM, which] < 0:
            free = False
        for device in range(1 if rows[0, POOLED] else node[GPUS, which]):
            if node[DEVICES + device, which] < 0:
                free = False
    give(node, rows, classes, kind, placement, nodes, gpus, begin, end)
    return free
