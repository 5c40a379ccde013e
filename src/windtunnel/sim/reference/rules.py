"""Queueing rules, for policies that give an order (tiers 1 and 2): `Rule` is strict; `Skip`.

A rule says who is next, by (key, arrival), and what happens at a job that does not fit. With a
preemptive policy it first lets `windtunnel.sim.reference.preemption` choose who runs, in rank order
up to the first job that cannot, and deals with the rest in its own way.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from windtunnel.sim.keys import keys_of, static_rank
from windtunnel.sim.usage_order import in_32_bits

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from windtunnel.cluster.free import Where
    from windtunnel.sim.reference.state import State


class Rule:
    """Start jobs in order, up to the first that does not fit: ``strict``, and what rules share.

    A key is asked when a job begins to wait (not when it is preempted) and at rounds. The remaining
    time of a preemptive policy is no key, but looked up at each decision.

    ``walk`` chooses who runs, see `windtunnel.sim.reference.preemption`; None = nobody is
    preempted.

    Attributes:
        alarms: instants at which it wants to decide, though nothing happens, s; the first is next.
        past_refused: it goes on past a job that does not fit.
    """

    past_refused = False

    def __init__(self, state: State, walk: Callable[..., list[int]] | None) -> None:
        self.state, self.policy, self.walk = state, state.policy, walk
        self.alarms: list[float] = []
        problem = state.problem
        self.by_remaining = self.policy.preemptive and self.policy.by_remaining
        gpus = problem.jobs.num_gpus[problem.rows]
        self.weight = (gpus if self.policy.by_service else np.ones(len(gpus))).tolist()
        self.keys: dict[int, float] = {}
        if self.policy.tier == 1:
            ranks = static_rank(self.policy, problem.jobs, problem.rows)
            self.keys = dict(enumerate(ranks.tolist()))

    # Who is next.

    def _ask(self, jobs: list[int]) -> None:
        """Ask the keys of some jobs, unless they are known or looked up."""
        if self.policy.tier == 1 or self.by_remaining:
            return
        numbers = np.array(jobs, dtype=np.int32)
        keys = keys_of(self.policy, self.state, numbers, self.state.now)
        self.keys.update(zip(jobs, keys.tolist(), strict=True))

    def rekey(self) -> None:
        """Ask the key of every waiting job again, of a preemptive policy's running jobs, too."""
        running = self.state.running if self.policy.preemptive else ()
        self._ask(sorted([*self.state.waiting, *running]))

    def waiting(self) -> list[int]:
        """Return the waiting jobs in their order."""
        return self.ranked(self.state.waiting)

    def ranked(self, jobs: Iterable[int]) -> list[int]:
        """Return active jobs in their order at this instant."""
        return [job for _, job in sorted((self._key(job), job) for job in jobs)]

    def _key(self, job: int) -> float:
        if self.by_remaining:
            left = self.state.time_left(job)
            return in_32_bits(left * self.weight[job]) if self.policy.by_service else left
        return self.keys[job]

    # What the loop and the sources tell.

    def came(self, job: int, *, was_stopped: bool = False) -> None:  # noqa: ARG002 - no matter here
        """Ask a job's key: it arrived, or an outage or a falling cap stopped it."""
        self._ask([job])

    def gone(self, job: int) -> None:
        """Do nothing: who is over, or out of the queue for now, has no turn."""

    def moves(self, job: int) -> None:
        """Do nothing: a job goes on with other nodes, as one of its own failed."""

    def giving_way(self, kind: int) -> tuple[int, list[int]]:
        """Return the first waiting job of a class, and the running jobs ranked below it."""
        first = next(job for job in self.waiting() if self.state.class_of[job] == kind)
        return first, self.below(first) if self.walk is not None else []

    def below(self, job: int) -> list[int]:
        """Return the running jobs that are ranked below a waiting one, the highest rank first."""
        ranked = self.ranked([*self.state.running, job])
        return ranked[ranked.index(job) + 1 :]

    # Deciding.

    def planned_starts(self) -> list[tuple[float, list[int]]]:
        """Return when waiting jobs are planned to start, s, and on which nodes, if the rule plans.

        By what is so now, and by the last decision.
        """
        return []

    def decide(self) -> None:
        """Start who may start."""
        self.start_in_order()

    def start(self, job: int, where: Where) -> None:
        """Start a waiting job."""
        self.state.begin(job, where)

    def start_in_order(self) -> list[int]:
        """Start jobs up to the first that does not fit; return it, and those behind it.

        One that has to wait for quota is passed over, or nobody is returned where that blocks. Of a
        class of which one was passed over nobody is tried.
        """
        if self.walk is not None:
            return self.walk(self) if self.state.waiting else []
        return self.start_those_that_fit()

    def start_those_that_fit(self) -> list[int]:
        """Do what `start_in_order` does, and preempt nobody."""
        state, waiting, refused = self.state, self.waiting(), set[int]()
        for number, job in enumerate(waiting):
            if state.class_of[job] in refused:
                continue
            where, is_over = state.fit(job), state.is_over(job)
            if where is not None:
                self.start(job, where)
            elif is_over and state.blocks:
                return []
            elif is_over or self.past_refused:
                refused.add(state.class_of[job])
            else:
                return waiting[number:]
        return []


class Skip(Rule):
    """Try every waiting job in order, going on past those that do not fit."""

    past_refused = True
