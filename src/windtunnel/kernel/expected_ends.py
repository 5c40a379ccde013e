"""`ExpectedEnds`: when running jobs are expected to end, by what is left of their estimates."""

from __future__ import annotations

import cython
import numpy

from windtunnel.kernel.checkpoints import Checkpoints
from windtunnel.kernel.marks import compiled
from windtunnel.kernel.ranked import Ranked


@cython.final
@cython.cclass
class ExpectedEnds:
    """When running jobs are expected to end at their present rates, as their users know it.

    A job writes the checkpoints that lie within what is left of its estimate; one that runs on past
    it is expected to end at any time.

    Args:
        jobs: their work, estimates and units.
        checkpoints: of their stays.
        plans: somebody goes by it; otherwise nothing is kept.
        writes: writing checkpoints takes time.

    Attributes:
        estimate: what users asked for, s at full speed, shape (m,).
        end: when each running job is expected to end, s, shape (m,).
        ranked: the running jobs in order of that.
    """

    estimate: cython.double[::1]
    end: cython.double[::1]
    ranked: Ranked
    _work: cython.double[::1]
    _units: cython.longlong[::1]
    _checkpoints: Checkpoints
    _writes: cython.bint

    def __init__(self, jobs: object, checkpoints: object, *, plans: bool, writes: bool) -> None:
        self.estimate = jobs.estimate if plans else numpy.zeros(1)
        self.end = numpy.zeros(max(len(jobs.work), 1) if plans else 1)
        self.ranked = Ranked()
        self._work, self._units = jobs.work, jobs.units
        self._checkpoints, self._writes = checkpoints, writes

    @compiled
    def left(self, job: cython.int, work_left: cython.double) -> cython.double:
        """Return what is left of a job's estimate with so much work left, s at full speed."""
        known: cython.double = self.estimate[job] - (self._work[job] - work_left)
        return known if known > 0.0 else 0.0

    @compiled
    def span(self, job: cython.int, work_left: cython.double) -> cython.double:
        """Return how long a job that starts with so much work left is expected to run, s."""
        left: cython.double = self.left(job, work_left)
        if self._writes:
            return left + self._checkpoints.in_all(left) * self._checkpoints.cost
        return left

    @compiled
    def begin(
        self,
        job: cython.int,
        stay: cython.int,
        ready: cython.double,
        work_left: cython.double,
        rate: cython.double,
    ) -> cython.void:
        """Note when a job is expected to end as a segment of it begins.

        Args:
            job: it runs.
            stay: the number of its stay.
            ready: when it gets on, s.
            work_left: its work left.
            rate: work a second.
        """
        ahead: cython.double = self.left(job, work_left)
        end: cython.double = ready + ahead / rate
        if ahead > 0.0 and self._writes:
            work: cython.double = self.left(job, self._checkpoints.work[job])
            end = ready + (ahead / rate + self._checkpoints.to_write(job, work))
        self.end[job] = end
        self.ranked.insert(end, stay, job, self._units[job])

    @compiled
    def over(self, job: cython.int, stay: cython.int) -> cython.void:
        """Note that a job's segment is over."""
        self.ranked.remove(self.end[job], stay)
