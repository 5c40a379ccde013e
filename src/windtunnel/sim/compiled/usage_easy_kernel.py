"""The kernel for EASY backfilling under orders by usage: keys change at every round.

It is `windtunnel.sim.compiled.easy_kernel` but for the queue, which is a list sorted by (key, job).
"""

from __future__ import annotations

import numpy as np
from numba import njit

from windtunnel.sim.compiled.borrow import borrowed
from windtunnel.sim.compiled.heaps import pop_time, push_time
from windtunnel.sim.compiled.room import give, take
from windtunnel.sim.compiled.shadow import promise, spares_head
from windtunnel.sim.compiled.sorted_lists import insert_int, insert_key, insert_time, remove_time
from windtunnel.sim.compiled.usage_keys import (
    EVERY,
    PARTS,
    RATE,
    SUBMIT,
    charge,
    heapify,
    key_of,
    next_round,
    sift_down,
)


@njit(cache=True)
def _sort(keys, jobs, size):
    """Sort the first entries by (key, job), unless they are sorted."""
    for index in range(1, size):
        if keys[index] < keys[index - 1] or (
            keys[index] == keys[index - 1] and jobs[index] < jobs[index - 1]
        ):
            break
    else:
        return
    for index in range(size):  # heaps have their least entry first: sort by the reverse
        keys[index] = -keys[index]
        jobs[index] = -jobs[index]
    heapify(keys, jobs, 0, size)
    for last in range(size - 1, 0, -1):
        keys[0], keys[last] = keys[last], keys[0]
        jobs[0], jobs[last] = jobs[last], jobs[0]
        sift_down(keys, jobs, 0, last, 0)
    for index in range(size):
        keys[index] = -keys[index]
        jobs[index] = -jobs[index]


