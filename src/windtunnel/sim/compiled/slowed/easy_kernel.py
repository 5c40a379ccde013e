"""The kernel for EASY backfilling with slow-downs; see the plain `easy_kernel`.

Expected ends stay what the estimates say, whatever the rates.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from windtunnel.sim.compiled.borrow import borrowed
from windtunnel.sim.compiled.room import take
from windtunnel.sim.compiled.shadow import promise, spares_head
from windtunnel.sim.compiled.slowed.company import settle
from windtunnel.sim.compiled.slowed.ledger import (
    KIND,
    POINTS,
    RUNNING,
    SEGMENT,
    SEGMENTS,
    START,
    lent,
)
from windtunnel.sim.compiled.slowed.stays import begin, finish, next_instant
from windtunnel.sim.compiled.sorted_lists import insert_int, insert_time, remove_time


@njit(cache=True)
def fly(
    owned, owned_node, owned_rows, owned_classes, submit, estimate, position, order, by_estimate,
    estimated, placement, shortest_first, most, kept, until,
):  # fmt: skip
    """Fly m jobs; the ledger is the result. See `windtunnel.sim.compiled.slowed.run`.

    ``by_estimate`` is each job's place by (estimate, arrival), ``estimated`` the job at each place.
    """
    ledger = lent(owned)
    node, rows, classes = borrowed(owned_node), borrowed(owned_rows), borrowed(owned_classes)
    nodes, gpus, offsets = ledger.nodes, ledger.gpus, ledger.offsets
    jobs, work = ledger.jobs, ledger.work
    kind_of, segment_of = jobs[:, KIND], jobs[:, SEGMENT]
    count = len(submit)
    owned_expected, owned_expecting = np.empty(count), np.empty(count, dtype=np.int64)
    expected, expecting = borrowed(owned_expected), borrowed(owned_expecting)
    queue = np.empty(count, dtype=np.int64)
    first, last = 0, 0
    candidates = np.empty(count if shortest_first else 0, dtype=np.int64)
    num_candidates = 0
    num_waiting = 0
    owned_shadow, owned_marks = owned_node.copy(), owned_rows[:kept].copy()
    shadow, marks = borrowed(owned_shadow), borrowed(owned_marks)
    spare_nodes, spare_gpus = np.empty(most + 1, np.int32), np.empty(most + 1, np.int64)
    refused = np.full(len(classes), -1, dtype=np.int64)  # by class: the decision that had no room
    arrived = points = 0
    now = 0.0
    while True:
        settle(ledger, now)
        now = next_instant(ledger, submit, arrived)
        if now > until or now == np.inf:
            break
        points += 1
        while ledger.count[RUNNING] > 0 and ledger.ends[0] == now:
            num_running = ledger.count[RUNNING]
            job = finish(ledger, node, rows, classes, placement, now)
            remove_time(expected, expecting, num_running, work[job, START] + estimate[job], job)
        while arrived < count and submit[arrived] == now:
            last = insert_int(queue, first, last, position[arrived])
            if shortest_first:
                num_candidates = insert_int(candidates, 0, num_candidates, by_estimate[arrived])
            num_waiting += 1
            arrived += 1
        # Two passes: the head of the queue as long as it fits, then what may go before it.
        head = -1
        deadline = np.inf
        walk = first
        write = first
        while True:
            if head < 0:
                while first < last and not np.isnan(work[order[queue[first]], START]):
                    first += 1
                if first == last:
                    break
                job = order[queue[first]]
            else:
                if walk >= (num_candidates if shortest_first else last):
                    break
                job = estimated[candidates[walk]] if shortest_first else order[queue[walk]]
                walk += 1
                if not np.isnan(work[job, START]):
                    continue  # started from the other list
                if shortest_first:
                    candidates[write] = by_estimate[job]
                else:
                    queue[write] = position[job]
                write += 1
                if job == head:
                    continue
            kind = kind_of[job]
            if refused[kind] == points:
                continue
            offset = offsets[ledger.count[SEGMENTS]]
            taken = take(node, rows, classes, kind, placement, nodes, gpus, offset)
            if taken < 0:
                refused[kind] = points
                if head >= 0:
                    continue
                if num_waiting == 1:
                    break
                head = job
                deadline = promise(
                    node, rows, shadow, marks, classes, kind, placement, kind_of, segment_of,
                    offsets, nodes, gpus, expected, expecting, ledger.count[RUNNING], now,
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
            insert_time(expected, expecting, ledger.count[RUNNING], now + estimate[job], job)
            begin(ledger, job, now, taken, 0.0)
        if head >= 0:
            if shortest_first:
                num_candidates = write
            else:
                last = write
        if first == last:
            first = last = 0
    ledger.count[POINTS] = points
    owners = len(owned_expected) + len(owned_expecting) + len(owned_shadow) + len(owned_marks)
    return owners + len(owned.job) + len(owned_node) + len(owned_rows) + len(owned_classes)
