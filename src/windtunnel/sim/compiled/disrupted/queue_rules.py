"""Orders without preemption: the twin of ``StrictQueue`` and ``SkipQueue``."""

from __future__ import annotations

from collections import namedtuple

import numpy as np
from numba import njit

from windtunnel.sim.compiled.disrupted.closing import place
from windtunnel.sim.compiled.disrupted.instants import next_decision
from windtunnel.sim.compiled.disrupted.stays import start
from windtunnel.sim.compiled.disrupted.tables import (
    CAME,
    CLASS,
    DECIDE,
    FREED,
    NOW,
    POSITION,
    SEGMENTS,
    STRICT,
)
from windtunnel.sim.compiled.heaps import pop_int, push_int
from windtunnel.sim.compiled.offsets import offsets_of

#: A heap of places in the order for each class of jobs, from ``first`` on; ``waiting`` in each;
#: ``queued``: the classes that have some; ``refused``: since when (`ROUND`) a class does not fit.
Queues = namedtuple("Queues", "heap first waiting queued refused sizes")  # noqa: PYI024 - as State
#: Numbers in ``sizes``: classes queued, and how often room was given back.
QUEUED, ROUND = range(2)


def queues(classes: np.ndarray, *, strict: bool) -> Queues:
    """Return empty queues of jobs; ``classes`` is Int array (m,), each job's class."""
    per_class = np.array([len(classes)]) if strict else np.bincount(classes)
    first = offsets_of(per_class)
    return Queues(
        np.empty(len(classes), dtype=np.int64),
        first,
        np.zeros(len(per_class), dtype=np.int64),
        np.empty(len(per_class), dtype=np.int64),
        np.full(len(per_class), -1, dtype=np.int64),
        np.zeros(2, dtype=np.int64),
    )


@njit(cache=True)
def fly(s, q):
    """Fly on; return why the kernel stopped."""
    while True:
        code = next_decision(s)
        if code != DECIDE:
            return code
        _queue(s, q)
        _decide(s, q)


@njit(cache=True)
def _queue(s, q):
    """Queue the jobs that came."""
    for index in range(s.counts[CAME]):
        job = s.came[index]
        kind = 0 if s.rules[STRICT] else s.ints[job, CLASS]
        if q.waiting[kind] == 0:
            q.queued[q.sizes[QUEUED]] = kind
            q.sizes[QUEUED] += 1
        q.waiting[kind] = push_int(q.heap, q.first[kind], q.waiting[kind], s.ints[job, POSITION])
    if s.counts[FREED]:
        q.sizes[ROUND] += 1


@njit(cache=True)
def _decide(s, q):
    """Start the first job of the order that fits, until none does; strict stops at the first.

    What one job of a class is refused the others are, until room is given back.
    """
    strict, now = s.rules[STRICT] != 0, s.seconds[NOW]
    while True:
        best = len(s.order)
        at = -1
        for index in range(q.sizes[QUEUED]):
            kind = q.queued[index]
            if not strict and q.refused[kind] == q.sizes[ROUND]:
                continue
            head = q.heap[q.first[kind]]
            if head < best:
                best = head
                at = index
        if at < 0:
            return
        kind = q.queued[at]
        job = s.order[best]
        if strict and q.refused[0] == best and not s.counts[FREED]:
            return
        taken = place(s, s.room, job, now, s.nodes, s.gpus, s.offsets[s.counts[SEGMENTS]])
        if taken < 0:
            q.refused[kind] = best if strict else q.sizes[ROUND]
            if strict:
                return
            continue
        q.waiting[kind] = pop_int(q.heap, q.first[kind], q.waiting[kind])
        if q.waiting[kind] == 0:
            q.sizes[QUEUED] -= 1
            q.queued[at] = q.queued[q.sizes[QUEUED]]
        start(s, job, now, taken)
