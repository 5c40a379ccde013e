"""Quotas and jobs that do not go together, found before the run."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

import numpy as np

from windtunnel.errors import PolicyError, quote
from windtunnel.policies.quota_books import PARTS
from windtunnel.policies.quota_numbers import amounts, lines
from windtunnel.policies.quotas import ANY_TYPE, NO_VC, REST

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

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
    accounts: Sequence[Account],
    account_of: np.ndarray,
    flavors_of: Callable[[int, Account], tuple[str, ...]],
) -> None:
    """Check that every job could start if nobody else were there.

    Args:
        label: the policy's.
        problem: the run.
        accounts: of all queues.
        account_of: Int array (m,), each job's, by arrival number; -1 = it has none.
        flavors_of: the GPU types that jobs of a demand class try in a queue.

    Raises:
        PolicyError: a job has no queue, or asks for more than its queue can ever use.
    """
    jobs = problem.jobs
    for job in np.flatnonzero(account_of < 0)[:1].tolist():
        row = problem.rows[job]
        message = (
            f"virtual cluster {quote(NO_VC if jobs.vc[row] is None else jobs.vc[row])} has no "
            f"quota; name it, or give one queue to all others with vc = {quote(REST)}"
        )
        raise PolicyError(label, message, job=jobs.job_id[row])
    pairs, line_of = lines(problem, account_of)
    most = cache(lambda number, flavor: accounts[number].most(flavor))
    limits = np.full(len(pairs), -1, dtype=np.int64)
    for line, (number, kind) in enumerate(pairs.tolist()):
        possible = [most(number, flavor) for flavor in flavors_of(kind, accounts[number])]
        limits[line] = max(possible, default=-1)
    over = np.flatnonzero(amounts(problem) > limits[line_of]) if len(pairs) else ()
    for job in list(over)[:1]:
        view = jobs.views[problem.rows[job]]
        of_type = f" of type {view.gpu_type}" if view.gpu_type else ""
        message = (
            f"asks for {view.num_gpus:g} GPUs{of_type}; the quota of "
            f"{quote(accounts[account_of[job]].name)} allows "
            f"{max(limits[line_of[job]], 0) / PARTS:g} at most, whoever else runs"
        )
        raise PolicyError(label, message, job=view.job_id)
