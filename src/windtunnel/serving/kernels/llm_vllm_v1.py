"""How vLLM 0.19 forms the batch of an iteration: running requests first, one budget for all."""

from __future__ import annotations

import cython

from windtunnel.kernel.marks import compiled
from windtunnel.serving.kernels.llm_continuous import blocks_of
from windtunnel.serving.kernels.llm_fleet import LlmFleet


@compiled
def form_vllm_v1(f: LlmFleet, r: cython.longlong, slot: cython.longlong) -> cython.void:
    """Advance those who run, then admit the head of those who wait."""
    budget: cython.longlong = advance(f, r, slot)
    if not f.evicted:
        admit(f, r, slot, budget)


@compiled
def advance(f: LlmFleet, r: cython.longlong, slot: cython.longlong) -> cython.longlong:
    """Give running requests tokens, in order of admission; return what is left of the budget."""
    budget: cython.longlong = f.budget[r]
    k: cython.longlong = 0
    i: cython.longlong
    last: cython.longlong
    count: cython.longlong
    while k < f.num_running[r] and budget > 0:
        i = f.running[r, k]
        count = min(f.prompt[i] + f.made[i] - f.done[i], budget)
        if f.done[i] + count > f.held[i] * f.size[r]:
            last = i
            while blocks_of(f.done[i] + count, f.size[r]) - f.held[i] > f.free[r]:
                f.num_running[r] -= 1
                last = f.running[r, f.num_running[r]]
                f.evict(r, last)
                if last == i:
                    return budget
            f.hold(r, i, blocks_of(f.done[i] + count, f.size[r]) - f.held[i])
        if f.caches[r]:
            f.name(r, i, f.done[i] + count)
        f.enter(slot, i, count)
        budget -= count
        k += 1
    return budget


@compiled
def admit(
    f: LlmFleet, r: cython.longlong, slot: cython.longlong, budget: cython.longlong
) -> cython.void:
    """Admit those who wait, in order, while tokens, places and blocks are left."""
    size: cython.longlong = f.size[r]
    i: cython.longlong
    length: cython.longlong
    hits: cython.longlong
    count: cython.longlong
    upto: cython.longlong
    wanted: cython.longlong
    while budget > 0 and f.num_running[r] < f.most[r] and f.head[r] >= 0 and not f.blocked[r]:
        i = f.head[r]
        length = f.prompt[i] + f.made[i]
        hits = look_up(f, r, i, length) if f.caches[r] else 0
        count = min(length - size * hits, budget)
        if f.is_brought[i]:
            count = 1
            upto = length
        else:
            upto = size * hits + count
        wanted = length if f.whole[r] else upto
        wanted = max(0, blocks_of(wanted, size) - hits)
        if f.caches[r]:
            wanted += f.idle_hits
        if wanted > f.free[r]:
            f.blocked[r] = f.whole[r] != 0
            break
        f.call_next(r)
        if hits > 0:
            share(f, r, i, hits)
        f.done[i] = length - 1 if f.is_brought[i] else size * hits
        if f.found[i] < 0:
            f.found[i] = size * hits
        f.hold(r, i, blocks_of(upto, size) - hits)
        if f.caches[r]:
            f.name(r, i, upto)
        f.running[r, f.num_running[r]] = i
        f.num_running[r] += 1
        f.enter(slot, i, count)
        budget -= count


@compiled
def look_up(
    f: LlmFleet, r: cython.longlong, i: cython.longlong, length: cython.longlong
) -> cython.longlong:
    """Return how many blocks of a prefix are there; ``f.idle_hits`` of them are free."""
    most: cython.longlong = min((length - 1) // f.size[r], f.total[r])
    count: cython.longlong = 0
    run: cython.int
    f.idle_hits = 0
    if f.restarts[i] == 0:  # its own blocks have yet to be named
        most = min(most, f.shared[i] // f.size[r])
    while count < most:
        run = f.find(r, i, count, most)
        if run < 0:
            break
        if f.blocks.is_idle(run):
            f.idle_hits += f.blocks.stop - count
        count = f.blocks.stop
    return count


@compiled
def share(
    f: LlmFleet, r: cython.longlong, i: cython.longlong, hits: cython.longlong
) -> cython.void:
    """Let a request hold the blocks of a prefix that were found."""
    count: cython.longlong = 0
    run: cython.int
    while count < hits:
        run = f.find(r, i, count, hits)
        if f.blocks.share(r, i, run, count):
            f.lower(r, f.blocks.stop - count)
        count = f.blocks.stop
    f.held[i] += hits
    f.named[i] = hits
