"""`PowerFew`: the best power limits of a few jobs, exactly.

The twin of ``_exact`` in `windtunnel.sim.power.levels`: job by job, every sum of draws and of
slow-downs is kept that no other beats in both. The sums that a job's options make of those before
are sorted by draw, each option's by itself, so they are merged.
"""

from __future__ import annotations

import cython
import numpy

from windtunnel.kernel.marks import compiled
from windtunnel.kernel.pairs import with_capacity
from windtunnel.kernel.power_choices import PowerChoices
from windtunnel.kernel.power_groups import PowerGroups


@cython.final
@cython.cclass
class PowerFew:
    """The choice for a few jobs.

    Args:
        most: how many jobs there may be.

    Attributes:
        count: for how many jobs was chosen.
        job: these, in order of start.
        option: the option of each.
    """

    choices: PowerChoices
    groups: PowerGroups
    count: cython.int
    job: cython.int[::1]
    option: cython.int[::1]

    _rest: cython.longlong[::1]
    _layer: cython.longlong[::1]
    _next: cython.longlong[::1]
    _draw: cython.longlong[::1]
    _slow: cython.double[::1]
    _parent: cython.longlong[::1]
    _how: cython.int[::1]

    def __init__(self, choices: PowerChoices, groups: PowerGroups, most: int) -> None:
        self.choices = choices
        self.groups = groups
        self.count = 0
        self.job = numpy.zeros(most, dtype=numpy.int32)
        self.option = numpy.zeros(most, dtype=numpy.int32)
        self._rest = numpy.zeros(most + 1, dtype=numpy.int64)
        self._layer = numpy.zeros(most + 2, dtype=numpy.int64)
        self._next = numpy.zeros(choices.width + 1, dtype=numpy.int64)
        self._draw = self._parent = numpy.zeros(0, dtype=numpy.int64)
        self._slow = numpy.zeros(0)
        self._how = numpy.zeros(0, dtype=numpy.int32)
        self._grow(1)

    def _grow(self, capacity: int) -> None:
        self._draw = with_capacity(self._draw, capacity)
        self._slow = with_capacity(self._slow, capacity)
        self._parent = with_capacity(self._parent, capacity)
        self._how = with_capacity(self._how, capacity)

    @compiled
    def gather(self) -> cython.void:
        """Find the running jobs that have a choice: these are chosen for."""
        self.count = 0
        for at in range(self.groups.num_busy):
            table = self.groups.busy[at]
            job = self.groups.head[table] if self.choices.depth[table] > 1 else -1
            while job >= 0:
                self._insert(job)
                job = self.groups.after[job]

    @compiled
    def _insert(self, job: cython.int) -> cython.void:
        """Put a job among those that are chosen for, at its place in order of start."""
        at: cython.int = self.count
        while at > 0 and self.groups.stamp[self.job[at - 1]] > self.groups.stamp[job]:
            self.job[at] = self.job[at - 1]
            at -= 1
        self.job[at] = job
        self.count += 1

    @compiled
    def run(self, budget: cython.longlong) -> cython.void:
        """Choose for those that `gather` has found.

        Args:
            budget: nanowatts that they may add together.
        """
        at: cython.int = self.count
        self._rest[at] = 0
        while at > 0:
            at -= 1
            self._rest[at] = self._rest[at + 1] + self.choices.draw[self._place_of(at, 0)]
        self._draw[0] = 0
        self._slow[0] = 0.0
        self._layer[0] = 0
        self._layer[1] = 1
        for at in range(self.count):
            self._spread(at, budget)
        first = self._layer[self.count]
        state = self._layer[self.count + 1] - 1
        while state > first and self._draw[state] > budget:
            state -= 1
        at = self.count
        while at > 0:
            at -= 1
            table = self.groups.table_of[self.job[at]]
            self.option[at] = self.choices.front_option[
                table * self.choices.width + self._how[state]
            ]
            state = self._parent[state]

    @compiled
    def _place_of(self, at: cython.int, way: cython.int) -> cython.int:
        """Return where an option on the front of one of the jobs stands among all options."""
        first = self.groups.table_of[self.job[at]] * self.choices.width
        return first + self.choices.front_option[first + way]

    @compiled
    def _spread(self, at: cython.int, budget: cython.longlong) -> cython.void:
        """Make the sums with one more job."""
        begin, end = self._layer[at], self._layer[at + 1]
        ways = self.choices.front_size[self.groups.table_of[self.job[at]]]
        write: cython.longlong = end
        if end + (end - begin) * ways > self._draw.shape[0]:
            with cython.gil:
                self._grow(end + (end - begin) * ways)
        for way in range(ways):
            self._next[way] = begin
        while True:
            best = -1
            least_drawn = 0
            least_slow = 0.0
            for way in range(ways):
                state = self._next[way]
                if state >= end:
                    continue
                place = self._place_of(at, way)
                drawn = self._draw[state] + self.choices.draw[place]
                if way > 0 and drawn + self._rest[at + 1] > budget:
                    self._next[way] = end
                    continue
                slow = self._slow[state] + self.choices.slow[place]
                if (
                    best < 0
                    or drawn < least_drawn
                    or (drawn == least_drawn and slow < least_slow)
                    or (drawn == least_drawn and slow == least_slow and state < self._next[best])
                ):
                    best = way
                    least_drawn = drawn
                    least_slow = slow
            if best < 0:
                break
            if write == end or least_slow < self._slow[write - 1]:
                self._draw[write] = least_drawn
                self._slow[write] = least_slow
                self._parent[write] = self._next[best]
                self._how[write] = best
                write += 1
            self._next[best] += 1
        self._layer[at + 2] = write
