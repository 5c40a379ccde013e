"""Backfilling: later jobs go first where, by the users' estimates, nobody promised waits longer.

Both rules live on expected ends: a job that starts at ``t`` with estimate ``e`` is expected to end
at ``t + e``. A job that runs on past that is expected to end right now, at every later decision.

* EASY (Lifka, JSSPP 1995; Mu'alem and Feitelson, TPDS 2001): only the head of the queue is promised
  a start, the shadow time, and only until the next decision.
* Conservative (same sources): every waiting job is promised a start; a promise is only moved
  forward.

On a cluster with nodes a promise is one of nodes: the placement is asked where the job would go in
the state that is expected then.
"""

from __future__ import annotations

import bisect
import math
from typing import TYPE_CHECKING

from windtunnel.sim.profile import Profile

if TYPE_CHECKING:
    from collections.abc import Iterator

    from windtunnel.cluster.free import FreeState, Where
    from windtunnel.sim.ledger import Ledger
    from windtunnel.sim.queues import Key

    Free = FreeState


class EasyQueue:
    """Start jobs in order; at the first that does not fit, start others that do not delay it.

    The head gets a reservation at the shadow time: the earliest expected end of a running job at
    which the placement finds room for it. A later job starts now if it is expected to end by then,
    or if what it takes is free beside the head then. The reservation is made anew at every
    decision, so that an early completion helps the head.

    Args:
        ledger: the run.
        key: (job, now) -> key, asked when a job arrives and at rounds.
        shortest_first: candidates are tried by (estimate, arrival) instead of in the queue's order.
    """

    def __init__(self, ledger: Ledger, key: Key, *, shortest_first: bool) -> None:
        self.ledger = ledger
        self.key = key
        self.shortest_first = shortest_first
        self.estimate: list[float] = ledger.problem.estimate.tolist()
        self.waiting: list[tuple[float, int]] = []
        #: Running jobs by (expected end, order of start).
        self.expected: list[tuple[float, int, int]] = []
        self._entry: dict[int, tuple[float, int, int]] = {}

    def add(self, job: int, now: float) -> None:
        """Queue a job that arrives."""
        bisect.insort(self.waiting, (self.key(job, now), job))

    def finished(self, job: int) -> None:
        """Forget a job that completed."""
        entry = self._entry.pop(job)
        del self.expected[bisect.bisect_left(self.expected, entry)]

    def interrupted(self, job: int, now: float) -> None:
        """Queue a running job again that an outage stopped."""
        self.finished(job)
        self.add(job, now)

    def decide(self, now: float) -> None:
        """Start what may start."""
        ledger, waiting = self.ledger, self.waiting
        started = 0
        for _, job in waiting:
            where = ledger.fit(job)
            if where is None:
                break
            self._start(job, now, where)
            started += 1
        del waiting[:started]
        if len(waiting) > 1:
            self._backfill(now)

    def _backfill(self, now: float) -> None:
        ledger, estimate = self.ledger, self.estimate
        shadow, beside = self._reserve(self.waiting[0][1], now)
        candidates = [job for _, job in self.waiting[1:]]
        if self.shortest_first:
            candidates.sort(key=lambda job: (estimate[job], job))
        started = set()
        for job in candidates:
            where = ledger.fit(job)
            if where is None:
                continue
            if now + estimate[job] > shadow and not self._takes_beside(job, where, beside):
                continue
            self._start(job, now, where)
            started.add(job)
        if started:
            self.waiting = [entry for entry in self.waiting if entry[1] not in started]

    def _takes_beside(self, job: int, where: Where, beside: Free) -> bool:
        """Take what a job holds beside the head at the shadow time; False = it is not free then."""
        demand = self.ledger.demand[job]
        if not self.ledger.opened(beside, job).fits(where, demand):
            return False
        beside.take(where, demand)
        return True

    def _reserve(self, head: int, now: float) -> tuple[float, Free]:
        """Return the shadow time, and what is free then beside the head."""
        ledger = self.ledger
        free = ledger.free.copy()
        demand = ledger.demand[head]
        last = len(self.expected) - 1
        for index, (end, _, job) in enumerate(self.expected):
            free.give(ledger.running[job].where, ledger.demand[job])
            if index < last and max(self.expected[index + 1][0], now) == max(end, now):
                continue  # all that end at one instant are gone before the head is tried
            where = ledger.placement.place(free, demand)
            if where is not None:
                free.take(where, demand)
                return max(end, now), free
        # Unreachable on a cluster that can hold the head when it is empty.
        raise AssertionError(head)

    def _start(self, job: int, now: float, where: Where) -> None:
        self.ledger.start(job, now, where)
        entry = (now + self.estimate[job], len(self.ledger.stays), job)
        self._entry[job] = entry
        bisect.insort(self.expected, entry)

    def rekey(self, now: float) -> None:
        """Ask every waiting job's key again."""
        self.waiting = sorted((self.key(job, now), job) for _, job in self.waiting)

    def __len__(self) -> int:
        return len(self.waiting)


