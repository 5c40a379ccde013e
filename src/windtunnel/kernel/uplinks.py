"""`Uplinks`: who crosses which uplink, and the rate that max-min fair sharing leaves each job.

The twin of `windtunnel.sim.uplinks`, bit for bit, which says what the model is. Rates are worked
out anew once an instant at which somebody came or left who crosses an uplink.
"""

from __future__ import annotations

from typing import Any

import cython
import numpy

from windtunnel.kernel.job_list import JobList
from windtunnel.kernel.marks import compiled
from windtunnel.kernel.pairs import Pairs, longer


@cython.final
@cython.cclass
class Uplinks:
    """The running jobs that cross uplinks.

    Args:
        uplinks: a `windtunnel.sim.uplinks.Uplinks`; None = there are none.
        jobs: of the run.

    Attributes:
        is_there: whether there are any.
        is_stale: somebody came or left since `fill`.
        rate: of each job.
        changed: the jobs whose rates `fill` changed.
    """

    is_there: cython.bint
    is_stale: cython.bint
    rate: cython.double[::1]
    changed: JobList

    _traffic: cython.double
    _serial: cython.longlong
    # Levels and nodes: the uplink of each.
    _level: cython.int[:, ::1]
    # Uplinks: what each carries, and has left while rates are worked out; jobs on it whose rates
    # are not known yet; when it was last seen.
    _capacity: cython.double[::1]
    _left: cython.double[::1]
    _jobs_on: cython.int[::1]
    _seen: cython.longlong[::1]
    # Jobs that cross uplinks, and where each is among them; first of each one's uplinks.
    _num_crossing: cython.longlong
    _crossing: cython.int[::1]
    _place: cython.int[::1]
    _first: cython.int[::1]
    _fresh: cython.double[::1]
    # What jobs cross: the uplink, and the next of the same job (of a spare one, the next spare).
    _crossings: cython.longlong
    _spare: cython.int
    _link: cython.int[::1]
    _next: cython.int[::1]

    def __init__(self, uplinks: Any, jobs: int) -> None:
        self.is_there = uplinks is not None
        count = jobs if self.is_there else 0
        levels = numpy.zeros((0, 0)) if uplinks is None else numpy.array(uplinks.levels)
        capacity = [] if uplinks is None else uplinks.capacity
        self._traffic = 0.0 if uplinks is None else uplinks.traffic
        self._level = levels.astype(numpy.int32)
        self._capacity = numpy.array(capacity, dtype=numpy.float64)
        self._left = numpy.zeros(len(capacity))
        self._jobs_on = numpy.zeros(len(capacity), dtype=numpy.int32)
        self._seen = numpy.zeros(len(capacity), dtype=numpy.int64)
        self.rate, self._fresh = numpy.ones(count), numpy.ones(count)
        self.changed = JobList()
        self._crossing = numpy.zeros(count, dtype=numpy.int32)
        self._place = numpy.zeros(count, dtype=numpy.int32)
        self._first = numpy.full(count, -1, dtype=numpy.int32)
        self._link = self._next = numpy.zeros(0, dtype=numpy.int32)
        self._serial = self._num_crossing = self._crossings = 0
        self._spare = -1
        self.is_stale = False

    def _grow(self) -> None:
        most = len(self._link) + len(self._link) // 2 + 256
        self._link = longer(self._link, most)
        self._next = longer(self._next, most)

    @compiled
    def enter(
        self, job: cython.int, pairs: Pairs, begin: cython.longlong, end: cython.longlong
    ) -> cython.void:
        """Note that a job has started on these pairs."""
        self.rate[job] = 1.0
        for level in range(self._level.shape[0]):
            self._serial += 1
            domains: cython.longlong = 0
            for at in range(begin, end):
                link = self._level[level, pairs.node[at]]
                if self._seen[link] != self._serial:
                    self._seen[link] = self._serial
                    domains += 1
            if domains < 2:
                continue
            self._serial += 1
            for at in range(begin, end):
                link = self._level[level, pairs.node[at]]
                if self._seen[link] != self._serial:
                    self._seen[link] = self._serial
                    self._cross(job, link)
        if self._first[job] >= 0:
            self._place[job] = cython.cast(cython.int, self._num_crossing)
            self._crossing[self._num_crossing] = job
            self._num_crossing += 1
            self.is_stale = True

    @compiled
    def _cross(self, job: cython.int, link: cython.int) -> cython.void:
        made = self._spare
        if made >= 0:
            self._spare = self._next[made]
        else:
            made = cython.cast(cython.int, self._crossings)
            if self._crossings == self._link.shape[0]:
                with cython.gil:
                    self._grow()
            self._crossings += 1
        self._link[made] = link
        self._next[made] = self._first[job]
        self._first[job] = made

    @compiled
    def leave(self, job: cython.int) -> cython.void:
        """Note that a job has left its nodes."""
        made = self._first[job]
        if made < 0:
            return
        while made >= 0:
            after = self._next[made]
            self._next[made] = self._spare
            self._spare = made
            made = after
        self._first[job] = -1
        self._num_crossing -= 1
        last = self._crossing[self._num_crossing]
        self._crossing[self._place[job]] = last
        self._place[last] = self._place[job]
        self.is_stale = True

    @compiled
    def fill(self) -> cython.void:
        """Work out all rates (progressive filling), and whose have changed."""
        left: cython.longlong = self._num_crossing
        for link in range(self._capacity.shape[0]):
            self._left[link] = self._capacity[link]
            self._jobs_on[link] = 0
        for at in range(left):
            self._fresh[self._crossing[at]] = -1.0
            made = self._first[self._crossing[at]]
            while made >= 0:
                self._jobs_on[self._link[made]] += 1
                made = self._next[made]
        while left > 0:
            tight: cython.longlong = -1
            least: cython.double = self._traffic
            for link in range(self._capacity.shape[0]):
                if self._jobs_on[link] > 0 and self._left[link] / self._jobs_on[link] < least:
                    tight = link
                    least = self._left[link] / self._jobs_on[link]
            if tight < 0:
                break
            for at in range(self._num_crossing):
                job = self._crossing[at]
                if self._fresh[job] < 0.0 and self._crosses(job, tight):
                    self._fresh[job] = least / self._traffic
                    self._take(job, least)
                    left -= 1
        self._note_changes()

    @compiled
    def _crosses(self, job: cython.int, link: cython.longlong) -> cython.bint:
        made = self._first[job]
        while made >= 0 and self._link[made] != link:
            made = self._next[made]
        return made >= 0

    @compiled
    def _take(self, job: cython.int, share: cython.double) -> cython.void:
        """Give a job its share of all the uplinks that it crosses."""
        made = self._first[job]
        while made >= 0:
            self._left[self._link[made]] -= share
            self._jobs_on[self._link[made]] -= 1
            made = self._next[made]

    @compiled
    def _note_changes(self) -> cython.void:
        self.is_stale = False
        self.changed.count = 0
        for at in range(self._num_crossing):
            job = self._crossing[at]
            rate = self._fresh[job] if self._fresh[job] >= 0.0 else 1.0
            if rate != self.rate[job]:
                self.rate[job] = rate
                self.changed.add(job)
