"""The kernel for preemptive orders by service: twin of the reference's quota walk with such keys.

Two kinds of keys. *Attained* service is looked at when a job arrives and at rounds, and mapped to a
level by a table (or taken as it is). *Remaining* service is that of the instant, at every decision.
Waiting and running jobs stand in two sorted lists, which the walk merges: the service of waiting
jobs does not change, so only the running ones are ever sorted again.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

from windtunnel.sim.compiled.heaps import pop_time, push_time
from windtunnel.sim.compiled.nodes import GPUS
from windtunnel.sim.compiled.records import (
    Progress,
    Record,
    cut,
    empty_record,
    fresh_progress,
    larger_record,
)
from windtunnel.sim.compiled.room import give, most_entries, on_devices, take
from windtunnel.sim.compiled.sorted_lists import insert_key, remove_key

#: Indices into the counters, which let the kernel return for more room and go on.
ARRIVED, POINTS, SEGMENTS, WAITING, RUNNING, ENDS, ENTRY, STARTING, ROUNDS, STOPPED = range(10)


@njit(cache=True)
def sort(keys, jobs, size):
    """Sort a list that is nearly sorted by (key, job)."""
    for index in range(1, size):
        key, job = keys[index], jobs[index]
        place = index
        while place > 0 and (
            keys[place - 1] > key or (keys[place - 1] == key and jobs[place - 1] > job)
        ):
            keys[place] = keys[place - 1]
            jobs[place] = jobs[place - 1]
            place -= 1
        keys[place] = key
        jobs[place] = job


@njit(cache=True)
def level(attained, bounds, values):
    """Return the key of an attained service: its level's value, or itself without levels."""
    if len(values) == 0:
        return attained
    return values[np.searchsorted(bounds, attained, side="right")]


@njit(cache=True)
def walk(
    run_keys, run_jobs, running, wait_keys, wait_jobs, waiting, class_of, classes, quota, strict,
    starting, dropped,
):  # fmt: skip
    """Do one quota walk; return how many waiting jobs it chose and how many running it drops."""
    num_starting = 0
    num_dropped = 0
    left, right = 0, 0
    stopped = False
    while left < running or (right < waiting and not stopped):
        from_waiting = left == running
        if not from_waiting and right < waiting and not stopped:
            from_waiting = wait_keys[right] < run_keys[left] or (
                wait_keys[right] == run_keys[left] and wait_jobs[right] < run_jobs[left]
            )
        if from_waiting:
            job = wait_jobs[right]
            right += 1
        else:
            job = run_jobs[left]
            left += 1
        want = classes[class_of[job], GPUS]
        if want <= quota and not stopped:
            quota -= want
            if from_waiting:
                starting[num_starting] = job
                num_starting += 1
        else:
            if not from_waiting:
                dropped[num_dropped] = job
                num_dropped += 1
            stopped = stopped or strict
    return num_starting, num_dropped


