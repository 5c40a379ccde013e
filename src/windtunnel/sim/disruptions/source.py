"""`OutageSource`: what happens to nodes and jobs by itself in a run on the kernel, by time.

At one instant, after completions and arrivals: jobs that failed at their end are dealt with, then
repairs and ends of holds come, then what begins, then what becomes of jobs there, then jobs
that fail by themselves; each kind in the order of the description.
"""

from __future__ import annotations

import heapq
import math
from typing import TYPE_CHECKING

import numpy as np

from windtunnel.errors import SpecError, quote
from windtunnel.sim.disruptions.plan import Hold, NodeStream

if TYPE_CHECKING:
    from windtunnel.sim.disruptions.plan import Plan
    from windtunnel.sim.kernel_run import KernelRun
    from windtunnel.sim.problem import Problem

_RESTORE, _WITHHOLD, _STRIKE = range(3)
#: Failures in a row in which a job saves nothing, after which it never will.
MAX_VAIN_FAILURES = 10_000


class OutageSource:
    """The outages of a run.

    Args:
        run: the run; nothing in it has happened yet.
        plan: what will happen.

    Attributes:
        certain: changes that will come, whatever chance brings: repairs and given times.
        failures: Int array (m,), how often each job failed.
    """

    def __init__(self, run: KernelRun, plan: Plan) -> None:
        self.run, self.plan = run, plan
        self.sim, self.state, self.free = run.sim, run.state, run.free
        self.problem = run.problem
        self.certain = 0
        self.failures = np.zeros(len(self.problem.rows), dtype=np.int64)
        self._vain = np.zeros(len(self.problem.rows), dtype=np.int64)
        self._randoms: dict[int, np.random.Generator] = {}
        for job in np.flatnonzero(plan.hazard).tolist():
            self.sim.fail_at(job, self.draw(job))
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
        self.sim.watch("news", 0.0)
        self.sim.note_up(self.problem.quota)

    def next_time(self) -> float:
        """Return when something happens next, s; never once every job is over."""
        if not self.unfinished or not self._events:
            return math.inf
        return self._events[0][0]

    @property
    def unfinished(self) -> int:
        """Jobs that are not over, those that have not arrived included."""
        return len(self.problem.rows) - int(self.state.counts[2])

    def apply(self, now: float) -> None:
        """Let happen what is due at ``now`` (s)."""
        for job in self.sim.take_failed():
            self.sim.watch("news", 1.0)
            self._failed(job, now, ends=self.plan.ends)
        while self._events and self._events[0][0] <= now:
            self._happen(now)
        while (job := self.sim.failing()) >= 0:
            self._interrupt(job, now, loses=True, ends=self.plan.ends)

    def is_idle(self, *, cap_changes: bool) -> bool:
        """Return whether all jobs are over, or those that wait will do so for ever.

        Nothing runs or comes back, no more power either (``cap_changes``), and of what is up, all
        of which is free, the policy gave them nothing; further failures do not help.
        """
        if not self.unfinished:
            return True
        running, waiting, _ = self.state.counts
        arrived = self.sim.num_arrived == len(self.problem.rows)
        if not arrived or running or self.run.certain or not waiting or cap_changes:
            return False
        return self.run.every == math.inf or self.run.none_fits()

    # Holds.

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
        if not hold.planned:
            self.sim.surprise()
        self.sim.room_changed()
        if kind == _STRIKE:
            self._strike(hold, now)
        elif kind == _WITHHOLD:
            for place, units in hold.places:
                self.free.withhold_node(place, hold.group, units)
            if stream is not None:
                self._strike(hold, now)
                self._push(hold.start + stream.repair(), _RESTORE, hold, stream)
        else:
            for place, units in hold.places:
                self.free.restore_node(place, hold.group, units)
            if stream is not None:
                self._next_failure(stream, now)

    def _strike(self, hold: Hold, now: float) -> None:
        """Deal with the jobs that run where a hold starts."""
        if hold.on_start == "wait":
            return
        saves = hold.on_start == "checkpoint"
        ends = self.plan.ends and not hold.planned
        for job in self._victims(hold):
            self._interrupt(job, now, loses=not saves, ends=ends)

    def _victims(self, hold: Hold) -> list[int]:
        """Return whom a hold stops: on nodes who runs there, in a pool who started last."""
        access = self.plan.access
        places = {place for place, _ in hold.places}
        there = [job for job in self.state.running_on(places) if hold.group not in access[job]]
        if not self.problem.is_pool:
            return there
        free = self.free.free_by_node()
        short = {place: -int(free[place]) for place in places}
        chosen = []
        for job in reversed(there):
            taken = [(p, units) for p, units in self.state.where(job) if short.get(p, 0) > 0]
            if taken and self.problem.gpus[job]:
                chosen.append(job)
            for place, units in taken:
                short[place] -= units
        return chosen

    # Jobs.

    def _interrupt(self, job: int, now: float, *, loses: bool, ends: bool) -> None:
        """Take a running job off its GPUs; it waits again unless that was its end."""
        self.sim.interrupt(job, loses)
        if self.plan.hazard[job]:
            run_time, _ = self.state.attained(job)
            self.sim.fail_at(job, run_time + self.draw(job))
        if loses:
            self._failed(job, now, ends=ends)
        else:
            self.sim.owes(job, self.plan.restart_cost + self.run.launch_cost(job))
            self.run.queue_again(job)

    def _failed(self, job: int, now: float, *, ends: bool) -> None:
        """Book a job's failure, and let it wait again unless that was its end."""
        self.sim.owes(job, self.plan.restart_cost + self.run.launch_cost(job))
        self.failures[job] += 1
        self._vain[job] = 0 if self.state.saved_last(job) else self._vain[job] + 1
        if self._vain[job] > MAX_VAIN_FAILURES:
            raise failed_in_vain(self.problem, job, int(self._vain[job]), now)
        if ends:
            self.sim.end_failed(job)
        else:
            self.run.queue_again(job)

    def draw(self, job: int) -> float:
        """Return how long a job runs until it fails by itself next, s."""
        random = self._randoms.get(job)
        if random is None:
            random = self._randoms[job] = self.plan.job_random(int(self.problem.rows[job]))
        return float(random.exponential(1 / self.plan.hazard[job]))


def failed_in_vain(problem: Problem, job: int, count: int, now: float) -> SpecError:
    """Return what is raised when a job has failed too often in a row.

    Args:
        problem: jobs and cluster.
        job: which.
        count: how often.
        now: s.
    """
    name = quote(problem.jobs.job_id[problem.rows[job]])
    return SpecError(
        "disruptions",
        f"job {name} has failed {count:,} times in a row by t={now:g} s and saved "
        "nothing; expected a shorter checkpoint interval, rarer failures or a horizon.",
    )