class ConservativeQueue:
    """Promise every job a start when it arrives: the earliest at which nobody promised is delayed.

    When a job ends before it was expected to, the waiting jobs are promised anew one after the
    other in the queue's order, each with its own old promise lifted first: a start only ever moves
    to an earlier time. While a job runs on past its expected end, and at the first decision after
    that, promises are made anew, and may then move to a later time.

    A start may be promised for a time at which nothing else happens: what was to end then has moved
    forward itself. `alarms` has the next such time. While a job runs on past its expected end there
    is none: what is promised waits for that job, whose end is an event.

    Args:
        ledger: the run.
        key: (job, now) -> key, asked when a job arrives and at rounds.
    """

    def __init__(self, ledger: Ledger, key: Key) -> None:
        self.ledger = ledger
        self.key = key
        self.estimate: list[float] = ledger.problem.estimate.tolist()
        self.waiting: list[tuple[float, int]] = []
        self.promised: dict[int, tuple[float, Where]] = {}
        self.expected: dict[int, float] = {}
        self.profile = Profile(ledger.free.copy())
        #: The next promised start, s, as the engine's loop asks for it; empty = none.
        self.alarms: list[float] = []
        self._fresh: list[int] = []
        self._ended: list[int] = []
        self._overrun = False

    def add(self, job: int, now: float) -> None:
        """Queue a job that arrives."""
        bisect.insort(self.waiting, (self.key(job, now), job))
        self._fresh.append(job)

    def finished(self, job: int) -> None:
        """Note a completion."""
        self._ended.append(job)

    def interrupted(self, job: int, now: float) -> None:
        """Queue a running job again that an outage stopped."""
        self.finished(job)
        self.add(job, now)

    def decide(self, now: float) -> None:
        """Promise, and start what was promised for now."""
        ended = [self.expected.pop(job) for job in self._ended]
        early = any(end > now for end in ended)
        late = any(end <= now for end in self.expected.values())
        # Nothing may have been decided between its expected end and its end: what was promised
        # for that time has not started, and would end later than the profile says.
        missed = any(end < now for end in ended)
        overrun, self._overrun = late or missed or self._overrun, late
        self._ended.clear()
        if overrun or early:
            self._rebuild(now, keep=not overrun)
        else:
            self.profile.forget(now)
        fresh = set(self._fresh)
        self._fresh.clear()
        if overrun:
            for _, job in self.waiting:
                self._promise(job)
        else:
            for _, job in self.waiting if early else ():
                if job not in fresh:
                    self._lift(job)
                    self._promise(job)
            for _, job in self.waiting if fresh else ():
                if job in fresh:
                    self._promise(job)
        self._start_due(now)
        following = math.inf if late else min(self._promised_starts(), default=math.inf)
        self.alarms[:] = [following] if following < math.inf else []

    def _promised_starts(self) -> Iterator[float]:
        return (start for start, _ in self.promised.values())

    def _rebuild(self, now: float, *, keep: bool) -> None:
        """Make the profile anew from what runs, and from the promises if those are kept."""
        ledger = self.ledger
        self.profile = Profile(ledger.free.copy(), now)
        for job, stay in ledger.running.items():
            end = self.expected[job]
            self.profile.give_from(math.nextafter(now, math.inf) if end <= now else end, stay.where,
                                   ledger.demand[job])  # fmt: skip
        if keep:
            for job, (start, where) in self.promised.items():
                stop = self._stop(job, start)
                self.profile.take(start, stop, where, ledger.demand[job])

    def _lift(self, job: int) -> None:
        start, where = self.promised.pop(job)
        stop = self._stop(job, start)
        self.profile.give(start, stop, where, self.ledger.demand[job])

    def _promise(self, job: int) -> None:
        ledger = self.ledger
        demand, length = ledger.demand[job], self.estimate[job]
        start, where = self.profile.earliest(length, lambda f: ledger.placement.place(f, demand))
        self.promised[job] = (start, where)
        self.profile.take(start, self._stop(job, start), where, demand)

    def _stop(self, job: int, start: float) -> float:
        """Return when a job is expected to end; one of no length still ends after its start."""
        return max(start + self.estimate[job], math.nextafter(start, math.inf))

    def _start_due(self, now: float) -> None:
        due = [job for _, job in self.waiting if self.promised[job][0] <= now]
        for job in due:
            _, where = self.promised.pop(job)
            self.ledger.start(job, now, where)
            self.expected[job] = self._stop(job, now)
        if due:
            gone = set(due)
            self.waiting = [entry for entry in self.waiting if entry[1] not in gone]

    def rekey(self, now: float) -> None:
        """Ask every waiting job's key again."""
        self.waiting = sorted((self.key(job, now), job) for _, job in self.waiting)

    def __len__(self) -> int:
        return len(self.waiting)
