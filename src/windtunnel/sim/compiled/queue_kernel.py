"""The kernel for policies without preemption: strict and skip head of line.

A static order is one integer a job, its position; queues are heaps of positions. Skip keeps one
heap per demand class (what the head of a class cannot be given, no other job of it can), and
remembers which classes are blocked: until something completes, they stay so. (Where node sizes
differ a gang's layout may fit *because* something started, so there each instant tries again.)
"""

from __future__ import annotations

import numpy as np
from numba import njit

from windtunnel.sim.compiled.heaps import grown, pop, pop_int, push, push_int
from windtunnel.sim.compiled.nodes import give, take


@njit(cache=True)
def fly(  # type: ignore[no-untyped-def]
    submit, duration, position, order, class_of, class_start, classes, state,
    placement, strict, monotone, span, until,
):  # fmt: skip
    """Fly m jobs; see `windtunnel.sim.compiled.run` for the arguments.

    Returns:
        start, end (m,); segment_job, segment_start, segment_end (s,); node_offset (s + 1,);
        nodes, node_gpus; scheduling points. Jobs by arrival number; a job has one segment at most.
    """
    count = len(submit)
    start = np.full(count, np.nan)
    end = np.full(count, np.nan)
    segment_of = np.full(count, -1, dtype=np.int64)
    segment_job = np.empty(count, dtype=np.int64)
    offsets = np.zeros(count + 1, dtype=np.int64)
    nodes = np.empty(count + 2 * span + 64, dtype=np.int64)
    gpus = np.empty(count + 2 * span + 64, dtype=np.int64)
    segments = 0
    ends = np.empty(1024)
    ending = np.empty(1024, dtype=np.int64)
    num_running = 0
    heap = np.empty(count, dtype=np.int64)  # one heap (strict), or one per class from class_start
    kinds = len(class_start) - 1
    waiting = np.zeros(kinds, dtype=np.int64)
    blocked = np.zeros(kinds, dtype=np.bool_)
    queued = np.empty(kinds, dtype=np.int64)  # the classes that have waiting jobs
    num_queued = 0
    num_strict = 0
    arrived = 0
    points = 0
    while True:
        now = np.inf
        if num_running > 0:
            now = ends[0]
        if arrived < count and submit[arrived] < now:
            now = submit[arrived]
        if now > until or now == np.inf:
            break
        points += 1
        completed = False
        while num_running > 0 and ends[0] == now:
            job = ending[0]
            num_running = pop(ends, ending, num_running)
            end[job] = now
            segment = segment_of[job]
            give(
                state, classes, class_of[job], placement,
                nodes, gpus, offsets[segment], offsets[segment + 1],
            )  # fmt: skip
            completed = True
        while arrived < count and submit[arrived] == now:
            if strict:
                num_strict = push_int(heap, 0, num_strict, position[arrived])
            else:
                kind = class_of[arrived]
                if waiting[kind] == 0:
                    queued[num_queued] = kind
                    num_queued += 1
                    blocked[kind] = False
                waiting[kind] = push_int(heap, class_start[kind], waiting[kind], position[arrived])
            arrived += 1
        if completed or not monotone:
            for index in range(num_queued):
                blocked[queued[index]] = False
        while True:
            # The next candidate: the head of the queue, or the best head of an unblocked class.
            place = -1
            if strict:
                if num_strict == 0:
                    break
                job = order[heap[0]]
            else:
                best = count
                for index in range(num_queued):
                    kind = queued[index]
                    if not blocked[kind] and heap[class_start[kind]] < best:
                        best = heap[class_start[kind]]
                        place = index
                if place < 0:
                    break
                job = order[best]
            kind = class_of[job]
            offset = offsets[segments]
            if offset + span > len(nodes):
                nodes = grown(nodes)
                gpus = grown(gpus)
            taken = take(state, classes, kind, placement, nodes, gpus, offset)
            if taken < 0:
                if strict:
                    break
                blocked[kind] = True
                continue
            if strict:
                num_strict = pop_int(heap, 0, num_strict)
            else:
                waiting[kind] = pop_int(heap, class_start[kind], waiting[kind])
                if waiting[kind] == 0:
                    num_queued -= 1
                    queued[place] = queued[num_queued]
            start[job] = now
            segment_of[job] = segments
            segment_job[segments] = job
            segments += 1
            offsets[segments] = offset + taken
            if num_running == len(ends):
                ends = grown(ends)
                ending = grown(ending)
            num_running = push(ends, ending, num_running, now + duration[job], job)
    used = offsets[segments]
    return (
        start, end, segment_job[:segments], offsets[: segments + 1],
        nodes[:used], gpus[:used], points,
    )  # fmt: skip
