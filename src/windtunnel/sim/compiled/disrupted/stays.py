"""Starts, stops and ends of stays, and what a job has done: the twin of `DisruptedLedger`.

Every sum is formed as `windtunnel.sim.disruptions.ledger` forms it, operation by operation.
"""

from __future__ import annotations

import math

import numpy as np
from numba import njit

from windtunnel.sim.compiled.disrupted.closing import give_back
from windtunnel.sim.compiled.disrupted.tables import (
    AHEAD_DRAWS,
    AT,
    BEGAN,
    CAME,
    COST,
    DONE,
    DRAWS,
    ENTRIES,
    FAIL_AT,
    FAILURES,
    FREED,
    HAZARD,
    INTERVAL,
    JOBS_THIRSTY,
    KIND,
    LEFT,
    LOST,
    NUM_ENDS,
    NUM_FAILS,
    ONCE,
    OVER,
    OVERHEAD,
    OWED,
    PAID,
    PREEMPTIONS,
    PROJECTED,
    REMAINING,
    RESTART,
    RESTARTING,
    RESTARTS,
    RESUME,
    RUN_BEFORE,
    RUNNING,
    RUNS,
    SEGMENT,
    SEGMENTS,
    STATE,
    UNFINISHED,
    USEFUL,
    VAIN,
    VAIN_JOB,
    WAITING,
    WAITS,
    WANTED,
)
from windtunnel.sim.compiled.heaps import push
from windtunnel.sim.disruptions.ledger import MAX_VAIN_FAILURES


@njit(cache=True)
def queue(s, job):
    """Let a job wait, to be queued at this instant."""
    s.ints[job, STATE] = WAITS
    s.came[s.counts[CAME]] = job
    s.counts[CAME] += 1
    s.counts[WAITING] += 1
    s.counts[WANTED] += s.ints[job, ENTRIES]


@njit(cache=True)
def _checkpoints(s, work):
    """Return how many checkpoints are written during so much work."""
    return max(0, math.ceil(work / s.seconds[INTERVAL]) - 1)


