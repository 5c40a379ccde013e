"""Starts, ends and preemptions in a run with slow-downs: the twin of `windtunnel.sim.ledger`."""

from __future__ import annotations

import numpy as np
from numba import njit

from windtunnel.sim.compiled.room import give
from windtunnel.sim.compiled.slowed.company import book, enter, leave, work_left
from windtunnel.sim.compiled.slowed.ledger import (
    END,
    KIND,
    LEFT,
    PREEMPTIONS,
    PROJECTED,
    RATE,
    RESUMED,
    RUNNING,
    SEGMENT,
    SEGMENTS,
    SINCE,
    START,
    add_end,
    drop_end,
)


@njit(cache=True)
def next_instant(ledger, submit, arrived):
    """Return the time of the next completion or arrival, s; inf = there is none."""
    now = np.inf
    if ledger.count[RUNNING] > 0:
        now = ledger.ends[0]
    if arrived < len(submit) and submit[arrived] < now:
        now = submit[arrived]
    return now


@njit(cache=True)
def begin(ledger, job, now, taken, overhead):
    """Start a job on the ``taken`` entries that were written behind those of all segments."""
    work, jobs = ledger.work, ledger.jobs
    owed = 0.0
    end = now + work[job, LEFT]
    if jobs[job, PREEMPTIONS] > 0:
        owed = overhead
        end = now + overhead + work[job, LEFT]
    else:
        work[job, START] = now
    segment = ledger.count[SEGMENTS]
    first = ledger.offsets[segment]
    ledger.count[SEGMENTS] = segment + 1
    ledger.offsets[segment + 1] = first + taken
    ledger.job[segment] = job
    ledger.start[segment] = now
    ledger.end[segment] = np.nan
    jobs[job, SEGMENT] = segment
    work[job, PROJECTED] = end
    work[job, RATE] = 1.0
    work[job, SINCE] = now
    work[job, RESUMED] = now + owed
    add_end(ledger, end, job)
    enter(ledger, job, first, first + taken)


@njit(cache=True)
def finish(ledger, node, rows, classes, placement, now):
    """Complete the job that ends first; return it."""
    job = ledger.ending[0]
    ledger.work[job, END] = now
    _stop(ledger, node, rows, classes, placement, job, now)
    return job


@njit(cache=True)
def preempt(ledger, node, rows, classes, placement, job, now):
    """Take a running job off its GPUs."""
    left = work_left(ledger, job, now)
    _stop(ledger, node, rows, classes, placement, job, now)
    ledger.work[job, LEFT] = left
    ledger.jobs[job, PREEMPTIONS] += 1


@njit(cache=True)
def _stop(ledger, node, rows, classes, placement, job, now):
    segment = ledger.jobs[job, SEGMENT]
    ledger.end[segment] = now
    ledger.jobs[job, SEGMENT] = -1
    drop_end(ledger, job)
    give(
        node, rows, classes, ledger.jobs[job, KIND], placement,
        ledger.nodes, ledger.gpus, ledger.offsets[segment], ledger.offsets[segment + 1],
    )  # fmt: skip
    book(ledger, job, now)
    leave(ledger, job)
