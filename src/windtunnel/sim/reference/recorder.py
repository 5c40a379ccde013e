"""The flight recorder: after every decision, why each waiting job does not run.

What a verdict means (`windtunnel.sim.verdicts` has the numbers):

* ``FIRST``: the first in the queue does not fit; under EASY it is promised a start.
* ``BEHIND``: strict: the first in the queue does not fit, and so nobody behind it is tried.
* ``NO_ROOM``: the job was tried, and does not fit what is free.
* ``WOULD_DELAY``: it fits; but somebody was promised a start that it would delay. Under
  conservative backfilling the soonest promised of the others is named.
* ``POWER``: it fits, and draws more than may be drawn.
* ``LIMIT``: its queue's quota is used up; under the policy ``quota``: and it fits.
* ``CHOICE``: the policy decides all by itself, and has not chosen it.
* ``INTERVAL``: it came when no decision was made.

A row is written when a job's verdict is another than before; who is in the way, and what is
promised, are those of that decision.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from windtunnel.sim.reference.conservative import Conservative
from windtunnel.sim.reference.easy import Easy
from windtunnel.sim.verdicts import (
    BEHIND,
    CHOICE,
    FIRST,
    INTERVAL,
    LIMIT,
    NO_ROOM,
    POWER,
    PREEMPTED,
    WOULD_DELAY,
    Verdicts,
)  # fmt: skip

if TYPE_CHECKING:
    from windtunnel.sim.reference.lent import Lent

_Verdict = tuple[int, int, float]


class Recorder:
    """Looks at the queue after every decision.

    Attributes:
        rows: (time, decision, job, verdict, blocker, promise).
        causer: whom each job that is about to be stopped is stopped for.
    """

    def __init__(self, state: Lent, school: str) -> None:
        self.state, self.scheduler, self.school = state, state.scheduler, school
        self.rows: list[tuple[float, int, int, int, int, float]] = []
        self.causer: dict[int, int] = {}
        self._last: dict[int, int] = {}
        self._point = 0

    def waits(self, job: int) -> None:
        """Note that a job came to wait: nothing has been decided about it."""
        self._last.pop(job, None)

    def preempted(self, job: int) -> None:
        """Note that a running job is stopped for another."""
        self._write(job, PREEMPTED, self.causer.pop(job, -1), math.inf)

    def decided(self, point: int) -> None:
        """Write whose verdict is another than before."""
        capped = self.state.capped
        waiting = sorted(self.state.waiting)
        head = self._head()
        verdicts = [(job, self._verdict(job, head)) for job in waiting]
        for job, (verdict, blocker, promise) in verdicts:
            if self._last.get(job) != verdict:
                self._write(job, verdict, blocker, promise)
        self.state.capped = capped
        self._point = point

    def undecided(self) -> None:
        """Note who waits about whom nothing has been decided yet."""
        for job in sorted(self.state.waiting):
            if job not in self._last:
                self._write(job, INTERVAL, -1, math.inf)

    def verdicts(self) -> Verdicts:
        """Return what was recorded."""
        columns = [np.array(column) for column in zip(*self.rows, strict=True)]
        if not columns:
            columns = [np.empty(0), *np.empty((4, 0), dtype=np.int64), np.empty(0)]
        return Verdicts.of(self.state.problem, *columns)

    def _write(self, job: int, verdict: int, blocker: int, promise: float) -> None:
        self._last[job] = verdict
        self.rows.append((self.state.now, self._point, job, verdict, blocker, promise))

    def _head(self) -> int:
        """Return who is first in the queue; -1 where that matters to nobody."""
        if isinstance(self.scheduler, Easy):
            return self.scheduler.head
        if self.school != "strict":
            return -1
        waiting = self.scheduler.waiting()  # type: ignore[union-attr]
        return next((job for job in waiting if not self.state.is_over(job)), -1)

    def _verdict(self, job: int, head: int) -> _Verdict:
        """Return (verdict, blocker, promise)."""
        if job == head:
            return self._of_head(job)
        if self.school == "strict":
            is_out = self._alone(job) == LIMIT
            return (LIMIT, -1, math.inf) if is_out else (BEHIND, head, math.inf)
        if self.school == "choice":
            return CHOICE, -1, math.inf
        return self._tried(job, head)

    def _tried(self, job: int, head: int) -> _Verdict:
        if self.school == "skip" and self.state.watts is None and self.state.quotas is None:
            return NO_ROOM, -1, math.inf
        verdict = self._alone(job)
        if isinstance(self.scheduler, Conservative):
            if job not in self.scheduler.promised:  # quotas keep it from one
                return verdict, -1, math.inf
            promise = self.scheduler.promised[job].start
            return verdict, self._promised_first(job) if verdict == WOULD_DELAY else -1, promise
        if verdict == WOULD_DELAY and head >= 0:
            return verdict, head, self._shadow(head)
        return verdict, -1, math.inf

    def _of_head(self, job: int) -> _Verdict:
        verdict = FIRST
        if self.state.watts is not None and self._alone(job) == POWER:
            verdict = POWER
        promise = math.inf
        if isinstance(self.scheduler, Easy) and self._last.get(job) != verdict:
            promise = self._shadow(job)
        return verdict, -1, promise

    def _alone(self, job: int) -> int:
        """Return a job's verdict by itself: whether it fits, and what else keeps it."""
        state = self.state
        where, lacks_power = state.search(job, state.free, state.now, state.spare)
        if where is None:
            if not lacks_power and state.is_over(job):
                return LIMIT
            return POWER if lacks_power else NO_ROOM
        return LIMIT if self.school in {"limits", "skip"} else WOULD_DELAY

    def _shadow(self, head: int) -> float:
        """Return what the head is promised; with nobody to backfill it has yet to be found."""
        assert isinstance(self.scheduler, Easy)  # noqa: S101 - nobody else has one
        if self.scheduler.shadow is None:
            self.scheduler.shadow = self.scheduler.reserve(head)[0]
        return self.scheduler.shadow

    def _promised_first(self, job: int) -> int:
        """Return who is promised the soonest start; -1 = the job itself, or nobody."""
        assert isinstance(self.scheduler, Conservative)  # noqa: S101 - ditto
        promised = self.scheduler.promised
        soonest = [(promise.start, who) for who, promise in promised.items()
                   if promise.start < math.inf]  # fmt: skip
        first = min(soonest, default=(math.inf, job))[1]
        return -1 if first == job else first
