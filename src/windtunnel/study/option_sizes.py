"""`Needs`: how many GPUs elastic jobs do with, for what is found out before a run."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from windtunnel.sim.elastic.nodes import FreeShares

if TYPE_CHECKING:
    from collections.abc import Sequence

    from windtunnel.sim.contract import Policy
    from windtunnel.sim.elastic.scores import Elastic
    from windtunnel.sim.elastic.work import Option, Work
    from windtunnel.sim.problem import Problem


class Needs:
    """How many GPUs jobs do with on some nodes.

    Args:
        problem: the jobs.
        elastic: where they may run.
        works: their options.
        policy: whether it resizes jobs, and keeps promises.
    """

    def __init__(
        self, problem: Problem, elastic: Elastic, works: Sequence[Work], policy: Policy
    ) -> None:
        self.problem, self.works, self.policy = problem, works, policy
        sizes: list[int] = problem.sizes.tolist()
        self.empty = FreeShares(sizes, elastic.cores, elastic.scores, elastic.domains)
        self._known: dict[Any, float] = {}

    def __call__(self, job: int, nodes: int) -> float:
        """Return the GPUs that a job does with on the nodes of a bitset; inf = it has no place."""
        work, demand = self.works[job], self.problem.demands[self.problem.demand_of[job]]
        options: tuple[Option, ...] = (work.requested,)
        if self.policy.resizes:
            options = work.usable(promises=self.policy.keeps_promises)
        allowed = demand.allowed & nodes
        key = options, allowed, demand.topology
        if key not in self._known:
            held = (o for o in options if self.empty.place(o, allowed, demand.topology) is not None)
            self._known[key] = min((o.num_gpus for o in held), default=math.inf)
        return self._known[key]
