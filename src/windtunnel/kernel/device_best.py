"""Which node with devices is best for a job's tasks."""

from __future__ import annotations

import cython

from windtunnel.kernel.bits import lowest_bit, without_lowest
from windtunnel.kernel.device_scores import device_known_score, device_score
from windtunnel.kernel.device_scoring import (
    BY_ASKED,
    BY_FIRST_FIT,
    LAST_BY_LOAD,
    TIES_BY_DRAW,
    TIES_BY_INDEX,
    TIES_BY_NAME,
)
from windtunnel.kernel.device_search import DeviceSearch
from windtunnel.kernel.device_state import SET_IN_USE
from windtunnel.kernel.marks import compiled

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
    search.which = -1
    if alike:
        # Of nodes of one kind that run nothing the first one is as good as any.
        for own in range(search.state.cluster.kinds):
            which = search.first_idle(kind, own)
            if which >= 0:
                device_look_at(search, kind, which, tasks)
    for word in range(words):
        if alike and search.scoring.code == BY_FIRST_FIT and 0 <= search.which < word << 6:
            break  # the first one wins
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
    looks_at_job: cython.bint = search.scoring.code > LAST_BY_LOAD
    score: cython.longlong = 0
    if not looks_at_job:
        score = device_known_score(search, kind, which)
        if not device_is_better(search, which, score):
            return
    if not search.fits(kind, which, tasks):
        return
    if looks_at_job:
        if tasks == search.kinds.chunk[kind]:
            score = device_known_score(search, kind, which)
        else:
            score = device_score(search, kind, which, tasks)
        if not device_is_better(search, which, score):
            return
    search.which, search.score, search.tie = which, score, device_tie(search, which)


@compiled
def device_is_better(
    search: DeviceSearch, which: cython.int, score: cython.longlong
) -> cython.bint:
    """Return whether a node is better than the best one so far, if there is any."""
    if search.which < 0 or score != search.score:
        return search.which < 0 or score > search.score
    tie: cython.longlong = device_tie(search, which)
    return tie < search.tie or (tie == search.tie and which < search.which)


@compiled
def device_tie(search: DeviceSearch, which: cython.int) -> cython.longlong:
    """Return what decides between nodes of one score; lower wins."""
    if search.scoring.ties == TIES_BY_NAME:
        return search.state.cluster.rank[which]
    if search.scoring.ties == TIES_BY_DRAW:
        return search.scoring.draw_for(NODE_DRAWS + which)
    return which
