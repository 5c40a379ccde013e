"""Quotas and jobs that do not go together, found before the run."""

from __future__ import annotations

from typing import TYPE_CHECKING

from windtunnel.errors import PolicyError, quote
from windtunnel.policies.quota_books import PARTS, parts
from windtunnel.policies.quotas import ANY_TYPE, NO_VC, REST

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable

    from windtunnel.policies.quota_books import Account
    from windtunnel.sim.problem import Problem


def refuse_types(label: str, accounts: Iterable[Account], problem: Problem) -> None:
    """Check the GPU types of the quotas against the cluster's.

    Args:
        label: the policy's.
        accounts: of all queues.
        problem: the run.

    Raises:
        PolicyError: the cluster has no such type.
    """
    known = {kind for kind in problem.types if kind is not None}
    for account in accounts:
        unknown = [f for f in account.flavors if f != ANY_TYPE and f not in known]
        if unknown:
            message = (
                f"the quota of {quote(account.name)} is of GPU type {quote(unknown[0])}; the "
                f"cluster has {', '.join(sorted(known)) or 'no types that it tells apart'}"
            )
            raise PolicyError(label, message)


def refuse_jobs(
    label: str,
    problem: Problem,
    names: Collection[str],
    account_for: Callable[[str | None], Account],
    flavors_of: Callable[[int, Account], tuple[str, ...]],
) -> None:
    """Check that every job could start if nobody else were there.

    Args:
        label: the policy's.
        problem: the run.
        names: the virtual clusters that have a queue of their own.
        account_for: virtual cluster -> its account.
        flavors_of: the GPU types that jobs of a demand class try in a queue.

    Raises:
        PolicyError: a job has no queue, or asks for more than its queue can ever use.
    """
    jobs = problem.jobs
    for row in problem.rows.tolist() if REST not in names else ():
        vc = NO_VC if jobs.vc[row] is None else jobs.vc[row]
        if vc not in names:
            message = (
                f"virtual cluster {quote(vc)} has no quota; name it, or give one queue to all "
                f"others with vc = {quote(REST)}"
            )
            raise PolicyError(label, message, job=jobs.job_id[row])
    most: dict[int, dict[str, int]] = {}
    for row, kind in zip(problem.rows.tolist(), problem.demand_of.tolist(), strict=True):
        view = jobs.views[row]
        account = account_for(view.vc)
        if account.index not in most:
            most[account.index] = {flavor: account.most(flavor) for flavor in account.flavors}
        flavors = flavors_of(kind, account)
        limit = max((most[account.index][f] for f in flavors), default=0)
        if parts(view.num_gpus) > limit or not flavors:
            of_type = f" of type {view.gpu_type}" if view.gpu_type else ""
            message = (
                f"asks for {view.num_gpus:g} GPUs{of_type}; the quota of {quote(account.name)} "
                f"allows {limit / PARTS:g} at most, whoever else runs"
            )
            raise PolicyError(label, message, job=view.job_id)
