"""The kernel for quotas with borrowing, without preemption: twin of `windtunnel.policies.quota`.

Waiting jobs stand in *heaps* of places in the order of priority and arrival: one a queue where its
first job holds up the others, else one a line (a queue's jobs of one demand class). Less room or
quota never lets a job start: who was refused is refused again, unseen, until either is given back,
and at an instant at which neither is only queues with an arrival have a turn. There each heap's
first job has one, refused before or not, because its turn decides when the queue's next job has.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from windtunnel.sim.compiled.borrow import borrowed
from windtunnel.sim.compiled.device_search import may_fit, note_freed
from windtunnel.sim.compiled.heaps import pop_int, pop_time, push_int, push_time
from windtunnel.sim.compiled.room import ON_DEVICES, give, take

#: Planes of ``quota`` (5, A, F): nominal quota, what of it is not lent, most that is borrowed (-1 =
#: no limit), usage; and of cohorts, what all put in less what they take out, in rows by cohort.
NOMINAL, KEPT, LIMIT, USAGE, POOL = range(5)
#: Columns of ``queues`` (A, 2): cohort (-1 = none), the cohort's lendable quota of all flavors.
COHORT, LENDABLE = range(2)
#: Rows of ``heads`` (4, heaps): how many wait; the first job's place if it was refused, else -1;
#: the decision at which it was; its queue.
WAITING, REFUSED, TRIED, QUEUE = range(4)
#: Rows of ``jobs`` (5, m): place in the order; job at each place; line; amount; heap.
POSITION, ORDER, LINE, AMOUNT, HEAP = range(5)


@njit(cache=True)
def _book(quota, queues, queue, flavor, amount):
    """Let a queue use so much more of a flavor."""
    kept, before = quota[KEPT, queue, flavor], quota[USAGE, queue, flavor]
    quota[USAGE, queue, flavor] = before + amount
    cohort = queues[queue, COHORT]
    if cohort >= 0:
        drawn = max(0, before + amount - kept) - max(0, before - kept)
        quota[POOL, cohort, flavor] -= drawn


@njit(cache=True)
def _available(quota, queues, queue, flavor):
    """Return what a queue may still take of a flavor."""
    nominal, used = quota[NOMINAL, queue, flavor], quota[USAGE, queue, flavor]
    cohort = queues[queue, COHORT]
    if cohort < 0:
        return nominal - used
    kept, limit = quota[KEPT, queue, flavor], quota[LIMIT, queue, flavor]
    lent = quota[POOL, cohort, flavor]
    if limit >= 0:
        lent = min(lent, nominal - kept - max(0, used - kept) + limit)
    return max(0, kept - used) + lent


@njit(cache=True)
def _share(quota, queues, weight, queue, flavor, amount):
    """Return a queue's weighted share of its cohort with so much more of a flavor."""
    over = 0
    for other in range(quota.shape[2]):
        more = amount if other == flavor else 0
        over += max(0, quota[USAGE, queue, other] + more - quota[NOMINAL, queue, other])
    if over == 0:
        return 0.0
    lendable = queues[queue, LENDABLE]
    return over / lendable / weight[queue] if lendable else np.inf


@njit(cache=True)
def _turn(quota, queues, weight, fair, flavors, line, queue, amount):
    """Return whether a job would borrow, and, with fair sharing, its queue's share then."""
    borrows = 1
    share = np.inf if fair else 0.0
    for index in range(flavors.shape[1]):
        flavor = flavors[line, index]
        if flavor < 0:
            break
        if quota[USAGE, queue, flavor] + amount <= quota[NOMINAL, queue, flavor]:
            borrows = 0
        if fair:
            share = min(share, _share(quota, queues, weight, queue, flavor, amount))
    return borrows, share


@njit(cache=True)
def _first(heads, heap, heap_start, begin, end, point):
    """Return which of a queue's heaps has the first job not refused in a decision; -1 = none."""
    found = -1
    for entry in range(begin, end):
        first = heap_start[entry]
        if heads[WAITING, entry] == 0 or heads[TRIED, entry] == point:
            continue
        if found < 0 or heap[first] < heap[heap_start[found]]:
            found = entry
    return found


