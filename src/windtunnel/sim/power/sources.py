"""`PowerSources`: what policies of power do by themselves, in order of time, on any engine.

At an instant, after completions, arrivals and outages: the cap changes, nodes that were called are
awake, shifted jobs enter the queue or leave their GPUs for a better time, jobs beyond the cap are
stopped, newest first; once in a while nodes fall asleep. After the decisions nodes are called for
the jobs that wait, and limits are chosen. Nobody is started who would take the draw over the cap,
every running job counted at the least that it can be brought to: so draw <= cap at any time.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from windtunnel.errors import SpecError, quote
from windtunnel.sim.closing import ByRow
from windtunnel.sim.flight import PowerRecord
from windtunnel.sim.power.limits import levels_of
from windtunnel.sim.power.plan import NANO
from windtunnel.sim.power.shifting import Shifter
from windtunnel.sim.power.sleeper import Sleeper

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from windtunnel.sim.power.plan import PowerPlan
    from windtunnel.sim.problem import Problem

#: Cuts of one job after which it will never get anywhere.
MAX_CUTS = 10_000


class PowerSources:
    """The policies of power of a run, as `windtunnel.sim.reference.lent` lends it.

    An engine calls, at each instant: ``holds`` for each job that arrives; ``apply``; after all
    decisions ``after_decisions``. Then it chooses limits.

    Attributes:
        cap_w: W that the facility may draw now; inf = no cap.
        next_cap: when that changes next, s, and to what.
    """

    def __init__(self, plan: PowerPlan, problem: Problem, run: Any) -> None:
        self.plan, self.problem, self.run = plan, problem, run
        first = float(problem.submit[0]) if len(problem.submit) else 0.0
        self.cap_w, self.base_w, self.budget = math.inf, 0.0, NANO**3
        self._rows: Iterator[tuple[float, float]] = iter(())
        self.next_cap: tuple[float, float] = (math.inf, math.inf)
        if plan.cap is not None:
            self.base_w = plan.cap.base_w
            self._rows = plan.cap.rows(first)
            self._set_cap(next(self._rows)[1])
            self.next_cap = next(self._rows, (math.inf, math.inf))
        self.shifter = None if plan.shift is None else Shifter(plan.shift, problem, run)
        self.sleeper = None
        if plan.sleep is not None:
            nodes = len(problem.sizes)
            self.sleeper = Sleeper(plan.sleep, nodes, run, first, self._draw_more)
        self._held_until = [math.nan] * len(problem.rows)
        self._cuts: dict[int, int] = {}
        self._pauses = 0
        run.note_power(self)

    # When.

    @property
    def held(self) -> int:
        """Jobs that arrived, or ran, and are let into the queue later."""
        return 0 if self.shifter is None else self.shifter.held

    @property
    def certain(self) -> int:
        """Changes that will come: jobs let into the queue later, nodes that are waking."""
        return self.held + (0 if self.sleeper is None else len(self.sleeper.waking))

    @property
    def cap_changes(self) -> bool:
        """Whether the cap will change."""
        return self.next_cap[0] < math.inf

    def next_time(self) -> float:
        """Return when something else than a change of the cap happens next, s."""
        times = [math.inf]
        if self.shifter is not None:
            times.append(self.shifter.next_time())
        if self.sleeper is not None:
            times.append(self.sleeper.next_time())
        return min(times)

    # At an instant.

    def holds(self, job: int, now: float) -> bool:
        """Return whether a job that arrives is held for a better time; else it is in the queue."""
        if self.shifter is None:
            return False
        if self.shifter.holds(job, now):
            return True
        self._held_until[job] = now
        return False

    def apply(self, now: float) -> bool:
        """Let happen what is due; return whether that calls for a decision."""
        run, news, cap = self.run, False, None
        while self.next_cap[0] <= now:
            cap = self.next_cap[1]
            self.next_cap = next(self._rows, (math.inf, math.inf))
        if cap is not None:
            self._set_cap(cap)
            news = True
        if self.sleeper is not None:
            news |= self.sleeper.rouse(now)
        if self.shifter is not None:
            news |= self._shift(self.shifter, now)
        while run.floor_sum() > max(self.budget, 0):
            job = next(job for job in reversed(run.running_jobs()) if run.floor(job) > 0)
            self._cut(job, now)
            news = True
        if self.sleeper is not None:
            run.note_power(self)  # plans that are asked for know which nodes are awake by now
            news |= self.sleeper.look(now)
        run.note_power(self)
        return news

    def after_decisions(self, now: float) -> None:
        """Look at who was started, and call nodes for those who wait."""
        if self.shifter is not None:
            self.shifter.started(now)
        if self.sleeper is not None:
            self.sleeper.wake_for_waiting(now)
        self.run.note_power(self)

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
        cap = self.plan.cap
        if cap is None or cap.period == math.inf:
            return
        rows = cap.rows(now)
        next(rows)
        for time, watts in rows:
            if time > last + cap.period:
                return
            yield time, watts

    def cap_at(self, time: float) -> float:
        """Return the cap that holds at a time, W."""
        cap = self.plan.cap
        return math.inf if cap is None else next(cap.rows(time))[1]

    def budget_at(self, cap_w: float) -> int:
        """Return what jobs may add under a cap, nanowatts, with the nodes awake that are now."""
        cap = self.plan.cap
        return NANO**3 if cap is None else cap.budget_at(cap_w, self.base_w)

    # The record.

    def record(
        self,
        starts: np.ndarray,
        notes: Iterable[np.ndarray],
        *,
        capped_time: float,
        arrived: int,
    ) -> PowerRecord:
        """Return what the policies did.

        ``notes`` are those of power limits, as `windtunnel.sim.power.limits.levels_of` takes them;
        ``capped_time``: s in which somebody waited for power alone.
        """
        by_row = ByRow(self.problem)
        offset, began, level = levels_of(starts, *notes)
        sleeps = np.array([] if self.sleeper is None else self.sleeper.sleeps, dtype=np.float64)
        sleeps = sleeps.reshape(-1, 3)
        held_until = np.array(self._held_until, dtype=np.float64)
        if self.shifter is None:
            held_until[:arrived] = self.problem.submit[:arrived]
        deadline = np.full(len(self.problem.rows), math.nan)
        if self.plan.shift is not None:
            deadline = np.array(self.plan.shift.deadline, dtype=np.float64)
        return PowerRecord(
            level_offset=offset,
            level_start=began,
            level=level,
            capped_time=capped_time,
            num_cuts=sum(self._cuts.values()),
            held_until=by_row(held_until, math.nan),
            deadline=by_row(deadline, math.nan),
            num_pauses=self._pauses,
            asleep_node=sleeps[:, 0].astype(np.int64),
            asleep_start=sleeps[:, 1],
            asleep_end=sleeps[:, 2],
            num_wakes=0 if self.sleeper is None else self.sleeper.wakes,
        )

    # What changes.

    def _set_cap(self, cap_w: float) -> None:
        self.cap_w = cap_w
        self._rebudget()

    def _rebudget(self) -> None:
        self.budget = self.budget_at(self.cap_w)
        self.run.set_budget(self.budget)

    def _draw_more(self, node: int, sign: int) -> bool:
        """Let a node draw more, or less, as it is called or sleeps; False = the cap forbids it."""
        if self.plan.cap is None:
            return True
        self.base_w += sign * self.plan.cap.wake_w[node]
        self._rebudget()
        if sign > 0 and self.run.floor_sum() > max(self.budget, 0):
            self.base_w -= self.plan.cap.wake_w[node]
            self._rebudget()
            return False
        return True

    def _shift(self, shifter: Shifter, now: float) -> bool:
        news = False
        for job in shifter.due(now):
            if math.isnan(self._held_until[job]):
                self._held_until[job] = now
            self.run.queue(job)
            news = True
        for job in shifter.to_pause(now):
            self.run.pause(job)
            self._pauses += 1
            news = True
        return news

    def _cut(self, job: int, now: float) -> None:
        """Take a running job off its GPUs because the cap fell.

        Raises:
            SpecError: it has been so often that it never gets anywhere.
        """
        self._cuts[job] = self._cuts.get(job, 0) + 1
        if self._cuts[job] > MAX_CUTS:
            name = quote(self.problem.jobs.job_id[self.problem.rows[job]])
            message = f"job {name} was stopped {MAX_CUTS:,} times by t={now:g} s as the cap fell"
            raise SpecError("power_cap", message)
        self.run.cut(job)
