"""Static orders of jobs, as arrays for the kernels."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from windtunnel.sim.contract import checked_key, static_rank
from windtunnel.sim.jobs import JobView

if TYPE_CHECKING:
    from windtunnel.sim.contract import Policy
    from windtunnel.sim.problem import Problem


def static_order(problem: Problem, policy: Policy) -> tuple[np.ndarray, np.ndarray]:
    """Return the jobs in the policy's static order, and each job's place in it, shapes (m,).

    By remaining time there is no static order; the arrival order stands in, unused.

    Raises:
        PolicyError: the policy's order is unusable (NaN, wrong shape).
    """
    arrival = np.arange(len(problem.rows))
    if policy.by_remaining and policy.preemptive:
        return arrival, arrival
    return by_key(_keys(problem, policy))


def by_key(keys: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the jobs by (key, arrival), and each job's place among them, shapes (m,)."""
    arrival = np.arange(len(keys))
    if (keys[1:] >= keys[:-1]).all():
        return arrival, arrival
    order = _stable_order(keys)
    position = np.empty_like(order)
    position[order] = arrival
    return order, position


def _stable_order(keys: np.ndarray) -> np.ndarray:
    """Return a stable argsort of float keys, twice as fast as numpy's own.

    numpy vectorises its unstable sorts only. So: sort unstably, number the runs of equal keys, and
    sort (run, index) packed into one integer.
    """
    order = np.argsort(keys)
    ordered = keys[order]
    runs = np.zeros(len(keys), dtype=np.int64)
    np.cumsum(ordered[1:] != ordered[:-1], out=runs[1:])
    bits = max(len(keys) - 1, 1).bit_length()
    packed = (runs << bits) | order
    packed.sort()
    stable: np.ndarray = packed & ((1 << bits) - 1)
    return stable


def _keys(problem: Problem, policy: Policy) -> np.ndarray:
    """Return each flown job's key at its arrival, shape (m,), arrival order.

    Without rounds a tier-2 key is asked once, when the job is queued, which is at its submit time:
    so it is as static as a rank.
    """
    if policy.tier == 1:
        return static_rank(policy, problem.jobs, problem.rows)
    keys: np.ndarray = np.empty(len(problem.rows))
    for job, row in enumerate(problem.rows.tolist()):
        view = JobView(problem.jobs, row)
        keys[job] = checked_key(policy, view, view.submit_time)
    return keys
