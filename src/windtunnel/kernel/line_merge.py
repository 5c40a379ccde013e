"""`LineMerge`: the jobs of some lines in the queue's order: a heap of lines by their next jobs."""

from __future__ import annotations

import cython
import numpy

from windtunnel.kernel.lines import Lines
from windtunnel.kernel.marks import compiled


@cython.final
@cython.cclass
class LineMerge:
    """Goes along sorted lines at once.

    Args:
        lines: the waiting jobs.

    Attributes:
        place: how many of each line's jobs have been passed.
        heap: lines by the job that is next in each; the first line has the first job.
        count: lines in the heap: those that have a job to come.
    """

    lines: Lines
    place: cython.int[::1]
    heap: cython.int[::1]
    count: cython.int

    def __init__(self, lines: Lines) -> None:
        self.lines = lines
        count = max(lines.num_lines, 1)
        self.place = numpy.zeros(count, dtype=numpy.int32)
        self.heap = numpy.zeros(count, dtype=numpy.int32)
        self.count = 0

    @compiled
    def next_of(self, line: cython.int) -> cython.int:
        """Return the job that is next in a line that has one to come."""
        return self.lines.slab[self.lines.begin[line] + self.place[line]]

    @compiled
    def pass_first(self) -> cython.int:
        """Pass the first job, and return it."""
        line: cython.int = self.heap[0]
        job: cython.int = self.next_of(line)
        self.place[line] += 1
        if self.place[line] < self.lines.length[line]:
            self._sink(line)
        else:
            self.pop()
        return job

    @compiled
    def push(self, line: cython.int) -> cython.void:
        """Put a line into the heap that has a job to come."""
        hole: cython.int = self.count
        job: cython.int = self.next_of(line)
        self.count += 1
        while hole > 0:
            parent = (hole - 1) >> 1
            if self.lines.before(self.next_of(self.heap[parent]), job):
                break
            self.heap[hole] = self.heap[parent]
            hole = parent
        self.heap[hole] = line

    @compiled
    def pop(self) -> cython.void:
        """Take the first line off the heap."""
        self.count -= 1
        if self.count > 0:
            self._sink(self.heap[self.count])

    @compiled
    def _sink(self, line: cython.int) -> cython.void:
        """Let a line sink from the top."""
        hole: cython.int = 0
        child: cython.int = 1
        job: cython.int = self.next_of(line)
        while child < self.count:
            if child + 1 < self.count and self.lines.before(
                self.next_of(self.heap[child + 1]), self.next_of(self.heap[child])
            ):
                child += 1
            if self.lines.before(job, self.next_of(self.heap[child])):
                break
            self.heap[hole] = self.heap[child]
            hole = child
            child = 2 * hole + 1
        self.heap[hole] = line
