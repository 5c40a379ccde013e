"""`Outages`: what happens to nodes and jobs by itself, in order of time.

At one instant repairs and ends of holds come first, then what begins, then what becomes of jobs
that run there, then jobs that fail by themselves; each kind in the order of the description.
"""

from __future__ import annotations

import heapq
import math
from typing import TYPE_CHECKING

from windtunnel.sim.disruptions.plan import Hold, NodeStream, Plan

if TYPE_CHECKING:
    import numpy as np

    from windtunnel.sim.reference.progress import Stay
    from windtunnel.sim.reference.rules import Scheduler
    from windtunnel.sim.reference.state import State

_RESTORE, _WITHHOLD, _STRIKE = range(3)


class Outages:
    """The outages of a run. What comes before the first submission happens as this is made.

    Args:
        state: the run, nothing in it running.
        plan: what will happen.
        scheduler: holds the waiting jobs.

    Attributes:
        certain: changes that will come, whatever chance brings: repairs and given times.
    """

    def __init__(self, state: State, plan: Plan, scheduler: Scheduler) -> None:
        self.state, self.plan, self.scheduler = state, plan, scheduler
        self.certain = 0
        #: When the GPU units that are up changed, s, and to what.
        self.up: list[tuple[float, int]] = []
        #: Heap of (time, kind, number, what, random failure of which node).
        self._events: list[tuple[float, int, int, Hold, NodeStream | None]] = []
        self._count = 0
        #: Heap of (time, number of the stay, stay): jobs that fail by themselves.
        self._job_failures: list[tuple[float, int, Stay]] = []
        self._fail_at: dict[int, float] = {}
        self._randoms: dict[int, np.random.Generator] = {}
        self._seen = 0
        for hold in plan.holds:
            self._push(hold.begin, _WITHHOLD, hold)
            self._push(hold.start, _STRIKE, hold)
            if hold.end < math.inf:
                self._push(hold.end, _RESTORE, hold)
        for stream in plan.streams:
            self._next_failure(stream, plan.first)
        while self._events and self._events[0][0] < plan.first:
            self._happen(self._events[0][0])
        state.happened = math.nextafter(plan.first, -math.inf)
        self.note_capacity(-math.inf)

    def next_time(self) -> float:
        """Return when something happens next, s; never once every job is over."""
        if not self.state.unfinished:
            return math.inf
        failures = self._job_failures
        while failures and not math.isnan(failures[0][2].end):
            heapq.heappop(failures)
        time = self._events[0][0] if self._events else math.inf
        return min(time, failures[0][0]) if failures else time

    def apply(self, now: float) -> bool:
        """Let happen what is due; return whether anything was."""
        state, news = self.state, bool(self.state.failed_now)
        for job in state.failed_now:
            if job not in state.ended_failed:
                state.waiting[job] = None
                self.scheduler.add(job, now)
        state.failed_now.clear()
        while self._events and self._events[0][0] <= now:
            self._happen(now)
            news = True
        state.happened = now
        failures = self._job_failures
        while failures and failures[0][0] <= now:
            stay = heapq.heappop(failures)[2]
            if math.isnan(stay.end):
                self._interrupt(stay.job, now, saves=False, ends=self.plan.ends)
                news = True
        return news

    def note_starts(self) -> None:
        """Draw when the jobs that have been started since the last call fail by themselves.

        The clock is the time that a job has been on GPUs since it was last stopped by an outage.
        """
        state = self.state
        for stay in state.stays[self._seen :]:
            job = stay.job
            if not self.plan.hazard[job] or not math.isnan(stay.end):
                continue
            random = self._randoms.get(job)
            if random is None:
                random = self._randoms[job] = self.plan.job_random(int(state.problem.rows[job]))
            if job not in self._fail_at:
                mean = 1 / self.plan.hazard[job]
                self._fail_at[job] = state.run_before[job] + float(random.exponential(mean))
            time = stay.start + max(0.0, self._fail_at[job] - state.run_before[job])
            heapq.heappush(self._job_failures, (time, stay.number, stay))
        self._seen = len(state.stays)

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
        state = self.state
        if kind == _STRIKE:
            self._strike(hold, now)
        elif kind == _WITHHOLD:
            for place, units in hold.places:
                state.withhold(place, hold.group, units)
            if stream is not None:
                self._strike(hold, now)
                self._push(hold.start + stream.repair(), _RESTORE, hold, stream)
        else:
            for place, units in hold.places:
                state.restore(place, hold.group, units)
            if stream is not None:
                self._next_failure(stream, now)

    def _strike(self, hold: Hold, now: float) -> None:
        """Deal with the jobs that run where a hold starts."""
        if hold.on_start == "wait":
            return
        saves = hold.on_start == "checkpoint"
        ends = self.plan.ends and not hold.planned
        for job in self._victims(hold):
            self._interrupt(job, now, saves=saves, ends=ends)

    def _victims(self, hold: Hold) -> list[int]:
        """Return whom a hold stops: on nodes who runs there, in a pool who started last."""
        state = self.state
        places = {place for place, _ in hold.places}
        there = [
            job
            for job, stay in state.running.items()
            if hold.group not in state.access[job] and any(p in places for p, _ in stay.where)
        ]
        if not state.problem.is_pool:
            return there
        short = {place: -state.free.free[place] for place in places}
        chosen = []
        for job in reversed(there):
            taken = [(p, units) for p, units in state.running[job].where if short.get(p, 0) > 0]
            if taken and state.gpus[job]:
                chosen.append(job)
            for place, units in taken:
                short[place] -= units
        return chosen

    def _interrupt(self, job: int, now: float, *, saves: bool, ends: bool) -> None:
        self.state.interrupt(job, now, saves=saves, ends=ends)
        self._fail_at.pop(job, None)
        if ends:
            self.scheduler.gone(job)
        else:
            self.scheduler.returned(job, now)

    def note_capacity(self, now: float) -> None:
        """Record the GPUs that are up from ``now`` (s) on, those of reservations included."""
        up = self.state.problem.quota - self.state.down
        if not self.up or self.up[-1][1] != up:
            self.up.append((now, up))
