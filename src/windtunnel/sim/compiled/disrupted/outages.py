"""What happens to nodes and jobs by itself: the twin of `windtunnel.sim.disruptions.outages`."""

from __future__ import annotations

import numpy as np
from numba import njit

from windtunnel.sim.compiled.disrupted.closing import close, count_down
from windtunnel.sim.compiled.disrupted.stays import interrupt
from windtunnel.sim.compiled.disrupted.tables import (
    ACCESS,
    AHEAD_DRAWS,
    BIT,
    CERTAIN,
    ENDS,
    EVENT_KIND,
    FIRST,
    FREED,
    GPUS,
    IS_POOL,
    LAST,
    MARK,
    NEXT_NUMBER,
    NUM_EVENTS,
    NUM_FAILS,
    NUM_HOLDS,
    NUMBER,
    ON_START,
    PLANNED,
    QUOTA,
    RESTORE,
    RUNNING,
    SAVE,
    SEGMENT,
    STREAMS_THIRSTY,
    STRIKE,
    UPS,
    WAIT,
    WITHHOLD,
)
from windtunnel.sim.compiled.heaps import pop
from windtunnel.sim.compiled.nodes import FREE

HALF = AHEAD_DRAWS // 2


@njit(cache=True)
def _before(s, one, other):
    """Return whether one slot's event comes before another's: by time, kind, number."""
    if s.times[one] != s.times[other]:
        return s.times[one] < s.times[other]
    if s.events[one, EVENT_KIND] != s.events[other, EVENT_KIND]:
        return s.events[one, EVENT_KIND] < s.events[other, EVENT_KIND]
    return s.events[one, NUMBER] < s.events[other, NUMBER]


@njit(cache=True)
def _push(s, slot, time, kind):
    s.times[slot] = time
    s.events[slot, EVENT_KIND] = kind
    s.events[slot, NUMBER] = s.counts[NEXT_NUMBER]
    s.counts[NEXT_NUMBER] += 1
    child = s.counts[NUM_EVENTS]
    s.counts[NUM_EVENTS] += 1
    while child > 0:
        parent = (child - 1) >> 1
        if not _before(s, slot, s.heap[parent]):
            break
        s.heap[child] = s.heap[parent]
        child = parent
    s.heap[child] = slot


@njit(cache=True)
def _pop(s):
    """Take the next event's slot out of the heap; return it."""
    first = s.heap[0]
    s.counts[NUM_EVENTS] -= 1
    size = s.counts[NUM_EVENTS]
    slot = s.heap[size]
    hole, child = 0, 1
    while child < size:
        if child + 1 < size and _before(s, s.heap[child + 1], s.heap[child]):
            child += 1
        if _before(s, slot, s.heap[child]):
            break
        s.heap[hole] = s.heap[child]
        hole = child
        child = 2 * hole + 1
    s.heap[hole] = slot
    return first


@njit(cache=True)
def next_time(s):
    """Return when something happens next by itself, s; inf = never."""
    while s.counts[NUM_FAILS] > 0 and not np.isnan(s.seg_time[s.failing[0], 1]):
        s.counts[NUM_FAILS] = pop(s.fails, s.failing, s.counts[NUM_FAILS])
    time = s.times[s.heap[0]] if s.counts[NUM_EVENTS] > 0 else np.inf
    return min(time, s.fails[0]) if s.counts[NUM_FAILS] > 0 else time


@njit(cache=True)
def happen_until(s, last, inclusive):
    """Let planned changes and failures of nodes happen, up to ``last`` (s)."""
    while s.counts[NUM_EVENTS] > 0:
        time = s.times[s.heap[0]]
        if time > last or (time == last and not inclusive):
            break
        _happen(s, max(time, last) if inclusive else time)


