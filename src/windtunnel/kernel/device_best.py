"""Which node with devices is best for a job's tasks."""

from __future__ import annotations

import cython

from windtunnel.kernel.bits import lowest_bit, without_lowest
from windtunnel.kernel.device_kinds import DEVICE_MILLI
from windtunnel.kernel.device_scores import device_known_score, device_score
from windtunnel.kernel.device_scoring import (
    BY_ASKED,
    BY_BEST_FIT,
    BY_LEAST_IDLE,
    BY_MOST_IDLE,
    BY_WORST_FIT,
    LAST_BY_LOAD,
    LAST_PLAIN,
    TIES_BY_DRAW,
    TIES_BY_INDEX,
    TIES_BY_NAME,
    DeviceScoring,
)
from windtunnel.kernel.device_search import DeviceSearch
from windtunnel.kernel.device_state import SET_IN_USE, DeviceState
from windtunnel.kernel.marks import compiled

#: More than there are nodes: a score and a node's index make one number, a node's key.
DEVICE_SPAN = cython.declare(cython.longlong, 1 << 21)
#: Above every key; its negative is below every key.
DEVICE_NO_KEY = cython.declare(cython.longlong, 1 << 62)
#: Random draws from here on are for nodes; see `windtunnel.placements.scored`.
NODE_DRAWS = cython.declare(cython.longlong, 1 << 32)


@compiled
def device_best(search: DeviceSearch, kind: cython.int, tasks: cython.longlong) -> cython.int:
    """Return the node that is looked at that fits the tasks and scores highest, or -1."""
    alike: cython.bint = search.scoring.ties == TIES_BY_INDEX
    words: cython.int = search.state.cluster.words
    if search.scoring.code == BY_ASKED:
        alike = False  # it may go by a node's name, number or rack
    row = search.candidates(kind, tasks)
    if row == -2:
        return -1
    if search.scoring.code <= LAST_PLAIN and alike:
        return device_plain_best(search, kind, tasks, row)
    search.which = -1
    if alike:
        # Of nodes of one kind that run nothing the first one is as good as any.
        for own in range(search.state.cluster.kinds):
            which = search.first_idle(kind, own)
            if which >= 0:
                device_look_at(search, kind, which, tasks)
    for word in range(words):
        found = search.word_of(kind, row, word)
        if alike:
            found &= search.state.sets[SET_IN_USE * words + word]
        while found != 0:
            which = (word << 6) + lowest_bit(found)
            found = without_lowest(found)
            device_look_at(search, kind, which, tasks)
    return search.which


@compiled
def device_look_at(
    search: DeviceSearch, kind: cython.int, which: cython.int, tasks: cython.longlong
) -> cython.void:
    """Take a node for the best one if the tasks fit and it is better."""
    if not search.fits(kind, which, tasks):
        return
    if (
        tasks == search.kinds.chunk[kind]
        or LAST_PLAIN < search.scoring.code <= LAST_BY_LOAD  # of these no job matters
    ):
        score = device_known_score(search, kind, which)
    else:
        score = device_score(search, kind, which, tasks)
    if search.which >= 0 and score < search.score:
        return
    tie = device_tie(search, which)
    if (
        search.which < 0
        or score > search.score
        or tie < search.tie
        or (tie == search.tie and which < search.which)
    ):
        search.which, search.score, search.tie = which, score, tie


@compiled
def device_tie(search: DeviceSearch, which: cython.int) -> cython.longlong:
    """Return what decides between nodes of one score; lower wins."""
    if search.scoring.ties == TIES_BY_NAME:
        return search.state.cluster.rank[which]
    if search.scoring.ties == TIES_BY_DRAW:
        return search.scoring.draw_for(NODE_DRAWS + which)
    return which


# Scores that are a column of the tables, ties by index.


@compiled
def device_key(state: DeviceState, scoring: DeviceScoring, which: cython.int) -> cython.longlong:
    """Return the key of a node: the lowest key wins."""
    score: cython.longlong = 0
    if scoring.code == BY_BEST_FIT:
        score = state.total[which]
    elif scoring.code == BY_WORST_FIT:
        score = -state.total[which]
    elif scoring.code in (BY_LEAST_IDLE, BY_MOST_IDLE):
        score = state.total[which] if state.cluster.pooled else state.idle[which]
        if scoring.code == BY_MOST_IDLE:
            score = -score
    return cython.cast(cython.longlong, score) * DEVICE_SPAN + which


@compiled
def device_best_key(
    search: DeviceSearch, kind: cython.int, tasks: cython.longlong
) -> cython.longlong:
    """Return a key below which no node that fits the tasks can score better."""
    score: cython.longlong = 0
    milli: cython.longlong = tasks * search.kinds.milli[kind]
    code: cython.int = search.scoring.code
    pooled: cython.bint = search.state.cluster.pooled
    if code == BY_BEST_FIT or (code == BY_LEAST_IDLE and pooled):
        score = milli
    elif code == BY_LEAST_IDLE and search.kinds.part[kind] == 0:
        score = milli // DEVICE_MILLI
    elif code == BY_WORST_FIT or (code == BY_MOST_IDLE and pooled):
        score = -search.state.cluster.max_milli
    elif code == BY_MOST_IDLE:
        score = -search.state.cluster.top
    return (score + 1) * DEVICE_SPAN


@compiled
def device_plain_best(
    search: DeviceSearch, kind: cython.int, tasks: cython.longlong, row: cython.longlong
) -> cython.int:
    """Return what `device_best` does, of the candidates from a place on in ``state.sets``."""
    best: cython.longlong = DEVICE_NO_KEY
    enough: cython.longlong = device_best_key(search, kind, tasks)
    words: cython.int = search.state.cluster.words
    # Of nodes of one kind that run nothing the first one is as good as any.
    for own in range(search.state.cluster.kinds):
        which = search.first_idle(kind, own)
        if which >= 0 and search.fits(kind, which, tasks):
            best = min(best, device_key(search.state, search.scoring, which))
    row = max(row, SET_IN_USE * words)  # all that are in use, where no GPUs are asked for
    for word in range(words):
        found = search.word_of(kind, row, word) & search.state.sets[SET_IN_USE * words + word]
        if found == 0:
            continue
        if best < enough and ((best & (DEVICE_SPAN - 1)) >> 6) < word:
            break  # the first of those that cannot be bettered wins
        while found != 0:
            which = (word << 6) + lowest_bit(found)
            found = without_lowest(found)
            key = device_key(search.state, search.scoring, which)
            if key < best and search.fits(kind, which, tasks):
                best = key
    return -1 if best == DEVICE_NO_KEY else cython.cast(cython.int, best & (DEVICE_SPAN - 1))
