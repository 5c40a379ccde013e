"""EASY backfilling: the twin of ``HeldEasyQueue``, and, without a plan, of ``EasyQueue``."""

from __future__ import annotations

from collections import namedtuple
from typing import TYPE_CHECKING

import numpy as np
from numba import njit

from windtunnel.sim.compiled.disrupted.closing import (
    close,
    give_back,
    is_open,
    place,
    take_known,
    untake,
)
from windtunnel.sim.compiled.disrupted.instants import next_decision
from windtunnel.sim.compiled.disrupted.stays import start
from windtunnel.sim.compiled.disrupted.tables import (
    CAME,
    CLASS,
    DECIDE,
    ESTIMATE,
    EXPECTED,
    KEPT_ROWS,
    KIND,
    LEFT,
    NEXT_PLANNED,
    NOW,
    PLACEMENT,
    POINTS,
    POSITION,
    SEGMENT,
    SEGMENTS,
    SHORTEST,
    STATE,
    WAITS,
    Room,
)
from windtunnel.sim.compiled.room import forget_scores
from windtunnel.sim.compiled.sorted_lists import insert_int, insert_time, remove_time

if TYPE_CHECKING:
    from windtunnel.sim.compiled.disrupted.tables import State

#: ``queue``: places in the order of the waiting jobs, ascending; ``shortest``: the same by
#: (estimate, arrival), with the job at each such place (``estimated``) and each job's place;
#: ``expected`` and ``expecting``: running jobs by expected end; ``refused``: at which decision a
#: class did not fit; ``shadow``: what is expected to be free.
Waiting = namedtuple(  # noqa: PYI024 - as State
    "Waiting", "queue shortest estimated by_estimate expected expecting refused shadow sizes"
)
#: Numbers in ``sizes``: waiting jobs, those in the list by estimate, running jobs.
QUEUED, LISTED, EXPECTING = range(3)


def waiting(state: State, estimated: np.ndarray, by_estimate: np.ndarray) -> Waiting:
    """Return empty lists.

    Args:
        state: the run.
        estimated: Int array (m,), jobs by (estimate, arrival).
        by_estimate: Int array (m,), each job's place among them.
    """
    count, room = len(state.order), state.room
    return Waiting(
        np.empty(count, dtype=np.int64),
        np.empty(count, dtype=np.int64),
        estimated,
        by_estimate,
        np.empty(count),
        np.empty(count, dtype=np.int64),
        np.full(int(state.ints[:, CLASS].max(initial=-1)) + 1, -1, dtype=np.int64),
        Room(
            room.node.copy(),
            room.rows[: state.rules[KEPT_ROWS]].copy(),
            room.classes,
            room.saved.copy(),
            room.shut.copy(),
            room.sums.copy(),
        ),
        np.zeros(3, dtype=np.int64),
    )


@njit(cache=True)
def fly(s, w):
    """Fly on; return why the kernel stopped."""
    while True:
        code = next_decision(s)
        if code != DECIDE:
            return code
        _note(s, w)
        _decide(s, w)


@njit(cache=True)
def _note(s, w):
    """Forget the jobs that left, queue those that came."""
    for index in range(s.counts[LEFT]):
        job = s.left[index]
        end = s.secs[job, EXPECTED]
        w.sizes[EXPECTING] = remove_time(w.expected, w.expecting, w.sizes[EXPECTING], end, job)
    for index in range(s.counts[CAME]):
        job = s.came[index]
        w.sizes[QUEUED] = insert_int(w.queue, 0, w.sizes[QUEUED], s.ints[job, POSITION])
        if s.rules[SHORTEST]:
            w.sizes[LISTED] = insert_int(w.shortest, 0, w.sizes[LISTED], w.by_estimate[job])


@njit(cache=True)
def _start(s, w, job, taken):
    now = s.seconds[NOW]
    start(s, job, now, taken)
    end = now + s.secs[job, ESTIMATE]
    s.secs[job, EXPECTED] = end
    w.sizes[EXPECTING] = insert_time(w.expected, w.expecting, w.sizes[EXPECTING], end, job)