@njit(cache=True)
def _happen(s, now):
    slot = _pop(s)
    kind = s.events[slot, EVENT_KIND]
    stream = slot - 3 * s.rules[NUM_HOLDS]
    hold = slot // 3 if stream < 0 else s.rules[NUM_HOLDS] + stream
    if stream < 0 or kind == RESTORE:
        s.counts[CERTAIN] -= 1
    if kind == STRIKE:
        _strike(s, hold, now)
    elif kind == WITHHOLD:
        close(s, s.room, hold, True)
        if stream >= 0:
            _strike(s, hold, now)
            repair = s.pairs[stream, s.pair_used[stream] % AHEAD_DRAWS, 1]
            _push(s, slot, s.times[slot] + repair, RESTORE)
            s.counts[CERTAIN] += 1
    else:
        close(s, s.room, hold, False)
        s.counts[FREED] = 1
        if stream >= 0:
            _next_failure(s, slot, stream, now)


@njit(cache=True)
def _next_failure(s, slot, stream, now):
    used = s.pair_used[stream] + 1
    s.pair_used[stream] = used
    if used % HALF == 0:  # the half that is used up is drawn anew before the next instant
        s.thirsty[len(s.thirsty) - 1 - s.counts[STREAMS_THIRSTY]] = stream
        s.counts[STREAMS_THIRSTY] += 1
    _push(s, slot, now + s.pairs[stream, used % AHEAD_DRAWS, 0], WITHHOLD)


@njit(cache=True)
def _strike(s, hold, now):
    """Deal with the jobs that run where a hold starts."""
    how = s.holds[hold, ON_START]
    if how == WAIT:
        return
    ends = s.rules[ENDS] != 0 and not s.holds[hold, PLANNED]
    victims = _victims(s, hold)
    for index in range(len(victims)):
        interrupt(s, s.seg_job[victims[index]], now, how == SAVE, ends)


@njit(cache=True)
def _victims(s, hold):
    """Return the stays that a hold cuts short: on nodes by start, in a pool the last ones first."""
    shut, bit = s.room.shut, s.holds[hold, BIT]
    first, last = s.holds[hold, FIRST], s.holds[hold, LAST]
    for entry in range(first, last):
        shut[s.places[entry, 0], MARK] = 1
    there = 0
    for index in range(s.counts[RUNNING]):
        job = s.running[index]
        if s.ints[job, ACCESS] & bit != 0:
            continue
        segment = s.ints[job, SEGMENT]
        for entry in range(s.offsets[segment], s.offsets[segment + 1]):
            if shut[s.nodes[entry], MARK]:
                s.scratch[there] = segment
                there += 1
                break
    for entry in range(first, last):
        shut[s.places[entry, 0], MARK] = 0
    victims = np.sort(s.scratch[:there])
    if not s.rules[IS_POOL]:
        return victims
    # What a pool lacks now is made good by who started last.
    for entry in range(first, last):
        which = s.places[entry, 0]
        shut[which, MARK] = -s.room.node[which, FREE]
    chosen = 0
    for index in range(there - 1, -1, -1):
        segment = victims[index]
        lacking = False
        for entry in range(s.offsets[segment], s.offsets[segment + 1]):
            which = s.nodes[entry]
            if shut[which, MARK] > 0:
                lacking = True
                shut[which, MARK] -= s.gpus[entry]
        if lacking and s.ints[s.seg_job[segment], GPUS] != 0:
            s.scratch[chosen] = segment
            chosen += 1
    for entry in range(first, last):
        shut[s.places[entry, 0], MARK] = 0
    return s.scratch[:chosen].copy()


@njit(cache=True)
def fail_by_themselves(s, now):
    """Let the jobs fail whose time has come."""
    while s.counts[NUM_FAILS] > 0 and s.fails[0] <= now:
        segment = s.failing[0]
        s.counts[NUM_FAILS] = pop(s.fails, s.failing, s.counts[NUM_FAILS])
        if np.isnan(s.seg_time[segment, 1]):
            interrupt(s, s.seg_job[segment], now, False, s.rules[ENDS] != 0)


@njit(cache=True)
def note_capacity(s, now):
    """Record the GPU units that are up from ``now`` (s) on, where they changed."""
    up = s.rules[QUOTA] - count_down(s)
    count = s.counts[UPS]
    if count == 0 or s.up[count - 1, 1] != up:
        s.up[count, 0] = now
        s.up[count, 1] = up
        s.counts[UPS] += 1
