"""The batching simulator: queues a model, and a batch whenever a group's first stage is idle."""

from __future__ import annotations

import cython
import numpy

from windtunnel.serving.kernels.stage_clocks import Clocks


def serve_batches(
    arrival: cython.const[cython.double][::1],
    model: cython.const[cython.longlong][::1],
    slo: cython.const[cython.double][::1],
    host_start: cython.const[cython.longlong][::1],
    hosts: cython.const[cython.longlong][::1],
    clock_start: cython.const[cython.longlong][::1],
    sizes: cython.const[cython.longlong][::1],
    batch_first: cython.const[cython.longlong][:, ::1],
    stage_time: numpy.ndarray,
    fixed: cython.double,
) -> tuple[numpy.ndarray, ...]:
    """Serve n requests; more arguments in `windtunnel.serving.kernels.immediate.serve_at_once`.

    Args:
        sizes: batch sizes, ascending, (sizes,).
        batch_first: first of a pair's stage times at each batch size, -1 where it has none,
            (pairs, sizes); the first size is always there.

    Returns:
        group, start, finish as there; batch (n,): requests in its batch; at (n,): the row of
        ``sizes`` that was paid for. Arrivals go to the group of fewest requests waiting or
        running; ties to the lowest.
    """
    count: cython.longlong = len(arrival)
    models: cython.longlong = len(host_start) - 1
    pairs: cython.longlong = len(hosts)
    groups: cython.longlong = len(clock_start) - 1
    chosen_group = numpy.full(count, -1, dtype=numpy.int64)
    started = numpy.full(count, numpy.nan)
    finished = numpy.full(count, numpy.nan)
    batches = numpy.zeros(count, dtype=numpy.int64)
    rows = numpy.zeros(count, dtype=numpy.int64)
    group: cython.longlong[::1] = chosen_group
    start: cython.double[::1] = started
    finish: cython.double[::1] = finished
    batch: cython.longlong[::1] = batches
    at: cython.longlong[::1] = rows
    clocks: Clocks = Clocks(numpy.full(clock_start[groups], -numpy.inf), stage_time)
    after: cython.longlong[::1] = numpy.full(count, -1, dtype=numpy.int64)
    head: cython.longlong[::1] = numpy.full(pairs, -1, dtype=numpy.int64)
    tail: cython.longlong[::1] = numpy.full(pairs, -1, dtype=numpy.int64)
    length: cython.longlong[::1] = numpy.zeros(pairs, dtype=numpy.int64)
    waiting: cython.longlong[::1] = numpy.zeros(groups, dtype=numpy.int64)
    running: cython.longlong[::1] = numpy.zeros(groups, dtype=numpy.int64)
    never: cython.double = numpy.inf
    i: cython.longlong
    g: cython.longlong
    k: cython.longlong
    m: cython.longlong
    s: cython.longlong
    pair: cython.longlong
    best: cython.longlong
    idle: cython.longlong
    fewest: cython.longlong
    chosen: cython.longlong
    best_size: cython.longlong
    clock: cython.longlong
    stages: cython.longlong
    first: cython.longlong
    base: cython.longlong
    taken: cython.longlong
    now: cython.double
    t: cython.double
    # Pairs by group: pair_at[pair_start[g] .. pair_start[g + 1]), models ascending.
    pair_start: cython.longlong[::1] = numpy.zeros(groups + 1, dtype=numpy.int64)
    for pair in range(pairs):
        pair_start[hosts[pair] + 1] += 1
    for g in range(groups):
        pair_start[g + 1] += pair_start[g]
    filled: cython.longlong[::1] = numpy.array(pair_start)
    pair_at: cython.longlong[::1] = numpy.empty(pairs, dtype=numpy.int64)
    for m in range(models):
        for pair in range(host_start[m], host_start[m + 1]):
            pair_at[filled[hosts[pair]]] = pair
            filled[hosts[pair]] += 1
    # Requests under way leave a group in the order of their batches: a ring of (finish, requests).
    ring_next: cython.longlong[::1] = numpy.full(count, -1, dtype=numpy.int64)
    ring_head: cython.longlong[::1] = numpy.full(groups, -1, dtype=numpy.int64)
    ring_tail: cython.longlong[::1] = numpy.full(groups, -1, dtype=numpy.int64)
    arrived: cython.longlong = 0
    with cython.nogil:
        while True:
            # The next instant: an arrival, or a first stage becomes idle with somebody waiting.
            now = never
            idle = -1
            for g in range(groups):
                if waiting[g] > 0 and clocks.free[clock_start[g]] < now:
                    now = clocks.free[clock_start[g]]
                    idle = g
            if arrived < count and arrival[arrived] <= now:
                i = arrived
                arrived += 1
                now = arrival[i]
                m = model[i]
                best = -1
                fewest = count + 1
                for pair in range(host_start[m], host_start[m + 1]):
                    g = hosts[pair]
                    while ring_head[g] >= 0 and finish[ring_head[g]] <= now:
                        running[g] -= batch[ring_head[g]]
                        ring_head[g] = ring_next[ring_head[g]]
                    if waiting[g] + running[g] < fewest:
                        fewest = waiting[g] + running[g]
                        best = pair
                if best < 0:
                    continue
                g = hosts[best]
                group[i] = g
                if head[best] < 0:
                    head[best] = i
                else:
                    after[tail[best]] = i
                tail[best] = i
                length[best] += 1
                waiting[g] += 1
                # An idle group starts now, after all arrivals of this instant are queued.
                if clocks.free[clock_start[g]] < now:
                    clocks.free[clock_start[g]] = now
                continue
            if idle < 0:
                break
            g = idle
            clock = clock_start[g]
            stages = clock_start[g + 1] - clock
            while waiting[g] > 0:
                chosen = -1
                for k in range(pair_start[g], pair_start[g + 1]):
                    pair = pair_at[k]
                    if head[pair] >= 0 and (chosen < 0 or head[pair] < head[chosen]):
                        chosen = pair
                first = head[chosen]
                best_size = -1
                for s in range(len(sizes)):
                    if sizes[s] > length[chosen] and s > 0:
                        break
                    base = batch_first[chosen, s]
                    if base < 0:
                        continue
                    t = clocks.passed(now, clock, base, stages)
                    if t + fixed - arrival[first] <= slo[first]:
                        best_size = s
                    elif s == 0:
                        break  # alone it is too late: the head is dropped
                if best_size < 0:
                    head[chosen] = after[first]
                    length[chosen] -= 1
                    waiting[g] -= 1
                    continue
                taken = sizes[best_size]
                base = batch_first[chosen, best_size]
                t = clocks.pass_on(now, clock, base, stages)
                i = first
                for _ in range(taken):
                    start[i] = now
                    finish[i] = t + fixed
                    batch[i] = taken
                    at[i] = best_size
                    i = after[i]
                head[chosen] = i
                length[chosen] -= taken
                waiting[g] -= taken
                running[g] += taken
                ring_next[first] = -1
                if ring_head[g] < 0:
                    ring_head[g] = first
                else:
                    ring_next[ring_tail[g]] = first
                ring_tail[g] = first
                break
    return chosen_group, started, finished, batches, rows
