"""The event loop: at each instant what happens, in a fixed order, then decisions, then rates.

At an instant: completions in the order of their stays, arrivals, then what happens by itself
(`windtunnel.sim.reference.outages`, `windtunnel.sim.power.sources`), then one decision. Or one
event at a time, a decision after each completion and each arrival, as some published simulators do.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from windtunnel.sim.reference.clock import Clock
from windtunnel.sim.reference.outages import Outages

if TYPE_CHECKING:
    from windtunnel.sim.contract import Policy
    from windtunnel.sim.power.sources import PowerSources
    from windtunnel.sim.reference.rules import Scheduler
    from windtunnel.sim.reference.state import State


class Loop:
    """One run.

    Args:
        state: its tables, nothing in it running.
        policy: who runs next.
        scheduler: carries out what it decides.
        power: policies of power; None = none.
        events: the order of what happens at one instant.
        interval: seconds between decisions; None = whenever they are called for.
    """

    def __init__(
        self, state: State, policy: Policy, scheduler: Scheduler, power: PowerSources | None, *,
        events: str, interval: float | None,
    ) -> None:  # fmt: skip
        self.state, self.scheduler, self.power, self.events = state, scheduler, power, events
        self.outages = None
        if state.plan is not None:
            self.outages = Outages(state, state.plan, scheduler)
        may_wait = state.plan is not None or power is not None
        patience = 0.0 if power is None else power.plan.patience
        self.clock = Clock(policy, state, scheduler, interval, may_wait=may_wait, patience=patience)
        self.submit: list[float] = [*state.problem.submit.tolist(), math.inf]
        self.arrived = 0

    def run(self, until: float) -> float:
        """Let everything happen up to the horizon ``until`` (s); return where the run ends."""
        state = self.state
        while True:
            self._settle()
            now = self._next_time()
            if now > until or now == math.inf:
                return until
            state.now = now
            if self.power is not None:
                self.power.begin_instant(now)
            if self.events == "batch":
                news = self._complete(now) | self._arrive(now)
                self._decide_after(now, news=self._sources(now) | news)
            else:
                self._in_turn(now)
            if self.power is not None:
                self.power.after_decisions(now)
            if self.outages is not None:
                self.outages.note_capacity(now)
            if state.is_stopped:
                return now
            self.clock.note_idle(now, last=self._is_last)

    # When.

    @property
    def _is_last(self) -> bool:
        """Whether neither a job nor room that is certain is to come."""
        certain = 0 if self.outages is None else self.outages.certain
        certain += 0 if self.power is None else self.power.certain
        return self.arrived == len(self.submit) - 1 and not certain

    def _next_time(self) -> float:
        if not self.state.unfinished:
            return math.inf
        event = min(self.state.next_end(), self.submit[self.arrived])
        held = 0 if self.power is None else self.power.held
        time = min(event, self.clock.next_time(event, held=held))
        if self.clock.pending == math.inf and self._nothing_will_change():
            return time if self.scheduler.alarms else math.inf
        for source in (self.outages, self.power):
            if source is not None:
                time = min(time, source.next_time())
        return time

    def _nothing_will_change(self) -> bool:
        """Return whether the jobs that wait do so for ever, whatever chance brings.

        Nothing runs, arrives or comes back, and of what is up, all of which is free, nobody was
        given anything. In rounds somebody might be at the next one, if a job fits.
        """
        state = self.state
        if self.clock.gave_up:
            return True
        if self.outages is None or state.running or not self._is_last or not state.unfinished:
            return False
        if self.power is not None and self.power.cap_changes:
            return False
        return self.clock.every is None or all(state.fit(job) is None for job in state.waiting)

    # What happens.

    def _complete(self, now: float) -> bool:
        any_did = False
        while self.state.next_end() == now:
            self._finish(self.state.ends[0][3].job, now)
            any_did = True
        return any_did

    def _finish(self, job: int, now: float) -> None:
        self.state.finish(job, now)
        self.scheduler.gone(job)

    def _arrive(self, now: float, *, one: bool = False) -> bool:
        """Let jobs arrive; return whether any is in the queue now, and not held by a policy."""
        any_did = False
        while self.submit[self.arrived] == now and not (one and any_did):
            job = self.arrived
            self.arrived += 1
            if self.power is None or not self.power.holds(job, now):
                self.state.waiting[job] = None
                self.scheduler.add(job, now)
                any_did = True
        return any_did

    def _sources(self, now: float) -> bool:
        news = self.outages is not None and self.outages.apply(now)
        if self.power is not None:
            news |= self.power.apply(now)
        return news

    def _decide_after(self, now: float, *, news: bool) -> None:
        """Decide if anything calls for it: news, a round, or that it was to be done now."""
        at_round = self.clock.begins_round(now)
        if news or at_round or self.clock.is_due(now):
            self._call(now, at_round=at_round)

    def _call(self, now: float, *, at_round: bool = False) -> None:
        if self.clock.call(now, at_round=at_round) and self.outages is not None:
            self.outages.note_starts()

    def _in_turn(self, now: float) -> None:
        """Handle an instant one event at a time.

        Completions come in the order in which the jobs started. With submissions first, a running
        job that ends now, and was expected to by now, counts as gone already in every decision.
        """
        state, points = self.state, self.clock.points
        if self.events == "submissions_first":
            gone = [
                job
                for job, stay in state.running.items()
                if state.plans and stay.due == now and stay.expected <= now
            ]
            leads = bool(gone) and state.ends[0][3].job in gone
            for job in gone:
                self._finish(job, now)
            arrived = self._arrivals_in_turn(now)
            if leads and not arrived:
                self._call(now)
        self._completions_in_turn(now)
        while self.submit[self.arrived] == now:  # completions first
            if self._arrive(now, one=True):
                self._call(now)
            self._completions_in_turn(now)
        news = self._sources(now)
        at_round = self.clock.begins_round(now)
        due = self.clock.points == points and self.clock.is_due(now)
        if news or at_round or due:
            self._call(now, at_round=at_round)

    def _completions_in_turn(self, now: float) -> None:
        """Complete jobs one by one, those that start now and have no length included."""
        while self.state.next_end() == now:
            self._finish(self.state.ends[0][3].job, now)
            self._call(now)

    def _arrivals_in_turn(self, now: float) -> bool:
        any_did = False
        while self.submit[self.arrived] == now:
            if self._arrive(now, one=True):
                any_did = True
                self._call(now)
        return any_did

    def _settle(self) -> None:
        state = self.state
        changed = [] if self.power is None else self.power.choose_limits(state.now)
        if state.pace is not None or changed or state.touched:
            state.settle(state.now, {} if self.power is None else self.power.slow, changed)
