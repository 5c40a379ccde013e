"""Which replica gets a request."""

from __future__ import annotations

import cython
import numpy

from windtunnel.kernel.marks import compiled
from windtunnel.serving.kernels.llm_fleet import LlmFleet

#: Codes of the rules.
LLM_LEAST_LOADED = cython.declare(cython.int, 0)
LLM_ROUND_ROBIN = cython.declare(cython.int, 1)
LLM_LEAST_WAITING = cython.declare(cython.int, 2)
LLM_LEAST_TOKENS = cython.declare(cython.int, 3)
LLM_PREFIX_AFFINITY = cython.declare(cython.int, 4)


@cython.final
@cython.cclass
class LlmRouter:
    """Chooses among replicas low .. high - 1.

    Attributes:
        rule: its code.
        turn: the next in turn.
        slack: how much more than the least loaded one a replica may have, for its prefixes.
        sent: whether a replica was sent a unit of a prompt, 32 replicas a number.
        words: such numbers of a unit.
        may: replicas that may be chosen, 32 a number.
    """

    rule: cython.longlong
    low: cython.longlong
    high: cython.longlong
    turn: cython.longlong
    slack: cython.longlong
    words: cython.longlong
    sent: cython.longlong[::1]
    may: cython.longlong[::1]

    def __init__(self, rule: int, low: int, high: int, slack: int, units: int) -> None:
        self.rule = rule
        self.low = low
        self.high = high
        self.turn = low
        self.slack = slack
        self.words = (high - low + 31) // 32
        remembers = rule == LLM_PREFIX_AFFINITY
        self.sent = numpy.zeros(units * self.words if remembers else 0, dtype=numpy.int64)
        self.may = numpy.zeros(self.words, dtype=numpy.int64)

    @compiled
    def choose(self, f: LlmFleet, i: cython.longlong) -> cython.longlong:
        """Return the replica that a request goes to; ties go to the lowest index."""
        best: cython.longlong = self.low
        r: cython.longlong
        if self.rule == LLM_ROUND_ROBIN:
            best = self.turn
            self.turn = self.turn + 1 if self.turn + 1 < self.high else self.low
            return best
        if self.rule == LLM_PREFIX_AFFINITY:
            return self.by_prefix(f, i)
        for r in range(self.low + 1, self.high):
            if self.rule == LLM_LEAST_LOADED:
                if f.load[r] < f.load[best]:
                    best = r
            elif self.rule == LLM_LEAST_WAITING:
                if f.waiting[r] < f.waiting[best]:
                    best = r
            elif f.tokens[r] < f.tokens[best]:
                best = r
        return best

    @compiled
    def by_prefix(self, f: LlmFleet, i: cython.longlong) -> cython.longlong:
        """Return the replica that was sent most of a prompt's begin, then the least loaded."""
        least: cython.longlong = f.load[self.low]
        best: cython.longlong = -1
        r: cython.longlong
        w: cython.longlong
        at: cython.longlong
        common: cython.longlong
        for r in range(self.low + 1, self.high):
            least = min(least, f.load[r])
        for w in range(self.words):
            self.may[w] = 0
        for r in range(self.high - self.low):
            if f.load[self.low + r] <= least + self.slack:
                self.may[r // 32] |= cython.cast(cython.longlong, 1) << (r % 32)
        for at in range(f.unit_start[i], f.unit_start[i + 1]):
            common = 0
            for w in range(self.words):
                common |= self.may[w] & self.sent[f.units[at] * self.words + w]
            if common == 0:
                break
            for w in range(self.words):
                self.may[w] &= self.sent[f.units[at] * self.words + w]
        for r in range(self.high - self.low):
            if (self.may[r // 32] >> (r % 32)) & 1 and (
                best < 0 or f.load[self.low + r] < f.load[best]
            ):
                best = self.low + r
        w = (best - self.low) // 32
        for at in range(f.unit_start[i], f.unit_start[i + 1]):
            self.sent[f.units[at] * self.words + w] |= cython.cast(cython.longlong, 1) << (
                (best - self.low) % 32
            )
        return best
