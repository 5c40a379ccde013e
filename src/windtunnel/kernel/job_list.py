"""`JobList`: some jobs, and the queue's order for them."""

from __future__ import annotations

import cython
import numpy

from windtunnel.kernel.lines import Lines
from windtunnel.kernel.marks import compiled
from windtunnel.kernel.pairs import longer


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
        """Put the jobs in the queue's order, each but once: by Shell's sort."""
        gap: cython.int = 1
        kept: cython.int = 0
        while gap < self.count // 3:
            gap = 3 * gap + 1
        while gap > 0:
            for at in range(gap, self.count):
                job = self.job[at]
                hole = at
                while hole >= gap and lines.before(job, self.job[hole - gap]):
                    self.job[hole] = self.job[hole - gap]
                    hole -= gap
                self.job[hole] = job
            gap //= 3
        for at in range(self.count):
            if kept == 0 or self.job[at] != self.job[kept - 1]:
                self.job[kept] = self.job[at]
                kept += 1
        self.count = kept
