"""Keys of tier-2 policies: of one job, or of many at once as arrays; the same on every engine."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from windtunnel.errors import PolicyError
from windtunnel.sim.contract import checked_key

if TYPE_CHECKING:
    from collections.abc import Callable

    from windtunnel.sim.contract import Policy


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


class Keys:
    """The keys of a policy of tier 1 or 2.

    Args:
        policy: whose they are.
    """

    def __init__(self, policy: Policy) -> None:
        self.policy = policy

    def one(self, views: Any, job: int, now: float) -> float:
        """Return a job's key at ``now`` (s); ``views``: the run's jobs as policies see them."""
        if self.policy.takes_many:
            return float(self.many(views, np.array([job], dtype=np.int32), now)[0])
        return checked_key(self.policy, views.view(job), now)

    def many(self, views: Any, jobs: np.ndarray, now: float) -> np.ndarray:
        """Return the keys of some jobs at ``now``, Float array (len(jobs),)."""
        if self.policy.takes_many:
            return checked_keys(self.policy, JobsView(jobs, views.columns), now)
        return np.array([self.one(views, job, now) for job in jobs.tolist()], dtype=np.float64)


def checked_keys(policy: Policy, jobs: JobsView, now: float) -> np.ndarray:
    """Return the keys of many jobs at ``now`` (s), checked: Float array (len(jobs),).

    Raises:
        PolicyError: not numbers, another shape, or NaN for some job (which is named).
    """
    given: Any = policy.key(jobs, now)  # type: ignore[arg-type] # many jobs, as it asks for
    try:
        values = np.asarray(given, dtype=np.float64)
    except (TypeError, ValueError) as error:
        message = f"key did not return numbers ({error})"
        raise PolicyError(policy.label, message, time=now) from error
    if values.shape != (len(jobs),):
        message = f"key returned shape {values.shape}; expected ({len(jobs)},), one a job"
        raise PolicyError(policy.label, message, time=now)
    values = values + 0.0  # no -0.0: equal keys have equal bits
    bad = np.flatnonzero(np.isnan(values))
    if len(bad):
        job = jobs.job_id[bad[0]]
        raise PolicyError(policy.label, "key is NaN", time=now, job=job)
    return values
