"""`JobList`: some jobs, and the queue's order for them."""

from __future__ import annotations

import cython
import numpy

from windtunnel.kernel.lines import Lines
from windtunnel.kernel.marks import compiled
from windtunnel.kernel.pairs import longer
from windtunnel.kernel.sorting import sort_by_key


@cython.final
@cython.cclass
class JobList:
    """A growing list of jobs.

    Attributes:
        count: jobs in the list.
        job: the jobs.
    """

    count: cython.int
    capacity: cython.int
    job: cython.int[::1]

    def __init__(self) -> None:
        self.count = 0
        self.capacity = 64
        self.job = numpy.zeros(self.capacity, dtype=numpy.int32)

    def _grow(self) -> None:
        capacity = 2 * self.capacity
        self.job = longer(self.job, capacity)
        self.capacity = capacity

    @compiled
    def add(self, job: cython.int) -> cython.void:
        """Append a job."""
        if self.count == self.capacity:
            with cython.gil:
                self._grow()
        self.job[self.count] = job
        self.count += 1

    def take(self) -> list:
        """Return the jobs, and let there be none."""
        jobs = numpy.asarray(self.job)[: self.count].tolist()
        self.count = 0
        return jobs

    @compiled
    def sort(self, lines: Lines) -> cython.void:
        """Put the jobs in the queue's order, of one without second keys, each but once."""
        kept: cython.int = 0
        sort_by_key(self.job, 0, self.count, lines.key)
        for at in range(self.count):
            if kept == 0 or self.job[at] != self.job[kept - 1]:
                self.job[kept] = self.job[at]
                kept += 1
        self.count = kept
