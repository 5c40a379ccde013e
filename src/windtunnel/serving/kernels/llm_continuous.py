"""How Orca and Vidur's vLLM and Sarathi form the batch of an iteration."""

from __future__ import annotations

import cython

from windtunnel.kernel.marks import compiled
from windtunnel.serving.kernels.llm_fleet import LLM_ORCA, LLM_SARATHI, LLM_VLLM_V0, LlmFleet


@compiled
def blocks_of(tokens: cython.longlong, size: cython.longlong) -> cython.longlong:
    """Return how many blocks hold so many tokens."""
    return (tokens + size - 1) // size


@compiled
def form_orca(f: LlmFleet, r: cython.longlong, slot: cython.longlong) -> cython.void:
    """Decode all, and prefill whole prompts that fit reserved memory (Yu et al., OSDI'22)."""
    taken: cython.longlong = 0
    i: cython.longlong
    count: cython.longlong
    k: cython.longlong
    while taken < f.num_running[r] and f.entries[slot] < f.most[r]:
        f.enter(slot, f.running[r, taken], 1)
        taken += 1
    for k in range(taken, f.num_running[r]):
        f.running[r, k - taken] = f.running[r, k]
    f.num_running[r] -= taken
    while f.head[r] >= 0 and f.entries[slot] < f.most[r]:
        i = f.head[r]
        count = f.reserve[r] // f.size[r] if f.reserve[r] > 0 else f.prompt[i] + f.output[i]
        if count > f.free[r]:
            break
        f.call_next(r)
        f.hold(r, i, count)
        f.enter(slot, i, f.target[i])


@compiled
def decode_all(f: LlmFleet, r: cython.longlong, slot: cython.longlong) -> cython.longlong:
    """Let running requests decode, with eviction where no block is free.

    Returns:
        How many were put aside, in ``f.aside``: those whose prompt is not done. ``f.running`` keeps
        those that did not fit the batch.
    """
    most: cython.longlong = f.most[r] // f.stages
    taken: cython.longlong = 0
    left: cython.longlong = f.num_running[r]
    aside: cython.longlong = 0
    i: cython.longlong
    k: cython.longlong
    while taken < left and f.entries[slot] < most:
        i = f.running[r, taken]
        taken += 1
        if f.done[i] < f.target[i]:
            f.aside[aside] = i
            aside += 1
            continue
        while f.free[r] < 1 and taken < left:
            left -= 1
            f.evict(r, f.running[r, left])
        if f.free[r] < 1:
            f.evict(r, i)
            continue
        if f.prompt[i] + f.made[i] > f.size[r] * f.held[i]:
            f.hold(r, i, 1)
        f.enter(slot, i, 1)
    for k in range(taken, left):
        f.running[r, k - taken] = f.running[r, k]
    f.num_running[r] = left - taken
    return aside


@compiled
def sort_by_arrival(f: LlmFleet, r: cython.longlong) -> cython.void:
    """Sort running requests by arrival; those of one instant stay as they are."""
    k: cython.longlong
    at: cython.longlong
    i: cython.longlong
    for k in range(1, f.num_running[r]):
        i = f.running[r, k]
        at = k
        while at > 0 and f.arrival[f.running[r, at - 1]] > f.arrival[i]:
            f.running[r, at] = f.running[r, at - 1]
            at -= 1
        f.running[r, at] = i


@compiled
def form_sarathi(f: LlmFleet, r: cython.longlong, slot: cython.longlong) -> cython.void:
    """Decode all, then fill the token budget with chunks of prompts (Agrawal et al., OSDI'24)."""
    aside: cython.longlong = decode_all(f, r, slot)
    tokens: cython.longlong = f.entries[slot]
    skipped: cython.longlong = 0
    most: cython.longlong = f.most[r] // f.stages
    i: cython.longlong
    k: cython.longlong
    count: cython.longlong
    for k in range(aside):
        i = f.aside[k]
        count = min(f.target[i] - f.done[i], f.budget[r] - tokens)
        if count <= 0:
            f.aside[skipped] = i
            skipped += 1
            continue
        f.enter(slot, i, count)
        tokens += count
    for k in range(f.num_running[r] - 1, -1, -1):
        f.running[r, k + skipped] = f.running[r, k]
    for k in range(skipped):
        f.running[r, k] = f.aside[k]
    f.num_running[r] += skipped
    sort_by_arrival(f, r)
    while f.head[r] >= 0 and f.admitted[r] != f.most[r] and f.entries[slot] != most:
        i = f.head[r]
        count = blocks_of(f.target[i], f.size[r])
        if f.free[r] - count < f.margin[r] or f.budget[r] - tokens <= 0:
            break
        f.call_next(r)
        f.hold(r, i, count)
        count = min(f.target[i], f.budget[r] - tokens)
        f.enter(slot, i, count)
        tokens += count


@compiled
def form_vllm_v0(f: LlmFleet, r: cython.longlong, slot: cython.longlong) -> cython.void:
    """Prefill whole prompts as long as one may enter, else decode all (Kwon et al., SOSP'23)."""
    most: cython.longlong = f.most[r] // f.stages
    longest: cython.longlong = 0
    count: cython.longlong
    i: cython.longlong
    while f.head[r] >= 0 and f.admitted[r] != f.most[r] and f.entries[slot] != most:
        i = f.head[r]
        count = blocks_of(f.target[i], f.size[r])
        longest = max(longest, f.target[i])
        if f.free[r] - count < f.margin[r] or (f.entries[slot] + 1) * longest > f.budget[r]:
            break
        f.call_next(r)
        f.hold(r, i, count)
        f.enter(slot, i, f.target[i])
    if f.entries[slot] == 0:
        sort_by_arrival(f, r)
        decode_all(f, r, slot)


@compiled
def form_continuous(f: LlmFleet, r: cython.longlong, slot: cython.longlong) -> cython.void:
    """Form a batch by the fleet's scheduler, which is not vLLM 1."""
    if f.scheduler == LLM_ORCA:
        form_orca(f, r, slot)
    elif f.scheduler == LLM_SARATHI:
        form_sarathi(f, r, slot)
    elif f.scheduler == LLM_VLLM_V0:
        form_vllm_v0(f, r, slot)
