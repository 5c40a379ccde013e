"""From one decision to the next: the twin of the reference engine's loop.

An instant is handled whole (completions, arrivals, outages), or one event at a time with a decision
after each (`windtunnel.sim.reference`, ``_InTurn``).
"""

from __future__ import annotations

import numpy as np
from numba import njit

from windtunnel.sim.compiled.disrupted.closing import pass_planned
from windtunnel.sim.compiled.disrupted.outages import (
    fail_by_themselves,
    happen_until,
    next_time,
    note_capacity,
)
from windtunnel.sim.compiled.disrupted.stays import complete, fail_at_end, queue
from windtunnel.sim.compiled.disrupted.tables import (
    ARRIVED,
    BATCH,
    BEGAN,
    CAME,
    CERTAIN,
    COMPLETIONS_FIRST,
    DECIDE,
    DISRUPTED,
    DRAW,
    ENDS,
    ESTIMATE,
    FINISHED,
    FIRST_SUBMIT,
    FREED,
    GROW,
    IN_VAIN,
    JOBS_THIRSTY,
    LEFT,
    MOST,
    NOW,
    NUM_ENDS,
    ORDER_OF_EVENTS,
    PHASE,
    POINTS,
    RESUMING,
    RUNNING,
    SEGMENTS,
    STREAMS_THIRSTY,
    SUBMIT,
    UNFINISHED,
    UNTIL,
    UPS,
    VAIN_JOB,
    WAITING,
    WANTED,
)
from windtunnel.sim.compiled.heaps import pop, push

#: Where within an instant one event at a time stands.
TOP, ARRIVALS, COMPLETIONS = range(3)


@njit(cache=True)
def begin(s):
    """Let happen what comes before the first submit."""
    if s.rules[DISRUPTED]:
        happen_until(s, s.seconds[FIRST_SUBMIT], False)
        note_capacity(s, -np.inf)


@njit(cache=True)
def next_decision(s):
    """Go on to the next decision; return `DECIDE`, or why it is not made now."""
    counts = s.counts
    if not counts[RESUMING]:
        counts[CAME] = 0
        counts[LEFT] = 0
        counts[FREED] = 0
        in_turn = s.rules[ORDER_OF_EVENTS] != BATCH
        if not (_one_event(s) if in_turn else _batch(s)):
            return FINISHED
        counts[POINTS] += 1
        if counts[VAIN_JOB] >= 0:
            return IN_VAIN
    counts[RESUMING] = 1
    grow = counts[SEGMENTS] + counts[WAITING] + 1 > len(s.seg_job)
    entries = s.offsets[counts[SEGMENTS]] + counts[WANTED] + s.rules[MOST] + 1
    if grow or entries > len(s.nodes) or counts[UPS] + 2 > len(s.up):
        return GROW
    if counts[JOBS_THIRSTY] + counts[STREAMS_THIRSTY] > 0:
        return DRAW
    counts[RESUMING] = 0
    pass_planned(s)
    return DECIDE


@njit(cache=True)
def _next_end(s):
    """Return the next completion's time, s; inf = none."""
    counts = s.counts
    while counts[NUM_ENDS] > 0 and not np.isnan(s.seg_time[s.ending[0], 1]):
        counts[NUM_ENDS] = pop(s.ends, s.ending, counts[NUM_ENDS])  # cut short since
    return s.ends[0] if counts[NUM_ENDS] > 0 else np.inf


@njit(cache=True)
def _next_submit(s):
    arrived = s.counts[ARRIVED]
    return s.secs[arrived, SUBMIT] if arrived < len(s.secs) else np.inf


@njit(cache=True)
def _complete_next(s, now):
    """Complete the first job; return it, and whether it fails now that its work is done."""
    job = s.seg_job[s.ending[0]]
    s.counts[NUM_ENDS] = pop(s.ends, s.ending, s.counts[NUM_ENDS])
    return job, complete(s, job, now)


