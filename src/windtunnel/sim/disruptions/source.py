"""`Outages`: what happens to nodes and jobs by itself, in order of time.

At one instant, after completions and arrivals: jobs that failed at their end are dealt with, then
repairs and ends of holds come, then what begins, then what becomes of jobs there, then errors that
nobody sees yet, then jobs that fail by themselves; each kind in the order of the description.
"""

from __future__ import annotations

import heapq
import math
from collections import deque
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple, cast

import numpy as np

from windtunnel.errors import SpecError, quote
from windtunnel.sim.disruptions.holds import Hold
from windtunnel.sim.disruptions.spares import Standby

if TYPE_CHECKING:
    from windtunnel.cluster.free import Where
    from windtunnel.sim.disruptions.plan import NodeStream, Plan
    from windtunnel.sim.problem import Problem

_RESTORE, _WITHHOLD, _STRIKE, _ERR = range(4)
#: Failures in a row in which a job saves nothing, after which it never will.
MAX_VAIN_FAILURES = 10_000


#: The cause of a job's own failures.
JOB = "job"


class Stop(NamedTuple):
    """A job that an outage or a failure stopped: which, when (s), s of work undone, whose cause."""

    job: int
    time: float
    lost: float
    cause: int


class Outages:
    """The outages of a run of `windtunnel.sim.reference.lent` in which nothing has happened yet.

    What comes before the first submission happens as this is made.

    Attributes:
        certain: changes that will come, whatever chance brings: repairs and given times.
        failures: Int array (m,), how often each job failed.
        stops: who was stopped, in order.
        causes: what can stop jobs, in words; a stop names its place here.
    """

    def __init__(self, run: Any, problem: Problem, plan: Plan) -> None:
        self.run, self.problem, self.plan = run, problem, plan
        self.certain = 0
        self.failures = np.zeros(len(problem.rows), dtype=np.int64)
        self.stops: list[Stop] = []
        kinds = [JOB, *(h.cause for h in plan.holds)]
        kinds += [cause for s in plan.streams for cause in s.model.causes or (s.model.cause,)]
        #: Failures being repaired, and those that wait for a crew, in order.
        self._in_repair = 0
        self._unattended: deque[tuple[Hold, NodeStream]] = deque()
        self.causes = tuple(dict.fromkeys(kinds))
        self._cause_at = {cause: place for place, cause in enumerate(self.causes)}
        self._lost = np.zeros(len(problem.rows))
        self._vain = np.zeros(len(problem.rows), dtype=np.int64)
        self._randoms: dict[int, np.random.Generator] = {}
        #: Silent errors: stream (by id) -> job -> its work left by its last good checkpoint, s.
        self._erred: dict[int, dict[int, float]] = {}
        self._speeds: dict[int, list[float]] = {}
        #: When something failed last, s, and all that failed then.
        self._failing: tuple[float, set[int]] = (-math.inf, set())
        self._standby = Standby(run, plan.standby)
        for job in np.flatnonzero(plan.hazard).tolist():
            run.fail_at(job, self._draw(job))
        if plan.startup_cost:
            for job in range(len(problem.rows)):
                self._pays(job, plan.startup_cost, restarts=False)
        #: Heap of (time, kind, number, what, random failure of which node).
        self._events: list[tuple[float, int, int, Hold, NodeStream | None]] = []
        self._count = 0
        for hold in plan.holds:
            self._push(hold.begin, _WITHHOLD, hold)
            self._push(hold.start, _STRIKE, hold)
            if hold.end < math.inf:
                self._push(hold.end, _RESTORE, hold)
        for stream in plan.streams:
            self._next_failure(stream, plan.first)
        while self._events and self._events[0][0] < plan.first:
            self._happen(self._events[0][0])

    def next_time(self) -> float:
        """Return when something happens next, s; never once every job is over.

        Not when a job fails by itself: that the engine knows.
        """
        if not self.run.unfinished or not self._events:
            return math.inf
        return self._events[0][0]

    def apply(self, now: float) -> bool:
        """Let happen what is due at ``now`` (s); return whether anything was."""
        news = False
        for job in self.run.take_failed():
            self._failed(job, now, ends=self.plan.ends, cause=JOB)
            news = True
        while self._events and self._events[0][0] <= now:
            news |= self._happen(now)
        while (job := self.run.failing()) >= 0:
            self._interrupt(job, now, loses=True, ends=self.plan.ends, cause=JOB)
            news = True
        return news

    # Holds.

    def _push(self, time: float, kind: int, hold: Hold, stream: NodeStream | None = None) -> None:
        heapq.heappush(self._events, (time, kind, self._count, hold, stream))
        self._count += 1
        self.certain += stream is None or kind == _RESTORE

    def _next_failure(self, stream: NodeStream, now: float) -> None:
        time = now + stream.lifetime()
        hold = Hold(
            *(time, time, math.inf, stream.places),
            on_start="kill",
            planned=False,
            cause=stream.cause(),
        )
        late = cast("float", stream.model.found_after)
        found = replace(hold, begin=time + late, start=time + late) if late else hold
        self._push(time, _ERR if late else _WITHHOLD, found, stream)

    def _happen(self, now: float) -> bool:
        """Let the next event happen; return whether anybody notices."""
        _, kind, _, hold, stream = heapq.heappop(self._events)
        self.certain -= stream is None or kind == _RESTORE
        if kind == _ERR and stream is not None:
            there = self.run.running_on({place for place, _ in hold.places})
            self._erred[id(stream)] = {job: self.run.secured(job) for job in there}
            self._push(hold.start, _WITHHOLD, hold, stream)
            return False
        is_slow = stream is not None and stream.model.speed > 0
        self.run.capacity_changed(announced=hold.planned)
        if kind == _STRIKE:
            self._strike(hold, now)
        elif kind == _WITHHOLD:
            if is_slow and stream is not None:
                self._slow(hold, stream.model.speed, begins=True)
            else:
                self._standby.take_out(hold)
                if not hold.planned:
                    since, others = self._failing
                    places = {place for place, _ in hold.places}
                    self._failing = now, places | (others if since == now else set())
            if stream is not None:
                if not is_slow:
                    self._find(stream, hold, now)
                    self._strike(hold, now)
                self._unattended.append((hold, stream))
                self._repair(hold.start)
        else:
            if is_slow and stream is not None:
                self._slow(hold, stream.model.speed, begins=False)
            else:
                self._standby.bring_back(hold)
            if stream is not None:
                self._in_repair -= 1
                self._next_failure(stream, now)
                self._repair(now)
        return True

    def _slow(self, hold: Hold, speed: float, *, begins: bool) -> None:
        """Let nodes be slow, or as they were; one slow for two reasons goes at the lower speed."""
        for place, _ in hold.places:
            speeds = self._speeds.setdefault(place, [])
            (speeds.append if begins else speeds.remove)(speed)
            self.run.slow(place, min(speeds, default=1.0))

    def _find(self, stream: NodeStream, hold: Hold, now: float) -> None:
        """Send the running jobs that an error hit back to their last checkpoint before it."""
        erred = self._erred.pop(id(stream), {})
        if not erred:
            return
        everywhere = set(range(len(self.problem.sizes)))
        for job in [job for job in self.run.running_on(everywhere) if job in erred]:
            self._interrupt(
                *(job, now), loses=True, ends=self.plan.ends, cause=hold.cause, left=erred[job]
            )

    def _repair(self, now: float) -> None:
        """Let crews that are free begin with the failures that have waited longest."""
        while self._unattended and self._in_repair < self.plan.crews:
            hold, stream = self._unattended.popleft()
            self._in_repair += 1
            self._push(now + stream.repair(), _RESTORE, hold, stream)

    def _strike(self, hold: Hold, now: float) -> None:
        """Deal with the jobs that run where a hold starts."""
        if hold.on_start == "wait":
            return
        saves = hold.on_start == "checkpoint"
        ends = self.plan.ends and not hold.planned
        for job in self._victims(hold):
            where = None
            if self.plan.spares is not None and not hold.planned:
                where = self.plan.spares.place(self.run, job, self._failing[1])
            self._interrupt(job, now, loses=not saves, ends=ends, cause=hold.cause, where=where)

    def _victims(self, hold: Hold) -> list[int]:
        """Return whom a hold stops: on nodes who runs there, in a pool who started last."""
        run, access = self.run, self.plan.access
        places = {place for place, _ in hold.places}
        there = [job for job in run.running_on(places) if hold.group not in access[job]]
        if not self.problem.is_pool:
            return there
        short = {place: -run.free_in(place) for place in places}
        chosen = []
        for job in reversed(there):
            taken = [(p, units) for p, units in run.where(job) if short.get(p, 0) > 0]
            if taken and self.problem.gpus[job]:
                chosen.append(job)
            for place, units in taken:
                short[place] -= units
        return chosen

    # Jobs.

    def _interrupt(
        self, job: int, now: float, *, loses: bool, ends: bool, cause: str,
        where: Where | None = None, left: float = 0.0,
    ) -> None:  # fmt: skip
        """Take a running job off its GPUs; it waits, or goes on where given, or that was its end.

        At least so much work (s) is left then.
        """
        self.run.interrupt(job, loses=loses, goes_on=where is not None)
        if left:
            self.run.undo(job, left)
        if self.plan.hazard[job]:
            self.run.fail_at(job, self.run.attained(job)[0] + self._draw(job))
        if loses:
            self._failed(job, now, ends=ends, cause=cause, where=where)
        else:
            self._stopped(job, now, cause)
            self.run.queue(job)

    def _stopped(self, job: int, now: float, cause: str) -> None:
        """Book that a job was stopped, and what it pays as it goes on."""
        self._pays(job, self.plan.restart_cost, restarts=True)
        lost = self.run.lost(job)
        self.stops.append(Stop(job, now, lost - self._lost[job], self._cause_at[cause]))
        self._lost[job] = lost

    def _pays(self, job: int, seconds: float, *, restarts: bool) -> None:
        """Let a job pay so much (s) as it starts, and an elastic one what launches cost it."""
        launch = 0.0 if self.run.works is None else self.run.works[job].penalty
        self.run.set_start_overhead(job, seconds + launch, restarts=restarts)

    def _failed(
        self, job: int, now: float, *, ends: bool, cause: str, where: Where | None = None
    ) -> None:
        """Book a job's failure, and let it go on or wait again unless that was its end."""
        self._stopped(job, now, cause)
        self.failures[job] += 1
        self._vain[job] = 0 if self.run.saved_last(job) else self._vain[job] + 1
        if self._vain[job] > MAX_VAIN_FAILURES:
            raise self._in_vain(job, now)
        if where is not None:
            self.run.go_on(job, where)
        elif ends:
            self.run.end_failed(job)
        else:
            self.run.queue(job)

    def _draw(self, job: int) -> float:
        """Return how long a job runs until it fails by itself next, s."""
        random = self._randoms.get(job)
        if random is None:
            random = self._randoms[job] = self.plan.job_random(int(self.problem.rows[job]))
        return float(random.exponential(1 / self.plan.hazard[job]))

    def _in_vain(self, job: int, now: float) -> SpecError:
        """Return what is raised when a job has failed too often in a row."""
        name = quote(self.problem.jobs.job_id[self.problem.rows[job]])
        return SpecError(
            "disruptions",
            f"job {name} has failed {self._vain[job]:,} times in a row by t={now:g} s and saved "
            "nothing; expected a shorter checkpoint interval, rarer failures or a horizon.",
        )
