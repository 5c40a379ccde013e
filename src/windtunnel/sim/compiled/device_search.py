"""Which nodes with devices have room for a job's tasks, and which of them is best."""

from __future__ import annotations

import numpy as np
from numba import njit

from windtunnel.cluster.devices import MILLI
from windtunnel.sim.compiled.device_scores import draw_bits, score_of
from windtunnel.sim.compiled.device_sets import bit_count, first_idle, is_within
from windtunnel.sim.compiled.device_tables import (
    ALLOWED,
    AMOUNT,
    BEST_FIT,
    BY_DRAW,
    BY_INDEX,
    BY_NAME,
    CACHE,
    CHUNK,
    CORES,
    COUNT,
    DEVICES,
    EMPTIES,
    FILL,
    FIRST_FIT,
    FREE,
    GPUS,
    IDLE,
    IDLERS,
    KINDS,
    LARGEST,
    LEAST_IDLE,
    MASKED,
    MEM,
    MOST_IDLE,
    PART,
    POOLED,
    RANK,
    ROOMIEST,
    SCORED,
    SETS,
    TIES,
    TOTAL,
    VERSION,
    WANT_CORES,
    WANT_MEM,
    WHOLE,
    WITHIN,
    WORDS,
    WORST_FIT,
)
from windtunnel.sim.compiled.nodes import lowest_bit

#: More than there are nodes: a score and a node's index make one number, a node's key.
SPAN = 1 << 21
#: Above every key; its negative is below every key.
NO_KEY = np.int64(1) << 62
#: So few nodes of a word are looked at one by one, more of them all at once.
FEW = 40
#: Random draws from here on are for nodes; see `windtunnel.placements.scored`.
_NODE_DRAWS = 1 << 32


@njit(cache=True)
def may_use(classes, kind, which):
    """Return whether a class's tasks may run on a node at all: its GPU type is acceptable."""
    return (
        not classes[kind, MASKED]
        or (classes[kind, ALLOWED + (which >> 6)] >> (which & 63)) & 1 != 0
    )


@njit(cache=True)
def room_for(node, rows, classes, kind, which):
    """Return how many of a job's tasks fit a node now."""
    if not may_use(classes, kind, which):
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
def has_room(node, rows, classes, kind, which, tasks):
    """Return whether so many of a job's tasks fit a node now.

    As `room_for`, without its divisions but for the shares of several tasks.
    """
    if not may_use(classes, kind, which):
        return False
    if node[CORES, which] < tasks * classes[kind, WANT_CORES]:
        return False
    if node[MEM, which] < tasks * classes[kind, WANT_MEM]:
        return False
    whole = classes[kind, WHOLE]
    part = classes[kind, PART]
    if rows[0, POOLED]:
        return node[TOTAL, which] >= tasks * (whole * MILLI + part)
    if part == 0:
        return node[IDLE, which] >= tasks * whole
    if node[ROOMIEST, which] < part or node[TOTAL, which] < tasks * part:
        return False
    if tasks == 1:
        return True
    fitting = 0
    for device in range(node[GPUS, which]):
        fitting += node[DEVICES + device, which] // part
        if fitting >= tasks:
            return True
    return False


@njit(cache=True)
def sums_allow(rows, classes, kind):
    """Return whether sums allow a job to fit: a quick no where they do not."""
    if classes[kind, AMOUNT] > rows[0, FREE]:
        return False
    if rows[0, FILL] or classes[kind, COUNT] <= classes[kind, LARGEST]:
        return True
    return rows[0, IDLERS] >= classes[kind, EMPTIES]


@njit(cache=True)
def note_freed(freed, num_freed, nodes, begin, end):
    """Note the nodes of entries ``begin`` to ``end``, while there is room; return how many are."""
    last = -1
    for entry in range(begin, end):
        if nodes[entry] != last and num_freed < len(freed):
            last = nodes[entry]
            freed[num_freed] = last
            num_freed += 1
    return num_freed


@njit(cache=True)
def gpus_may_fit(node, rows, classes, kind, freed, num_freed):
    """Return whether `may_fit` may say yes of a class or of another one that asks for such GPUs."""
    if classes[kind, AMOUNT] > rows[0, FREE]:
        return False
    if rows[0, FILL] or classes[kind, COUNT] > 1 or classes[kind, AMOUNT] == 0:
        return True
    for entry in range(num_freed):
        which = freed[entry]
        if not may_use(classes, kind, which):
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
    if not sums_allow(rows, classes, kind):
        return False
    if rows[0, FILL] or classes[kind, COUNT] > classes[kind, LARGEST]:
        return True
    for entry in range(num_freed):
        if has_room(node, rows, classes, kind, freed[entry], classes[kind, COUNT]):
            return True
    return False


@njit(cache=True)
def known_score(node, rows, classes, kind, placement, which):
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
def tie_of(node, rows, which):
    """Return what decides between nodes of one score; lower wins."""
    if rows[0, TIES] == BY_NAME:
        return node[RANK, which]
    if rows[0, TIES] == BY_DRAW:
        return draw_bits(rows, _NODE_DRAWS + which)
    return which