@njit(cache=True)
def _arrive(s):
    queue(s, s.counts[ARRIVED])
    s.counts[ARRIVED] += 1


@njit(cache=True)
def _batch(s):
    """Handle the next instant whole; return whether there is one."""
    counts, disrupted = s.counts, s.rules[DISRUPTED] != 0
    now = min(_next_end(s), _next_submit(s))
    if disrupted:
        waits = counts[ARRIVED] == len(s.secs) and counts[RUNNING] == 0
        if counts[UNFINISHED] > 0 and not (waits and counts[CERTAIN] == 0):
            now = min(now, next_time(s))
        elif counts[UNFINISHED] > 0:
            now = np.inf  # further failures give nobody a place
    if now > s.seconds[UNTIL] or now == np.inf:
        return False
    s.seconds[NOW] = now
    failed = 0
    while _next_end(s) == now:
        job, fails = _complete_next(s, now)
        if fails:
            s.scratch[failed] = job
            failed += 1
    while _next_submit(s) == now:
        _arrive(s)
    if disrupted:
        for index in range(failed):
            fail_at_end(s, s.scratch[index], now, s.rules[ENDS] != 0)
        happen_until(s, now, True)
        fail_by_themselves(s, now)
        note_capacity(s, now)
    return True


@njit(cache=True)
def _one_event(s):
    """Handle the next event alone; return whether there is one."""
    counts = s.counts
    now = s.seconds[NOW]
    if counts[PHASE] == ARRIVALS:
        if _next_submit(s) == now:
            _arrive(s)
            return True
        after = s.rules[ORDER_OF_EVENTS] != COMPLETIONS_FIRST
        counts[PHASE] = COMPLETIONS if after else TOP
    if counts[PHASE] == COMPLETIONS:
        if _next_end(s) == now:
            _complete_next(s, now)
            return True
        counts[PHASE] = ARRIVALS if s.rules[ORDER_OF_EVENTS] == COMPLETIONS_FIRST else TOP
        if counts[PHASE] == ARRIVALS:
            return _one_event_of_arrivals(s, now)
    return _top(s)


@njit(cache=True)
def _one_event_of_arrivals(s, now):
    """After the completions of an instant its arrivals, if it has any."""
    if _next_submit(s) == now:
        _arrive(s)
        return True
    s.counts[PHASE] = TOP
    return _top(s)


@njit(cache=True)
def _top(s):
    """Begin the next instant with its first event; return whether there is one."""
    counts = s.counts
    now = min(_next_end(s), _next_submit(s))
    if now > s.seconds[UNTIL] or now == np.inf:
        return False
    s.seconds[NOW] = now
    if s.rules[ORDER_OF_EVENTS] == COMPLETIONS_FIRST:
        if _next_end(s) == now:
            counts[PHASE] = COMPLETIONS
            _complete_next(s, now)
        else:
            counts[PHASE] = ARRIVALS
            _arrive(s)
        return True
    leads = _complete_expected(s, now)
    if _next_submit(s) == now:
        counts[PHASE] = ARRIVALS
        _arrive(s)
        return True
    counts[PHASE] = COMPLETIONS
    if not leads:
        _complete_next(s, now)
    return True


@njit(cache=True)
def _complete_expected(s, now):
    """Complete the jobs that end now and were expected to by now.

    Returns:
        Whether the first of all that end now is one of them: else its completion comes next.
    """
    counts = s.counts
    leads = False
    taken = 0
    later = 0
    while _next_end(s) == now:
        segment = s.ending[0]
        job = s.seg_job[segment]
        counts[NUM_ENDS] = pop(s.ends, s.ending, counts[NUM_ENDS])
        if s.secs[job, BEGAN] + s.secs[job, ESTIMATE] <= now:
            complete(s, job, now)
            leads |= taken == 0
        else:
            s.scratch[later] = segment
            later += 1
        taken += 1
    for index in range(later):
        counts[NUM_ENDS] = push(s.ends, s.ending, counts[NUM_ENDS], now, s.scratch[index])
    return leads
