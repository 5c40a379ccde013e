"""The kernel for policies without preemption: strict and skip head of line.

A static order is one integer a job, its position; queues are heaps of positions. Skip keeps one
heap per demand class (what the head of a class cannot be given, no other job of it can), and
remembers which classes did not fit (`windtunnel.sim.compiled.waiting_classes`).
"""

from __future__ import annotations

import numpy as np
from numba import njit

from windtunnel.sim.compiled.borrow import borrowed
from windtunnel.sim.compiled.device_search import note_freed
from windtunnel.sim.compiled.heaps import pop_int, pop_time, push_int, push_time
from windtunnel.sim.compiled.room import ON_DEVICES, give, take
from windtunnel.sim.compiled.waiting_classes import (
    OPEN,
    TRIED,
    first_fitting,
    new_book,
    open_all,
    shut,
    take_out,
)


@njit(cache=True)
def fly(
    submit, duration, position, order, class_of, class_start, owned_node, owned_rows, owned_classes,
    placement, devices, strict, places, group_of, until,
):  # fmt: skip
    """Fly m jobs; see `windtunnel.sim.compiled.run` for the arguments.

    Returns:
        start (m,); segment_job (s,); node_offset (s + 1,); nodes, node_gpus; scheduling points.
        Jobs by arrival number; a job has one segment at most, and ends at start + duration.
    """
    node, rows, classes = borrowed(owned_node), borrowed(owned_rows), borrowed(owned_classes)
    count = len(submit)
    start = np.full(count, np.nan)
    segment_job = np.empty(count, dtype=np.int64)
    offsets = np.zeros(count + 1, dtype=np.int64)
    # Arrays are made as large as they could ever get, and never again: memory that is not touched
    # costs nothing, while a variable that may be reassigned in the loop is counted in every turn.
    owned_nodes = np.empty(places, dtype=np.int32)
    owned_gpus = np.empty(places, dtype=np.int64)
    nodes, gpus = borrowed(owned_nodes), borrowed(owned_gpus)
    segments = 0
    # What a completion needs is kept in a slot per running job: the slots of a few thousand running
    # jobs stay in the processor's cache, the rows of a million jobs do not.
    slot_kind = np.empty(count, dtype=np.int64)
    slot_begin = np.empty(count, dtype=np.int64)
    slot_stop = np.empty(count, dtype=np.int64)
    slots = np.empty(count, dtype=np.int64)  # a stack of slots given back
    num_slots = 0
    spare = 0
    owned_ends = np.empty(count)
    owned_ending = np.empty(count, dtype=np.int64)
    ends, ending = borrowed(owned_ends), borrowed(owned_ending)
    num_running = 0
    # One heap of positions (strict), or one per class, each from its class_start on.
    owned_heap = np.empty(count, dtype=np.int64)
    heap = borrowed(owned_heap)
    kinds = len(class_start) - 1
    waiting = np.zeros(kinds, dtype=np.int64)
    owned_book = new_book(group_of)
    book = borrowed(owned_book)
    num_open = 0
    owned_freed = np.empty(64, dtype=np.int64)  # nodes on which room was given back
    freed = borrowed(owned_freed)
    num_strict = 0
    refused = -1
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
        num_freed = 0
        while num_running > 0 and ends[0] == now:
            slot = ending[0]
            num_running = pop_time(ends, ending, num_running)
            slots[spare] = slot
            spare += 1
            give(
                node, rows, classes, slot_kind[slot], placement,
                nodes, gpus, slot_begin[slot], slot_stop[slot], devices,
            )  # fmt: skip
            completed = True
            if devices is not None and placement >= ON_DEVICES:
                num_freed = note_freed(freed, num_freed, nodes, slot_begin[slot], slot_stop[slot])
        while arrived < count and submit[arrived] == now:
            if strict:
                num_strict = push_int(heap, 0, num_strict, position[arrived])
            else:
                kind = class_of[arrived]
                if waiting[kind] == 0:
                    book[OPEN, num_open] = kind
                    num_open += 1
                waiting[kind] = push_int(heap, class_start[kind], waiting[kind], position[arrived])
            arrived += 1
        # With devices, shut classes are tried on the nodes that were freed; where these are more
        # than are noted, everywhere.
        noted = placement >= ON_DEVICES and 0 < num_freed < len(freed)
        if completed and not strict and not noted:
            num_open = open_all(book, num_open)
        while True:
            # The next candidate: the head of the queue, or the best head of an open class.
            place = -1
            if strict:
                # A head that did not fit does not fit until something completes or it is no longer
                # the head.
                if num_strict == 0 or (heap[0] == refused and not completed):
                    break
                job = order[heap[0]]
            else:
                best = count
                for index in range(num_open):
                    kind = book[OPEN, index]
                    if heap[class_start[kind]] < best:
                        best = heap[class_start[kind]]
                        place = index
                reopened = -1
                if devices is not None and noted:
                    reopened = first_fitting(
                        book, node, rows, classes, freed, num_freed, points,
                        heap, class_start, best,
                    )  # fmt: skip
                if reopened >= 0:
                    place = -1
                    best = heap[class_start[reopened]]
                elif place < 0:
                    break
                job = order[best]
            kind = class_of[job]
            offset = offsets[segments]
            taken = take(node, rows, classes, kind, placement, nodes, gpus, offset, devices)
            if taken < 0:
                if strict:
                    refused = heap[0]
                    break
                if place < 0:
                    book[TRIED, kind] = points
                    continue
                num_open -= 1
                book[OPEN, place] = book[OPEN, num_open]
                shut(book, kind, points)
                continue
            if strict:
                num_strict = pop_int(heap, 0, num_strict)
            else:
                waiting[kind] = pop_int(heap, class_start[kind], waiting[kind])
                if waiting[kind] == 0 and place < 0:
                    take_out(book, kind)
                elif waiting[kind] == 0:
                    num_open -= 1
                    book[OPEN, place] = book[OPEN, num_open]
            start[job] = now
            segment_job[segments] = job
            segments += 1
            offsets[segments] = offset + taken
            if spare > 0:
                spare -= 1
                slot = slots[spare]
            else:
                slot = num_slots
                num_slots += 1
            slot_kind[slot] = kind
            slot_begin[slot] = offset
            slot_stop[slot] = offset + taken
            num_running = push_time(ends, ending, num_running, now + duration[job], slot)
    used = offsets[segments]
    owners = len(owned_heap) + len(owned_ends) + len(owned_ending) + len(owned_freed)
    owners += len(owned_book)  # alive to the last line
    return (
        start, segment_job[:segments], offsets[: segments + 1],
        owned_nodes[:used], owned_gpus[:used], points, owners,
    )  # fmt: skip
