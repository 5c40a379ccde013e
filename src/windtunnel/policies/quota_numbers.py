"""A run under quotas as a `CohortOrder`: what the compiled engine flies."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from windtunnel.cluster.parts import nodes_of_types, restricted
from windtunnel.policies.quota_books import parts
from windtunnel.policies.quotas import ANY_TYPE
from windtunnel.sim.cohort_order import CohortOrder

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from windtunnel.policies.quota_books import Account
    from windtunnel.sim.problem import Problem


def in_numbers(
    problem: Problem,
    accounts: Sequence[Account],
    account_of: Sequence[int],
    flavors_of: Callable[[int, Account], tuple[str, ...]],
    *,
    strict: Sequence[bool],
    fair: bool,
) -> CohortOrder:
    """Return the quotas and what jobs ask of them as arrays.

    Args:
        problem: the run.
        accounts: the queues' accounts, nothing of them in use.
        account_of: the number of each job's account, by arrival number.
        flavors_of: the GPU types that jobs of a demand class try in a queue, in order.
        strict: whether a queue's first job holds up the others, by account.
        fair: fair sharing.
    """
    flavors = list(dict.fromkeys(flavor for account in accounts for flavor in account.flavors))
    pairs = zip(account_of, problem.demand_of.tolist(), strict=True)
    numbers: dict[tuple[int, int], int] = {}
    line_of = [numbers.setdefault(pair, len(numbers)) for pair in pairs]
    jobs = problem.jobs
    asked = np.asarray(jobs.num_gpus[problem.rows], dtype=np.float64)
    first_of = {line: job for job, line in reversed(list(enumerate(line_of)))}
    tried = np.full((len(numbers), len(flavors)), -1, dtype=np.int64)
    fits = np.full((len(numbers), len(flavors)), -1, dtype=np.int64)
    bound = _Bound(problem)
    for (account, kind), line in numbers.items():
        free_of_gpus = not asked[first_of[line]]
        for index, flavor in enumerate(flavors_of(kind, accounts[account])):
            tried[line, index] = flavors.index(flavor)
            anywhere = flavor == ANY_TYPE or free_of_gpus
            fits[line, index] = kind if anywhere else bound.to(kind, flavor)
    cohorts = list(dict.fromkeys(a.quota.cohort for a in accounts if a.quota.cohort is not None))
    priority = jobs.priority[problem.rows]
    return CohortOrder(
        amount=np.array([parts(gpus) for gpus in asked.tolist()], dtype=np.int64),
        priority=np.where(np.isnan(priority), 0.0, priority),
        line_of=np.array(line_of, dtype=np.int64),
        queue_of=np.array([account for account, _ in numbers], dtype=np.int64),
        flavors=tried,
        fits=fits,
        demands=(*problem.demands, *bound.demands),
        strict=np.array(strict, dtype=bool),
        nominal=np.array(
            [[a.nominal.get(f, 0) for f in flavors] for a in accounts], dtype=np.int64
        ),
        kept=np.array([[a.kept.get(f, 0) for f in flavors] for a in accounts], dtype=np.int64),
        limit=np.array(
            [[a.borrowing_limit.get(f, -1) for f in flavors] for a in accounts], dtype=np.int64
        ),
        cohort=np.array(
            [-1 if a.quota.cohort is None else cohorts.index(a.quota.cohort) for a in accounts],
            dtype=np.int64,
        ),
        weight=np.array([a.quota.weight for a in accounts], dtype=np.float64),
        fair=fair,
    )


class _Bound:
    """Demands bound to the nodes of one GPU type, numbered behind those of the problem."""

    def __init__(self, problem: Problem) -> None:
        self.problem = problem
        self.free = problem.free_state()
        self.demands: list[object] = []
        self._number: dict[tuple[int, str], int] = {}

    def to(self, kind: int, flavor: str) -> int:
        """Return the number of a demand class bound to a GPU type."""
        if (kind, flavor) not in self._number:
            nodes = nodes_of_types(self.problem.types, frozenset({flavor}))
            self._number[kind, flavor] = len(self.problem.demands) + len(self.demands)
            self.demands.append(restricted(self.problem.demands[kind], self.free, nodes))
        return self._number[kind, flavor]
