"""Iterations that are looked at in one go: nothing changes between them but the tokens made."""

from __future__ import annotations

import cython

from windtunnel.kernel.marks import compiled
from windtunnel.serving.kernels.llm_fleet import (
    LLM_AHEAD,
    LLM_ORCA,
    LLM_VLLM_V1,
    LlmFleet,
)


@compiled
def time_of(f: LlmFleet, r: cython.longlong, sequences: cython.longlong) -> cython.double:
    """Return what the batch that was formed costs, s."""
    if f.pool[r] == 0:
        return f.cost.of(f.prefill, f.decoding, f.kv, f.pairs, f.context, sequences)
    return f.other_cost.of(f.prefill, f.decoding, f.kv, f.pairs, f.context, sequences)


@compiled
def plan(f: LlmFleet, r: cython.longlong) -> cython.void:
    """Plan further iterations of a batch that has just started and only decodes.

    They end before a request does, the last one at most with it, and before memory is short.
    Whoever waits is stopped by what these iterations do not give back.
    """
    count: cython.longlong = f.entries[r]
    most: cython.longlong = LLM_AHEAD
    paged: cython.bint = f.scheduler != LLM_ORCA
    spare: cython.longlong = 0 if f.scheduler == LLM_VLLM_V1 else 1
    size: cython.longlong = f.size[r]
    free: cython.longlong = f.free[r]
    k: cython.longlong
    i: cython.longlong
    j: cython.longlong = 1
    turn: cython.longlong = 0
    for k in range(count):
        i = f.batch[r, k]
        most = min(most, f.output[i] - f.made[i])
    if most > 1 and paged:
        for k in range(count):
            i = f.batch[r, k]
            f.at_slack[f.held[i] * size - f.done[i] - 1] += 1
    while j < most:
        if paged:
            free -= f.at_slack[turn]
            turn = turn + 1 if turn + 1 < size else 0
            if free < spare:
                break
        f.kv += count
        f.times[r, j] = time_of(f, r, count)
        f.ends[r, j] = f.ends[r, j - 1] + f.times[r, j]
        if not f.times[r, j] > 0:
            f.failed = True
        j += 1
    f.planned[r] = j
    if most > 1 and paged:
        for k in range(count):
            i = f.batch[r, k]
            f.at_slack[f.held[i] * size - f.done[i] - 1] = 0


@compiled
def settle(f: LlmFleet, r: cython.longlong) -> cython.void:
    """Do what all planned iterations but the last have done."""
    steps: cython.longlong = f.planned[r] - 1
    count: cython.longlong = f.entries[r]
    size: cython.longlong = f.size[r]
    paged: cython.bint = f.scheduler != LLM_ORCA
    slack: cython.longlong
    i: cython.longlong
    k: cython.longlong
    together: cython.longlong = 0
    begin: cython.double = f.begin[r]
    spent: cython.double = 0
    minute: cython.longlong = f.minute(f.ends[r, 0])
    until: cython.double = f.arrival[0] + 60 * cython.cast(cython.double, minute + 1)
    for k in range(count):
        i = f.batch[r, k]
        if f.last[i] == begin:
            together += 1
        else:
            f.gaps.add(f.ends[r, 0] - f.last[i], 1)
        slack = f.held[i] * size - f.done[i] - 1
        if paged and slack < steps:
            f.hold(r, i, (steps - slack + size - 1) // size)
        f.done[i] += steps
        f.made[i] += steps
        f.last[i] = f.ends[r, steps - 1]
    if together > 0:
        f.gaps.add(f.times[r, 0], together)
    for k in range(1, steps + 1):
        f.busy[r] += f.times[r, k]
        if f.ends[r, k - 1] >= until:
            f.spend(r, minute, spent, False)
            spent = 0
            minute = f.minute(f.ends[r, k - 1])
            until = f.arrival[0] + 60 * cython.cast(cython.double, minute + 1)
        spent += f.times[r, k]
        if k < steps:
            f.gaps.add(f.times[r, k], count)
    f.spend(r, minute, spent, False)
    f.iterations[r] += steps
    f.times[r, 0] = f.times[r, steps]
    f.begin[r] = f.ends[r, steps - 1]
    f.planned[r] = 1


@compiled
def interrupt(f: LlmFleet, r: cython.longlong, now: cython.double) -> cython.bint:
    """Let the iteration under way be the last of those planned.

    Returns:
        Whether it ends now, and has not been looked at yet.
    """
    low: cython.longlong = 0
    high: cython.longlong = f.planned[r] - 1
    middle: cython.longlong
    if f.in_flight[r] == 0 or high == 0:
        return False
    while low < high:
        middle = (low + high) // 2
        if f.ends[r, middle] >= now:
            high = middle
        else:
            low = middle + 1
    if low == f.planned[r] - 1:
        return False
    f.planned[r] = low + 1
    f.clock.hasten(r, f.ends[r, low - 1] if low > 0 else f.begin[r], f.ends[r, low])
    return f.ends[r, low] == now
