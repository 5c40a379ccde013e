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

import numpy as np
from numba import njit

from windtunnel.sim.compiled.heaps import grown, pop, push
from windtunnel.sim.compiled.nodes import give, take
from windtunnel.sim.compiled.ranked import insert, pass_before, pass_within, ranked, remove


@njit(cache=True)
def _walk(  # type: ignore[no-untyped-def]
    running, shift, quota, strict, class_gpus, class_start, heap_keys, heap_jobs,
    waiting, queued, num_queued, refused, chosen, dropped,
):  # fmt: skip
    """Do one quota walk: pop chosen waiting jobs, list running jobs to drop.

    Returns:
        How many were written to ``chosen`` (in rank order) and to ``dropped``.
    """
    for index in range(num_queued):
        refused[queued[index]] = False
    num_chosen = 0
    num_dropped = 0
    given = 0  # GPUs of chosen waiting jobs minus those of dropped running jobs, so far
    place, index, used = 0, 0, 0
    while True:
        best = -1
        for entry in range(num_queued):
            kind = queued[entry]
            if waiting[kind] == 0 or refused[kind]:
                continue
            head = class_start[kind]
            if best < 0:
                best = kind
                continue
            other = class_start[best]
            if heap_keys[head] < heap_keys[other] or (
                heap_keys[head] == heap_keys[other] and heap_jobs[head] < heap_jobs[other]
            ):
                best = kind
        limit = quota - given
        over = False
        if running.size[2] > limit:
            at, entry, before = pass_within(running, place, index, used, limit)
            over = at < running.size[0]
        if best < 0 and not over:
            break
        if over:
            block = running.order[at]
            key = running.keys[block, entry] - shift
            job = running.jobs[block, entry]
            if best >= 0:
                head = class_start[best]
                over = key < heap_keys[head] or (key == heap_keys[head] and job < heap_jobs[head])
        if over:
            gpus = running.gpus[block, entry]
            dropped[num_dropped] = job
            num_dropped += 1
            given -= gpus
            place, index, used = at, entry + 1, before + gpus
            if index == running.length[block]:
                place, index = place + 1, 0
        else:
            head = class_start[best]
            place, index, used = pass_before(
                running, place, index, used, shift, heap_keys[head], heap_jobs[head]
            )
            if used + given + class_gpus[best] <= quota:
                chosen[num_chosen] = heap_jobs[head]
                num_chosen += 1
                given += class_gpus[best]
                stop = class_start[best + 1]
                waiting[best] = pop(heap_keys[head:stop], heap_jobs[head:stop], waiting[best])
                continue
            refused[best] = True
        if strict:
            while place < running.size[0]:
                block = running.order[place]
                while index < running.length[block]:
                    dropped[num_dropped] = running.jobs[block, index]
                    num_dropped += 1
                    index += 1
                place, index = place + 1, 0
            break
    return num_chosen, num_dropped


