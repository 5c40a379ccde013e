"""The kernel for preemptive policies: the quota walk, done only where it can change anything.

Rank order merges running jobs (a `Ranked` list) with the heads of the waiting classes. Facts used
(skip; Q = the cluster's GPUs):

* Running jobs alone are within Q, so before any waiting job is chosen none of them is dropped.
* Time alone changes nothing: running jobs only move forward past waiting ones, and neither a
  chosen nor a refused job's fate depends on that. So at an instant with arrivals only, and with
  nobody chosen but kept out by fragmentation, only the arrivals need be tried.
* Within a class, what the head is refused the others are refused too.

Arithmetic is the reference's, operation by operation. The one rounding case where they could differ
is two completion times that become equal when the instant is subtracted from them in float64;
times that are multiples of 2^-20 s below 2^32 s never do that.
"""

from __future__ import annotations

from collections import namedtuple
from typing import Any

import numpy as np
from numba import njit

from windtunnel.sim.compiled.borrow import borrowed
from windtunnel.sim.compiled.heaps import pop, pop_time, push, push_time
from windtunnel.sim.compiled.nodes import GPUS
from windtunnel.sim.compiled.ranked import GPUS as GPUS_OF
from windtunnel.sim.compiled.ranked import (
    LENGTH,
    ORDER,
    SUM,
    USED,
    insert,
    pass_before,
    pass_within,
    ranked,
    remove,
)
from windtunnel.sim.compiled.records import (
    Progress,
    Record,
    cut,
    empty_record,
    fresh_progress,
    larger_record,
)
from windtunnel.sim.compiled.room import give, most_entries, on_devices, take

#: Waiting jobs: per class a heap of (key, job) from ``class_start`` on, and ``waiting`` in it;
#: ``queued``: the classes that have some. ``chosen`` and ``dropped``: results of the walk.
Queues = namedtuple(  # noqa: PYI024 - numba needs the untyped kind
    "Queues", "keys jobs waiting queued is_queued refused stuck chosen dropped"
)
#: Indices into the kernel's counters, which let it return for more room and go on.
ARRIVED, POINTS, SEGMENTS, QUEUED, KEPT_OUT, ENDS, ENTRY, CHOSEN = range(8)


@njit(cache=True)
def _walk(
    keys, cells, blocks, shift, quota, strict, classes, class_start, queues, num_queued,
):  # fmt: skip
    """Do one quota walk: pop chosen waiting jobs, list running jobs to drop.

    Returns:
        How many were written to ``chosen`` (in rank order) and to ``dropped``.
    """
    for index in range(num_queued):
        queues.refused[queues.queued[index]] = False
    summary = len(blocks) - 1
    num_chosen = 0
    num_dropped = 0
    given = 0  # GPUs of chosen waiting jobs minus those of dropped running jobs, so far
    place, index, used = 0, 0, 0
    while True:
        best = -1
        for entry in range(num_queued):
            kind = queues.queued[entry]
            if queues.waiting[kind] == 0 or queues.refused[kind]:
                continue
            head = class_start[kind]
            if best < 0:
                best = kind
                continue
            other = class_start[best]
            if queues.keys[head] < queues.keys[other] or (
                queues.keys[head] == queues.keys[other] and queues.jobs[head] < queues.jobs[other]
            ):
                best = kind
        limit = quota - given
        over = False
        if blocks[summary, SUM] > limit:
            at, entry, before = pass_within(cells, blocks, place, index, used, limit)
            over = at < blocks[summary, USED]
        if best < 0 and not over:
            break
        if over:
            block = blocks[at, ORDER]
            key = keys[block, entry] - shift
            job = cells[block, entry]
            if best >= 0:
                head = class_start[best]
                over = key < queues.keys[head] or (
                    key == queues.keys[head] and job < queues.jobs[head]
                )
        if over:
            gpus = cells[block, GPUS_OF + entry]
            queues.dropped[num_dropped] = job
            num_dropped += 1
            given -= gpus
            place, index, used = at, entry + 1, before + gpus
            if index == blocks[block, LENGTH]:
                place, index = place + 1, 0
        else:
            head = class_start[best]
            place, index, used = pass_before(
                keys, cells, blocks, place, index, used, shift, queues.keys[head], queues.jobs[head]
            )
            if used + given + classes[best, GPUS] <= quota:
                queues.chosen[num_chosen] = queues.jobs[head]
                num_chosen += 1
                given += classes[best, GPUS]
                stop = class_start[best + 1]
                queues.waiting[best] = pop(
                    queues.keys[head:stop], queues.jobs[head:stop], queues.waiting[best]
                )
                continue
            queues.refused[best] = True
        if strict:
            while place < blocks[summary, USED]:
                block = blocks[place, ORDER]
                while index < blocks[block, LENGTH]:
                    queues.dropped[num_dropped] = cells[block, index]
                    num_dropped += 1
                    index += 1
                place, index = place + 1, 0
            break
    return num_chosen, num_dropped


