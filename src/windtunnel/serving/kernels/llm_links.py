"""What takes the KV of a prompt from the replica that prefilled it to one that decodes."""

from __future__ import annotations

import cython
import numpy

from windtunnel.kernel.marks import compiled
from windtunnel.serving.kernels.llm_fleet import LlmFleet
from windtunnel.serving.kernels.llm_router import LlmRouter


@cython.final
@cython.cclass
class LlmLinks:
    """A link of each replica that prefills; a transfer waits for those before it.

    Attributes:
        count: how many links; 0 where replicas do both.
        latency, token_time: of a transfer, s and s a prompt token.
        router: of those who come to decode.
        to: where a request goes.
        begun, ended: when its transfer is queued and over, s.
        order: number of its transfer.
        following: the next on its link.
        head, tail: of a link; -1 where it is idle.
    """

    count: cython.longlong
    sent: cython.longlong
    latency: cython.double
    token_time: cython.double
    router: LlmRouter
    to: cython.longlong[::1]
    begun: cython.double[::1]
    ended: cython.double[::1]
    order: cython.longlong[::1]
    following: cython.longlong[::1]
    head: cython.longlong[::1]
    tail: cython.longlong[::1]

    def __init__(
        self, count: int, requests: int, latency: float, token_time: float, router: LlmRouter
    ) -> None:
        self.count = count
        self.sent = -(1 << 60)
        self.latency = latency
        self.token_time = token_time
        self.router = router
        rows = requests if count else 0
        self.to = numpy.full(rows, -1, dtype=numpy.int64)
        self.begun = numpy.zeros(rows)
        self.ended = numpy.zeros(rows)
        self.order = numpy.zeros(rows, dtype=numpy.int64)
        self.following = numpy.full(rows, -1, dtype=numpy.int64)
        self.head = numpy.full(count, -1, dtype=numpy.int64)
        self.tail = numpy.full(count, -1, dtype=numpy.int64)

    @compiled
    def send(
        self, f: LlmFleet, r: cython.longlong, i: cython.longlong, now: cython.double
    ) -> cython.void:
        """Queue the transfer of a request that has its first token."""
        start: cython.double = now
        to: cython.longlong = self.router.choose(f, i)
        self.to[i] = to
        f.load[to] += 1
        f.tokens[to] += f.prompt[i] + f.output[i]
        self.begun[i] = now
        self.order[i] = self.sent
        self.sent += 1
        self.following[i] = -1
        if self.head[r] >= 0:
            start = max(now, self.ended[self.tail[r]])
            self.following[self.tail[r]] = i
            self.tail[r] = i
        self.ended[i] = start + self.latency + f.prompt[i] * self.token_time
        if self.head[r] < 0:
            self.head[r] = i
            self.tail[r] = i
            self.begin(f, r)

    @compiled
    def begin(self, f: LlmFleet, r: cython.longlong) -> cython.void:
        """Let the clock await the end of a link's first transfer."""
        i: cython.longlong = self.head[r]
        item: cython.longlong = f.replicas * f.stages + r
        f.clock.order[item] = self.order[i]
        f.clock.push(item, self.begun[i], self.ended[i])

    @compiled
    def arrive(self, f: LlmFleet, r: cython.longlong) -> cython.longlong:
        """End the first transfer of a link, give its blocks back, and return the request."""
        i: cython.longlong = self.head[r]
        self.head[r] = self.following[i]
        if self.head[r] >= 0:
            self.begin(f, r)
        f.let_go(r, i)
        f.is_brought[i] = True
        return i
