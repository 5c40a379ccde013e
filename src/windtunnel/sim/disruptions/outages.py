"""`Outages`: what happens to nodes and jobs by itself, in order of time.

At one instant repairs and ends of holds come first, then what begins, then what becomes of jobs
that run there, then jobs that fail by themselves; each kind in the order of the description.
"""

from __future__ import annotations

import heapq
import math
from typing import TYPE_CHECKING, Any

from windtunnel.sim.disruptions.backfill import HeldConservativeQueue
from windtunnel.sim.disruptions.plan import Hold, NodeStream

if TYPE_CHECKING:
    from windtunnel.sim.disruptions.ledger import DisruptedLedger
    from windtunnel.sim.reference import Scheduler

_RESTORE, _WITHHOLD, _STRIKE = range(3)


class Outages:
    """The outages of a run.

    Args:
        ledger: the run.

    Attributes:
        certain: changes that will come, whatever chance brings: repairs and given times.
    """

    def __init__(self, ledger: DisruptedLedger) -> None:
        self.ledger = ledger
        #: Holds the waiting jobs; it is made when what comes before the first submit has happened.
        self.scheduler: Scheduler | None = None
        self.certain = 0
        #: Heap of (time, kind, number, what, random failure of which node).
        self._events: list[tuple[float, int, int, Hold, NodeStream | None]] = []
        self._count = 0
        plan = ledger.plan
        for hold in plan.holds:
            self._push(hold.begin, _WITHHOLD, hold)
            self._push(hold.start, _STRIKE, hold)
            if hold.end < math.inf:
                self._push(hold.end, _RESTORE, hold)
        for stream in plan.streams:
            self._next_failure(stream, plan.first)
        while self._events and self._events[0][0] < plan.first:
            self._happen(self._events[0][0])
        ledger.note_capacity(-math.inf)

    def next_time(self) -> float:
        """Return when something happens next, s; never once every job is over."""
        if not self.ledger.unfinished:
            return math.inf
        failures = self.ledger.job_failures
        while failures and not math.isnan(failures[0][2].end):
            heapq.heappop(failures)
        time = self._events[0][0] if self._events else math.inf
        return min(time, failures[0][0]) if failures else time

    def apply(self, now: float) -> None:
        """Let happen what is due at ``now`` (s), after completions and arrivals."""
        ledger = self.ledger
        ledger.now = now
        scheduler = self.scheduler
        if scheduler is None:
            return
        for job in ledger.failed_at_end:
            ledger.fail_at_end(job, now)
            if job not in ledger.ended_failed:
                scheduler.add(job, now)
        ledger.failed_at_end.clear()
        while self._events and self._events[0][0] <= now:
            self._happen(now)
        failures = ledger.job_failures
        while failures and failures[0][0] <= now:
            stay = heapq.heappop(failures)[2]
            if math.isnan(stay.end):
                self._interrupt(stay.job, now, saves=False, ends=ledger.plan.ends)
        ledger.note_capacity(now)

    def nothing_will_change(self, *, rounds: bool) -> bool:
        """Return whether the jobs that wait after the last arrival will do so for ever.

        Nothing runs or comes back, and of what is up, all of which is free, the policy gave them
        nothing; further failures do not help. In rounds it might at the next one, if a job fits.
        """
        ledger = self.ledger
        if ledger.running or self.certain or not ledger.unfinished:
            return False
        if not rounds:
            return True
        over = ledger.finished | ledger.ended_failed
        return all(ledger.fit(job) is None for job in range(len(ledger.gpus)) if job not in over)

    def _push(self, time: float, kind: int, hold: Hold, stream: NodeStream | None = None) -> None:
        heapq.heappush(self._events, (time, kind, self._count, hold, stream))
        self._count += 1
        self.certain += stream is None or kind == _RESTORE

    def _next_failure(self, stream: NodeStream, now: float) -> None:
        time = now + stream.lifetime()
        hold = Hold(time, time, math.inf, stream.places, on_start="kill", planned=False)
        self._push(time, _WITHHOLD, hold, stream)

    def _happen(self, now: float) -> None:
        _, kind, _, hold, stream = heapq.heappop(self._events)
        self.certain -= stream is None or kind == _RESTORE
        ledger = self.ledger
        if not hold.planned and isinstance(self.scheduler, HeldConservativeQueue):
            self.scheduler.surprised()
        if kind == _STRIKE:
            self._strike(hold, now)
        elif kind == _WITHHOLD:
            ledger.withhold(hold)
            if stream is not None:
                self._strike(hold, now)
                self._push(hold.start + stream.repair(), _RESTORE, hold, stream)
        else:
            ledger.restore(hold)
            if stream is not None:
                self._next_failure(stream, now)

    def _strike(self, hold: Hold, now: float) -> None:
        """Deal with the jobs that run where a hold starts."""
        if hold.on_start == "wait":
            return
        saves = hold.on_start == "checkpoint"
        ends = self.ledger.plan.ends and not hold.planned
        for job in self._victims(hold):
            self._interrupt(job, now, saves=saves, ends=ends)

    def _victims(self, hold: Hold) -> list[int]:
        """Return whom a hold stops: on nodes who runs there, in a pool who started last."""
        ledger = self.ledger
        access = ledger.plan.access
        places = {place for place, _ in hold.places}
        there = [
            job
            for job, stay in ledger.running.items()
            if hold.group not in access[job] and any(place in places for place, _ in stay.where)
        ]
        if not ledger.problem.is_pool:
            return there
        free: Any = ledger.free  # a pool's
        short = {place: -free.free[place] for place in places}
        chosen = []
        for job in reversed(there):
            taken = [(p, units) for p, units in ledger.running[job].where if short.get(p, 0) > 0]
            if taken and ledger.gpus[job]:
                chosen.append(job)
            for place, units in taken:
                short[place] -= units
        return chosen

    def _interrupt(self, job: int, now: float, *, saves: bool, ends: bool) -> None:
        self.ledger.interrupt(job, now, saves=saves, ends=ends)
        if self.scheduler is None:
            return
        if ends:
            self.scheduler.finished(job)
        else:
            self.scheduler.interrupted(job, now)
