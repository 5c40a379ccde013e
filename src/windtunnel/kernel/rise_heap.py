"""`RiseHeap`: who is to be looked at next, of those whom rises may let start earlier."""

from __future__ import annotations

import cython
import numpy

from windtunnel.kernel.lines import Lines
from windtunnel.kernel.marks import compiled
from windtunnel.kernel.pairs import longer


@cython.final
@cython.cclass
class RiseHeap:
    """Entries are a rise, a line, and a job of the line, by (round, key of the job).

    Args:
        lines: knows which job comes before which.

    Attributes:
        count: entries; the first has number 0.
        rise: of each entry.
        line: of each entry.
        job: of each entry.
        round: of each entry.
    """

    lines: Lines
    count: cython.int
    capacity: cython.int
    rise: cython.int[::1]
    line: cython.int[::1]
    job: cython.int[::1]
    round: cython.int[::1]

    def __init__(self, lines: Lines) -> None:
        self.lines = lines
        self.count = self.capacity = 0
        self.rise = self.line = self.job = self.round = numpy.zeros(0, dtype=numpy.int32)

    def _grow(self) -> None:
        capacity = 2 * self.capacity + 64
        self.rise = longer(self.rise, capacity)
        self.line = longer(self.line, capacity)
        self.job = longer(self.job, capacity)
        self.round = longer(self.round, capacity)
        self.capacity = capacity

    @compiled
    def _is_before(self, round_: cython.int, job: cython.int, entry: cython.int) -> cython.bint:
        if round_ != self.round[entry]:
            return round_ < self.round[entry]
        return self.lines.before(job, self.job[entry])

    @compiled
    def _put(
        self, hole: cython.int, rise: cython.int, line: cython.int, job: cython.int,
        round_: cython.int,
    ) -> cython.void:  # fmt: skip
        self.rise[hole] = rise
        self.line[hole] = line
        self.job[hole] = job
        self.round[hole] = round_

    @compiled
    def _shift(self, source: cython.int, hole: cython.int) -> cython.void:
        self._put(hole, self.rise[source], self.line[source], self.job[source], self.round[source])

    @compiled
    def push(
        self, rise: cython.int, line: cython.int, job: cython.int, round_: cython.int
    ) -> cython.void:
        """Add an entry."""
        hole: cython.int = self.count
        if self.count == self.capacity:
            with cython.gil:
                self._grow()
        self.count += 1
        while hole > 0:
            parent = (hole - 1) >> 1
            if not self._is_before(round_, job, parent):
                break
            self._shift(parent, hole)
            hole = parent
        self._put(hole, rise, line, job, round_)

    @compiled
    def pop(self) -> cython.void:
        """Take the first entry off."""
        hole: cython.int = 0
        child: cython.int = 1
        self.count -= 1
        last: cython.int = self.count
        job: cython.int = self.job[last]
        round_: cython.int = self.round[last]
        while child < last:
            if child + 1 < last and self._is_before(
                self.round[child + 1], self.job[child + 1], child
            ):
                child += 1
            if not self._is_before(self.round[child], self.job[child], last):
                break
            self._shift(child, hole)
            hole = child
            child = 2 * hole + 1
        self._put(hole, self.rise[last], self.line[last], job, round_)