@njit(cache=True)
def fly(  # type: ignore[no-untyped-def]
    submit, duration, position, class_of, class_start, classes, state, placement,
    strict, by_remaining, overhead, monotone, span, until,
):  # fmt: skip
    """Fly m jobs; see `windtunnel.sim.compiled.run` for the arguments.

    Returns:
        start, end, run_time, preemptions (m,); segment_job, segment_start, segment_end (s,);
        node_offset (s + 1,); nodes, node_gpus; scheduling points. Jobs by arrival number.
    """
    count = len(submit)
    kinds = len(class_start) - 1
    quota = state.total[0]
    start = np.full(count, np.nan)
    end = np.full(count, np.nan)
    run_time = np.zeros(count)
    preemptions = np.zeros(count, dtype=np.int64)
    remaining = duration.copy()
    projected = np.empty(count)
    segment_of = np.full(count, -1, dtype=np.int64)
    segment_job = np.empty(count + 64, dtype=np.int64)
    segment_start = np.empty(count + 64)
    segment_end = np.empty(count + 64)
    offsets = np.zeros(count + 65, dtype=np.int64)
    nodes = np.empty(count + 2 * span + 64, dtype=np.int64)
    gpus = np.empty(count + 2 * span + 64, dtype=np.int64)
    segments = 0
    running = ranked(count)
    ends = np.empty(1024)  # completions of a static order: (end, segment), stale ones included
    ending = np.empty(1024, dtype=np.int64)
    num_ends = 0
    heap_keys = np.empty(count)
    heap_jobs = np.empty(count, dtype=np.int64)
    waiting = np.zeros(kinds, dtype=np.int64)
    refused = np.zeros(kinds, dtype=np.bool_)
    stuck = np.zeros(kinds, dtype=np.bool_)
    is_queued = np.zeros(kinds, dtype=np.bool_)
    queued = np.empty(kinds, dtype=np.int64)
    num_queued = 0
    chosen = np.empty(count, dtype=np.int64)
    dropped = np.empty(count, dtype=np.int64)
    kept_out = 0  # chosen at the last decision, but kept out by fragmentation
    arrived = 0
    points = 0
    while True:
        now = np.inf
        if by_remaining:
            if running.size[0] > 0:
                now = running.keys[running.order[0], 0]
        else:
            while num_ends > 0 and segment_of[segment_job[ending[0]]] != ending[0]:
                num_ends = pop(ends, ending, num_ends)
            if num_ends > 0:
                now = ends[0]
        if arrived < count and submit[arrived] < now:
            now = submit[arrived]
        if now > until or now == np.inf:
            break
        points += 1
        shift = now if by_remaining else 0.0
        completed = False
        while True:
            if by_remaining:
                if running.size[0] == 0 or running.keys[running.order[0], 0] != now:
                    break
                job = running.jobs[running.order[0], 0]
                remove(running, now, job)
            else:
                while num_ends > 0 and segment_of[segment_job[ending[0]]] != ending[0]:
                    num_ends = pop(ends, ending, num_ends)
                if num_ends == 0 or ends[0] != now:
                    break
                job = segment_job[ending[0]]
                num_ends = pop(ends, ending, num_ends)
                remove(running, float(position[job]), job)
            segment = segment_of[job]
            give(
                state, classes, class_of[job], placement,
                nodes, gpus, offsets[segment], offsets[segment + 1],
            )  # fmt: skip
            end[job] = now
            segment_end[segment] = now
            run_time[job] += now - segment_start[segment]
            segment_of[job] = -1
            completed = True
        news = arrived
        while arrived < count and submit[arrived] == now:
            kind = class_of[arrived]
            key = remaining[arrived] if by_remaining else float(position[arrived])
            first, stop = class_start[kind], class_start[kind + 1]
            waiting[kind] = push(
                heap_keys[first:stop], heap_jobs[first:stop], waiting[kind], key, arrived
            )
            if not is_queued[kind]:
                is_queued[kind] = True
                queued[num_queued] = kind
                num_queued += 1
            arrived += 1
        if num_queued == 0:
            continue
        if not completed and kept_out == 0 and not strict:
            # Only arrivals can change anything; most are refused after one look.
            any_within = False
            for job in range(news, arrived):
                key = remaining[job] if by_remaining else float(position[job])
                want = classes.gpus[class_of[job]]
                within = running.size[2] + want <= quota
                if not within:
                    _, _, used = pass_before(running, 0, 0, 0, shift, key, job)
                    within = used + want <= quota
                any_within = any_within or within
            if not any_within:
                continue
        num_chosen, num_dropped = _walk(
            running, shift, quota, strict, classes.gpus, class_start,
            heap_keys, heap_jobs, waiting, queued, num_queued, refused, chosen, dropped,
        )  # fmt: skip
        for entry in range(num_dropped):
            job = dropped[entry]
            kind = class_of[job]
            segment = segment_of[job]
            remove(running, projected[job] if by_remaining else float(position[job]), job)
            give(
                state, classes, kind, placement,
                nodes, gpus, offsets[segment], offsets[segment + 1],
            )  # fmt: skip
            remaining[job] = min(remaining[job], projected[job] - now)
            preemptions[job] += 1
            segment_end[segment] = now
            run_time[job] += now - segment_start[segment]
            segment_of[job] = -1
            key = remaining[job] + overhead if by_remaining else float(position[job])
            first, stop = class_start[kind], class_start[kind + 1]
            waiting[kind] = push(
                heap_keys[first:stop], heap_jobs[first:stop], waiting[kind], key, job
            )
            if not is_queued[kind]:
                is_queued[kind] = True
                queued[num_queued] = kind
                num_queued += 1
        for index in range(num_queued):
            stuck[queued[index]] = False
        kept_out = 0
        for entry in range(num_chosen):
            job = chosen[entry]
            kind = class_of[job]
            taken = -1
            offset = offsets[segments]
            if not (stuck[kind] and monotone):
                if offset + span > len(nodes):
                    nodes = grown(nodes)
                    gpus = grown(gpus)
                taken = take(state, classes, kind, placement, nodes, gpus, offset)
            if taken < 0:
                stuck[kind] = True
                chosen[kept_out] = job
                kept_out += 1
                continue
            if preemptions[job] > 0:
                projected[job] = now + overhead + remaining[job]
            else:
                projected[job] = now + remaining[job]
                start[job] = now
            if segments + 1 == len(segment_job):
                segment_job = grown(segment_job)
                segment_start = grown(segment_start)
                segment_end = grown(segment_end)
                offsets = grown(offsets)
            segment_of[job] = segments
            segment_job[segments] = job
            segment_start[segments] = now
            segment_end[segments] = np.nan
            key = projected[job]
            if not by_remaining:
                if num_ends == len(ends):
                    ends = grown(ends)
                    ending = grown(ending)
                num_ends = push(ends, ending, num_ends, key, segments)
                key = float(position[job])
            insert(running, key, job, classes.gpus[kind])
            segments += 1
            offsets[segments] = offset + taken
        for entry in range(kept_out):
            job = chosen[entry]
            kind = class_of[job]
            key = float(position[job])
            if by_remaining:
                key = remaining[job] + (overhead if preemptions[job] > 0 else 0.0)
            first, stop = class_start[kind], class_start[kind + 1]
            waiting[kind] = push(
                heap_keys[first:stop], heap_jobs[first:stop], waiting[kind], key, job
            )
        left = 0
        for index in range(num_queued):
            kind = queued[index]
            is_queued[kind] = waiting[kind] > 0
            if is_queued[kind]:
                queued[left] = kind
                left += 1
        num_queued = left
    if until != np.inf:
        for segment in range(segments):
            if np.isnan(segment_end[segment]):
                run_time[segment_job[segment]] += until - segment_start[segment]
    used = offsets[segments]
    return (
        start, end, run_time, preemptions,
        segment_job[:segments], segment_start[:segments], segment_end[:segments],
        offsets[: segments + 1], nodes[:used], gpus[:used], points,
    )  # fmt: skip
