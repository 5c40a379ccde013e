"""The kernel for orders by usage with strict and skip head of line: keys change at every round.

Queues are heaps of (key, job), one for all jobs (strict) or one a demand class (skip). A class that
did not fit is shut until room is given back, whatever becomes of the keys: what its head cannot be
given, no other job of it can.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from windtunnel.sim.compiled.borrow import borrowed
from windtunnel.sim.compiled.device_search import may_fit, note_freed
from windtunnel.sim.compiled.heaps import pop, pop_time, push, push_time
from windtunnel.sim.compiled.room import ON_DEVICES, give, take
from windtunnel.sim.compiled.usage_keys import (
    EVERY,
    PARTS,
    RATE,
    SUBMIT,
    charge,
    heapify,
    key_of,
    next_round,
)

#: States of a class: nobody of it waits; it is worth trying; its head did not fit.
_ABSENT, _OPEN, _SHUT = range(3)
#: Rows of ``lists`` (3, queues): the classes that are open, those that are shut, each one's state.
OPEN, SHUT, STATE = range(3)


@njit(cache=True)
def _reopen(lists, num_open, num_shut, noted, node, rows, classes, freed, num_freed):
    """Open the shut classes that room given back may hold.

    Returns:
        How many classes are open, and how many are shut.
    """
    kept = 0
    for index in range(num_shut):
        kind = lists[SHUT, index]
        if noted and not may_fit(node, rows, classes, kind, freed, num_freed):
            lists[SHUT, kept] = kind
            kept += 1
            continue
        lists[OPEN, num_open] = kind
        lists[STATE, kind] = _OPEN
        num_open += 1
    return num_open, kept


@njit(cache=True)
def _best(lists, num_open, queue_start, keys, items):
    """Return which open queue has the least head: its index among them, -1 if none is open."""
    place = -1
    for index in range(num_open):
        first = queue_start[lists[OPEN, index]]
        if place >= 0:
            best = queue_start[lists[OPEN, place]]
            if keys[best] < keys[first] or (
                keys[best] == keys[first] and items[best] < items[first]
            ):
                continue
        place = index
    return place


@njit(cache=True)
def fly(
    duration, class_of, queue_start, owned_node, owned_rows, owned_classes, placement, strict,
    places, owned_books, shares, factors, terms, group_of, until,
):  # fmt: skip
    """Fly m jobs; see `windtunnel.sim.compiled.usage_flights` for the arguments.

    Returns:
        As `windtunnel.sim.compiled.queue_kernel.fly`.
    """
    node, rows, classes = borrowed(owned_node), borrowed(owned_rows), borrowed(owned_classes)
    books = borrowed(owned_books)
    count = len(duration)
    submit = terms[SUBMIT]
    start = np.full(count, np.nan)
    segment_job = np.empty(count, dtype=np.int64)
    segment_of = np.empty(count, dtype=np.int64)
    offsets = np.zeros(count + 1, dtype=np.int64)
    owned_nodes, owned_gpus = np.empty(places, np.int32), np.empty(places, np.int64)
    nodes, gpus = borrowed(owned_nodes), borrowed(owned_gpus)
    segments = 0
    owned_ends, owned_ending = np.empty(count), np.empty(count, np.int64)
    ends, ending = borrowed(owned_ends), borrowed(owned_ending)
    num_running = 0
    queues = len(queue_start) - 1
    owned_keys, owned_items = np.empty(count), np.empty(count, np.int64)
    keys, items = borrowed(owned_keys), borrowed(owned_items)
    owned_waiting, owned_lists = np.zeros(queues, np.int64), np.zeros((3, queues), np.int64)
    waiting, lists = borrowed(owned_waiting), borrowed(owned_lists)
    owned_freed = np.empty(64, np.int64)  # nodes on which room was given back
    freed = borrowed(owned_freed)
    num_open, num_shut, num_waiting = 0, 0, 0
    refused = np.int64(-1)  # the job that did not fit last
    arrived, points, count_rounds = 0, 0, np.int64(0)
    rate, every = factors[RATE], factors[EVERY]
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
        num_freed = 0
        completed = False
        while num_running > 0 and ends[0] == now:
            job = ending[0]
            num_running = pop_time(ends, ending, num_running)
            segment = segment_of[job]
            give(
                node, rows, classes, class_of[job], placement,
                nodes, gpus, offsets[segment], offsets[segment + 1],
            )  # fmt: skip
            charge(books, group_of[job], -terms[PARTS, job], rate, now)
            completed = True
            if placement >= ON_DEVICES:
                num_freed = note_freed(
                    freed, num_freed, nodes, offsets[segment], offsets[segment + 1]
                )
        while arrived < count and submit[arrived] == now:
            queue = 0 if strict else class_of[arrived]
            key = key_of(books, shares, factors, terms, group_of, arrived, now)
            first = queue_start[queue]
            waiting[queue] = push(keys[first:], items[first:], waiting[queue], key, arrived)
            if lists[STATE, queue] == _ABSENT:
                lists[STATE, queue] = _OPEN
                lists[OPEN, num_open] = queue
                num_open += 1
            num_waiting += 1
            arrived += 1
        if count_rounds * every == now:
            count_rounds += 1
            for queue in range(queues):
                first = queue_start[queue]
                for entry in range(first, first + waiting[queue]):
                    keys[entry] = key_of(books, shares, factors, terms, group_of, items[entry], now)
                heapify(keys, items, first, waiting[queue])
        if completed or (strict and num_shut > 0 and items[0] != refused):
            noted = not strict and placement >= ON_DEVICES and 0 < num_freed < len(freed)
            num_open, num_shut = _reopen(
                lists, num_open, num_shut, noted, node, rows, classes, freed, num_freed
            )
        while num_open > 0:
            place = _best(lists, num_open, queue_start, keys, items)
            queue = lists[OPEN, place]
            first = queue_start[queue]
            job = items[first]
            kind = class_of[job]
            offset = offsets[segments]
            taken = take(node, rows, classes, kind, placement, nodes, gpus, offset)
            if taken >= 0:
                waiting[queue] = pop(keys[first:], items[first:], waiting[queue])
                num_waiting -= 1
                start[job] = now
                segment_job[segments] = job
                segment_of[job] = segments
                segments += 1
                offsets[segments] = offset + taken
                num_running = push_time(ends, ending, num_running, now + duration[job], job)
                charge(books, group_of[job], terms[PARTS, job], rate, now)
                if waiting[queue] > 0:
                    continue
                lists[STATE, queue] = _ABSENT
            else:
                lists[STATE, queue] = _SHUT
                lists[SHUT, num_shut] = queue
                num_shut += 1
                refused = job
            num_open -= 1
            lists[OPEN, place] = lists[OPEN, num_open]
    used = offsets[segments]
    owners = len(owned_keys) + len(owned_items) + len(owned_ends) + len(owned_ending)
    owners += len(owned_waiting) + len(owned_lists) + len(owned_freed)  # alive to the last line
    return (
        start, segment_job[:segments], offsets[: segments + 1],
        owned_nodes[:used], owned_gpus[:used], points, owners,
    )  # fmt: skip
