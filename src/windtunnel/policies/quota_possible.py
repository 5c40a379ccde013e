"""Quotas and jobs that do not go together, found before the run."""

from __future__ import annotations

import math
from functools import cache
from typing import TYPE_CHECKING

import numpy as np

from windtunnel.cluster.free import EVERY_NODE
from windtunnel.errors import PolicyError, quote
from windtunnel.policies.quota_numbers import amounts, lines
from windtunnel.policies.quotas import ANY_TYPE, NO_VC, REST
from windtunnel.sim.cohort_order import PARTS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

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


def above_quotas(requests: QueueRequests) -> dict[int, str]:
    """Return the jobs that could not start if nobody else were there, with why, by arrival number.

    Args:
        requests: what the jobs ask of which queue; each has one.
    """
    problem, accounts, account_of = requests.problem, requests.accounts, requests.account_of
    pairs, line_of = lines(problem, account_of)
    most = cache(lambda number, flavor: accounts[number].most(flavor))
    limits = np.full(len(pairs), -1, dtype=np.int64)
    for line, (number, kind) in enumerate(pairs.tolist()):
        possible = [most(number, flavor) for flavor in requests.flavors(kind, accounts[number])]
        limits[line] = max(possible, default=-1)
    asked = amounts(problem)
    over = np.flatnonzero(asked > limits[line_of]) if len(pairs) else np.empty(0, int)
    found = {}
    for job in over.tolist():
        view = problem.jobs.views[problem.rows[job]]
        of_type = f" of type {view.gpu_type}" if view.gpu_type else ""
        found[job] = _says(
            f"{asked[job] / PARTS:g} GPUs{of_type}", accounts[account_of[job]], limits[line_of[job]]
        )
    return found


def above_quotas_in_options(
    requests: QueueRequests, needs: Callable[[int, int], float], *, resizes: bool
) -> dict[int, str]:
    """Return the same of elastic jobs, which do with some option on GPUs of one type.

    Args:
        requests: what the jobs ask of which queue; each has one.
        needs: GPUs that a job does with on the nodes of a bitset; inf = it cannot be there.
        resizes: it may be other than what was asked for.
    """
    problem = requests.problem
    nodes: dict[str, int] = {}
    for node, kind in enumerate(problem.types):
        nodes[kind or ""] = nodes.get(kind or "", 0) | 1 << node
    found = {}
    for job, number in enumerate(requests.account_of.tolist()):
        account, short = requests.accounts[number], []
        for flavor in account.flavors:
            asked = needs(job, EVERY_NODE if flavor == ANY_TYPE else nodes.get(flavor, 0))
            short.append((asked * PARTS - account.most(flavor), asked, flavor))
        gap, asked, flavor = min(short)
        if gap <= 0:
            continue
        if math.isinf(gap):
            found[job] = (
                f"lies on GPUs of no one type of which {quote(account.name)} has quota, in "
                f"{'any of its sizes' if resizes else 'the size asked for'}"
            )
            continue
        of_type = "" if flavor == ANY_TYPE else f" of type {flavor}"
        what = f"{asked:g} GPUs{of_type}{' at least' if resizes else ''}"
        found[job] = _says(what, account, account.most(flavor))
    return found


def _says(asked: str, account: Account, limit: int) -> str:
    """Return what is said of a job that asks for more than its queue can ever use."""
    return (
        f"asks for {asked}; the quota of {quote(account.name)} allows "
        f"{max(limit, 0) / PARTS:g} at most, whoever else runs"
    )
