"""Quotas and what jobs ask of them as numbers: `CohortQuotas`, and the policy's `CohortOrder`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from windtunnel.cluster.parts import holding_types
from windtunnel.policies.quotas import ANY_TYPE, NO_VC, REST
from windtunnel.sim.cohort_order import GIVES_WAY, PARTS, CohortOrder

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


class QueueRequests:
    """What the jobs of a run ask of which queue's quota.

    Args:
        problem: the run.
        accounts: the queues' accounts, nothing of them in use.

    Attributes:
        account_of: Int array (m,), the number of each job's account, by arrival number; -1 = it has
            none.
    """

    def __init__(self, problem: Problem, accounts: Sequence[Account]) -> None:
        self.problem, self.accounts = problem, accounts
        free = problem.free_state()
        #: GPU types that hold jobs of each demand class, each type alone; None = without GPUs.
        self._holding = [holding_types(demand, free, problem.types) for demand in problem.demands]
        index_of = {account.name: account.index for account in accounts}
        rest = index_of.get(REST, -1)
        vcs = problem.jobs.vc[problem.rows].tolist()
        found = [index_of.get(NO_VC if vc is None else vc, rest) for vc in vcs]
        self.account_of = np.array(found, dtype=np.int64)

    def flavors(self, kind: int, account: Account) -> tuple[str, ...]:
        """Return the GPU types of a queue's quota that hold a job of a class, all if any does."""
        holding = self._holding[kind]
        if holding is None or account.flavors == (ANY_TYPE,):
            return account.flavors
        return tuple(f for f in account.flavors if f in holding)

    def in_numbers(self) -> dict[str, Any]:
        """Return the fields of `CohortQuotas`."""
        problem, accounts = self.problem, self.accounts
        flavors = list(dict.fromkeys(flavor for account in accounts for flavor in account.flavors))
        pairs, line_of = lines(problem, self.account_of)
        asked = np.zeros(len(pairs))  # jobs of one demand class all ask for GPUs, or none does
        np.maximum.at(asked, line_of, problem.jobs.num_gpus[problem.rows])
        tried = np.full((len(pairs), len(flavors)), -1, dtype=np.int64)
        fits = np.full((len(pairs), len(flavors)), -1, dtype=np.int64)
        bound = _Bound(problem)
        for line, (account, kind) in enumerate(pairs.tolist()):
            for index, flavor in enumerate(self.flavors(kind, accounts[account])):
                tried[line, index] = flavors.index(flavor)
                anywhere = flavor == ANY_TYPE or not asked[line]
                fits[line, index] = kind if anywhere else bound.to(kind, flavor)
        cohorts = list(
            dict.fromkeys(a.quota.cohort for a in accounts if a.quota.cohort is not None)
        )
        priority = problem.jobs.priority[problem.rows]
        return {
            "amount": amounts(problem),
            "priority": np.where(np.isnan(priority), 0.0, priority),
            "line_of": line_of,
            "queue_of": pairs[:, 0],
            "flavors": tried,
            "fits": fits,
            "demands": (*problem.demands, *bound.demands),
            "names": tuple(flavors),
            "order": _by_queue(
                [
                    [*map(flavors.index, a.flavors), *[-1] * (len(flavors) - len(a.flavors))]
                    for a in accounts
                ]
            ),
            "has": np.array([[f in a.nominal for f in flavors] for a in accounts]),
            "nominal": _by_queue([[a.nominal.get(f, 0) for f in flavors] for a in accounts]),
            "kept": _by_queue([[a.kept.get(f, 0) for f in flavors] for a in accounts]),
            "limit": _by_queue([[a.borrowing_limit.get(f, -1) for f in flavors] for a in accounts]),
            "cohort": _by_queue(
                [-1 if a.quota.cohort is None else cohorts.index(a.quota.cohort) for a in accounts]
            ),
            "weight": np.array([a.quota.weight for a in accounts], dtype=np.float64),
        }


def _by_queue(numbers: Sequence[Any]) -> np.ndarray:
    return np.array(numbers, dtype=np.int64)


def in_numbers(
    requests: QueueRequests,
    *,
    word: Callable[[Account, str], str],
    fair: bool,
    wait: GangWait,
    report_put_back: Callable[[int], None],
) -> CohortOrder:
    """Return the quotas, what jobs ask of them, and who is next, as arrays.

    Args:
        requests: what the jobs ask of which queue.
        word: a queue's word for an option.
        fair: fair sharing.
        wait: how long a job may wait at the head.
        report_put_back: see `CohortOrder`.
    """
    accounts = requests.accounts
    return CohortOrder(
        **requests.in_numbers(),
        strict=np.array([word(a, "queueing_strategy") == "StrictFIFO" for a in accounts]),
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
        self.demands: list[object] = []
        self._number: dict[tuple[int, str], int] = {}

    def to(self, kind: int, flavor: str) -> int:
        """Return the number of a demand class bound to a GPU type."""
        if (kind, flavor) not in self._number:
            self._number[kind, flavor] = len(self.problem.demands) + len(self.demands)
            self.demands.append(self.problem.on_types(self.problem.demands[kind], [flavor]))
        return self._number[kind, flavor]
