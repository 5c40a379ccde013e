"""A run under quotas as a `CohortOrder`: what the compiled engine flies."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from windtunnel.cluster.parts import nodes_of_types, restricted
from windtunnel.policies.quota_books import PARTS
from windtunnel.policies.quotas import ANY_TYPE
from windtunnel.sim.cohort_order import GIVES_WAY, CohortOrder

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from windtunnel.policies.quota_books import Account
    from windtunnel.policies.waiting_line import GangWait
    from windtunnel.sim.problem import Problem


def amounts(problem: Problem) -> np.ndarray:
    """Return the whole millionths of GPUs that each job asks for, Int array (m,)."""
    asked: np.ndarray = np.rint(problem.jobs.num_gpus[problem.rows] * PARTS).astype(np.int64)
    return asked


def lines(problem: Problem, account_of: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the pairs of a queue and a demand class that there are, and each job's.

    Args:
        problem: the run.
        account_of: Int array (m,), the number of each job's account.

    Returns:
        Int arrays of shapes (lines, 2) and (m,).
    """
    kinds = max(len(problem.demands), 1)
    pairs, line_of = np.unique(account_of * kinds + problem.demand_of, return_inverse=True)
    return np.stack([pairs // kinds, pairs % kinds], axis=1), line_of.reshape(-1)


def in_numbers(
    problem: Problem,
    accounts: Sequence[Account],
    account_of: np.ndarray,
    flavors_of: Callable[[int, Account], tuple[str, ...]],
    *,
    word: Callable[[Account, str], str],
    fair: bool,
    wait: GangWait,
    report_put_back: Callable[[int], None],
) -> CohortOrder:
    """Return the quotas and what jobs ask of them as arrays.

    Args:
        problem: the run.
        accounts: the queues' accounts, nothing of them in use.
        account_of: Int array (m,), the number of each job's account, by arrival number.
        flavors_of: the GPU types that jobs of a demand class try in a queue, in order.
        word: a queue's word for an option.
        fair: fair sharing.
        wait: how long a job may wait at the head.
        report_put_back: see `CohortOrder`.
    """
    flavors = list(dict.fromkeys(flavor for account in accounts for flavor in account.flavors))
    pairs, line_of = lines(problem, account_of)
    asked = np.zeros(len(pairs))  # jobs of one demand class all ask for GPUs, or none does
    np.maximum.at(asked, line_of, problem.jobs.num_gpus[problem.rows])
    tried = np.full((len(pairs), len(flavors)), -1, dtype=np.int64)
    fits = np.full((len(pairs), len(flavors)), -1, dtype=np.int64)
    bound = _Bound(problem)
    for line, (account, kind) in enumerate(pairs.tolist()):
        for index, flavor in enumerate(flavors_of(kind, accounts[account])):
            tried[line, index] = flavors.index(flavor)
            anywhere = flavor == ANY_TYPE or not asked[line]
            fits[line, index] = kind if anywhere else bound.to(kind, flavor)
    cohorts = list(dict.fromkeys(a.quota.cohort for a in accounts if a.quota.cohort is not None))
    priority = problem.jobs.priority[problem.rows]
    return CohortOrder(
        amount=amounts(problem),
        priority=np.where(np.isnan(priority), 0.0, priority),
        line_of=line_of,
        queue_of=pairs[:, 0],
        flavors=tried,
        fits=fits,
        demands=(*problem.demands, *bound.demands),
        strict=np.array([word(a, "queueing_strategy") == "StrictFIFO" for a in accounts]),
        has=np.array([[f in a.nominal for f in flavors] for a in accounts]),
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
        reclaims=_gives_way(accounts, "reclaim_within_cohort", word),
        within=_gives_way(accounts, "within_cluster_queue", word),
        timeout=wait.timeout,
        backoff=wait.backoff,
        backoff_max=wait.backoff_max,
        evicts=wait.timestamp == "Eviction",
        report_put_back=report_put_back,
    )


def _gives_way(
    accounts: Sequence[Account], option: str, word: Callable[[Account, str], str]
) -> np.ndarray:
    return np.array([GIVES_WAY.index(word(account, option)) for account in accounts])


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
