"""Continuous batching of token generation on replicas, iteration by iteration."""

from __future__ import annotations

import numpy as np
from numba import njit

#: Codes of the dispatch rules.
LEAST_LOADED, ROUND_ROBIN = range(2)


@njit(cache=True, nogil=True)
def generate(arrival, prompt, output, replicas, costs, kv_limit, max_batch, dispatch):
    """Serve n requests; see `windtunnel.serving.llm_simulate.simulate_llm`.

    Args:
        arrival, prompt, output: (n,), ascending arrivals in s, tokens.
        replicas: how many.
        costs: (4,), s: an iteration, a prefill token, a decoding sequence, a token of KV.
        kv_limit: tokens that fit a replica; a request that needs more is not dispatched.
        max_batch: sequences in an iteration.
        dispatch: a dispatch rule's code.

    Returns:
        replica (n,): -1 where refused; first, finish (n,): NaN where refused; busy (replicas,), s;
        peak (replicas,): most tokens reserved at once.
    """
    count = len(arrival)
    replica = np.full(count, -1, dtype=np.int64)
    first = np.full(count, np.nan)
    finish = np.full(count, np.nan)
    made = np.zeros(count, dtype=np.int64)
    after = np.full(count, -1, dtype=np.int64)
    head = np.full(replicas, -1, dtype=np.int64)
    tail = np.full(replicas, -1, dtype=np.int64)
    batch = np.empty((replicas, min(max_batch, max(count, 1))), dtype=np.int64)
    size = np.zeros(replicas, dtype=np.int64)
    load = np.zeros(replicas, dtype=np.int64)
    reserved = np.zeros(replicas, dtype=np.int64)
    peak = np.zeros(replicas, dtype=np.int64)
    held = np.zeros(replicas, dtype=np.int64)  # tokens that the running sequences attend to
    busy = np.zeros(replicas)
    # Replicas in an iteration, in a heap by its end; those to look at now.
    queue = np.empty(replicas, dtype=np.int64)
    end = np.full(replicas, np.inf)
    flying = 0
    due = np.empty(replicas, dtype=np.int64)
    is_due = np.zeros(replicas, dtype=np.bool_)
    coming = 0
    turn = 0
    while coming < count or flying > 0:
        now = arrival[coming] if coming < count else np.inf
        if flying > 0:
            now = min(now, end[queue[0]])
        num_due = 0
        while flying > 0 and end[queue[0]] == now:
            r = queue[0]
            flying = _pop(queue, end, flying)
            end[r] = np.inf
            due[num_due] = r
            num_due += 1
            is_due[r] = True
            kept = 0
            for k in range(size[r]):
                i = batch[r, k]
                made[i] += 1
                held[r] += 1
                if made[i] == 1:
                    first[i] = now
                    held[r] += prompt[i]
                if made[i] >= output[i]:
                    finish[i] = now
                    reserved[r] -= prompt[i] + output[i]
                    held[r] -= prompt[i] + made[i]
                    load[r] -= 1
                else:
                    batch[r, kept] = i
                    kept += 1
            size[r] = kept
        while coming < count and arrival[coming] == now:
            i = coming
            coming += 1
            if prompt[i] + output[i] > kv_limit:
                continue
            chosen = turn
            if dispatch == ROUND_ROBIN:
                turn = (turn + 1) % replicas
            else:
                chosen = int(np.argmin(load))
            replica[i] = chosen
            load[chosen] += 1
            if head[chosen] < 0:
                head[chosen] = i
            else:
                after[tail[chosen]] = i
            tail[chosen] = i
            if end[chosen] == np.inf and not is_due[chosen]:
                due[num_due] = chosen
                num_due += 1
                is_due[chosen] = True
        for at in range(num_due):
            r = due[at]
            is_due[r] = False
            decoding = size[r]
            prefill = 0
            while head[r] >= 0 and size[r] < max_batch:
                i = head[r]
                if reserved[r] + prompt[i] + output[i] > kv_limit:
                    break
                reserved[r] += prompt[i] + output[i]
                prefill += prompt[i]
                batch[r, size[r]] = i
                size[r] += 1
                head[r] = after[i]
            peak[r] = max(peak[r], reserved[r])
            if size[r] > 0:
                time = costs[0] + costs[1] * prefill + costs[2] * decoding + costs[3] * held[r]
                end[r] = now + time
                busy[r] += time
                flying = _push(queue, end, flying, r)
    return replica, first, finish, busy, peak


@njit(cache=True, nogil=True)
def _push(queue, end, length, r):
    """Put a replica into the heap by the end of its iteration; return the new length."""
    at = length
    while at > 0:
        above = (at - 1) // 2
        if end[queue[above]] <= end[r]:
            break
        queue[at] = queue[above]
        at = above
    queue[at] = r
    return length + 1


@njit(cache=True, nogil=True)
def _pop(queue, end, length):
    """Take the replica that ends first out of the heap; return the new length."""
    length -= 1
    r = queue[length]
    at = 0
    while True:
        below = 2 * at + 1
        if below >= length:
            break
        if below + 1 < length and end[queue[below + 1]] < end[queue[below]]:
            below += 1
        if end[r] <= end[queue[below]]:
            break
        queue[at] = queue[below]
        at = below
    queue[at] = r
    return length
