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
    end = np.full(replicas, np.inf)
    busy = np.zeros(replicas)
    coming = 0
    turn = 0
    while True:
        now = arrival[coming] if coming < count else np.inf
        for r in range(replicas):
            now = min(now, end[r])
        if now == np.inf:
            break
        for r in range(replicas):
            if end[r] != now:
                continue
            end[r] = np.inf
            kept = 0
            for k in range(size[r]):
                i = batch[r, k]
                made[i] += 1
                if made[i] == 1:
                    first[i] = now
                if made[i] >= output[i]:
                    finish[i] = now
                    reserved[r] -= prompt[i] + output[i]
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
        for r in range(replicas):
            if end[r] != np.inf:
                continue
            decoding = size[r]
            held = 0
            for k in range(decoding):
                held += prompt[batch[r, k]] + made[batch[r, k]]
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
                time = costs[0] + costs[1] * prefill + costs[2] * decoding + costs[3] * held
                end[r] = now + time
                busy[r] += time
    return replica, first, finish, busy, peak