@njit(cache=True)
def _queue(queues, class_start, kind, key, job, num_queued):
    """Add a job to its class; return the number of classes that have some."""
    first, stop = class_start[kind], class_start[kind + 1]
    queues.waiting[kind] = push(
        queues.keys[first:stop], queues.jobs[first:stop], queues.waiting[kind], key, job
    )
    if not queues.is_queued[kind]:
        queues.is_queued[kind] = True
        queues.queued[num_queued] = kind
        num_queued += 1
    return num_queued


@njit(cache=True)
def _advance(
    submit, duration, position, class_of, class_start, owned_node, owned_rows,
    owned_classes, owned_keys, owned_cells, owned_blocks, progress, owned_record, owned_queues,
    counters, clock, placement, devices, strict, quota, most, by_remaining, overhead, until,
):  # fmt: skip
    """Fly on until the end, or until the record is full; return whether it is the end."""
    node, rows, classes = borrowed(owned_node), borrowed(owned_rows), borrowed(owned_classes)
    keys, cells, blocks = borrowed(owned_keys), borrowed(owned_cells), borrowed(owned_blocks)
    summary = len(blocks) - 1
    record = Record(
        borrowed(owned_record.job), borrowed(owned_record.start), borrowed(owned_record.end),
        borrowed(owned_record.offsets), borrowed(owned_record.nodes), borrowed(owned_record.gpus),
        borrowed(owned_record.ends), borrowed(owned_record.ending),
    )  # fmt: skip
    queues = Queues(
        borrowed(owned_queues.keys), borrowed(owned_queues.jobs), borrowed(owned_queues.waiting),
        borrowed(owned_queues.queued), borrowed(owned_queues.is_queued),
        borrowed(owned_queues.refused), borrowed(owned_queues.stuck),
        borrowed(owned_queues.chosen), borrowed(owned_queues.dropped),
    )  # fmt: skip
    starts = borrowed(class_start)
    count = len(submit)
    arrived, points = counters[ARRIVED], counters[POINTS]
    segments, num_queued = counters[SEGMENTS], counters[QUEUED]
    kept_out, num_ends = counters[KEPT_OUT], counters[ENDS]
    entry, num_chosen = counters[ENTRY], counters[CHOSEN]
    now = clock[0]
    resuming = num_chosen > 0
    done = False
    while True:
        if not resuming:
            now = np.inf
            if by_remaining:
                if blocks[summary, USED] > 0:
                    now = keys[blocks[0, ORDER], 0]
            else:
                while num_ends > 0:
                    segment = record.ending[0]
                    if progress.segment_of[record.job[segment]] == segment:
                        now = record.ends[0]
                        break
                    num_ends = pop_time(record.ends, record.ending, num_ends)  # preempted since
            if arrived < count and submit[arrived] < now:
                now = submit[arrived]
            if now > until or now == np.inf:
                done = True
                break
            points += 1
            shift = now if by_remaining else 0.0
            completed = False
            while True:
                if by_remaining:
                    if blocks[summary, USED] == 0 or keys[blocks[0, ORDER], 0] != now:
                        break
                    job = cells[blocks[0, ORDER], 0]
                    segment = progress.segment_of[job]
                    remove(keys, cells, blocks, now, job)
                else:
                    if num_ends == 0 or record.ends[0] != now:
                        break
                    segment = record.ending[0]
                    num_ends = pop_time(record.ends, record.ending, num_ends)
                    job = record.job[segment]
                    if progress.segment_of[job] != segment:
                        continue  # preempted since
                    remove(keys, cells, blocks, float(position[job]), job)
                give(
                    node, rows, classes, class_of[job], placement, record.nodes, record.gpus,
                    record.offsets[segment], record.offsets[segment + 1], devices,
                )  # fmt: skip
                progress.end[job] = now
                progress.segment_of[job] = -1
                record.end[segment] = now
                completed = True
            news = arrived
            while arrived < count and submit[arrived] == now:
                key = duration[arrived] if by_remaining else float(position[arrived])
                num_queued = _queue(queues, starts, class_of[arrived], key, arrived, num_queued)
                arrived += 1
            if num_queued == 0:
                continue
            if not completed and kept_out == 0 and not strict:
                # Only arrivals can change anything; most are refused after one look.
                any_within = False
                for job in range(news, arrived):
                    want = classes[class_of[job], GPUS]
                    within = blocks[summary, SUM] + want <= quota
                    if not within:
                        key = duration[job] if by_remaining else float(position[job])
                        _, _, used = pass_before(keys, cells, blocks, 0, 0, 0, shift, key, job)
                        within = used + want <= quota
                    any_within = any_within or within
                if not any_within:
                    continue
            num_chosen, num_dropped = _walk(
                keys, cells, blocks, shift, quota, strict, classes, starts, queues, num_queued
            )
            for index in range(num_dropped):
                job = queues.dropped[index]
                kind = class_of[job]
                segment = progress.segment_of[job]
                key = progress.projected[job] if by_remaining else float(position[job])
                remove(keys, cells, blocks, key, job)
                give(
                    node, rows, classes, kind, placement, record.nodes, record.gpus,
                    record.offsets[segment], record.offsets[segment + 1], devices,
                )  # fmt: skip
                left = min(progress.remaining[job], progress.projected[job] - now)
                progress.remaining[job] = left
                progress.preemptions[job] += 1
                progress.segment_of[job] = -1
                record.end[segment] = now
                key = left + overhead if by_remaining else float(position[job])
                num_queued = _queue(queues, starts, kind, key, job, num_queued)
            for index in range(num_queued):
                queues.stuck[queues.queued[index]] = False
            kept_out = 0
            entry = 0
        resuming = False
        while entry < num_chosen:
            job = queues.chosen[entry]
            kind = class_of[job]
            offset = record.offsets[segments]
            room = len(record.nodes) - offset > most
            if segments + 2 > len(record.job) or not room:
                resuming = True
                break
            entry += 1
            taken = -1
            if not queues.stuck[kind]:
                taken = take(
                    node, rows, classes, kind, placement, record.nodes, record.gpus, offset, devices
                )
            if taken < 0:
                queues.stuck[kind] = True
                queues.chosen[kept_out] = job
                kept_out += 1
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
            if by_remaining:
                insert(keys, cells, blocks, end, job, classes[kind, GPUS])
            else:
                num_ends = push_time(record.ends, record.ending, num_ends, end, segments)
                insert(keys, cells, blocks, float(position[job]), job, classes[kind, GPUS])
            segments += 1
            record.offsets[segments] = offset + taken
        if resuming:
            break
        num_chosen = 0
        for index in range(kept_out):
            job = queues.chosen[index]
            key = float(position[job])
            if by_remaining:
                key = progress.remaining[job]
                if progress.preemptions[job] > 0:
                    key += overhead
            num_queued = _queue(queues, starts, class_of[job], key, job, num_queued)
        left_queued = 0
        for index in range(num_queued):
            kind = queues.queued[index]
            queues.is_queued[kind] = queues.waiting[kind] > 0
            if queues.is_queued[kind]:
                queues.queued[left_queued] = kind
                left_queued += 1
        num_queued = left_queued
    counters[ARRIVED], counters[POINTS] = arrived, points
    counters[SEGMENTS], counters[QUEUED] = segments, num_queued
    counters[KEPT_OUT], counters[ENDS] = kept_out, num_ends
    counters[ENTRY], counters[CHOSEN] = entry, num_chosen
    clock[0] = now
    return done


