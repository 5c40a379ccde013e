"""Quotas of virtual clusters as limits of a run under any policy."""

from __future__ import annotations

from typing import TYPE_CHECKING

from windtunnel.policies.quota_books import open_accounts
from windtunnel.policies.quota_numbers import QueueRequests
from windtunnel.policies.quota_possible import (
    above_quotas,
    above_quotas_in_options,
    refuse_queues,
    refuse_types,
)
from windtunnel.policies.quotas import Quotas, unused_vcs
from windtunnel.sim.cohort_order import CohortQuotas

if TYPE_CHECKING:
    from collections.abc import Callable

    from windtunnel.sim.problem import Problem

#: What of a queue only the policy ``quota`` goes by.
_OF_THE_POLICY = ("queueing_strategy", "reclaim_within_cohort", "within_cluster_queue")


class QuotaLimits:
    """The quotas of a run under any policy.

    Args:
        quotas: of virtual clusters.
        problem: the run.
        label: the policy's.

    Raises:
        PolicyError: a job's virtual cluster has no quota, or quotas are by GPU types that the
            cluster does not have.
    """

    def __init__(self, quotas: Quotas, problem: Problem, label: str) -> None:
        self.quotas, self.problem, self.label = quotas, problem, label
        accounts = open_accounts(quotas.in_types_of(problem.cluster))
        refuse_types(label, accounts, problem)
        self._requests = QueueRequests(problem, accounts)
        refuse_queues(label, self._requests)

    def too_large(
        self, needs: Callable[[int, int], float] | None = None, *, resizes: bool = False
    ) -> dict[int, str]:
        """Return the jobs that ask for more than their queue can ever use, with why, by number.

        Args:
            needs: GPUs that an elastic job does with on the nodes of a bitset; None = jobs have one
                size, and go wherever it fits.
            resizes: elastic jobs may have another size than they ask for.
        """
        if needs is None:
            return above_quotas(self._requests)
        return above_quotas_in_options(self._requests, needs, resizes=resizes)

    def in_numbers(self, *, blocks: bool) -> CohortQuotas:
        """Return the quotas as the run goes by them.

        Args:
            blocks: a job that waits for quota holds up those behind it.
        """
        queues = self.quotas.queues
        notes = unused_vcs((queue.vc for queue in queues), self.problem.jobs.vc.tolist())
        unused = [word for word in _OF_THE_POLICY if any(getattr(q, word) for q in queues)]
        if unused:
            notes.append(
                f"Policy {self.label!r} takes no notice of what the quotas say of "
                f"{', '.join(unused)}; policy quota does."
            )
        return CohortQuotas(**self._requests.in_numbers(), blocks=blocks, notes=tuple(notes))