@njit(cache=True)
def _advance(
    submit, gpus, class_of, node, rows, classes, progress, run_before, record, wait_keys, wait_jobs,
    run_keys, run_jobs, key_of, starting, dropped, stopped, is_stopped, counters, clock, bounds,
    values, attained, every, placement, devices, strict, quota, most, overhead, until,
):  # fmt: skip
    """Fly on until the end, or until the record is full; return whether it is the end."""
    count = len(submit)
    arrived, points, segments = counters[ARRIVED], counters[POINTS], counters[SEGMENTS]
    waiting, running, num_ends = counters[WAITING], counters[RUNNING], counters[ENDS]
    entry, num_starting, rounds = counters[ENTRY], counters[STARTING], counters[ROUNDS]
    num_stopped = counters[STOPPED]
    stuck = np.zeros(len(classes), dtype=np.bool_)
    now = clock[0]
    resuming = num_starting > 0
    done = False
    while True:
        if not resuming:
            now = np.inf
            while num_ends > 0:
                segment = record.ending[0]
                if progress.segment_of[record.job[segment]] == segment:
                    now = record.ends[0]
                    break
                num_ends = pop_time(record.ends, record.ending, num_ends)  # preempted since
            if arrived < count and submit[arrived] < now:
                now = submit[arrived]
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
            points += 1
            while num_ends > 0 and record.ends[0] == now:
                segment = record.ending[0]
                num_ends = pop_time(record.ends, record.ending, num_ends)
                job = record.job[segment]
                if progress.segment_of[job] != segment:
                    continue  # preempted since
                running = remove_key(run_keys, run_jobs, running, key_of[job], job)
                give(
                    node, rows, classes, class_of[job], placement, record.nodes, record.gpus,
                    record.offsets[segment], record.offsets[segment + 1], devices,
                )  # fmt: skip
                progress.end[job] = now
                progress.segment_of[job] = -1
                record.end[segment] = now
            while arrived < count and submit[arrived] == now:
                key = progress.remaining[arrived] * gpus[arrived]
                if attained:
                    key = level(0.0, bounds, values)
                key_of[arrived] = key
                waiting = insert_key(wait_keys, wait_jobs, 0, waiting, key, arrived)
                arrived += 1
            if is_round:
                rounds += 1
            if waiting == 0 and not is_round:
                continue
            if is_round or not attained:
                for index in range(running):
                    job = run_jobs[index]
                    if attained:
                        start = record.start[progress.segment_of[job]]
                        service = (run_before[job] + now - start) * gpus[job]
                        key = level(service, bounds, values)
                    else:
                        key = (progress.projected[job] - now) * gpus[job]
                    run_keys[index] = key
                    key_of[job] = key
                sort(run_keys, run_jobs, running)
            if is_round and attained:
                # Jobs that were stopped since the last round wait with a key of that round.
                for index in range(num_stopped):
                    job = stopped[index]
                    is_stopped[job] = False
                    if progress.segment_of[job] >= 0 or not np.isnan(progress.end[job]):
                        continue
                    waiting = remove_key(wait_keys, wait_jobs, waiting, key_of[job], job)
                    key_of[job] = level(run_before[job] * gpus[job], bounds, values)
                    waiting = insert_key(wait_keys, wait_jobs, 0, waiting, key_of[job], job)
                num_stopped = 0
            if waiting == 0:
                continue
            num_starting, num_dropped = walk(
                run_keys, run_jobs, running, wait_keys, wait_jobs, waiting, class_of, classes,
                quota, strict, starting, dropped,
            )  # fmt: skip
            for index in range(num_dropped):
                job = dropped[index]
                segment = progress.segment_of[job]
                give(
                    node, rows, classes, class_of[job], placement, record.nodes, record.gpus,
                    record.offsets[segment], record.offsets[segment + 1], devices,
                )  # fmt: skip
                left = min(progress.remaining[job], progress.projected[job] - now)
                progress.remaining[job] = left
                run_before[job] += now - record.start[segment]
                progress.preemptions[job] += 1
                progress.segment_of[job] = -1
                record.end[segment] = now
            if num_dropped > 0:
                write = 0
                for index in range(running):
                    job = run_jobs[index]
                    if progress.segment_of[job] >= 0:
                        run_keys[write] = run_keys[index]
                        run_jobs[write] = job
                        write += 1
                running = write
                for index in range(num_dropped):
                    job = dropped[index]
                    if attained and not is_stopped[job]:
                        is_stopped[job] = True
                        stopped[num_stopped] = job
                        num_stopped += 1
                    if not attained:
                        key_of[job] = (progress.remaining[job] + overhead) * gpus[job]
                    waiting = insert_key(wait_keys, wait_jobs, 0, waiting, key_of[job], job)
            stuck[:] = False
            entry = 0
        resuming = False
        placed = 0
        while entry < num_starting:
            job = starting[entry]
            kind = class_of[job]
            offset = record.offsets[segments]
            room = len(record.nodes) - offset > most
            if segments + 2 > len(record.job) or not room:
                resuming = True
                break
            entry += 1
            if stuck[kind]:
                continue
            taken = take(
                node, rows, classes, kind, placement, record.nodes, record.gpus, offset, devices
            )
            if taken < 0:
                stuck[kind] = True
                continue
            if progress.preemptions[job] > 0:
                end = now + overhead + progress.remaining[job]
            else:
                end = now + progress.remaining[job]
                progress.start[job] = now
            progress.projected[job] = end
            progress.segment_of[job] = segments
            record.job[segments] = job
            record.start[segments] = now
            record.end[segments] = np.nan
            num_ends = push_time(record.ends, record.ending, num_ends, end, segments)
            segments += 1
            record.offsets[segments] = offset + taken
            running = insert_key(run_keys, run_jobs, 0, running, key_of[job], job)
            placed += 1
        if placed > 0:
            write = 0
            for index in range(waiting):
                job = wait_jobs[index]
                if progress.segment_of[job] < 0:
                    wait_keys[write] = wait_keys[index]
                    wait_jobs[write] = job
                    write += 1
            waiting = write
        if resuming:
            break
        num_starting = 0
    counters[ARRIVED], counters[POINTS], counters[SEGMENTS] = arrived, points, segments
    counters[WAITING], counters[RUNNING], counters[ENDS] = waiting, running, num_ends
    counters[ENTRY], counters[STARTING], counters[ROUNDS] = entry, num_starting, rounds
    counters[STOPPED] = num_stopped
    clock[0] = now
    return done


def fly(
    problem: Any, tables: Any, *, bounds: np.ndarray, values: np.ndarray, attained: bool,
    every: float, placement: int, strict: bool, overhead: float, until: float,
) -> tuple[Progress, Record, int]:  # fmt: skip
    """Fly a problem's m jobs under a preemptive order by service.

    Args:
        problem: jobs and cluster.
        tables: free state and demand classes (`nodes.tables`).
        bounds: Float array (levels - 1,), GPU-seconds from which the next level begins.
        values: Float array (levels,), key of each level; empty = the service itself.
        attained: order by attained service, else by remaining service.
        every: seconds between rounds, 0 = none.
        placement: placement code.
        strict: stop the walk at the first job beyond the quota.
        overhead: seconds a preempted job pays when it resumes.
        until: horizon, s.

    Returns:
        As `windtunnel.sim.compiled.quota_kernel.fly`.
    """
    count, most = len(problem.submit), most_entries(problem)
    progress = fresh_progress(problem.duration)
    lists = [np.empty(count), np.empty(count, np.int64), np.empty(count), np.empty(count, np.int64)]
    counters, clock = np.zeros(10, dtype=np.int64), np.zeros(1)
    run_before, key_of = np.zeros(count), np.empty(count)
    starting, dropped = np.empty(count, np.int64), np.empty(count, np.int64)
    stopped, is_stopped = np.empty(count, np.int64), np.zeros(count, dtype=np.bool_)
    gpus = np.ascontiguousarray(problem.jobs.num_gpus[problem.rows])
    record = empty_record(count + count // 4 + 64, 2 * (count + most) + 64)
    while not _advance(
        problem.submit, gpus, problem.demand_of, *tables, progress, run_before, record, *lists,
        key_of, starting, dropped, stopped, is_stopped, counters, clock, bounds, values, attained,
        every, placement, on_devices(problem), strict, problem.quota, most, overhead, until,
    ):  # fmt: skip
        record = larger_record(record)
    segments = int(counters[SEGMENTS])
    return progress, cut(record, segments), int(counters[POINTS])