def fly(
    problem: Any, position: np.ndarray, class_start: np.ndarray, tables: Any, *,
    placement: int, strict: bool, by_remaining: bool, overhead: float, until: float,
) -> tuple[Progress, Record, int]:  # fmt: skip
    """Fly a problem's m jobs under a preemptive policy.

    Args:
        problem: jobs and cluster.
        position: Int array (m,), place of each job in the static order (unused by remaining time).
        class_start: Int array (classes + 1,), first place of each class among m.
        tables: free state and demand classes (`nodes.tables`).
        placement: placement code.
        strict: stop the walk at the first job beyond the quota.
        by_remaining: order by time left instead of by position.
        overhead: seconds a preempted job pays when it resumes.
        until: horizon, s.

    Returns:
        Progress and record (cut to what was used; jobs by arrival number), and the number of
        scheduling points.
    """
    count, kinds = len(problem.submit), len(class_start) - 1
    most = most_entries(problem)
    progress = fresh_progress(problem.duration)
    queues = Queues(
        np.empty(count),
        np.empty(count, dtype=np.int64),
        np.zeros(kinds, dtype=np.int64),
        np.empty(kinds, dtype=np.int64),
        np.zeros(kinds, dtype=np.bool_),
        np.zeros(kinds, dtype=np.bool_),
        np.zeros(kinds, dtype=np.bool_),
        np.empty(count, dtype=np.int64),
        np.empty(count, dtype=np.int64),
    )
    running = ranked(count)
    counters, clock = np.zeros(8, dtype=np.int64), np.zeros(1)
    record = empty_record(count + count // 4 + 64, 2 * (count + most) + 64)
    while not _advance(
        problem.submit, problem.duration, position, problem.demand_of, class_start, *tables,
        *running, progress, record, queues, counters, clock,
        placement, on_devices(problem), strict, problem.quota, most, by_remaining, overhead, until,
    ):  # fmt: skip
        record = larger_record(record)
    segments = int(counters[SEGMENTS])
    return progress, cut(record, segments), int(counters[POINTS])
