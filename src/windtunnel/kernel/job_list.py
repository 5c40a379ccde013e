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

    @compiled
    def sort(self, lines: Lines) -> cython.void:
        """Put the jobs in the queue's order, each but once."""
        at: cython.int
        job: cython.int
        kept: cython.int = 0
        for at in range(1, self.count):
            if not lines.before(self.job[at - 1], self.job[at]):
                break
        else:
            return
        for at in range((self.count >> 1) - 1, -1, -1):
            self._sink(lines, at, self.count, self.job[at])
        for at in range(self.count - 1, 0, -1):
            job = self.job[at]
            self.job[at] = self.job[0]
            self._sink(lines, 0, at, job)
        for at in range(self.count):
            if kept == 0 or self.job[at] != self.job[kept - 1]:
                self.job[kept] = self.job[at]
                kept += 1
        self.count = kept

    @compiled
    def _sink(
        self, lines: Lines, hole: cython.int, count: cython.int, job: cython.int
    ) -> cython.void:
        """Let a job sink in a heap that has the last one on top."""
        child: cython.int = 2 * hole + 1
        while child < count:
            if child + 1 < count and lines.before(self.job[child], self.job[child + 1]):
                child += 1
            if not lines.before(job, self.job[child]):
                break
            self.job[hole] = self.job[child]
            hole = child
            child = 2 * hole + 1
        self.job[hole] = job
