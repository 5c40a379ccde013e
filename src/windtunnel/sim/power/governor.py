"""`Governor`: what policies of power do by themselves, in order of time.

At an instant, after completions and arrivals: the cap changes, nodes that were told to wake are
ready, shifted jobs enter the queue or leave their GPUs for a better time, jobs beyond the cap are
stopped, newest first; once in a while nodes fall asleep. After the decision nodes wake for the jobs
that wait.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from windtunnel.sim.power.shifting import Shifter
from windtunnel.sim.power.sleeper import Sleeper

if TYPE_CHECKING:
    from collections.abc import Iterator

    from windtunnel.sim.power.ledger import PoweredLedger
    from windtunnel.sim.power.throttle import Throttle
    from windtunnel.sim.reference import Scheduler


class Governor:
    """The policies of power of a run.

    Args:
        ledger: the run.
        scheduler: holds the waiting jobs.
        throttle: chooses power limits; None = there are none.
    """

    def __init__(
        self, ledger: PoweredLedger, scheduler: Scheduler, throttle: Throttle | None
    ) -> None:
        self.ledger = ledger
        self.inner = scheduler
        self.throttle = throttle
        plan = ledger.plan
        first = float(ledger.problem.submit[0]) if len(ledger.problem.submit) else 0.0
        self._rows: Iterator[tuple[float, float]] = iter(())
        self._next_cap: tuple[float, float] = (math.inf, math.inf)
        if plan.cap is not None:
            self._rows = plan.cap.rows(first)
            ledger.set_cap(next(self._rows)[1])
            self._next_cap = next(self._rows, (math.inf, math.inf))
        self.shifter = None if plan.shift is None else Shifter(plan.shift, ledger)
        self.sleeper = None if plan.sleep is None else Sleeper(plan.sleep, ledger, first)
        self._before = first
        self._was_capped = False
        #: Something happened at this instant that a policy must be asked about.
        self._news = False
        #: The instants at which a tier-3 policy wants to be asked; its own list.
        self.alarms: list[float] = getattr(scheduler, "alarms", [])

    # What the engine's loop asks of whatever happens by itself.

    @property
    def certain(self) -> int:
        """Changes that will come: jobs let into the queue later, nodes that are waking."""
        held = 0 if self.shifter is None else self.shifter.held
        return held + (0 if self.sleeper is None else len(self.sleeper.waking))

    def next_time(self) -> float:
        """Return when something happens next, s; never once every job is over."""
        ledger = self.ledger
        if not ledger.unfinished:
            return math.inf
        times = [math.inf]
        if self._next_cap[0] < math.inf and (ledger.running or ledger.waiting):
            times.append(self._next_cap[0])
        if self.shifter is not None:
            times.append(self.shifter.next_time())
        if self.sleeper is not None:
            times.append(self.sleeper.next_time())
        return min(times)

    def nothing_will_change(self, *, rounds: bool) -> bool:  # noqa: ARG002 - one contract with outages
        """Return False: jobs that wait for power, or for nodes to wake, do not do so for ever."""
        return False

    def apply(self, now: float) -> None:
        """Let happen what is due at ``now`` (s), after completions and arrivals."""
        ledger = self.ledger
        if self._was_capped:
            ledger.capped_time += now - self._before
        self._before, self._was_capped = now, False
        if self.throttle is not None:
            self.throttle.now = now
        cap = None
        while self._next_cap[0] <= now:
            cap = self._next_cap[1]
            self._next_cap = next(self._rows, (math.inf, math.inf))
        if cap is not None:
            ledger.set_cap(cap)
            self._news = True
        if self.sleeper is not None and self.sleeper.rouse(now):
            self._news = True
        if self.shifter is not None:
            self._shift(self.shifter, now)
        while ledger.floor_sum > max(ledger.budget, 0):
            job = next(job for job in reversed(ledger.running) if ledger.floors[job] > 0)
            ledger.cut(job, now)
            self.inner.interrupted(job, now)
            self._news = True
        if self.sleeper is not None:
            self.sleeper.look(now)

    def _shift(self, shifter: Shifter, now: float) -> None:
        for job in shifter.due(now):
            self._let_in(job, now)
        for job in shifter.to_pause(now):
            self.ledger.preempt(job, now)
            self.ledger.pauses += 1
            del self.ledger.waiting[job]  # it is not in the queue
            self.inner.finished(job)
            self._news = True

    def _let_in(self, job: int, now: float) -> None:
        ledger = self.ledger
        if math.isnan(ledger.held_until[job]):
            ledger.held_until[job] = now
        ledger.waiting[job] = None
        self.inner.add(job, now)
        self._news = True

    # What backfilling knows of the future.

    def wakes_after(self, now: float) -> list[tuple[float, int]]:
        """Return (when, node) of nodes that are waking, or could be woken now, in order."""
        if self.sleeper is None:
            return []
        called = now + self.sleeper.plan.wake_time
        asleep = [(called, node) for node in sorted(self.sleeper.asleep)]
        return sorted([*self.sleeper.waking, *asleep])

    def caps_after(self, now: float, last: float) -> Iterator[tuple[float, float]]:
        """Yield (when, W) of the cap's changes after ``now``, for a period beyond ``last`` (s)."""
        cap = self.ledger.plan.cap
        if cap is None or cap.period == math.inf:
            return
        rows = cap.rows(now)
        next(rows)
        for time, watts in rows:
            if time > last + cap.period:
                return
            yield time, watts

    # What the engine's loop asks of a scheduler.

    def add(self, job: int, now: float) -> None:
        """Queue a job that arrives, or hold it for a better time."""
        if self.shifter is None or not self.shifter.holds(job, now):
            self._let_in(job, now)

    def finished(self, job: int) -> None:
        """Note a completion."""
        self.inner.finished(job)
        self._news = True

    def interrupted(self, job: int, now: float) -> None:
        """Queue a running job again that was stopped."""
        self.inner.interrupted(job, now)

    def rekey(self, now: float) -> None:
        """Ask every waiting job's key again."""
        self.inner.rekey(now)
        self._news = True

    def __len__(self) -> int:
        return len(self.inner) + (0 if self.shifter is None else self.shifter.held)

    def decide(self, now: float) -> None:
        """Let the policy decide where anything happened, then wake nodes for those who wait."""
        ledger = self.ledger
        if self._news or (self.alarms and self.alarms[0] <= now):
            ledger.capped = False
            self.inner.decide(now)
            self._was_capped = ledger.capped
        elif ledger.capped and ledger.waiting:
            self._was_capped = True  # as at the decision before
        self._news = False
        if self.shifter is not None:
            self.shifter.started(now)
        if self.sleeper is not None:
            self.sleeper.wake_for_waiting(now)
