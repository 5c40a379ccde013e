"""What policies of tiers 1 and 2 order by, checked: ranks, and keys of one job or of many at once.

The same on every engine.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from windtunnel.errors import PolicyError
from windtunnel.sim.columns import real_numbers
from windtunnel.users_code import note_instant

if TYPE_CHECKING:
    from collections.abc import Callable

    from windtunnel.sim.contract import Policy
    from windtunnel.sim.jobs import Jobs


class JobsView:
    """The jobs that a ``key(jobs, now)`` is asked for: ``jobs.num_gpus``, ``jobs.remaining`` ...

    Every attribute is an array of shape (len(jobs),): the columns of the jobs table, and as a
    `JobView` has them ``number``, ``row``, ``remaining``, ``run_time`` and ``running``.

    Args:
        numbers: Int array (k,), arrival numbers.
        columns: (numbers, name) -> the array.
    """

    def __init__(
        self, numbers: np.ndarray, columns: Callable[[np.ndarray, str], np.ndarray]
    ) -> None:
        self._numbers = numbers
        self._columns = columns

    def __len__(self) -> int:
        return len(self._numbers)

    def __getattr__(self, name: str) -> np.ndarray:
        if name.startswith("_"):
            raise AttributeError(name)
        found = self._columns(self._numbers, name)
        self.__dict__[name] = found
        return found


def static_rank(policy: Policy, jobs: Jobs, rows: np.ndarray) -> np.ndarray:
    """Return a tier-1 policy's order of the jobs to fly, checked.

    Returns:
        Float array of shape (m,), in the order of ``rows``, no NaN, no negative zero.

    Raises:
        PolicyError: not numbers, another shape, or NaN for some job to fly (which is named).
    """
    ranked = policy.rank(jobs)
    try:
        values = real_numbers(ranked)
    except (TypeError, ValueError, OverflowError) as error:
        raise PolicyError(policy.label, f"rank did not return numbers ({error})") from error
    if values.shape != (len(jobs),):
        raise PolicyError(
            policy.label, f"rank returned shape {values.shape}; expected ({len(jobs)},)"
        )
    flown: np.ndarray = values[rows] + 0.0  # -0.0 + 0.0 == 0.0: equal keys have equal bits
    bad = np.flatnonzero(np.isnan(flown))
    if len(bad):
        message = f"rank is NaN for {len(bad):,} job(s); the column it reads may be unknown there"
        needs = policy.needs or " or ".join(policy.by)
        if needs:
            message = f"{len(bad):,} job(s) have no {needs}, which the policy orders by"
        raise PolicyError(policy.label, message, job=jobs.job_id[rows[bad].min()])
    return flown


def key_of(policy: Policy, views: Any, job: int, now: float) -> float:
    """Return a tier-2 policy's key of a job at ``now`` (s), checked.

    Raises:
        PolicyError: not a number.
    """
    if policy.takes_many:
        return float(keys_of(policy, views, np.array([job], dtype=np.int32), now)[0])
    view = views.view(job)
    try:
        given = policy.key(view, now)
    except Exception as error:
        note_instant(error, policy.label, now, view.job_id)
        raise
    try:
        value = float(given) + 0.0
    except (TypeError, ValueError, OverflowError) as error:
        message = f"key returned {given!r}; expected a number"
        raise PolicyError(policy.label, message, time=now, job=view.job_id) from error
    if math.isnan(value):
        raise PolicyError(policy.label, "key is NaN", time=now, job=view.job_id)
    return value


def keys_of(policy: Policy, views: Any, numbers: np.ndarray, now: float) -> np.ndarray:
    """Return the keys of some jobs, asked for at once or one by one; see `key_of`.

    Returns:
        Float array (len(numbers),).

    Raises:
        PolicyError: not numbers, another shape, or NaN for some job (which is named).
    """
    if not policy.takes_many:
        keys = [key_of(policy, views, job, now) for job in numbers.tolist()]
        return np.array(keys, dtype=np.float64)
    jobs = JobsView(numbers, views.columns)
    try:
        given: Any = policy.key(jobs, now)  # type: ignore[arg-type] # many jobs, as it asks for
    except Exception as error:
        note_instant(error, policy.label, now)
        raise
    try:
        values = real_numbers(given)
    except (TypeError, ValueError, OverflowError) as error:
        message = f"key did not return numbers ({error})"
        raise PolicyError(policy.label, message, time=now) from error
    if values.shape != (len(jobs),):
        message = f"key returned shape {values.shape}; expected ({len(jobs)},), one a job"
        raise PolicyError(policy.label, message, time=now)
    values += 0.0  # no -0.0: equal keys have equal bits
    missing = np.isnan(values)
    if missing.any():
        job = jobs.job_id[missing.argmax()]
        raise PolicyError(policy.label, "key is NaN", time=now, job=job)
    return values
