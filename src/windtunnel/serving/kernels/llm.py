"""Serving a language model on replicas, iteration by iteration."""

from __future__ import annotations

import cython
import numpy

from windtunnel.kernel.marks import compiled
from windtunnel.serving.kernels.llm_ahead import interrupt, plan, settle, time_of
from windtunnel.serving.kernels.llm_continuous import form_continuous
from windtunnel.serving.kernels.llm_fleet import LLM_VLLM_V1, LlmFleet
from windtunnel.serving.kernels.llm_links import LlmLinks
from windtunnel.serving.kernels.llm_router import LlmRouter
from windtunnel.serving.kernels.llm_vllm_v1 import form_vllm_v1


@compiled
def start_iterations(f: LlmFleet, r: cython.longlong, now: cython.double) -> cython.void:
    """Start iterations of a replica while stages are free and there is something to do."""
    slot: cython.longlong
    while f.in_flight[r] < f.stages and not f.failed:
        slot = r * f.stages
        while f.clock.place[slot] >= 0:
            slot += 1
        f.entries[slot] = 0
        f.evicted = False
        f.prefill = f.pairs = f.context = f.decoding = f.kv = 0
        if f.scheduler == LLM_VLLM_V1:
            form_vllm_v1(f, r, slot)
        else:
            form_continuous(f, r, slot)
        if f.entries[slot] > 0:
            launch(f, r, slot, now)
        elif not f.evicted or f.in_flight[r] > 0:
            break


@compiled
def launch(
    f: LlmFleet, r: cython.longlong, slot: cython.longlong, now: cython.double
) -> cython.void:
    """Start the iteration of the batch that was formed."""
    time: cython.double = time_of(f, r, f.entries[slot])
    begin: cython.double = now
    k: cython.longlong
    if not time > 0:
        f.failed = True
    f.in_flight[r] += 1
    f.iterations[r] += 1
    f.prefilled += f.prefill
    if f.stages > 1:
        time /= f.stages
        for k in range(f.stages):
            begin = max(begin, f.stage_free[r, k]) + time
            f.stage_free[r, k] = begin
        f.clock.push(slot, now, begin)
    else:
        f.planned[r] = 1
        f.times[r, 0] = time
        f.begin[r] = now
        f.ends[r, 0] = now + time
        if f.decoding == f.admitted[r] and not f.evicted:
            plan(f, r)
        k = f.planned[r] - 1
        f.clock.push(r, f.ends[r, k - 1] if k > 0 else now, f.ends[r, k])
    f.busy[r] += time
    if f.prefill > 0:
        f.prefilling[r] += time
    f.spend(r, f.minute(now), time, f.prefill > 0)


@compiled
def end_iteration(
    f: LlmFleet, links: LlmLinks, slot: cython.longlong, now: cython.double
) -> cython.longlong:
    """Give the batch of an iteration its tokens; return its replica."""
    r: cython.longlong = slot // f.stages
    leaves_at: cython.longlong = 1 if links.count > 0 and f.pool[r] == 0 else 0
    gone: cython.bint = False
    together: cython.longlong = 0
    k: cython.longlong
    i: cython.longlong
    f.in_flight[r] -= 1
    if f.stages == 1 and f.planned[r] > 1:
        settle(f, r)
    for k in range(f.entries[slot]):
        i = f.batch[slot, k]
        f.done[i] += f.share[slot, k]
        if f.done[i] == f.prompt[i] + f.made[i]:
            f.made[i] += 1
            if f.made[i] == 1:
                f.first[i] = now
            elif f.stages == 1 and f.last[i] == f.begin[r]:
                together += 1
            else:
                f.gaps.add(now - f.last[i], 1)
            f.last[i] = now
            if f.made[i] >= f.output[i] or leaves_at == 1:
                gone = True
                leave(f, links, r, i, now)
                continue
        if f.scheduler != LLM_VLLM_V1:
            f.running[r, f.num_running[r]] = i
            f.num_running[r] += 1
    if together > 0:
        f.gaps.add(f.times[r, 0], together)
    if gone and f.scheduler == LLM_VLLM_V1:
        drop_gone(f, r, leaves_at)
    return r