@njit(cache=True)
def _decide(s, w):
    started = 0
    while started < w.sizes[QUEUED]:
        job = s.order[w.queue[started]]
        taken = _place(s, job)
        if taken < 0:
            break
        _start(s, w, job, taken)
        started += 1
    if w.sizes[QUEUED] - started > 1 and _backfill(s, w, started):
        started += 1
    if started > 0:
        w.sizes[QUEUED] = _still_waiting(s, w.queue, s.order, w.sizes[QUEUED])
        w.sizes[LISTED] = _still_waiting(s, w.shortest, w.estimated, w.sizes[LISTED])


@njit(cache=True)
def _place(s, job):
    offset = s.offsets[s.counts[SEGMENTS]]
    return place(s, s.room, job, s.seconds[NOW], s.nodes, s.gpus, offset)


@njit(cache=True)
def _still_waiting(s, places, job_at, size):
    """Keep the places of jobs that wait; return how many."""
    write = 0
    for index in range(size):
        if s.ints[job_at[places[index]], STATE] == WAITS:
            places[write] = places[index]
            write += 1
    return write


@njit(cache=True)
def _backfill(s, w, first):
    """Start jobs behind the head that do not delay it; return whether there were any."""
    now = s.seconds[NOW]
    head = s.order[w.queue[first]]
    deadline = _reserve(s, w, head)
    # With nothing planned ahead, what one job of a class is refused the others are.
    alike = s.counts[NEXT_PLANNED] == len(s.planned_at)
    any_started = False
    size = w.sizes[LISTED] if s.rules[SHORTEST] else w.sizes[QUEUED]
    for index in range(0 if s.rules[SHORTEST] else first + 1, size):
        job = w.estimated[w.shortest[index]] if s.rules[SHORTEST] else s.order[w.queue[index]]
        if job == head or s.ints[job, STATE] != WAITS:
            continue
        kind = s.ints[job, CLASS]
        if alike and w.refused[kind] == s.counts[POINTS]:
            continue
        taken = _place(s, job)
        if taken < 0:
            w.refused[kind] = s.counts[POINTS]
            continue
        if now + s.secs[job, ESTIMATE] > deadline:
            begin = s.offsets[s.counts[SEGMENTS]]
            kind = s.ints[job, KIND]
            if not is_open(s, w.shadow, job, begin, begin + taken):
                untake(s, kind, begin, begin + taken)
                continue
            take_known(s, w.shadow, kind, s.nodes, s.gpus, begin, begin + taken)
        _start(s, w, job, taken)
        any_started = True
    return any_started


@njit(cache=True)
def _reserve(s, w, head):
    """Return the head's shadow time, s; leave in the shadow what is free beside it then."""
    room, now = w.shadow, s.seconds[NOW]
    room.node[:] = s.room.node
    room.rows[:] = s.room.rows[: len(room.rows)]
    room.saved[:] = s.room.saved
    room.shut[:] = s.room.shut
    room.sums[:] = s.room.sums
    forget_scores(room.rows, s.rules[PLACEMENT])
    released, change = 0, s.counts[NEXT_PLANNED]
    running, changes = w.sizes[EXPECTING], len(s.planned_at)
    while released < running or change < changes:
        time = np.inf
        if released < running:
            time = max(w.expected[released], now)
        if change < changes and s.planned_at[change] < time:
            time = s.planned_at[change]
        while released < running and max(w.expected[released], now) <= time:
            job = w.expecting[released]
            segment = s.ints[job, SEGMENT]
            give_back(
                s, room, s.ints[job, KIND], s.nodes, s.gpus,
                s.offsets[segment], s.offsets[segment + 1],
            )  # fmt: skip
            released += 1
        while change < changes and s.planned_at[change] <= time:
            close(s, room, s.planned[change, 1], s.planned[change, 0] != 0)
            change += 1
        if place(s, room, head, time, s.spare_nodes, s.spare_gpus, 0) >= 0:
            return time
    return np.inf
