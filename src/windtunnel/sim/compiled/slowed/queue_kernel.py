"""The kernel for orders without preemption, strict and skip; see the plain `queue_kernel`."""

from __future__ import annotations

import numpy as np
from numba import njit

from windtunnel.sim.compiled.borrow import borrowed
from windtunnel.sim.compiled.device_search import note_freed
from windtunnel.sim.compiled.heaps import pop_int, push_int
from windtunnel.sim.compiled.room import ON_DEVICES, take
from windtunnel.sim.compiled.slowed.company import settle
from windtunnel.sim.compiled.slowed.ledger import (
    GROUP,
    KIND,
    POINTS,
    RUNNING,
    SEGMENT,
    SEGMENTS,
    lent,
)
from windtunnel.sim.compiled.slowed.stays import begin, finish, next_instant
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
    owned, owned_node, owned_rows, owned_classes, submit, position, order, class_start, placement,
    strict, until,
):  # fmt: skip
    """Fly m jobs; the ledger is the result. See `windtunnel.sim.compiled.slowed.run`."""
    ledger = lent(owned)
    node, rows, classes = borrowed(owned_node), borrowed(owned_rows), borrowed(owned_classes)
    count = len(submit)
    owned_heap = np.empty(count, dtype=np.int64)
    heap = borrowed(owned_heap)
    kinds = len(class_start) - 1
    waiting = np.zeros(kinds, dtype=np.int64)
    owned_book = new_book(ledger.least[:kinds, GROUP])
    book = borrowed(owned_book)
    num_open = 0
    owned_freed = np.empty(64, dtype=np.int64)  # nodes on which room was given back
    freed = borrowed(owned_freed)
    num_strict = 0
    refused = -1
    arrived = points = 0
    now = 0.0
    while True:
        settle(ledger, now)
        now = next_instant(ledger, submit, arrived)
        if now > until or now == np.inf:
            break
        points += 1
        completed = False
        num_freed = 0
        while ledger.count[RUNNING] > 0 and ledger.ends[0] == now:
            segment = ledger.jobs[ledger.ending[0], SEGMENT]
            finish(ledger, node, rows, classes, placement, now)
            completed = True
            num_freed = note_freed(
                freed, num_freed, ledger.nodes, ledger.offsets[segment], ledger.offsets[segment + 1]
            )
        while arrived < count and submit[arrived] == now:
            if strict:
                num_strict = push_int(heap, 0, num_strict, position[arrived])
            else:
                kind = ledger.jobs[arrived, KIND]
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
                if noted:
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
            kind = ledger.jobs[job, KIND]
            offset = ledger.offsets[ledger.count[SEGMENTS]]
            taken = take(node, rows, classes, kind, placement, ledger.nodes, ledger.gpus, offset)
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
            begin(ledger, job, now, taken, 0.0)
    ledger.count[POINTS] = points
    owners = len(owned_heap) + len(owned_book) + len(owned_freed)  # alive to the last line
    return owners + len(owned.job) + len(owned_node) + len(owned_rows) + len(owned_classes)
