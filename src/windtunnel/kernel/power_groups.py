"""`PowerGroups`: the running jobs by what they can choose from, in order of start."""

from __future__ import annotations

import cython
import numpy

from windtunnel.kernel.marks import compiled
from windtunnel.kernel.pairs import with_capacity
from windtunnel.kernel.power_choices import PowerChoices


@cython.final
@cython.cclass
class PowerGroups:
    """A list of running jobs for each table of options.

    Attributes:
        table_of: table of each running job; -1 = it does not run.
        stamp: rises with the order of start, by which the lists are.
        after: next job with the same table; -1 = none.
        before: the last one before.
        count: jobs of each table.
        head: first job of each table that has any.
        tail: last one.
        busy: tables that have jobs.
        num_busy: how many.
        num_choosing: running jobs with several options.
    """

    choices: PowerChoices
    num_busy: cython.int
    num_choosing: cython.int
    table_of: cython.int[::1]
    stamp: cython.longlong[::1]
    after: cython.int[::1]
    before: cython.int[::1]
    count: cython.int[::1]
    head: cython.int[::1]
    tail: cython.int[::1]
    busy: cython.int[::1]

    _capacity: cython.int
    _place: cython.int[::1]

    def __init__(self, choices: PowerChoices, jobs: int) -> None:
        self.choices = choices
        self.table_of = numpy.full(jobs, -1, dtype=numpy.int32)
        self.stamp = numpy.zeros(jobs, dtype=numpy.int64)
        self.after = numpy.zeros(jobs, dtype=numpy.int32)
        self.before = numpy.zeros(jobs, dtype=numpy.int32)
        self.num_busy = self.num_choosing = self._capacity = 0
        self.count = self.head = self.tail = numpy.zeros(0, dtype=numpy.int32)
        self.busy = self._place = numpy.zeros(0, dtype=numpy.int32)

    def _grow(self) -> None:
        capacity = self.choices.num_tables
        self.count = with_capacity(self.count, capacity)
        self.head = with_capacity(self.head, capacity)
        self.tail = with_capacity(self.tail, capacity)
        self.busy = with_capacity(self.busy, capacity)
        self._place = with_capacity(self._place, capacity)
        self._capacity = len(self.count)

    @compiled
    def enter(self, job: cython.int, table: cython.int, stamp: cython.longlong) -> cython.void:
        """Put a job that has started behind those with the same table that started before it."""
        if self.choices.num_tables > self._capacity:
            with cython.gil:
                self._grow()
        self.stamp[job] = stamp
        self.table_of[job] = table
        if self.count[table] == 0:
            self.head[table] = self.tail[table] = -1
            self._place[table] = self.num_busy
            self.busy[self.num_busy] = table
            self.num_busy += 1
        self._link(job, table)
        self.count[table] += 1
        self.num_choosing += self.choices.depth[table] > 1

    @compiled
    def _link(self, job: cython.int, table: cython.int) -> cython.void:
        """Put a job into the list of its table."""
        before: cython.int = self.tail[table]
        while before >= 0 and self.stamp[before] > self.stamp[job]:
            before = self.before[before]
        after: cython.int = self.after[before] if before >= 0 else self.head[table]
        self.before[job], self.after[job] = before, after
        if before >= 0:
            self.after[before] = job
        else:
            self.head[table] = job
        if after >= 0:
            self.before[after] = job
        else:
            self.tail[table] = job

    @compiled
    def leave(self, job: cython.int) -> cython.void:
        """Take out a job that has stopped."""
        table = self.table_of[job]
        before, after = self.before[job], self.after[job]
        self.table_of[job] = -1
        if before >= 0:
            self.after[before] = after
        else:
            self.head[table] = after
        if after >= 0:
            self.before[after] = before
        else:
            self.tail[table] = before
        self.count[table] -= 1
        if self.count[table] == 0:
            self.num_busy -= 1
            moved = self.busy[self.num_busy]
            self.busy[self._place[table]] = moved
            self._place[moved] = self._place[table]
        self.num_choosing -= self.choices.depth[table] > 1