@njit(cache=True)
def _score_column(rows, placement):
    """Return the column of the table that scores nodes, and 1, -1 or 0: lowest, highest, any."""
    score = TOTAL
    if placement in (LEAST_IDLE, MOST_IDLE) and not rows[0, POOLED]:
        score = IDLE
    sign = np.int64(1)
    if placement == FIRST_FIT:
        sign = np.int64(0)
    elif placement in (WORST_FIT, MOST_IDLE):
        sign = np.int64(-1)
    return score, sign


@njit(cache=True)
def _lowest_key(node, column, want, cores, mem, score, sign, first, bits):
    """Return the lowest key of the nodes from ``first`` on, a bit each, that have what is wanted.

    Without a branch, so that the compiler turns the loop into vector instructions.
    """
    best = NO_KEY
    for which in range(first, min(node.shape[1], first + 64)):
        key = sign * node[score, which] * SPAN + which
        fits = (
            (node[column, which] >= want)
            & (node[CORES, which] >= cores)
            & (node[MEM, which] >= mem)
            & ((bits >> (which & 63)) & 1 != 0)
        )
        best = min(best, key if fits else NO_KEY)
    return best


@njit(cache=True)
def _plain_best(node, rows, classes, kind, placement, tasks):
    """Return what `best_node` does, for scores that are a column of the table, ties by index.

    A node's key is its score and its index: the lowest key wins. Everything that nodes are compared
    with is read first, and nothing is called for a node, but where the shares of several tasks must
    be looked at device by device.
    """
    whole = classes[kind, WHOLE]
    part = classes[kind, PART]
    several = tasks > 1 and part > 0 and not rows[0, POOLED]
    column = TOTAL
    want = tasks * (whole * MILLI + part)
    if part > 0 and not several and not rows[0, POOLED]:
        column, want = ROOMIEST, part
    elif whole > 0 and not rows[0, POOLED]:
        column, want = IDLE, tasks * whole
    cores = tasks * classes[kind, WANT_CORES]
    mem = tasks * classes[kind, WANT_MEM]
    score, sign = _score_column(rows, placement)
    masked = classes[kind, MASKED]
    words = rows[0, WORDS]
    best = NO_KEY
    # Of nodes of one kind that run nothing the first one is as good as any.
    for own in range(rows[0, KINDS]):
        which = first_idle(rows, own)
        if (
            which >= 0
            and node[column, which] >= want
            and node[CORES, which] >= cores
            and node[MEM, which] >= mem
            and may_use(classes, kind, which)
            and (not several or has_room(node, rows, classes, kind, which, tasks))
        ):
            best = min(best, sign * node[score, which] * SPAN + which)
    # No node with room has a lower score than one that the tasks fill; the first one of these wins.
    enough = NO_KEY if placement == FIRST_FIT else -NO_KEY
    if placement == BEST_FIT:
        enough = (tasks * (whole * MILLI + part) + 1) * SPAN
    begin = words if whole > 0 or part > 0 else 0  # the set `WITH_GPUS`, or `IN_USE`
    for word in range(words):
        bits = rows[SETS, begin + word] & rows[SETS, WITHIN * words + word]
        if bits == 0:
            continue
        if best < enough and (best & (SPAN - 1)) >> 6 < word:
            break
        if masked:
            bits &= classes[kind, ALLOWED + word]
        if not several and bit_count(bits) > FEW:
            found = _lowest_key(
                node, column, want, cores, mem, score, sign, word << 6, bits
            )  # fmt: skip
            best = min(best, found)
            continue
        while bits != 0:
            which = (word << 6) + lowest_bit(bits)
            bits &= bits - 1
            key = sign * node[score, which] * SPAN + which
            if (
                key < best
                and node[column, which] >= want
                and node[CORES, which] >= cores
                and node[MEM, which] >= mem
                and (not several or has_room(node, rows, classes, kind, which, tasks))
            ):
                best = key
    return best & (SPAN - 1) if best < NO_KEY else np.int64(-1)


@njit(cache=True)
def best_node(node, rows, classes, kind, placement, tasks):
    """Return the node of the set `WITHIN` with room for the tasks that scores highest, or -1."""
    if placement <= MOST_IDLE and rows[0, TIES] == BY_INDEX:
        return _plain_best(node, rows, classes, kind, placement, tasks)
    best = -1
    best_score = 0
    best_tie = 0
    known = tasks == classes[kind, CHUNK]
    for which in range(node.shape[1]):
        if not is_within(rows, which) or not has_room(node, rows, classes, kind, which, tasks):
            continue
        if known:
            score = known_score(node, rows, classes, kind, placement, which)
        else:
            score = score_of(node, rows, classes, kind, placement, which, tasks)
        if best >= 0 and score < best_score:
            continue
        tie = tie_of(node, rows, which)
        if best < 0 or score > best_score or tie < best_tie:
            best, best_score, best_tie = which, score, tie
    return best