@njit(cache=True)
def fly(
    submit, duration, jobs, owned_node, owned_rows, owned_classes, placement, places, heap_start,
    queue_start, flavors, fits, quota, queues, weight, fair, until,
):  # fmt: skip
    """Fly m jobs; see `windtunnel.sim.compiled.cohort_flights` for the arguments.

    Returns:
        As `windtunnel.sim.compiled.queue_kernel.fly`.
    """
    node, rows, classes = borrowed(owned_node), borrowed(owned_rows), borrowed(owned_classes)
    count, num_queues, num_heaps = len(submit), len(queue_start) - 1, len(heap_start) - 1
    start = np.full(count, np.nan)
    segment_job = np.empty(count, dtype=np.int64)
    segment_of = np.empty(count, dtype=np.int64)
    held = np.empty((2, count), dtype=np.int64)  # by job: the demand placed, the flavor
    offsets = np.zeros(count + 1, dtype=np.int64)
    owned_nodes, owned_gpus = np.empty(places, np.int32), np.empty(places, np.int64)
    nodes, gpus = borrowed(owned_nodes), borrowed(owned_gpus)
    segments = 0
    owned_ends, owned_ending = np.empty(count), np.empty(count, np.int64)
    ends, ending = borrowed(owned_ends), borrowed(owned_ending)
    num_running = 0
    owned_heap, owned_heads = np.empty(count, np.int64), np.full((4, num_heaps), -1, np.int64)
    heap, heads = borrowed(owned_heap), borrowed(owned_heads)
    heads[WAITING] = 0
    for queue in range(num_queues):
        heads[QUEUE, queue_start[queue] : queue_start[queue + 1]] = queue
    unfit = np.zeros(len(classes), dtype=np.bool_)
    any_unfit = False
    candidate = np.full(num_queues, -1, dtype=np.int64)  # the heap whose first job stands
    borrowing = np.zeros(num_queues, dtype=np.int64)
    shares = np.zeros(num_queues)
    stale = np.zeros(num_queues, dtype=np.bool_)  # whose turn is to be worked out
    owned_freed = np.empty(64, np.int64)  # nodes on which room was given back
    freed = borrowed(owned_freed)
    arrived, points = 0, 0
    while True:
        now = np.inf
        if num_running > 0:
            now = ends[0]
        if arrived < count and submit[arrived] < now:
            now = submit[arrived]
        if now > until or now == np.inf:
            break
        points += 1
        num_freed = 0
        completed = False
        while num_running > 0 and ends[0] == now:
            job = ending[0]
            num_running = pop_time(ends, ending, num_running)
            segment = segment_of[job]
            give(
                node, rows, classes, held[0, job], placement,
                nodes, gpus, offsets[segment], offsets[segment + 1],
            )  # fmt: skip
            queue = heads[QUEUE, jobs[HEAP, job]]
            _book(quota, queues, queue, held[1, job], -jobs[AMOUNT, job])
            completed = True
            if placement >= ON_DEVICES:
                num_freed = note_freed(
                    freed, num_freed, nodes, offsets[segment], offsets[segment + 1]
                )
        while arrived < count and submit[arrived] == now:
            entry = jobs[HEAP, arrived]
            heads[WAITING, entry] = push_int(
                heap, heap_start[entry], heads[WAITING, entry], jobs[POSITION, arrived]
            )
            stale[heads[QUEUE, entry]] = True
            arrived += 1
        if completed:
            stale[:] = True
            heads[REFUSED] = -1
            if any_unfit:
                noted = placement >= ON_DEVICES and 0 < num_freed < len(freed)
                any_unfit = False
                for fit in range(len(unfit)):
                    if unfit[fit]:
                        unfit[fit] = noted and not may_fit(
                            node, rows, classes, fit, freed, num_freed
                        )
                        any_unfit = any_unfit or unfit[fit]
        for queue in range(num_queues):
            if not stale[queue]:
                candidate[queue] = -1
        while True:
            # Whose turn it is: who borrows not, has the least share, is first in the order.
            best, place = -1, 0
            for queue in range(num_queues):
                if stale[queue]:
                    stale[queue] = False
                    entry = _first(
                        heads, heap, heap_start, queue_start[queue], queue_start[queue + 1], points
                    )
                    candidate[queue] = entry
                    if entry >= 0:
                        job = jobs[ORDER, heap[heap_start[entry]]]
                        borrowing[queue], shares[queue] = _turn(
                            quota, queues, weight, fair, flavors, jobs[LINE, job], queue,
                            jobs[AMOUNT, job],
                        )  # fmt: skip
                if candidate[queue] < 0:
                    continue
                at = heap[heap_start[candidate[queue]]]
                if best >= 0 and (
                    borrowing[queue] > borrowing[best]
                    or (
                        borrowing[queue] == borrowing[best]
                        and (
                            shares[queue] > shares[best]
                            or (shares[queue] == shares[best] and at > place)
                        )
                    )
                ):
                    continue
                best, place = queue, at
            if best < 0:
                break
            entry = candidate[best]
            stale[best] = True
            job = jobs[ORDER, place]
            line, amount = jobs[LINE, job], jobs[AMOUNT, job]
            if heads[REFUSED, entry] == place:
                heads[TRIED, entry] = points
                continue
            offset = offsets[segments]
            taken, fit, flavor = -1, -1, -1
            for index in range(flavors.shape[1]):
                flavor = flavors[line, index]
                if flavor < 0:
                    break
                fit = fits[line, index]
                if unfit[fit] or amount > _available(quota, queues, best, flavor):
                    continue
                taken = take(node, rows, classes, fit, placement, nodes, gpus, offset)
                if taken >= 0:
                    break
                unfit[fit] = True
                any_unfit = True
            if taken < 0:
                heads[REFUSED, entry] = place
                heads[TRIED, entry] = points
                continue
            heads[WAITING, entry] = pop_int(heap, heap_start[entry], heads[WAITING, entry])
            _book(quota, queues, best, flavor, amount)
            held[0, job], held[1, job] = fit, flavor
            start[job] = now
            segment_job[segments] = job
            segment_of[job] = segments
            segments += 1
            offsets[segments] = offset + taken
            num_running = push_time(ends, ending, num_running, now + duration[job], job)
    used = offsets[segments]
    owners = len(owned_heap) + len(owned_heads) + len(owned_ends) + len(owned_ending)
    owners += len(owned_freed)  # alive to the last line
    return (
        start, segment_job[:segments], offsets[: segments + 1],
        owned_nodes[:used], owned_gpus[:used], points, owners,
    )  # fmt: skip
