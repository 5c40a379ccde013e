"""Quotas of virtual clusters as limits of a run under any policy."""

from __future__ import annotations

from typing import TYPE_CHECKING

from windtunnel.policies.quota_books import open_accounts
from windtunnel.policies.quota_numbers import QueueRequests
from windtunnel.policies.quota_possible import impossible, refuse_jobs, refuse_types
from windtunnel.policies.quotas import Quotas, unused_vcs
from windtunnel.sim.cohort_order import CohortQuotas

if TYPE_CHECKING:
    from windtunnel.sim.problem import Problem

#: What of a queue only the policy ``quota`` goes by.
_OF_THE_POLICY = ("queueing_strategy", "reclaim_within_cohort", "within_cluster_queue")


def limits(
    quotas: Quotas, problem: Problem, *, label: str, blocks: bool, oversize: str
) -> tuple[Problem, CohortQuotas]:
    """Return the jobs to fly, and the quotas as a run under any policy goes by them.

    Args:
        quotas: of virtual clusters.
        problem: the run.
        label: the policy's.
        blocks: a job that waits for quota holds up those behind it.
        oversize: ``raise``, or ``reject`` jobs that their quota never lets start.

    Raises:
        PolicyError: quotas are by GPU types that the cluster does not have; or a job has no quota,
            or never enough of it, and is not to be rejected.
    """
    accounts = open_accounts(quotas)
    refuse_types(label, accounts, problem)
    requests = QueueRequests(problem, accounts)
    if oversize == "reject":
        out = impossible(requests)
        if out:
            problem = problem.without(out)
            requests = QueueRequests(problem, accounts)
    refuse_jobs(label, requests)
    notes = unused_vcs((queue.vc for queue in quotas.queues), problem.jobs.vc.tolist())
    unused = [w for w in _OF_THE_POLICY if any(getattr(q, w) for q in quotas.queues)]
    if unused:
        notes.append(
            f"Policy {label!r} takes no notice of what the quotas say of {', '.join(unused)}; "
            "policy quota does."
        )
    return problem, CohortQuotas(**requests.in_numbers(), blocks=blocks, notes=tuple(notes))
