"""The batching simulator: queues a model, and a batch whenever a group's first stage is idle."""

from __future__ import annotations

import numpy as np
from numba import njit


@njit(cache=True, nogil=True)
def serve(
    arrival, model, slo, host_start, hosts, clock_start, sizes, batch_first, stage_time, fixed,
):  # fmt: skip
    """Serve n requests; more arguments in `windtunnel.serving.kernels.immediate.serve`.

    Args:
        sizes: batch sizes, ascending, (sizes,).
        batch_first: first of a pair's stage times at each batch size, -1 where it has none,
            (pairs, sizes); the first size is always there.

    Returns:
        group, start, finish as there; batch (n,): requests in its batch; at (n,): the row of
        ``sizes`` that was paid for. Arrivals go to the group of fewest requests waiting or
        running; ties to the lowest.
    """
    count = len(arrival)
    models = len(host_start) - 1
    pairs = len(hosts)
    groups = len(clock_start) - 1
    group = np.full(count, -1, dtype=np.int64)
    start = np.full(count, np.nan)
    finish = np.full(count, np.nan)
    batch = np.zeros(count, dtype=np.int64)
    at = np.zeros(count, dtype=np.int64)
    clocks = np.full(clock_start[groups], -np.inf)
    after = np.full(count, -1, dtype=np.int64)
    head = np.full(pairs, -1, dtype=np.int64)
    tail = np.full(pairs, -1, dtype=np.int64)
    length = np.zeros(pairs, dtype=np.int64)
    waiting = np.zeros(groups, dtype=np.int64)
    running = np.zeros(groups, dtype=np.int64)
    # Pairs by group: pair_at[pair_start[g] .. pair_start[g + 1]), models ascending.
    pair_start = np.zeros(groups + 1, dtype=np.int64)
    for pair in range(pairs):
        pair_start[hosts[pair] + 1] += 1
    for g in range(groups):
        pair_start[g + 1] += pair_start[g]
    filled = pair_start.copy()
    pair_at = np.empty(pairs, dtype=np.int64)
    for m in range(models):
        for pair in range(host_start[m], host_start[m + 1]):
            pair_at[filled[hosts[pair]]] = pair
            filled[hosts[pair]] += 1
    # Requests under way leave a group in the order of their batches: a ring of (finish, requests).
    ring_next = np.full(count, -1, dtype=np.int64)
    ring_head = np.full(groups, -1, dtype=np.int64)
    ring_tail = np.full(groups, -1, dtype=np.int64)
    arrived = 0
    while True:
        # The next instant: an arrival, or a first stage that becomes idle with somebody waiting.
        now = np.inf
        idle = -1
        for g in range(groups):
            if waiting[g] > 0 and clocks[clock_start[g]] < now:
                now = clocks[clock_start[g]]
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
            if clocks[clock_start[g]] < now:
                clocks[clock_start[g]] = now
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
                t = now
                for k in range(stages):
                    if clocks[clock + k] > t:
                        t = clocks[clock + k]
                    t += stage_time[base + k]
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
            t = now
            for k in range(stages):
                if clocks[clock + k] > t:
                    t = clocks[clock + k]
                t += stage_time[base + k]
                clocks[clock + k] = t
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
    return group, start, finish, batch, at
