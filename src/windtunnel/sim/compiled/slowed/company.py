"""Who is beside whom, and at what rate: the twin of `windtunnel.sim.neighbours` and `rates`."""

from __future__ import annotations

import numpy as np
from numba import njit

from windtunnel.sim.compiled.slowed.ledger import (
    ALSO,
    ASKED,
    BEFORE,
    BY_COMPANY,
    BY_SHARING,
    CORES,
    CPU,
    DEVICES,
    EACH,
    FIRST,
    GRANTS,
    HELD,
    JOB,
    KIND,
    LAST,
    LEFT,
    LIMIT,
    LOCALITY,
    LOST,
    NAME,
    NEXT,
    NODE,
    NODES,
    NUM_TOUCHED,
    OF_DEVICES,
    OF_GPUS,
    OF_MILLI,
    OF_POOL,
    OVER_RACKS,
    PART,
    PARTS,
    PROJECTED,
    RACK,
    RACKS,
    RATE,
    RESUMED,
    SERIAL,
    SINCE,
    SPARE,
    SPREAD,
    STAMP,
    TASKS,
    TOUCHED,
    move_end,
)


@njit(cache=True)
def enter(ledger, job, begin, end):
    """Note that a job has started on entries ``begin`` to ``end``."""
    jobs, parts, sites, count = ledger.jobs, ledger.parts, ledger.sites, ledger.count
    nodes, grants = ledger.nodes, ledger.gpus
    kind = jobs[job, KIND]
    jobs[job, PART] = -1
    if count[GRANTS] == OF_POOL:
        return
    num_nodes = num_racks = 0
    count[SERIAL] += 1
    entry = begin
    while entry < end:
        which = np.int64(nodes[entry])
        tasks = devices = np.int64(0)
        while entry < end and nodes[entry] == which:
            tasks += _tasks(ledger, kind, grants[entry])
            if count[GRANTS] == OF_DEVICES:
                devices |= grants[entry]
            entry += 1
        num_nodes += 1
        if sites[which, RACK] >= 0 and ledger.racks[sites[which, RACK]] != count[SERIAL]:
            ledger.racks[sites[which, RACK]] = count[SERIAL]
            num_racks += 1
        if not count[BY_COMPANY]:
            continue
        part = count[SPARE]
        if part >= 0:
            count[SPARE] = parts[part, NEXT]
        else:
            part = count[PARTS]
            count[PARTS] += 1
        cores = np.int64(np.rint(ledger.work[job, ASKED] * tasks / ledger.least[kind, TASKS]))
        parts[part, JOB] = job
        parts[part, NODE] = which
        parts[part, DEVICES] = devices
        parts[part, CORES] = cores
        sites[which, HELD] += cores
        before = sites[which, LAST]
        parts[part, BEFORE] = before
        parts[part, NEXT] = -1
        if before >= 0:
            parts[before, NEXT] = part
        else:
            sites[which, FIRST] = part
        sites[which, LAST] = part
        parts[part, ALSO] = jobs[job, PART]
        jobs[job, PART] = part
        _touch(ledger, which)
    factor = 1.0
    if num_nodes > ledger.least[kind, NODES]:
        factor = ledger.work[job, SPREAD]
    if num_racks > ledger.least[kind, RACKS]:
        factor *= ledger.model[OVER_RACKS]
    ledger.work[job, LOCALITY] = factor
    if not count[BY_COMPANY] and factor != 1.0:
        ledger.touched[count[NUM_TOUCHED]] = job
        count[NUM_TOUCHED] += 1


@njit(cache=True)
def leave(ledger, job):
    """Note that a job has left its nodes."""
    parts, sites, count = ledger.parts, ledger.sites, ledger.count
    part = ledger.jobs[job, PART]
    while part >= 0:
        which = parts[part, NODE]
        before, after = parts[part, BEFORE], parts[part, NEXT]
        if before >= 0:
            parts[before, NEXT] = after
        else:
            sites[which, FIRST] = after
        if after >= 0:
            parts[after, BEFORE] = before
        else:
            sites[which, LAST] = before
        sites[which, HELD] -= parts[part, CORES]
        _touch(ledger, which)
        parts[part, NEXT] = count[SPARE]
        count[SPARE] = part
        part = parts[part, ALSO]
    ledger.jobs[job, PART] = -1


