"""`JobHeap`: jobs by (time, order), with every job's place known, so that a time can be changed."""

from __future__ import annotations

import cython
import numpy

from windtunnel.kernel.marks import compiled
from windtunnel.kernel.pairs import longer


@cython.final
@cython.cclass
class JobHeap:
    """An indexed binary heap: least time first, then least order (the number of the stay).

    Attributes:
        count: jobs in the heap.
        time: of each entry, s.
        order: of each entry.
        job: of each entry.
        at: entry of each job; -1 = it has none.
    """

    count: cython.int
    capacity: cython.int
    time: cython.double[::1]
    order: cython.int[::1]
    job: cython.int[::1]
    at: cython.int[::1]

    def __init__(self, num_jobs: int) -> None:
        self.count = 0
        self.capacity = 64
        self.time = numpy.empty(self.capacity)
        self.order = numpy.empty(self.capacity, dtype=numpy.int32)
        self.job = numpy.empty(self.capacity, dtype=numpy.int32)
        self.at = numpy.full(max(num_jobs, 1), -1, dtype=numpy.int32)

    def _grow(self) -> None:
        capacity = self.capacity * 2
        self.time = longer(self.time, capacity)
        self.order = longer(self.order, capacity)
        self.job = longer(self.job, capacity)
        self.capacity = capacity

    @compiled
    def _rise(
        self, hole: cython.int, time: cython.double, order: cython.int, job: cython.int
    ) -> cython.void:
        while hole > 0:
            parent = (hole - 1) >> 1
            if self.time[parent] < time or (
                self.time[parent] == time and self.order[parent] < order
            ):
                break
            self.time[hole] = self.time[parent]
            self.order[hole] = self.order[parent]
            self.job[hole] = self.job[parent]
            self.at[self.job[hole]] = hole
            hole = parent
        self.time[hole] = time
        self.order[hole] = order
        self.job[hole] = job
        self.at[job] = hole

    @compiled
    def _sink(
        self, hole: cython.int, time: cython.double, order: cython.int, job: cython.int
    ) -> cython.void:
        child: cython.int = 2 * hole + 1
        while child < self.count:
            if child + 1 < self.count:
                # Without a branch, which half of the time would be foretold wrong.
                child += (self.time[child + 1] < self.time[child]) | (
                    (self.time[child + 1] == self.time[child])
                    & (self.order[child + 1] < self.order[child])
                )
            if time < self.time[child] or (time == self.time[child] and order < self.order[child]):
                break
            moved = self.job[child]
            self.time[hole] = self.time[child]
            self.order[hole] = self.order[child]
            self.job[hole] = moved
            self.at[moved] = hole
            hole = child
            child = 2 * hole + 1
        self.time[hole] = time
        self.order[hole] = order
        self.job[hole] = job
        self.at[job] = hole

    @compiled
    def push(self, time: cython.double, order: cython.int, job: cython.int) -> cython.void:
        """Add a job."""
        if self.count == self.capacity:
            with cython.gil:
                self._grow()
        self.count += 1
        self._rise(self.count - 1, time, order, job)

    @compiled
    def pop(self) -> cython.int:
        """Take the first job out, and return it."""
        job: cython.int = self.job[0]
        last: cython.int = self.count - 1
        self.at[job] = -1
        self.count = last
        if last > 0:
            self._sink(0, self.time[last], self.order[last], self.job[last])
        return job

    @compiled
    def remove(self, job: cython.int) -> cython.void:
        """Take a job out, wherever it is; it must be there."""
        hole: cython.int = self.at[job]
        last: cython.int = self.count - 1
        self.at[job] = -1
        self.count = last
        if hole == last:
            return
        self.move(self.job[last], hole, self.time[last], self.order[last])

    @compiled
    def move(
        self, job: cython.int, hole: cython.int, time: cython.double, order: cython.int
    ) -> cython.void:
        """Put a job where there is a hole, and let it rise or sink to its place."""
        parent: cython.int = (hole - 1) >> 1
        if hole > 0 and (
            time < self.time[parent] or (time == self.time[parent] and order < self.order[parent])
        ):
            self._rise(hole, time, order, job)
        else:
            self._sink(hole, time, order, job)

    @compiled
    def change(self, job: cython.int, time: cython.double) -> cython.void:
        """Give a job another time."""
        hole: cython.int = self.at[job]
        self.move(job, hole, time, self.order[hole])
