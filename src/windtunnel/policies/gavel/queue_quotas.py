"""`QueueQuotas`: what quotas leave to jobs that are chosen one after the other."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from windtunnel.policies.quota_books import parts
from windtunnel.policies.quotas import ANY_TYPE
from windtunnel.sim.cohort_order import PARTS

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from windtunnel.policies.quota_books import Account


class QueueQuotas:
    """The quotas of the jobs' queues, and what those chosen so far use of them.

    Args:
        accounts: of the jobs' queues, one a job; queues that share have the same objects.
        gangs: GPUs of each job, shape (jobs,).
        gpu_types: names of the GPU types, shape (types,).
    """

    def __init__(
        self, accounts: Sequence[Account], gangs: np.ndarray, gpu_types: Sequence[str]
    ) -> None:
        by_type = any(account.flavors != (ANY_TYPE,) for account in accounts)
        self._accounts = accounts
        self._amounts = [parts(gang) for gang in gangs.tolist()]
        self._flavors = [name if by_type else ANY_TYPE for name in gpu_types]

    def queue(self, job: int) -> str:
        """Return the name of a job's queue."""
        return self._accounts[job].name

    def most(self) -> np.ndarray:
        """Return the GPUs that jobs could use if nobody else were there, shape (jobs, types)."""
        found = {
            account: [account.most(f) if f in account.nominal else 0 for f in self._flavors]
            for account in set(self._accounts)
        }
        rows = np.array([found[account] for account in self._accounts], float) / PARTS
        return rows.reshape(-1, len(self._flavors))

    def begin(self, chosen: Iterable[tuple[int, int]] = ()) -> None:
        """Forget who was chosen: only these jobs are, each on a GPU type."""
        for account in set(self._accounts):
            account.usage = dict.fromkeys(account.flavors, 0)
        for job, kind in chosen:
            self._use(job, kind, 1)

    def allows(self, job: int, kind: int) -> bool:
        """Return whether a job's queue has the quota for it on a GPU type."""
        account, flavor = self._accounts[job], self._flavors[kind]
        return flavor in account.nominal and self._amounts[job] <= account.available(flavor)

    def types(self, job: int) -> np.ndarray:
        """Return the GPU types on which a job's queue has the quota for it, Bool array (types,)."""
        return np.array([self.allows(job, kind) for kind in range(len(self._flavors))], bool)

    def take(self, jobs: Iterable[int], kind: int) -> bool:
        """Choose jobs on a GPU type, all or none; return whether the quotas suffice for all."""
        taken: list[int] = []
        for job in jobs:
            if not self.allows(job, kind):
                self.give(taken, kind)
                return False
            self._use(job, kind, 1)
            taken.append(job)
        return True

    def give(self, jobs: Iterable[int], kind: int) -> None:
        """Choose some jobs no more."""
        for job in jobs:
            self._use(job, kind, -1)

    def _use(self, job: int, kind: int, sign: int) -> None:
        self._accounts[job].usage[self._flavors[kind]] += sign * self._amounts[job]
