"""Preemptive orders: the twin of ``QuotaWalk``.

All active jobs stand in one list, in the order of the last walk; sorted by insertion it is nearly
sorted already.
"""

from __future__ import annotations

from collections import namedtuple

import numpy as np
from numba import njit

from windtunnel.sim.compiled.disrupted.closing import count_down, place, set_aside
from windtunnel.sim.compiled.disrupted.instants import next_decision
from windtunnel.sim.compiled.disrupted.stays import preempt, start
from windtunnel.sim.compiled.disrupted.tables import (
    ACCESS,
    BY_REMAINING,
    CAME,
    CLOSED,
    DECIDE,
    GPUS,
    IS_POOL,
    KEPT,
    KEPT_NODES,
    NOW,
    OWED,
    PLACEMENT,
    POSITION,
    PROJECTED,
    QUOTA,
    REMAINING,
    RUNNING,
    RUNS,
    SEGMENT,
    SEGMENTS,
    STATE,
    STRICT,
    WAITING,
    WAITS,
    WEIGHT,
    WEIGHTED,
)
from windtunnel.sim.compiled.nodes import lowest_bit

#: ``ranked``: the active jobs, ``keys`` theirs; ``listed`` and ``chosen``: by job; ``to_start``;
#: ``reserved``: GPU units that each reservation has left.
Walk = namedtuple("Walk", "ranked keys listed chosen to_start reserved sizes")  # noqa: PYI024 - as State


def walk(count: int) -> Walk:
    """Return the tables of a walk over ``count`` jobs, none of them active."""
    return Walk(
        np.empty(count, dtype=np.int64),
        np.empty(count),
        np.zeros(count, dtype=np.bool_),
        np.zeros(count, dtype=np.bool_),
        np.empty(count, dtype=np.int64),
        np.zeros(64, dtype=np.int64),
        np.zeros(1, dtype=np.int64),
    )


@njit(cache=True)
def fly(s, w):
    """Fly on; return why the kernel stopped."""
    while True:
        code = next_decision(s)
        if code != DECIDE:
            return code
        _list(s, w)
        if s.counts[WAITING] > 0:
            _rank(s, w)
            _decide(s, w)


@njit(cache=True)
def _list(s, w):
    """Drop the jobs that are over, add those that came."""
    active = 0
    for index in range(w.sizes[0]):
        job = w.ranked[index]
        w.listed[job] = s.ints[job, STATE] == WAITS or s.ints[job, STATE] == RUNS
        if w.listed[job]:
            w.ranked[active] = job
            active += 1
    for index in range(s.counts[CAME]):
        job = s.came[index]
        if not w.listed[job]:
            w.listed[job] = True
            w.ranked[active] = job
            active += 1
    w.sizes[0] = active


@njit(cache=True)
def _key(s, job):
    """Return a job's key now: its place in the order, or its time left."""
    if not s.rules[BY_REMAINING]:
        return np.float64(s.ints[job, POSITION])
    if s.ints[job, STATE] == RUNS:
        left = s.secs[job, PROJECTED] - s.seconds[NOW]
    else:
        left = s.secs[job, REMAINING] + s.secs[job, OWED]
    return left * s.secs[job, WEIGHT] if s.rules[WEIGHTED] else left


@njit(cache=True)
def _rank(s, w):
    """Sort the active jobs by (key, arrival)."""
    for index in range(w.sizes[0]):
        job = w.ranked[index]
        key = _key(s, job)
        at = index
        while at > 0 and (
            w.keys[at - 1] > key or (w.keys[at - 1] == key and w.ranked[at - 1] > job)
        ):
            w.keys[at] = w.keys[at - 1]
            w.ranked[at] = w.ranked[at - 1]
            at -= 1
        w.keys[at] = key
        w.ranked[at] = job


@njit(cache=True)
def _reserve(s, w):
    """Note what each reservation has; return the GPU units that are up and nobody's own."""
    up = s.rules[QUOTA] - count_down(s)
    w.reserved[:] = 0
    if s.rules[IS_POOL] or s.room.sums[KEPT_NODES] == 0:
        return up
    shut = s.room.shut
    for which in range(len(shut)):
        if shut[which, CLOSED] == 0 and shut[which, KEPT] != 0:
            units = set_aside(s.room, s.rules[PLACEMENT], which)
            w.reserved[lowest_bit(shut[which, KEPT])] += units
    for index in range(s.counts[RUNNING]):
        job = s.running[index]
        segment = s.ints[job, SEGMENT]
        for entry in range(s.offsets[segment], s.offsets[segment + 1]):
            which = s.nodes[entry]
            if shut[which, CLOSED] == 0 and shut[which, KEPT] != 0:
                first = lowest_bit(shut[which, KEPT])
                if (s.ints[job, ACCESS] >> first) & 1:
                    w.reserved[first] += s.gpus[entry]
    return up - w.reserved.sum()


@njit(cache=True)
def _decide(s, w):
    now, quota = s.seconds[NOW], _reserve(s, w)
    starts = 0
    active = w.sizes[0]
    for index in range(active):
        w.chosen[w.ranked[index]] = False
    for index in range(active):
        job = w.ranked[index]
        gpus = max(0, s.ints[job, GPUS] - _own(s, w, job))
        if gpus <= quota:
            quota -= gpus
            _draw(s, w, job)
            w.chosen[job] = True
            if s.ints[job, STATE] == WAITS:
                w.to_start[starts] = job
                starts += 1
        elif s.rules[STRICT]:
            break
    for index in range(active):
        job = w.ranked[index]
        if s.ints[job, STATE] == RUNS and not w.chosen[job]:
            preempt(s, job, now)
    for index in range(starts):
        job = w.to_start[index]
        taken = place(s, s.room, job, now, s.nodes, s.gpus, s.offsets[s.counts[SEGMENTS]])
        if taken >= 0:
            start(s, job, now, taken)


@njit(cache=True)
def _own(s, w, job):
    """Return the GPU units that a job's reservations have left."""
    own = np.int64(0)
    access = s.ints[job, ACCESS]
    for index in range(len(s.bits) if access != 0 else 0):
        if access & s.bits[index] != 0:
            own += w.reserved[lowest_bit(s.bits[index])]
    return own


@njit(cache=True)
def _draw(s, w, job):
    """Let a chosen job use up what its reservations have left, in the order described."""
    need, access = s.ints[job, GPUS], s.ints[job, ACCESS]
    for index in range(len(s.bits) if access != 0 else 0):
        if access & s.bits[index] != 0:
            bit = lowest_bit(s.bits[index])
            used = min(need, w.reserved[bit])
            if used > 0:
                w.reserved[bit] -= used
                need -= used
