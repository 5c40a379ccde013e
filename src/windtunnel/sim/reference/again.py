"""`Again`: a decision of a recorded run, decided again: what if some jobs had not been there?

The state of an instant is put back from the stays of the run, and the rule decides once more. For
runs in which nothing but jobs happens, at rate 1, and resuming costs nothing; under conservative
backfilling promises go back further than one instant, and cannot be put back.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from windtunnel.errors import SpecError
from windtunnel.sim.power.plan import PowerPlan
from windtunnel.sim.power.sources import PowerSources
from windtunnel.sim.reference.easy import Easy, EasySjbf
from windtunnel.sim.reference.future import Future
from windtunnel.sim.reference.lent import Lent
from windtunnel.sim.reference.order import Order
from windtunnel.sim.reference.preemption import Feasible
from windtunnel.sim.reference.rules import Rule, Skip, Strict
from windtunnel.sim.reference.state import State

if TYPE_CHECKING:
    from collections.abc import Collection

    from windtunnel.cluster.free import Where
    from windtunnel.sim.contract import Placement, Policy
    from windtunnel.sim.flight import Flight
    from windtunnel.sim.problem import Problem

_RULES: dict[str, type[Rule]] = {
    "strict": Strict, "skip": Skip, "easy": Easy, "easy_sjbf": EasySjbf,
}  # fmt: skip


@dataclass(frozen=True)
class Again:
    """An instant of a run, once all had happened.

    Attributes:
        problem, policy, placement, queueing: what was flown, and how.
        flight: what came of it.
        time: the instant, s.
    """

    problem: Problem
    policy: Policy
    placement: Placement
    queueing: str
    flight: Flight
    time: float

    def starts(self, without: Collection[int] = ()) -> set[int]:
        """Return who is started, had some jobs never come; jobs by arrival number."""
        rule = self._rule(without)
        before = set(rule.state.running)
        rule.decide(self.time)
        return set(rule.state.running) - before

    def blockers(self, job: int) -> set[int]:
        """Return who keeps a waiting job from its start, running or waiting ahead; the fewest.

        Without all of them the job starts at this instant; with any one of them left it does not.
        """
        rule = self._rule(())
        ranked = rule.order.waiting(self.time)
        ahead = [other for other in ranked if other != job]
        if not isinstance(rule, EasySjbf):
            ahead = ranked[: ranked.index(job)]
        found = {*ahead, *self._holders(rule, job)}
        pruned = True
        while pruned:
            pruned = False
            for other in sorted(found):
                if job in self.starts(found - {other}):
                    found.remove(other)
                    pruned = True
        return found

    def _holders(self, rule: Rule, job: int) -> list[int]:
        """Return running jobs without whom a job has room, those that began last first."""
        state, free = rule.state, rule.state.free.copy()
        gone: list[int] = []
        if rule.preemption is not None:
            ranked = rule.order.ranked([*state.running, job], self.time)
            for other in ranked[ranked.index(job) + 1 :]:
                free.give(state.running[other].where, state.demand[other])
            others = [other for other in state.running if other in ranked[: ranked.index(job)]]
        else:
            others = list(state.running)
        while others and state.search(job, free, self.time, 0)[0] is None:
            gone.append(others.pop())
            free.give(state.running[gone[-1]].where, state.demand[gone[-1]])
        for other in list(gone):
            free.take(state.running[other].where, state.demand[other])
            if state.search(job, free, self.time, 0)[0] is None:
                free.give(state.running[other].where, state.demand[other])
            else:
                gone.remove(other)
        return gone

    # The state.

    def _rule(self, without: Collection[int]) -> Rule:
        """Return the rule with the state of the instant put back."""
        problem = self.problem
        state = State(
            problem, self.placement, self.policy, overhead=[0.0] * len(problem.rows), pace=None,
            plan=None, watts=None, elastic=None, plans=self.queueing.startswith("easy"),
        )  # fmt: skip
        walk = Feasible(state) if self.policy.preemptive else None
        if self.queueing not in _RULES:
            raise SpecError("queueing", f"{self.queueing} cannot be decided again.")
        rule = _RULES[self.queueing](state, Order(state, self.policy), walk)
        if isinstance(rule, Easy):
            rule.future = Future(state, PowerSources(PowerPlan(), problem, Lent(state, rule)))
        for stay in self._running:
            job = self._number[self.flight.segment_job[stay]]
            if job not in without:
                state.now = float(self.flight.segment_start[stay])
                state.left[job] = self._left(job, stay)
                state.begin(job, state.now, self._where(job, stay))
        state.now = self.time
        for job in self._waiting:
            if job not in without:
                state.left[job] = self._left(job, len(self.flight.segment_job))
                state.wait(job)
                rule.came(job, self.time)
        return rule

    @cached_property
    def _number(self) -> dict[int, int]:
        """The arrival number of each flown row."""
        return {row: job for job, row in enumerate(self.problem.rows.tolist())}

    @cached_property
    def _running(self) -> list[int]:
        """The stays that go on beyond the instant, in order of start."""
        flight = self.flight
        goes_on = ~(flight.segment_end <= self.time)
        return np.flatnonzero((flight.segment_start <= self.time) & goes_on).tolist()

    @cached_property
    def _waiting(self) -> list[int]:
        """The jobs in the queue, in order of arrival."""
        running = {self._number[self.flight.segment_job[stay]] for stay in self._running}
        over = self.flight.end[self.problem.rows] <= self.time
        here = np.flatnonzero((self.problem.submit <= self.time) & ~over).tolist()
        return [job for job in here if job not in running]

    def _left(self, job: int, stay: int) -> float:
        """Return a job's work left as a stay begins, s."""
        flight = self.flight
        mine = flight.segment_job[:stay] == self.problem.rows[job]
        mine &= flight.segment_end[:stay] <= self.time
        spent = flight.segment_end[:stay][mine] - flight.segment_start[:stay][mine]
        return max(0.0, float(self.problem.duration[job] - math.fsum(spent)))

    def _where(self, job: int, stay: int) -> Where:
        flight = self.flight
        part = slice(*flight.node_offset[stay : stay + 2].tolist())
        nodes: list[Any] = flight.nodes[part].tolist()
        if self.problem.is_pool:
            return [(0, int(self.problem.gpus[job]))]
        if len(flight.devices):
            grants = flight.devices[part]
        else:
            grants = np.round(flight.node_gpus[part] * float(self.problem.units))
        return list(zip(nodes, grants.astype(np.int64).tolist(), strict=True))
