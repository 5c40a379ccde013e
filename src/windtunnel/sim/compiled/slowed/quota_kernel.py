"""The kernel for preemptive orders with slow-downs: the quota walk over two sorted lists.

What runs and what waits stand in lists by (key, job), as in the plain `service_kernel`, whatever
the order is by: with slow-downs time left does not fall as fast for one job as for another.
"""

from __future__ import annotations

from collections import namedtuple

import numpy as np
from numba import njit

from windtunnel.sim.compiled.borrow import borrowed
from windtunnel.sim.compiled.room import take
from windtunnel.sim.compiled.service_kernel import level, sort, walk
from windtunnel.sim.compiled.slowed.company import settle, time_left
from windtunnel.sim.compiled.slowed.ledger import (
    ARRIVED,
    DUE,
    ENTRIES,
    KIND,
    LEFT,
    POINTS,
    PREEMPTIONS,
    ROUNDS,
    RUNNING,
    SEGMENT,
    SEGMENTS,
    WAITING,
    lent,
)
from windtunnel.sim.compiled.slowed.stays import begin, finish, next_instant, preempt
from windtunnel.sim.compiled.sorted_lists import insert_key, remove_key

#: Lists of jobs by (key, job): who waits, who runs; the key of each job, and its seconds on GPUs in
#: stays cut short; whom to start and to stop; all (m,). ``clock`` (1,): the instant that is due, s.
Lists = namedtuple(  # noqa: PYI024 - numba needs the untyped kind
    "Lists", "wait_keys wait_jobs run_keys run_jobs key_of run_before starting dropped clock"
)
#: What the order is by: a static place, the time left, that times GPUs, GPU time so far.
STATIC, REMAINING, SERVICE, ATTAINED = range(4)


@njit(cache=True)
def _key(ledger, job, now, by, position, gpus, run_before, overhead, bounds, values):
    """Return an active job's key of the instant."""
    segment = ledger.jobs[job, SEGMENT]
    if by == STATIC:
        return float(position[job])
    if by == ATTAINED:
        attained = run_before[job]
        if segment >= 0:
            attained = run_before[job] + now - ledger.start[segment]
        return level(attained * gpus[job], bounds, values)
    if segment >= 0:
        left = time_left(ledger, job, now)
    else:
        left = ledger.work[job, LEFT]
        left += overhead if ledger.jobs[job, PREEMPTIONS] > 0 else 0.0
    return left * gpus[job] if by == SERVICE else left


