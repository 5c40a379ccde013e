"""`StayLog`: who ran where from when to when, and at which power limits."""

from __future__ import annotations

import cython
import numpy

from windtunnel.kernel.endless import UNKNOWN
from windtunnel.kernel.marks import compiled
from windtunnel.kernel.pairs import Pairs, longer


@cython.final
@cython.cclass
class StayLog:
    """The stays of a run, in order of start, and the power limits of jobs within them.

    Args:
        jobs: of the run; most have one stay.

    Attributes:
        count: stays so far.
        job: whose each is.
        start: when it began, s.
        end: when it ended, s; `UNKNOWN` while it goes on.
        first: where its pairs begin among ``pairs``; those of the last end where these do.
        pairs: what each stay holds.
        num_levels: power limits that running jobs were given so far.
        level_stay: in which stay each was given.
        level_time: when, s.
        level: which of the job's options.
    """

    count: cython.int
    job: cython.int[::1]
    start: cython.double[::1]
    end: cython.double[::1]
    first: cython.longlong[::1]
    pairs: Pairs
    num_levels: cython.longlong
    level_stay: cython.int[::1]
    level_time: cython.double[::1]
    level: cython.int[::1]
    _capacity: cython.int
    _level_capacity: cython.longlong

    def __init__(self, jobs: int) -> None:
        most = max(jobs, 1)
        self.count = 0
        self._capacity = most + 1
        self.job = numpy.empty(self._capacity, dtype=numpy.int32)
        self.start = numpy.empty(self._capacity)
        self.end = numpy.empty(self._capacity)
        self.first = numpy.zeros(self._capacity, dtype=numpy.int64)
        self.pairs = Pairs(most)  # memory that is not written to is not taken
        self.num_levels = self._level_capacity = 0
        self.level_stay = self.level = numpy.zeros(0, dtype=numpy.int32)
        self.level_time = numpy.zeros(0)

    def _grow(self) -> None:
        capacity = self._capacity + self._capacity // 2 + 64
        self.job = longer(self.job, capacity)
        self.start = longer(self.start, capacity)
        self.end = longer(self.end, capacity)
        self.first = longer(self.first, capacity)
        self._capacity = capacity

    def _grow_levels(self) -> None:
        capacity = 2 * self._level_capacity + 64
        self.level_stay = longer(self.level_stay, capacity)
        self.level_time = longer(self.level_time, capacity)
        self.level = longer(self.level, capacity)
        self._level_capacity = capacity

    @compiled
    def open(self, job: cython.int, now: cython.double, first: cython.longlong) -> cython.int:
        """Let a job's stay begin, whose pairs are those from ``first`` on; return its number."""
        stay: cython.int = self.count
        if stay + 1 >= self._capacity:
            with cython.gil:
                self._grow()
        self.job[stay] = job
        self.start[stay] = now
        self.end[stay] = UNKNOWN
        self.first[stay] = first
        self.first[stay + 1] = self.pairs.count
        self.count = stay + 1
        return stay

    @compiled
    def last(self, stay: cython.int) -> cython.longlong:
        """Return where the pairs of a stay end."""
        return self.first[stay + 1]

    @compiled
    def note_level(self, stay: cython.int, now: cython.double, level: cython.int) -> cython.void:
        """Note that the job of a stay has another power limit from now on."""
        if self.num_levels == self._level_capacity:
            with cython.gil:
                self._grow_levels()
        self.level_stay[self.num_levels] = stay
        self.level_time[self.num_levels] = now
        self.level[self.num_levels] = level
        self.num_levels += 1