@njit(cache=True)
def fly(
    duration, estimate, by_estimate, estimated, class_of, owned_node, owned_rows, owned_classes,
    placement, shortest_first, places, most, kept, owned_books, shares, factors, terms, group_of,
    until,
):  # fmt: skip
    """Fly m jobs; see `windtunnel.sim.compiled.usage_flights` for the arguments.

    ``by_estimate`` is each job's place by (estimate, arrival), ``estimated`` the job at each place.

    Returns:
        As `windtunnel.sim.compiled.queue_kernel.fly`.
    """
    node, rows, classes = borrowed(owned_node), borrowed(owned_rows), borrowed(owned_classes)
    books = borrowed(owned_books)
    submit = terms[SUBMIT]
    count = len(submit)
    start = np.full(count, np.nan)
    segment_job = np.empty(count, dtype=np.int64)
    segment_of = np.empty(count, dtype=np.int64)
    offsets = np.zeros(count + 1, dtype=np.int64)
    owned_nodes = np.empty(places, dtype=np.int32)
    owned_gpus = np.empty(places, dtype=np.int64)
    nodes, gpus = borrowed(owned_nodes), borrowed(owned_gpus)
    segments = 0
    owned_ends, owned_ending = np.empty(count), np.empty(count, dtype=np.int64)
    ends, ending = borrowed(owned_ends), borrowed(owned_ending)
    owned_expected, owned_expecting = np.empty(count), np.empty(count, dtype=np.int64)
    expected, expecting = borrowed(owned_expected), borrowed(owned_expecting)
    num_running = 0
    owned_keys, owned_queue = np.empty(count), np.empty(count, dtype=np.int64)
    keys, queue = borrowed(owned_keys), borrowed(owned_queue)
    first, last = 0, 0
    count_rounds = np.int64(0)
    rate, every = factors[RATE], factors[EVERY]
    candidates = np.empty(count if shortest_first else 0, dtype=np.int64)
    num_candidates = 0
    num_waiting = 0
    owned_shadow, owned_marks = owned_node.copy(), owned_rows[:kept].copy()
    shadow, marks = borrowed(owned_shadow), borrowed(owned_marks)
    spare_nodes, spare_gpus = np.empty(most + 1, np.int32), np.empty(most + 1, np.int64)
    refused = np.full(len(classes), -1, dtype=np.int64)  # by class: the decision that had no room
    arrived = 0
    points = 0
    while True:
        now = np.inf
        if num_running > 0:
            now = ends[0]
        if arrived < count and submit[arrived] < now:
            now = submit[arrived]
        count_rounds = next_round(count_rounds, every, now, num_running + num_waiting > 0)
        if now == np.inf:
            break
        now = min(now, count_rounds * every)
        if now > until:
            break
        points += 1
        while num_running > 0 and ends[0] == now:
            job = ending[0]
            remove_time(expected, expecting, num_running, start[job] + estimate[job], job)
            num_running = pop_time(ends, ending, num_running)
            segment = segment_of[job]
            give(
                node, rows, classes, class_of[job], placement,
                nodes, gpus, offsets[segment], offsets[segment + 1],
            )  # fmt: skip
            charge(books, group_of[job], -terms[PARTS, job], rate, now)
        while arrived < count and submit[arrived] == now:
            key = key_of(books, shares, factors, terms, group_of, arrived, now)
            last = insert_key(keys, queue, first, last, key, arrived)
            if shortest_first:
                num_candidates = insert_int(candidates, 0, num_candidates, by_estimate[arrived])
            num_waiting += 1
            arrived += 1
        if count_rounds * every == now:
            count_rounds += 1
            size = 0
            for entry in range(first, last):
                job = queue[entry]
                if np.isnan(start[job]):
                    keys[size] = key_of(books, shares, factors, terms, group_of, job, now)
                    queue[size] = job
                    size += 1
            _sort(keys, queue, size)
            first, last = 0, size
        # Two passes: the head of the queue as long as it fits, then what may go before it.
        head = -1
        deadline = np.inf
        walk = first
        write = first
        while True:
            if head < 0:
                while first < last and not np.isnan(start[queue[first]]):
                    first += 1
                if first == last:
                    break
                job = queue[first]
            else:
                if walk >= (num_candidates if shortest_first else last):
                    break
                job = estimated[candidates[walk]] if shortest_first else queue[walk]
                walk += 1
                if not np.isnan(start[job]):
                    continue  # started from the other list
                if shortest_first:
                    candidates[write] = by_estimate[job]
                else:
                    keys[write] = keys[walk - 1]
                    queue[write] = job
                write += 1
                if job == head:
                    continue
            kind = class_of[job]
            if refused[kind] == points:
                continue
            offset = offsets[segments]
            taken = take(node, rows, classes, kind, placement, nodes, gpus, offset)
            if taken < 0:
                refused[kind] = points
                if head >= 0:
                    continue
                if num_waiting == 1:
                    break
                head = job
                deadline = promise(
                    node, rows, shadow, marks, classes, kind, placement, class_of, segment_of,
                    offsets, nodes, gpus, expected, expecting, num_running, now,
                    spare_nodes, spare_gpus,
                )  # fmt: skip
                walk = 0 if shortest_first else first
                write = walk
                continue
            if head >= 0:
                if now + estimate[job] > deadline and not spares_head(
                    node, rows, shadow, marks, classes, kind, placement,
                    nodes, gpus, offset, offset + taken,
                ):  # fmt: skip
                    continue
                write -= 1
            else:
                first += 1
            num_waiting -= 1
            start[job] = now
            segment_job[segments] = job
            segment_of[job] = segments
            segments += 1
            offsets[segments] = offset + taken
            insert_time(expected, expecting, num_running, now + estimate[job], job)
            num_running = push_time(ends, ending, num_running, now + duration[job], job)
            charge(books, group_of[job], terms[PARTS, job], rate, now)
        if head >= 0:
            if shortest_first:
                num_candidates = write
            else:
                last = write
        if first == last:
            first = last = 0
    used = offsets[segments]
    owners = len(owned_ends) + len(owned_ending) + len(owned_expected) + len(owned_expecting)
    owners += (
        len(owned_shadow) + len(owned_marks) + len(owned_keys) + len(owned_queue)
    )  # alive to the last line
    return (
        start, segment_job[:segments], offsets[: segments + 1],
        owned_nodes[:used], owned_gpus[:used], points, owners,
    )  # fmt: skip