@njit(cache=True)
def advance(
    owned, owned_node, owned_rows, owned_classes, owned_lists, submit, owned_kinds, position,
    gpus, entries, bounds, values, by, every, placement, strict, quota, overhead, until,
):  # fmt: skip
    """Fly on until the end, or until the record is full; return whether it is the end.

    Args:
        owned: the ledger.
        owned_node: free room.
        owned_rows: ditto.
        owned_classes: demand classes.
        owned_lists: lists of jobs.
        submit: Float array (m,), s.
        owned_kinds: Int array (m,), demand classes of the jobs.
        position: Int array (m,), static places.
        gpus: Float array (m,).
        entries: Int array (classes,), the most entries of a job.
        bounds: of levels of attained service.
        values: keys of these levels; empty = the service itself.
        by: `STATIC` ... `ATTAINED`.
        every: seconds between rounds, 0 = none.
        placement: placement code.
        strict: stop the walk at the first job beyond the quota.
        quota: GPU units of the cluster.
        overhead: seconds a preempted job pays when it resumes.
        until: horizon, s.
    """
    ledger = lent(owned)
    node, rows, classes = borrowed(owned_node), borrowed(owned_rows), borrowed(owned_classes)
    wait_keys, wait_jobs = borrowed(owned_lists.wait_keys), borrowed(owned_lists.wait_jobs)
    run_keys, run_jobs = borrowed(owned_lists.run_keys), borrowed(owned_lists.run_jobs)
    key_of, run_before = borrowed(owned_lists.key_of), borrowed(owned_lists.run_before)
    starting, dropped = borrowed(owned_lists.starting), borrowed(owned_lists.dropped)
    jobs, count, kinds = ledger.jobs, ledger.count, borrowed(owned_kinds)
    waiting, running = count[WAITING], count[RUNNING]
    arrived, rounds = count[ARRIVED], count[ROUNDS]
    stuck = np.zeros(len(classes), dtype=np.bool_)
    now = 0.0
    done = False
    while True:
        if count[DUE]:  # back with more room for what this instant starts
            now = owned_lists.clock[0]
        else:
            settle(ledger, now)
            now = next_instant(ledger, submit, arrived)
            is_round = False
            if every > 0.0:
                if running == 0 and waiting == 0 and now < np.inf:
                    rounds = max(rounds, int(np.ceil(now / every)))
                if (running > 0 or waiting > 0 or now < np.inf) and rounds * every <= now:
                    now = rounds * every
                    is_round = True
            if now > until or now == np.inf:
                done = True
                break
            count[POINTS] += 1
            while count[RUNNING] > 0 and ledger.ends[0] == now:
                job = finish(ledger, node, rows, classes, placement, now)
                running = remove_key(run_keys, run_jobs, running, key_of[job], job)
            while arrived < len(submit) and submit[arrived] == now:
                key = _key(
                    ledger, arrived, now, by, position, gpus, run_before, overhead, bounds, values
                )
                key_of[arrived] = key
                waiting = insert_key(wait_keys, wait_jobs, 0, waiting, key, arrived)
                count[ENTRIES] += entries[kinds[arrived]]
                arrived += 1
            if is_round:
                rounds += 1
            if by in (REMAINING, SERVICE) or (is_round and by == ATTAINED):
                for index in range(running):
                    job = run_jobs[index]
                    key_of[job] = _key(
                        ledger, job, now, by, position, gpus, run_before, overhead, bounds, values
                    )
                    run_keys[index] = key_of[job]
                sort(run_keys, run_jobs, running)
            if is_round and by == ATTAINED:
                for index in range(waiting):
                    job = wait_jobs[index]
                    key_of[job] = _key(
                        ledger, job, now, by, position, gpus, run_before, overhead, bounds, values
                    )
                    wait_keys[index] = key_of[job]
                sort(wait_keys, wait_jobs, waiting)
            if waiting == 0:
                continue
            used = ledger.offsets[count[SEGMENTS]]
            short = count[SEGMENTS] + waiting + 1 >= len(ledger.job)
            if short or used + count[ENTRIES] + 1 >= len(ledger.nodes):
                count[DUE] = 1
                owned_lists.clock[0] = now
                break
        count[DUE] = 0
        num_starting, num_dropped = walk(
            run_keys, run_jobs, running, wait_keys, wait_jobs, waiting, kinds, classes,
            quota, strict, starting, dropped,
        )  # fmt: skip
        for index in range(num_dropped):
            job = dropped[index]
            run_before[job] += now - ledger.start[jobs[job, SEGMENT]]
            preempt(ledger, node, rows, classes, placement, job, now)
        if num_dropped > 0:
            running = _kept(ledger, run_keys, run_jobs, running, runs=True)
            for index in range(num_dropped):
                job = dropped[index]
                if by in (REMAINING, SERVICE):
                    key_of[job] = _key(
                        ledger, job, now, by, position, gpus, run_before, overhead, bounds, values
                    )
                waiting = insert_key(wait_keys, wait_jobs, 0, waiting, key_of[job], job)
                count[ENTRIES] += entries[kinds[job]]
        stuck[:] = False
        placed = 0
        for index in range(num_starting):
            job = starting[index]
            kind = jobs[job, KIND]
            if stuck[kind]:
                continue
            offset = ledger.offsets[count[SEGMENTS]]
            taken = take(node, rows, classes, kind, placement, ledger.nodes, ledger.gpus, offset)
            if taken < 0:
                stuck[kind] = True
                continue
            begin(ledger, job, now, taken, overhead)
            running = insert_key(run_keys, run_jobs, 0, running, key_of[job], job)
            count[ENTRIES] -= entries[kind]
            placed += 1
        if placed > 0:
            waiting = _kept(ledger, wait_keys, wait_jobs, waiting, runs=False)
    count[WAITING], count[ROUNDS], count[ARRIVED] = waiting, rounds, arrived
    return done


@njit(cache=True)
def _kept(ledger, keys, jobs, size, runs):
    """Keep the jobs of a list that run, or that do not; return how many."""
    write = 0
    for index in range(size):
        job = jobs[index]
        if (ledger.jobs[job, SEGMENT] >= 0) == runs:
            keys[write] = keys[index]
            jobs[write] = job
            write += 1
    return write
