"""How a gang is laid out over nodes with devices: the twin of `windtunnel.placements.layouts`."""

from __future__ import annotations

from numba import njit

from windtunnel.sim.compiled.device_grants import give, grant
from windtunnel.sim.compiled.device_search import best_node, known_score, room_for, tie_of
from windtunnel.sim.compiled.device_sets import first_idle, is_within
from windtunnel.sim.compiled.device_tables import (
    CHOSEN,
    COUNT,
    FIRST_KIND,
    IDLE_KINDS,
    KIND,
    KINDS,
    OF_NO_KIND,
    SETS,
    TASKS,
    WITHIN,
    WORDS,
)
from windtunnel.sim.compiled.nodes import lowest_bit


@njit(cache=True)
def take_idle(node, rows, classes, kind, placement, nodes, gpus, entry, rest):
    """Let a gang take whole nodes of the set `WITHIN` that run nothing, lowest index first.

    Args:
        node: free state.
        rows: ditto.
        classes: demand classes.
        kind: the class.
        placement: its code.
        nodes: where the grants' nodes are written.
        gpus: where the grants are.
        entry: next free entry of both.
        rest: how many of the gang's tasks are still to be placed.

    Returns:
        The next free entry, and the tasks that remain.
    """
    count = classes[kind, COUNT]
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
        bits &= rows[SETS, WITHIN * words + word]
        while bits != 0:
            which = (word << 6) + lowest_bit(bits)
            bits &= bits - 1
            own = node[KIND, which]
            if own >= 0:
                room = rows[IDLE_KINDS, own]
            else:
                room = 0 if node[TASKS, which] else room_for(node, rows, classes, kind, which)
            if 0 < room <= rest:
                entry = grant(
                    node, rows, classes, kind, placement, which, room, count - rest,
                    nodes, gpus, entry,
                )  # fmt: skip
                rest -= room
    return entry, rest


@njit(cache=True)
def take_gang(node, rows, classes, kind, placement, nodes, gpus, offset):
    """Place a gang larger than a node within the set `WITHIN`; result as of `devices.take`."""
    count = classes[kind, COUNT]
    entry, rest = take_idle(node, rows, classes, kind, placement, nodes, gpus, offset, count)
    if rest > 0:
        # A whole node taken above has less than one task left, so it cannot be picked again.
        which = best_node(node, rows, classes, kind, placement, rest)
        if which < 0:
            give(node, rows, classes, kind, placement, nodes, gpus, offset, entry)
            return -1
        entry = grant(
            node, rows, classes, kind, placement, which, rest, count - rest, nodes, gpus, entry
        )
    return entry - offset


@njit(cache=True)
def room_within(node, rows, classes, kind):
    """Return how many of a job's tasks fit the nodes of the set `WITHIN`, at most all of them."""
    count = classes[kind, COUNT]
    room = 0
    for which in range(node.shape[1]):
        if is_within(rows, which):
            room += room_for(node, rows, classes, kind, which)
            if room >= count:
                return count
    return room


@njit(cache=True)
def fill_nodes(node, rows, classes, kind, placement, nodes, gpus, entry, rest):
    """Put tasks on the nodes of the set `WITHIN`, best scores first, as many on each as fit.

    The order is that of the scores before anything is placed, so nothing is until it is known.
    Arguments and result as of `take_idle`.
    """
    count = classes[kind, COUNT]
    left = rest
    chosen = 0
    last = -1
    last_score = 0
    last_tie = 0
    while left > 0:
        best = -1
        best_score = 0
        best_tie = 0
        for which in range(node.shape[1]):
            if not is_within(rows, which) or room_for(node, rows, classes, kind, which) < 1:
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
        if best < 0:
            break
        rows[CHOSEN, chosen] = best
        chosen += 1
        last, last_score, last_tie = best, best_score, best_tie
        left -= min(left, room_for(node, rows, classes, kind, best))
    for place in range(chosen):
        which = rows[CHOSEN, place]
        tasks = min(rest, room_for(node, rows, classes, kind, which))
        entry = grant(
            node, rows, classes, kind, placement, which, tasks, count - rest, nodes, gpus, entry
        )
        rest -= tasks
    return entry, rest


@njit(cache=True)
def take_filling(node, rows, classes, kind, placement, nodes, gpus, offset):
    """Place a gang within the set `WITHIN`, nodes filled in the order of their scores."""
    count = classes[kind, COUNT]
    if room_within(node, rows, classes, kind) < count:
        return -1
    entry, _ = fill_nodes(node, rows, classes, kind, placement, nodes, gpus, offset, count)
    return entry - offset