@compiled
def leave(
    f: LlmFleet,
    links: LlmLinks,
    r: cython.longlong,
    i: cython.longlong,
    now: cython.double,
) -> cython.void:
    """End a request, or send it to a replica that decodes."""
    f.load[r] -= 1
    f.tokens[r] -= f.prompt[i] + f.output[i]
    f.admitted[r] -= 1
    if f.made[i] >= f.output[i]:
        f.finish[i] = now
        f.let_go(r, i)
    else:
        links.send(f, r, i, now)


@compiled
def drop_gone(f: LlmFleet, r: cython.longlong, leaves_at: cython.longlong) -> cython.void:
    """Take those that left off the list of those who run."""
    kept: cython.longlong = 0
    i: cython.longlong
    k: cython.longlong
    for k in range(f.num_running[r]):
        i = f.running[r, k]
        if f.made[i] >= f.output[i] or (leaves_at == 1 and f.made[i] >= 1):
            continue
        f.running[r, kept] = i
        kept += 1
    f.num_running[r] = kept


@compiled
def join(f: LlmFleet, r: cython.longlong, i: cython.longlong, now: cython.double) -> cython.bint:
    """Let a request wait at a replica; return whether the replica's iteration ends now."""
    empty: cython.bint = f.head[r] < 0
    f.queue(r, i)
    return empty and f.stages == 1 and interrupt(f, r, now)


def serve_llm(
    fleet: LlmFleet,
    links: LlmLinks,
    router: LlmRouter,
    refused: cython.const[cython.uchar][::1],
) -> tuple[numpy.ndarray, bool]:
    """Serve all requests; see `windtunnel.serving.llm_simulate.simulate_llm`.

    Args:
        fleet: what serves them, idle.
        links: what takes them from replicas that prefill to those that decode.
        router: of those who arrive.
        refused: requests that no replica is asked for, shape (n,).

    Returns:
        The first replica of each request, -1 where refused, and whether all iterations cost time.
    """
    f: LlmFleet = fleet
    ways: LlmLinks = links
    rule: LlmRouter = router
    count: cython.longlong = f.arrival.shape[0]
    sent_to = numpy.full(count, -1, dtype=numpy.int64)
    replica: cython.longlong[::1] = sent_to
    due: cython.longlong[::1] = numpy.empty(f.replicas, dtype=numpy.int64)
    is_due: cython.uchar[::1] = numpy.zeros(f.replicas, dtype=numpy.uint8)
    slots: cython.longlong = f.replicas * f.stages
    never: cython.double = numpy.inf
    coming: cython.longlong = 0
    num_due: cython.longlong
    item: cython.longlong
    k: cython.longlong
    i: cython.longlong
    r: cython.longlong
    now: cython.double
    with cython.nogil:
        while (coming < count or f.clock.size > 0) and not f.failed:
            now = f.arrival[coming] if coming < count else never
            if f.clock.size > 0 and f.clock.end[f.clock.queue[0]] < now:
                now = f.clock.end[f.clock.queue[0]]
            num_due = 0
            while f.clock.size > 0 and f.clock.end[f.clock.queue[0]] == now:
                item = f.clock.queue[0]
                f.clock.remove(item)
                if item < slots:
                    r = end_iteration(f, ways, item, now)
                else:
                    i = ways.arrive(f, item - slots)
                    k = item - slots
                    if not is_due[k]:  # blocks came free where it was
                        due[num_due] = k
                        num_due += 1
                        is_due[k] = True
                    r = ways.to[i]
                    if join(f, r, i, now):
                        f.clock.remove(r)
                        end_iteration(f, ways, r, now)
                if not is_due[r]:
                    due[num_due] = r
                    num_due += 1
                    is_due[r] = True
            while coming < count and f.arrival[coming] == now:
                i = coming
                coming += 1
                if refused[i]:
                    continue
                r = rule.choose(f, i)
                replica[i] = r
                f.load[r] += 1
                f.tokens[r] += f.prompt[i] + f.output[i]
                if join(f, r, i, now):
                    f.clock.remove(r)
                    end_iteration(f, ways, r, now)
                if not is_due[r]:
                    due[num_due] = r
                    num_due += 1
                    is_due[r] = True
            for k in range(num_due):
                r = due[k]
                is_due[r] = False
                start_iterations(f, r, now)
    return sent_to, not f.failed