@njit(cache=True)
def settle(ledger, now):
    """Give every job the rate that its neighbours now leave it."""
    jobs, parts, sites, count = ledger.jobs, ledger.parts, ledger.sites, ledger.count
    num_touched = count[NUM_TOUCHED]
    count[NUM_TOUCHED] = 0
    if not count[BY_COMPANY]:
        for index in range(num_touched):
            job = ledger.touched[index]
            _change(ledger, job, ledger.work[job, LOCALITY], now)
        return
    count[SERIAL] += 1
    for index in range(num_touched):
        which = ledger.touched[index]
        sites[which, TOUCHED] = 0
        part = sites[which, FIRST]
        while part >= 0:
            job = parts[part, JOB]
            if jobs[job, STAMP] != count[SERIAL]:
                jobs[job, STAMP] = count[SERIAL]
                _change(ledger, job, _rate(ledger, job), now)
            part = parts[part, NEXT]


@njit(cache=True)
def work_left(ledger, job, now):
    """Return a running job's work left, s at full speed."""
    work = ledger.work
    ahead = (work[job, PROJECTED] - now) * work[job, RATE]
    return min(work[job, LEFT], ahead)


@njit(cache=True)
def time_left(ledger, job, now):
    """Return the same with what the job still owes for resuming."""
    work = ledger.work
    if work[job, RATE] == 1.0:
        return work[job, PROJECTED] - now
    return work_left(ledger, job, now) + max(work[job, RESUMED] - now, 0.0)


@njit(cache=True)
def book(ledger, job, now):
    """Book what a job lost since its rate last changed."""
    work = ledger.work
    worked = now - max(work[job, SINCE], work[job, RESUMED])
    if worked > 0:
        work[job, LOST] += worked * (1.0 - work[job, RATE])
    work[job, SINCE] = now


@njit(cache=True)
def _change(ledger, job, rate, now):
    """Let a running job go on at another rate."""
    work = ledger.work
    if rate == work[job, RATE]:
        return
    left = work_left(ledger, job, now)
    book(ledger, job, now)
    work[job, LEFT] = left
    work[job, RATE] = rate
    end = now + max(work[job, RESUMED] - now, 0.0) + left / rate
    work[job, PROJECTED] = end
    move_end(ledger, end, job)


@njit(cache=True)
def _tasks(ledger, kind, grant):
    """Return how many tasks (of nodes without devices: GPUs) a grant serves."""
    what, each = ledger.count[GRANTS], ledger.least[kind, EACH]
    if what == OF_GPUS:
        return grant
    if each == 0:
        return np.int64(1)
    if what == OF_MILLI:
        return grant // each
    held = np.int64(0)
    while grant != 0:
        grant &= grant - 1
        held += 1
    return held // each


@njit(cache=True)
def _touch(ledger, which):
    if not ledger.sites[which, TOUCHED]:
        ledger.sites[which, TOUCHED] = 1
        ledger.touched[ledger.count[NUM_TOUCHED]] = which
        ledger.count[NUM_TOUCHED] += 1


@njit(cache=True)
def _rate(ledger, job):
    pace = 1.0
    part = ledger.jobs[job, PART]
    while part >= 0:
        pace = min(pace, _pace(ledger, job, part))
        part = ledger.parts[part, ALSO]
    return ledger.work[job, LOCALITY] * pace


@njit(cache=True)
def _pace(ledger, job, part):
    """Return how fast others let a job's tasks on one node be."""
    parts, sites = ledger.parts, ledger.sites
    which = parts[part, NODE]
    pace = 1.0
    if ledger.model[CPU] != 0.0 and sites[which, LIMIT] > 0:
        others = sites[which, HELD] - parts[part, CORES]
        pace -= ledger.model[CPU] * min(others / sites[which, LIMIT], 1.0)
    devices = parts[part, DEVICES]
    if not ledger.count[BY_SHARING] or devices == 0:
        return pace
    shared = 1.0
    while devices != 0:
        device = devices & -devices
        devices ^= device
        shared = min(shared, _beside(ledger, job, part, device))
    return pace * shared


@njit(cache=True)
def _beside(ledger, job, part, device):
    """Return the rate of a job beside the others on one device."""
    parts, jobs = ledger.parts, ledger.jobs
    name = jobs[job, NAME]
    beside = 0
    factor = 1.0
    cost = 0.0
    other = ledger.sites[parts[part, NODE], FIRST]
    while other >= 0:
        if other != part and parts[other, DEVICES] & device:
            neighbour = jobs[parts[other, JOB], NAME]
            factor = ledger.pairs[0, name, neighbour]
            cost += ledger.pairs[1, name, neighbour]
            beside += 1
        other = parts[other, NEXT]
    return factor if beside <= 1 else 1.0 / (1.0 + cost)
