"""Quotas and jobs that do not go together, found before the run."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

import numpy as np

from windtunnel.errors import PolicyError, quote
from windtunnel.policies.quota_numbers import amounts, lines
from windtunnel.policies.quotas import ANY_TYPE, NO_VC, REST
from windtunnel.sim.cohort_order import PARTS

if TYPE_CHECKING:
    from collections.abc import Iterable

    from windtunnel.policies.quota_books import Account
    from windtunnel.policies.quota_numbers import QueueRequests
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


def refuse_queues(label: str, requests: QueueRequests) -> None:
    """Check that every job has a queue.

    Args:
        label: the policy's.
        requests: what the jobs ask of which queue.

    Raises:
        PolicyError: a job has none.
    """
    problem, jobs = requests.problem, requests.problem.jobs
    for job in np.flatnonzero(requests.account_of < 0)[:1].tolist():
        row = problem.rows[job]
        message = (
            f"virtual cluster {quote(NO_VC if jobs.vc[row] is None else jobs.vc[row])} has no "
            f"quota; name it, or give one queue to all others with vc = {quote(REST)}"
        )
        raise PolicyError(label, message, job=jobs.job_id[row])


def above_quotas(requests: QueueRequests, least: np.ndarray | None = None) -> dict[int, str]:
    """Return the jobs that could not start if nobody else were there, with why, by arrival number.

    Args:
        requests: what the jobs ask of which queue; each has one.
        least: GPUs that each job does with, Float array (m,); None = what it asks for.
    """
    problem, accounts, account_of = requests.problem, requests.accounts, requests.account_of
    pairs, line_of = lines(problem, account_of)
    most = cache(lambda number, flavor: accounts[number].most(flavor))
    limits = np.full(len(pairs), -1, dtype=np.int64)
    for line, (number, kind) in enumerate(pairs.tolist()):
        possible = [most(number, flavor) for flavor in requests.flavors(kind, accounts[number])]
        limits[line] = max(possible, default=-1)
    asked = amounts(problem) if least is None else np.rint(least * PARTS).astype(np.int64)
    over = np.flatnonzero(asked > limits[line_of]) if len(pairs) else np.empty(0, int)
    found = {}
    at_least = "" if least is None else " at least"
    for job in over.tolist():
        view = problem.jobs.views[problem.rows[job]]
        of_type = f" of type {view.gpu_type}" if view.gpu_type else ""
        found[job] = (
            f"asks for {asked[job] / PARTS:g} GPUs{of_type}{at_least}; the quota of "
            f"{quote(accounts[account_of[job]].name)} allows "
            f"{max(limits[line_of[job]], 0) / PARTS:g} at most, whoever else runs"
        )
    return found
