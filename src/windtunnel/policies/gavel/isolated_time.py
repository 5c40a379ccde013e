"""`IsolatedTime`: how long jobs would have needed so far on their equal share of the cluster.

Narayanan et al., OSDI'20, section 4.2: the steps between two decisions count at the isolated speed
of that time, I += steps / speed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from windtunnel.policies.gavel.closed_forms import equal_split

if TYPE_CHECKING:
    from windtunnel.policies.gavel.work import Work


class IsolatedTime:
    """The books of a run.

    Args:
        work: jobs and GPUs.
        speeds: steps per second of each job on each type, true or believed; shape (jobs, types).

    Attributes:
        seconds: of each job so far, shape (jobs,).
    """

    def __init__(self, work: Work, speeds: np.ndarray) -> None:
        self._speeds = speeds
        self._num_gpus, self._gangs = work.num_gpus.astype(float), work.gangs.astype(float)
        self._num_sharing = 1
        self._pace = np.full(work.num_jobs, np.nan)
        self.seconds = np.zeros(work.num_jobs)

    def share_among(self, active: np.ndarray) -> None:
        """Let the jobs that are here share the GPUs from now on; rows, shape (active,)."""
        self._num_sharing = len(active)
        self._pace[active] = self._equal_share(active)

    def book(self, done: np.ndarray) -> None:
        """Book steps done since the last call, negative where a failure undid them; (jobs,)."""
        worked = done.nonzero()[0]
        pace = self._pace[worked]
        unknown = np.isnan(pace)
        if unknown.any():
            # Jobs may take free GPUs, and even end, before any decision was made about them.
            pace[unknown] = self._equal_share(worked[unknown])
        self.seconds[worked] += done[worked] / pace

    def _equal_share(self, rows: np.ndarray) -> np.ndarray:
        """Return the steps per second of jobs on an equal share of the cluster, shape (rows,)."""
        split = equal_split(self._num_gpus, self._gangs[rows], among=self._num_sharing)
        pace: np.ndarray = (self._speeds[rows] * split).sum(axis=1)
        return pace