@njit(cache=True)
def progress(s, job, held):
    """Return (work done, overhead paid, work in checkpoints) after ``held`` s of a stay."""
    active = held - s.secs[job, PAID]
    if active <= 0:
        return 0.0, held, 0.0
    work, interval, cost = s.secs[job, REMAINING], s.seconds[INTERVAL], s.seconds[COST]
    written, kept = 0, 0.0
    if interval < np.inf:
        cycle = interval + cost
        written = min(int(active // cycle), _checkpoints(s, work))
        active -= written * cycle
        kept = written * interval
    paid = s.secs[job, PAID] + written * cost
    # Within a checkpoint that is being written no work is done.
    last = kept + interval >= work
    done = min(kept + (active if last else min(active, interval)), work)
    return done, paid + max(0.0, kept + active - done), kept


@njit(cache=True)
def start(s, job, now, taken):
    """Start a waiting job on the ``taken`` entries that stand behind the last stay's."""
    secs, ints, counts = s.secs, s.ints, s.counts
    segment = counts[SEGMENTS]
    counts[SEGMENTS] += 1
    s.seg_job[segment] = job
    s.seg_time[segment, 0] = now
    s.seg_time[segment, 1] = np.nan
    s.offsets[segment + 1] = s.offsets[segment] + taken
    work = secs[job, REMAINING]
    end = now + secs[job, OWED] + work
    if s.seconds[COST] > 0:
        end += _checkpoints(s, work) * s.seconds[COST]
    secs[job, PROJECTED] = end
    counts[NUM_ENDS] = push(s.ends, s.ending, counts[NUM_ENDS], end, segment)
    secs[job, BEGAN] = now
    secs[job, PAID] = secs[job, OWED]
    secs[job, OWED] = 0.0
    ints[job, SEGMENT] = segment
    ints[job, STATE] = RUNS
    ints[job, AT] = counts[RUNNING]
    s.running[counts[RUNNING]] = job
    counts[RUNNING] += 1
    counts[WAITING] -= 1
    counts[WANTED] -= ints[job, ENTRIES]
    if ints[job, HAZARD]:
        _draw_failure(s, job, now)
    if ints[job, RESTARTING]:
        ints[job, RESTARTING] = 0
        ints[job, RESTARTS] += 1


@njit(cache=True)
def _draw_failure(s, job, now):
    """Note when a job fails by itself, if it does not end before; its clock is its run time."""
    secs, counts = s.secs, s.counts
    if np.isnan(secs[job, FAIL_AT]):
        used = s.ints[job, DRAWS]
        secs[job, FAIL_AT] = secs[job, RUN_BEFORE] + s.draws[job, used % AHEAD_DRAWS]
        s.ints[job, DRAWS] += 1
        if (used + 1) % AHEAD_DRAWS == 0:
            s.thirsty[counts[JOBS_THIRSTY]] = job
            counts[JOBS_THIRSTY] += 1
    time = now + max(0.0, secs[job, FAIL_AT] - secs[job, RUN_BEFORE])
    if time < secs[job, PROJECTED]:
        counts[NUM_FAILS] = push(s.fails, s.failing, counts[NUM_FAILS], time, s.ints[job, SEGMENT])


@njit(cache=True)
def _leave(s, job, now):
    """Take a running job off its GPUs."""
    segment = s.ints[job, SEGMENT]
    s.seg_time[segment, 1] = now
    give_back(
        s, s.room, s.ints[job, KIND], s.nodes, s.gpus, s.offsets[segment], s.offsets[segment + 1]
    )
    s.counts[RUNNING] -= 1
    last = s.running[s.counts[RUNNING]]
    s.running[s.ints[job, AT]] = last
    s.ints[last, AT] = s.ints[job, AT]
    s.counts[FREED] = 1


@njit(cache=True)
def _gone(s, job):
    """Tell the queue that a job left its GPUs."""
    s.left[s.counts[LEFT]] = job
    s.counts[LEFT] += 1


@njit(cache=True)
def complete(s, job, now):
    """Complete a job; return whether it fails now that its work is done."""
    secs = s.secs
    _leave(s, job, now)
    _gone(s, job)
    if s.ints[job, ONCE]:
        s.ints[job, ONCE] = 0
        s.ints[job, STATE] = WAITS
        return True
    work = secs[job, REMAINING]
    secs[job, USEFUL] += work
    secs[job, OVERHEAD] += now - secs[job, BEGAN] - work
    s.ints[job, STATE] = DONE
    s.counts[UNFINISHED] -= 1
    return False


@njit(cache=True)
def preempt(s, job, now):
    """Take a running job off its GPUs; all its work is saved, and it waits."""
    secs = s.secs
    held = now - secs[job, BEGAN]
    work, overhead, _ = progress(s, job, held)
    before = secs[job, REMAINING]
    _leave(s, job, now)
    secs[job, RUN_BEFORE] += held
    secs[job, REMAINING] = min(before, secs[job, PROJECTED] - now)
    s.ints[job, PREEMPTIONS] += 1
    if s.seconds[COST] > 0:
        secs[job, REMAINING] = before - work
    secs[job, USEFUL] += work
    secs[job, OVERHEAD] += overhead
    secs[job, OWED] = s.seconds[RESUME]
    s.ints[job, STATE] = WAITS
    s.counts[WAITING] += 1
    s.counts[WANTED] += s.ints[job, ENTRIES]


@njit(cache=True)
def interrupt(s, job, now, saves, ends):
    """Take a running job off its GPUs because of an outage; it waits again, or is over."""
    secs = s.secs
    held = now - secs[job, BEGAN]
    work, overhead, kept = progress(s, job, held)
    _leave(s, job, now)
    _gone(s, job)
    secs[job, RUN_BEFORE] += held
    saved = work if saves else kept
    secs[job, REMAINING] -= saved
    _account(s, job, held, saved, overhead, not saves)
    secs[job, FAIL_AT] = np.nan
    _again(s, job, ends)


@njit(cache=True)
def fail_at_end(s, job, now, ends):
    """Let a job fail that has just completed: it loses what it did since a checkpoint."""
    held = now - s.secs[job, BEGAN]
    _, overhead, kept = progress(s, job, held)
    s.secs[job, RUN_BEFORE] += held
    s.secs[job, REMAINING] -= kept
    _account(s, job, held, kept, overhead, True)
    _again(s, job, ends)


@njit(cache=True)
def _again(s, job, ends):
    """Queue a job that was stopped again, unless it is over."""
    if ends:
        s.ints[job, STATE] = OVER
        s.counts[UNFINISHED] -= 1
    else:
        queue(s, job)


@njit(cache=True)
def _account(s, job, held, saved, overhead, fails):
    secs, ints = s.secs, s.ints
    secs[job, USEFUL] += saved
    secs[job, OVERHEAD] += overhead
    secs[job, LOST] += held - overhead - saved if fails else 0.0
    secs[job, OWED] = s.seconds[RESTART]
    ints[job, RESTARTING] = 1
    if not fails:
        return
    ints[job, FAILURES] += 1
    ints[job, VAIN] = 0 if saved > 0 else ints[job, VAIN] + 1
    if ints[job, VAIN] > MAX_VAIN_FAILURES and s.counts[VAIN_JOB] < 0:
        s.counts[VAIN_JOB] = job


@njit(cache=True)
def account_running(s, horizon):
    """Count what the jobs that still run did until the horizon (s)."""
    for index in range(s.counts[RUNNING]):
        job = s.running[index]
        work, overhead, _ = progress(s, job, horizon - s.secs[job, BEGAN])
        s.secs[job, USEFUL] += work
        s.secs[job, OVERHEAD] += overhead
