"""`Order`: who is next, for policies that give an order (tiers 1 and 2): by (key, arrival)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from windtunnel.sim.contract import static_rank
from windtunnel.sim.keys import Keys

if TYPE_CHECKING:
    from collections.abc import Iterable

    from windtunnel.sim.contract import Policy
    from windtunnel.sim.reference.state import State


class Order:
    """The keys of active jobs.

    A key is asked when a job begins to wait (not when it is preempted) and at rounds. The remaining
    time of a preemptive policy is no key, but looked up at each decision.

    Args:
        state: the run.
        policy: of tier 1 or 2.
    """

    def __init__(self, state: State, policy: Policy) -> None:
        self.state, self.policy = state, policy
        problem = state.problem
        self.by_remaining = policy.preemptive and policy.by_remaining
        gpus = problem.jobs.num_gpus[problem.rows]
        self.weight = (gpus if policy.by_service else np.ones(len(gpus))).tolist()
        self.keys: dict[int, float] = {}
        if policy.tier == 1:
            self.keys = dict(enumerate(static_rank(policy, problem.jobs, problem.rows).tolist()))

    def ask(self, jobs: list[int], now: float) -> None:
        """Ask the keys of some jobs, unless they are known or looked up."""
        if self.policy.tier == 1 or self.by_remaining:
            return
        keys = Keys(self.policy).many(self.state, np.array(jobs, dtype=np.int32), now)
        self.keys.update(zip(jobs, keys.tolist(), strict=True))

    def rekey(self, now: float) -> None:
        """Ask the key of every waiting job again, of a preemptive policy's running jobs, too."""
        running = self.state.running if self.policy.preemptive else ()
        self.ask(sorted([*self.state.waiting, *running]), now)

    def waiting(self, now: float) -> list[int]:
        """Return the waiting jobs in their order at ``now`` (s)."""
        return self.ranked(self.state.waiting, now)

    def ranked(self, jobs: Iterable[int], now: float) -> list[int]:
        """Return active jobs in their order at ``now`` (s)."""
        return [job for _, job in sorted((self._key(job, now), job) for job in jobs)]

    def _key(self, job: int, now: float) -> float:
        if self.by_remaining:
            return self.state.time_left(job, now) * self.weight[job]
        return self.keys[job]
