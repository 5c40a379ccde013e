"""Shares that need no solver: `isolated` (equal split) and `proportional`.

Narayanan et al., OSDI'20, section 4.1: the second is the normaliser of max-min fairness.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from windtunnel.policies.gavel.instance import Instance
    from windtunnel.policies.gavel.work import Work


def isolated_shares(instance: Instance) -> np.ndarray:
    """Return X[i, j] = N[j] / (jobs x s[i]), each row scaled down to a sum of at most 1.

    Shape (jobs, types).
    """
    return equal_split(instance.num_gpus, instance.scale_factors, among=instance.num_sharing)


def equal_split(
    num_gpus: np.ndarray, gangs: np.ndarray, *, among: float | None = None
) -> np.ndarray:
    """Return the equal split of GPUs for jobs with gangs of some sizes, shape (jobs, types).

    Args:
        num_gpus: of each type, shape (types,).
        gangs: shape (jobs,).
        among: how many jobs share the GPUs; None = those whose gangs are given.
    """
    count = max(len(gangs) if among is None else among, 1)
    shares = num_gpus[None, :] / (count * gangs[:, None])
    split: np.ndarray = shares / np.maximum(1.0, shares.sum(axis=1, keepdims=True))
    return split


def proportional_shares(instance: Instance) -> np.ndarray:
    """Return X[i, j] = N[j] / sum N, whatever the gang; shape (jobs, types)."""
    total = instance.num_gpus.sum()
    row = instance.num_gpus / total if total > 0 else np.zeros(len(instance.gpu_types))
    return np.tile(row, (instance.num_jobs, 1))


def isolated_throughputs(instance: Instance) -> np.ndarray:
    """Return steps per second under the equal split, shape (jobs,)."""
    speeds: np.ndarray = (instance.throughputs * isolated_shares(instance)).sum(axis=1)
    return speeds


def proportional_throughputs(instance: Instance) -> np.ndarray:
    """Return steps per second under proportional shares, shape (jobs,)."""
    speeds: np.ndarray = (instance.throughputs * proportional_shares(instance)).sum(axis=1)
    return speeds


class IsolatedTime:
    """How long jobs of a run would have needed so far on their equal share of the cluster.

    Narayanan et al., OSDI'20, section 4.2: the steps between two decisions count at the isolated
    speed of that time, I += steps / speed. Steps that a failure undid are taken off at the mean
    speed at which the job's steps were booked: at that of another time they could come to more
    seconds than all that was booked.

    Args:
        work: jobs and GPUs.
        speeds: steps per second of each job on each type, true or believed; shape (jobs, types).

    Attributes:
        seconds: of each job so far, shape (jobs,).
    """

    def __init__(self, work: Work, speeds: np.ndarray) -> None:
        # What a job would have of each type if it were alone, were a job's time not limited.
        whole = work.num_gpus[None, :] / work.gangs[:, None]
        self._speed_of_whole = (speeds * whole).sum(axis=1)
        self._time_of_whole = whole.sum(axis=1)
        self._num_sharing = 1
        self._pace = np.full(work.num_jobs, np.nan)
        self._booked = np.zeros(work.num_jobs)
        self.seconds = np.zeros(work.num_jobs)

    def share_among(self, active: np.ndarray) -> None:
        """Let the jobs that are here share the GPUs from now on; rows, shape (active,)."""
        self._num_sharing = max(len(active), 1)
        self._pace[active] = self._equal_share(active)

    def book(self, done: np.ndarray) -> None:
        """Book steps done since the last call, negative where a failure undid them; (jobs,)."""
        undone = (done < 0).nonzero()[0]
        before = self._booked
        self._booked = np.maximum(before + done, 0.0)  # steps left are rounded: some are below 0
        if len(undone):
            kept, had = self._booked[undone], before[undone]
            self.seconds[undone] *= np.divide(kept, had, out=np.zeros(len(had)), where=had > 0)
        worked = (done > 0).nonzero()[0]
        pace = self._pace[worked]
        unknown = np.isnan(pace)
        if unknown.any():
            # Jobs may take free GPUs, and even end, before any decision was made about them.
            pace[unknown] = self._equal_share(worked[unknown])
        self.seconds[worked] += done[worked] / pace

    def _equal_share(self, rows: np.ndarray) -> np.ndarray:
        """Return the steps per second of jobs on an equal share of the cluster, shape (rows,)."""
        # `equal_split`: whole / sharing, scaled down to a sum of at most 1.
        pace: np.ndarray = self._speed_of_whole[rows] / np.maximum(
            self._num_sharing, self._time_of_whole[rows]
        )
        return pace
