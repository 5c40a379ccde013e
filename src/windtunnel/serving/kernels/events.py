"""The event-driven simulator: controller, group managers and stages that work through queues."""

from __future__ import annotations

import numpy as np
from numba import njit

#: Kinds of events: at the controller (never in the heap), at the group manager, ready for a stage.
_MANAGER, _STAGE, _DONE = range(3)


@njit(cache=True, nogil=True)
def _before(time, order, a, b):
    return time[a] < time[b] or (time[a] == time[b] and order[a] < order[b])


@njit(cache=True, nogil=True)
def _push(heap, size, slot, time, order):
    child = size
    heap[child] = slot
    while child > 0:
        parent = (child - 1) // 2
        if not _before(time, order, heap[child], heap[parent]):
            break
        heap[child], heap[parent] = heap[parent], heap[child]
        child = parent
    return size + 1


@njit(cache=True, nogil=True)
def _pop(heap, size, time, order):
    size -= 1
    heap[0], heap[size] = heap[size], heap[0]
    parent = 0
    while True:
        child = 2 * parent + 1
        if child >= size:
            break
        if child + 1 < size and _before(time, order, heap[child + 1], heap[child]):
            child += 1
        if not _before(time, order, heap[child], heap[parent]):
            break
        heap[child], heap[parent] = heap[parent], heap[child]
        parent = child
    return size


@njit(cache=True, nogil=True)
def serve(
    arrival, model, slo, at_controller, order_at, to_manager, to_engine, host_start, hosts,
    pair_first, clock_start, stage_time, margin,
):  # fmt: skip
    """Serve n requests; more arguments in `windtunnel.serving.kernels.immediate.serve`.

    Args:
        at_controller: when each request reaches the controller, (n,), s.
        order_at: requests in that order, (n,).
        to_manager, to_engine: delays of each request, (n,), s.
        margin: what the manager adds to a foreseen finish, s.

    Returns:
        group, start, finish as there; a served request may finish late. A request has one event
        under way at most, so that its index is the event's.
    """
    count = len(arrival)
    group = np.full(count, -1, dtype=np.int64)
    start = np.full(count, np.nan)
    finish = np.full(count, np.nan)
    groups = len(clock_start) - 1
    in_flight = np.zeros(groups, dtype=np.int64)
    stages_total = clock_start[groups]
    foreseen = np.zeros(stages_total)
    free = np.zeros(stages_total)
    pair_of = np.empty(count, dtype=np.int64)
    kind = np.empty(count, dtype=np.int64)
    stage = np.zeros(count, dtype=np.int64)
    time = np.empty(count)
    order = np.empty(count, dtype=np.int64)
    heap = np.empty(count + 1, dtype=np.int64)
    size = 0
    sequence = 0
    arrived = 0
    while arrived < count or size > 0:
        if size == 0 or (arrived < count and at_controller[order_at[arrived]] < time[heap[0]]):
            i = order_at[arrived]
            arrived += 1
            m = model[i]
            low = host_start[m]
            high = host_start[m + 1]
            if low == high:
                continue
            best = low
            for pair in range(low + 1, high):
                if in_flight[hosts[pair]] < in_flight[hosts[best]]:
                    best = pair
            pair_of[i] = best
            group[i] = hosts[best]
            in_flight[hosts[best]] += 1
            kind[i] = _MANAGER
            time[i] = at_controller[i] + to_manager[i]
            order[i] = sequence
            sequence += 1
            size = _push(heap, size, i, time, order)
            continue
        i = heap[0]
        size = _pop(heap, size, time, order)
        now = time[i]
        g = group[i]
        clock = clock_start[g]
        stages = clock_start[g + 1] - clock
        first = pair_first[pair_of[i]]
        if kind[i] == _MANAGER:
            done = now
            for k in range(stages):
                if foreseen[clock + k] > done:
                    done = foreseen[clock + k]
                done += stage_time[first + k]
            if done + margin - arrival[i] > slo[i]:
                in_flight[g] -= 1
                continue
            done = now
            for k in range(stages):
                if foreseen[clock + k] > done:
                    done = foreseen[clock + k]
                done += stage_time[first + k]
                foreseen[clock + k] = done
            kind[i] = _STAGE
            time[i] = now + to_engine[i]
        elif kind[i] == _STAGE:
            k = stage[i]
            begin = free[clock + k]
            if now > begin:
                begin = now
            if k == 0:
                start[i] = begin
            end = begin + stage_time[first + k]
            free[clock + k] = end
            stage[i] = k + 1
            time[i] = end
            if k + 1 == stages:
                kind[i] = _DONE
        else:
            finish[i] = now
            in_flight[g] -= 1
            continue
        order[i] = sequence
        sequence += 1
        size = _push(heap, size, i, time, order)
    return group, start, finish
