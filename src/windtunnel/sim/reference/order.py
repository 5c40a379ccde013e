"""`Order`: who is next, for policies that give an order (tiers 1 and 2): by (key, arrival)."""

from __future__ import annotations

import bisect
from typing import TYPE_CHECKING

import numpy as np

from windtunnel.sim.contract import checked_key, static_rank
from windtunnel.sim.jobs import JobView
from windtunnel.sim.keys import JobsView, checked_keys, columns_of

if TYPE_CHECKING:
    from collections.abc import Iterable

    from windtunnel.sim.contract import Policy
    from windtunnel.sim.reference.state import State


class Order:
    """The keys of active jobs, and the waiting ones in their order.

    A key is asked when a job begins to wait (not when it is preempted) and at rounds. The remaining
    time of a preemptive policy is no key, but looked up at each decision.

    Args:
        state: the run.
        policy: of tier 1 or 2.
    """

    def __init__(self, state: State, policy: Policy) -> None:
        self.state, self.policy = state, policy
        problem = state.problem
        self.moves = policy.preemptive and policy.by_remaining
        self.weight = problem.jobs.num_gpus[problem.rows].tolist() if policy.by_service else None
        self.ranks: list[float] | None = None
        if policy.tier == 1:
            self.ranks = static_rank(policy, problem.jobs, problem.rows).tolist()
        self.keys: dict[int, float] = {}
        self.line: list[tuple[float, int]] = []
        self._views: dict[int, JobView] = {}

    def add(self, job: int, now: float) -> None:
        """Let a job wait that arrives or comes back."""
        self.keys[job] = 0.0 if self.moves else self._asked(job, now)
        bisect.insort(self.line, (self.keys[job], job))

    def add_again(self, job: int) -> None:
        """Let a job wait that was preempted, with the key that it has."""
        bisect.insort(self.line, (self.keys[job], job))

    def starts(self, job: int) -> None:
        """Note that a job waits no more."""
        del self.line[bisect.bisect_left(self.line, (self.keys[job], job))]

    def forget(self, job: int) -> None:
        """Forget a job that is over, or out of the queue."""
        self.keys.pop(job, None)

    def rekey(self, now: float) -> None:
        """Ask the key of every waiting job again, of a preemptive policy's running jobs, too."""
        if self.moves:
            return
        waits = {job for _, job in self.line}
        asked = sorted(job for job in self.keys if self.policy.preemptive or job in waits)
        self.keys.update(zip(asked, self._asked_all(asked, now), strict=True))
        self.line = sorted((self.keys[job], job) for job in waits)

    def waiting(self, now: float) -> list[int]:
        """Return the waiting jobs in their order at ``now`` (s)."""
        if self.moves:
            return self.ranked((job for _, job in self.line), now)
        return [job for _, job in self.line]

    def ranked(self, jobs: Iterable[int], now: float) -> list[int]:
        """Return active jobs in their order at ``now`` (s)."""
        return [job for _, job in sorted((self._key(job, now), job) for job in jobs)]

    def _key(self, job: int, now: float) -> float:
        if not self.moves:
            return self.keys[job]
        left = self.state.time_left(job, now)
        return left if self.weight is None else left * self.weight[job]

    def _asked_all(self, jobs: list[int], now: float) -> list[float]:
        if self.ranks is None and self.policy.takes_many:
            state = self.state
            columns = columns_of(
                state.problem, lambda job: state.attained(job, now), state.running.__contains__
            )
            view = JobsView(np.array(jobs, dtype=np.int32), columns)
            keys: list[float] = checked_keys(self.policy, view, now).tolist()
            return keys
        return [self._asked(job, now) for job in jobs]

    def _asked(self, job: int, now: float) -> float:
        if self.ranks is not None:
            return self.ranks[job]
        if self.policy.takes_many:
            return self._asked_all([job], now)[0]
        view = self._views.get(job)
        if view is None:
            row = int(self.state.problem.rows[job])
            view = self._views[job] = JobView(self.state.problem.jobs, row)
            view.number = job
        view.running = job in self.state.running
        view.run_time, view.remaining = self.state.attained(job, now)
        return checked_key(self.policy, view, now)
