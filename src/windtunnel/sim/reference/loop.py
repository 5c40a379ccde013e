"""The event loop: at each instant what happens, in a fixed order, then decisions, then rates.

At an instant: completions in the order of their stays, arrivals, then what happens by itself
(`windtunnel.sim.disruptions.source`, `windtunnel.sim.power.sources`), then one decision. Or one
event at a time, a decision after each completion and each arrival, as some published simulators do.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from windtunnel.sim.power.limits import Limits
from windtunnel.sim.reference.clock import Clock

if TYPE_CHECKING:
    from windtunnel.sim.disruptions.source import Outages
    from windtunnel.sim.power.sources import PowerSources
    from windtunnel.sim.reference.lent import Lent
    from windtunnel.sim.run_rules import Rules


class Loop:
    """One run.

    Attributes:
        limits: chooses running jobs' power limits; None = they have none.
        capped_time: s in which somebody waited for power alone.
        up: when the GPU units that are up changed, s, and to what; those of reservations are up.
    """

    def __init__(
        self, state: Lent, rules: Rules, outages: Outages | None, power: PowerSources
    ) -> None:
        self.state, self.clock = state, Clock(state, rules)
        self.outages, self.power, self.events = outages, power, rules.events
        self.limits, self.capped_time = None, 0.0
        if power.plan.throttles and state.watts is not None:
            self.limits = Limits(state, state.watts)
        self.submit: list[float] = [*state.problem.submit.tolist(), math.inf]
        self.arrived = 0
        self.up: list[tuple[float, int]] = []
        self._note_capacity(-math.inf)

    def run(self, until: float) -> float:
        """Let everything happen up to the horizon ``until`` (s); return where the run ends."""
        state = self.state
        while True:
            if self.limits is not None:
                self.limits.choose(self.power.budget)
            state.settle({} if self.limits is None else self.limits.slow)
            now = self._next_time()
            if now > until or now == math.inf:
                self._count_capped(until)
                return until
            self._count_capped(now)
            state.now = now
            self.clock.wake(now)
            if self.events == "batch":
                news = self._complete(now) | self._arrive(now)
                self._decide_after(now, news=self._sources(now) | news)
            else:
                self._in_turn(now)
            if state.recorder is not None:
                state.recorder.undecided()
            self.power.after_decisions(now)
            self._note_capacity(now)
            if state.is_stopped:
                return now
            self.clock.note_idle(now, arrived=self._have_arrived, certain=self._is_certain)

    def _count_capped(self, until: float) -> None:
        """Count the time from now on until then, s, if somebody waits for power alone."""
        if self.state.capped and self.state.waiting and until < math.inf:
            self.capped_time += until - self.state.now

    # When.

    @property
    def _have_arrived(self) -> bool:
        """Whether no job is to come."""
        return self.arrived == len(self.submit) - 1

    @property
    def _is_certain(self) -> bool:
        """Whether capacity is to come, or a job that is held, whatever chance brings."""
        return bool(self.power.certain or (self.outages is not None and self.outages.certain))

    def _next_time(self) -> float:
        if not self.state.unfinished or self.clock.gave_up:
            return math.inf
        stay = self.state.ending()
        event = min(math.inf if stay is None else stay.due, self.submit[self.arrived])
        time = min(event, self.clock.next_time(event, held=self.power.held))
        if (
            self.clock.pending == math.inf
            and not self.state.scheduler.alarms
            and self._nothing_will_change()
        ):
            return math.inf
        if self.outages is not None:
            time = min(time, self.outages.next_time(), self.state.next_failure())
        if self.state.running or self.state.waiting:
            time = min(time, self.power.next_cap[0])
        return min(time, self.power.next_time())

    def _nothing_will_change(self) -> bool:
        """Return whether the jobs that wait do so for ever, whatever chance brings.

        Nothing runs, arrives or comes back, and of what is up, all of which is free, nobody was
        given anything. In rounds somebody might be at the next one, if a job fits.
        """
        state = self.state
        if self.outages is None or state.running or not self._have_arrived:
            return False
        if self._is_certain or self.power.cap_changes:
            return False
        return self.clock.every is None or not any(map(state.fits_somehow, state.waiting))

    # What happens.

    def _complete(self, now: float, *, decides: bool = False) -> bool:
        """Complete the jobs that end now, and decide after each if that is the order of events.

        Those that start now and have no length are among them. Return whether there were any.
        """
        any_did = False
        while (stay := self.state.ending()) is not None and stay.due == now:
            self._finish(stay.job)
            any_did = True
            if decides:
                self.clock.call(now)
        return any_did

    def _finish(self, job: int) -> None:
        self.state.finish(job)
        self.state.scheduler.gone(job)

    def _arrive(self, now: float, *, one: bool = False) -> bool:
        """Let jobs arrive; return whether any is in the queue now, and not held by a policy."""
        any_did = False
        while self.submit[self.arrived] == now and not (one and any_did):
            job = self.arrived
            self.arrived += 1
            if not self.power.holds(job, now):
                self.state.queue(job)
                any_did = True
        return any_did

    def _sources(self, now: float) -> bool:
        news = self.outages is not None and self.outages.apply(now)
        self.state.happened = now
        if self.power.next_cap[0] <= now:
            self.clock.note_cap(now)
        return self.power.apply(now) or news

    def _decide_after(self, now: float, *, news: bool, due: bool = True) -> None:
        """Decide if anything calls for it: news, a round, or that it was to be done now."""
        at_round = self.clock.begins_round(now)
        if news or at_round or (due and self.clock.is_due(now)):
            self.clock.call(now, at_round=at_round)

    def _in_turn(self, now: float) -> None:
        """Handle an instant one event at a time.

        Completions come in the order in which the jobs started. With submissions first, a running
        job that ends now, and was expected to by now, counts as gone already in every decision.
        """
        points = self.clock.points
        if self.events == "submissions_first":
            first = self.state.ending()
            gone = self._expected_ends(now)
            for job in gone:
                self._finish(job)
            arrived = False
            while self._arrive(now, one=True):
                arrived = True
                self.clock.call(now)
            if first is not None and first.job in gone and not arrived:
                self.clock.call(now)
        self._complete(now, decides=True)
        while self._arrive(now, one=True):  # completions first
            self.clock.call(now)
            self._complete(now, decides=True)
        self._decide_after(now, news=self._sources(now), due=self.clock.points == points)

    def _expected_ends(self, now: float) -> list[int]:
        """Return the jobs that end now, and that a rule which plans expects to."""
        running = self.state.running.items()
        return [
            job for job, s in running if self.state.plans and s.due == now and s.expected <= now
        ]

    def _note_capacity(self, now: float) -> None:
        up = self.state.problem.quota - self.state.down
        if not self.up or self.up[-1][1] != up:
            self.up.append((now, up))
