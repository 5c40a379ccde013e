"""Continuous batching of token generation on replicas, iteration by iteration."""

from __future__ import annotations

import cython
import numpy

from windtunnel.kernel.marks import compiled

#: Codes of the dispatch rules.
LLM_LEAST_LOADED = cython.declare(cython.int, 0)
LLM_ROUND_ROBIN = cython.declare(cython.int, 1)


@cython.final
@cython.cclass
class Iterations:
    """Replicas in an iteration, in a heap by its end.

    Attributes:
        size: how many.
        end: when a replica's iteration ends, s; infinite for one that is idle.
    """

    size: cython.longlong
    queue: cython.longlong[::1]
    end: cython.double[::1]

    def __init__(self, replicas: cython.longlong) -> None:
        self.size = 0
        self.queue = numpy.empty(replicas, dtype=numpy.int64)
        self.end = numpy.full(replicas, numpy.inf)

    @compiled
    def push(self, r: cython.longlong) -> cython.void:
        """Put a replica into the heap by the end of its iteration."""
        at: cython.longlong = self.size
        above: cython.longlong
        while at > 0:
            above = (at - 1) // 2
            if self.end[self.queue[above]] <= self.end[r]:
                break
            self.queue[at] = self.queue[above]
            at = above
        self.queue[at] = r
        self.size += 1

    @compiled
    def pop(self) -> cython.longlong:
        """Take the replica that ends first out of the heap and return it."""
        first: cython.longlong = self.queue[0]
        self.size -= 1
        r: cython.longlong = self.queue[self.size]
        at: cython.longlong = 0
        below: cython.longlong
        while True:
            below = 2 * at + 1
            if below >= self.size:
                break
            if (
                below + 1 < self.size
                and self.end[self.queue[below + 1]] < self.end[self.queue[below]]
            ):
                below += 1
            if self.end[r] <= self.end[self.queue[below]]:
                break
            self.queue[at] = self.queue[below]
            at = below
        self.queue[at] = r
        return first


def generate(
    arrival: cython.const[cython.double][::1],
    prompt: cython.const[cython.longlong][::1],
    output: cython.const[cython.longlong][::1],
    replicas: cython.longlong,
    costs: cython.const[cython.double][::1],
    kv_limit: cython.longlong,
    max_batch: cython.longlong,
    dispatch: cython.int,
) -> tuple[numpy.ndarray, ...]:
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
    count: cython.longlong = len(arrival)
    sent_to = numpy.full(count, -1, dtype=numpy.int64)
    firsts = numpy.full(count, numpy.nan)
    finished = numpy.full(count, numpy.nan)
    peaks = numpy.zeros(replicas, dtype=numpy.int64)
    busy_times = numpy.zeros(replicas)
    replica: cython.longlong[::1] = sent_to
    first: cython.double[::1] = firsts
    finish: cython.double[::1] = finished
    peak: cython.longlong[::1] = peaks
    busy: cython.double[::1] = busy_times
    made: cython.longlong[::1] = numpy.zeros(count, dtype=numpy.int64)
    after: cython.longlong[::1] = numpy.full(count, -1, dtype=numpy.int64)
    head: cython.longlong[::1] = numpy.full(replicas, -1, dtype=numpy.int64)
    tail: cython.longlong[::1] = numpy.full(replicas, -1, dtype=numpy.int64)
    room = min(max_batch, max(count, 1))
    batch: cython.longlong[:, ::1] = numpy.empty((replicas, room), dtype=numpy.int64)
    size: cython.longlong[::1] = numpy.zeros(replicas, dtype=numpy.int64)
    load: cython.longlong[::1] = numpy.zeros(replicas, dtype=numpy.int64)
    reserved: cython.longlong[::1] = numpy.zeros(replicas, dtype=numpy.int64)
    # Tokens that the running sequences attend to.
    held: cython.longlong[::1] = numpy.zeros(replicas, dtype=numpy.int64)
    running: Iterations = Iterations(replicas)
    # Replicas to look at now.
    due: cython.longlong[::1] = numpy.empty(replicas, dtype=numpy.int64)
    is_due: cython.uchar[::1] = numpy.zeros(replicas, dtype=numpy.uint8)
    coming: cython.longlong = 0
    turn: cython.longlong = 0
    never: cython.double = numpy.inf
    i: cython.longlong
    k: cython.longlong
    r: cython.longlong
    at: cython.longlong
    kept: cython.longlong
    chosen: cython.longlong
    num_due: cython.longlong
    prefill: cython.longlong
    decoding: cython.longlong
    now: cython.double
    time: cython.double
    with cython.nogil:
        while coming < count or running.size > 0:
            now = arrival[coming] if coming < count else never
            if running.size > 0:
                now = min(now, running.end[running.queue[0]])
            num_due = 0
            while running.size > 0 and running.end[running.queue[0]] == now:
                r = running.pop()
                running.end[r] = never
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
                if dispatch == LLM_ROUND_ROBIN:
                    turn = (turn + 1) % replicas
                else:
                    chosen = 0
                    for r in range(1, replicas):
                        if load[r] < load[chosen]:
                            chosen = r
                replica[i] = chosen
                load[chosen] += 1
                if head[chosen] < 0:
                    head[chosen] = i
                else:
                    after[tail[chosen]] = i
                tail[chosen] = i
                if running.end[chosen] == never and not is_due[chosen]:
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
                    running.end[r] = now + time
                    busy[r] += time
                    running.push(r)
    return sent_to, firsts, finished, busy_times, peaks
