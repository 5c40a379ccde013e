"""`PowerLevels`: which power limit for which running job, so that they draw what they may together.

The twin of `windtunnel.sim.power.levels`, bit for bit, which chooses for all running jobs anew.
Here a choice costs what it changes. *Uniform*: the sum of all draws is kept for every limit there
is. *Optimised*: by steps (`power_steps`), or for a few jobs exactly (`power_few`).
"""

from __future__ import annotations

from typing import Any

import cython
import numpy

from windtunnel.kernel.job_list import JobList
from windtunnel.kernel.marks import compiled
from windtunnel.kernel.pairs import Pairs
from windtunnel.kernel.power_choices import POWER_NONE, POWER_UNIFORM, PowerChoices
from windtunnel.kernel.power_few import PowerFew
from windtunnel.kernel.power_groups import PowerGroups
from windtunnel.kernel.power_steps import PowerSteps


@cython.final
@cython.cclass
class PowerLevels:
    """The power limits of running jobs.

    Jobs that share their GPUs are one *entry*, which is known by the one that started first: they
    have one limit, from the options of the one that draws more at least, and that is their floor.

    Args:
        tables: makes tables of options (`windtunnel.sim.power.tables.Tables`).
        exact_jobs: up to so many jobs with a choice, limits are exactly optimal.

    Attributes:
        choices: what jobs can choose from, and the least that they draw.
        floor: the least that each running job can be brought to add to the draw, nanowatts; of an
            entry of two jobs the first has it.
        floor_sum: of all running jobs.
        level: which of its options each running job has, highest limit first; -1 = not chosen yet.
        changed: jobs whose levels the last `choose` changed.
        mate: the other one on each job's GPUs, -1 = none; `State` keeps it, where jobs share.
    """

    choices: PowerChoices
    floor: cython.longlong[::1]
    floor_sum = cython.declare(cython.longlong, visibility="readonly")
    level: cython.int[::1]
    changed: JobList
    mate: cython.int[::1]

    #: Of each running job: its floor and its table of options if it were alone, and its place in
    #: the order of start.
    _own_floor: cython.longlong[::1]
    _own_table: cython.int[::1]
    _stamp: cython.longlong[::1]
    _starts: cython.longlong
    _groups: PowerGroups
    _steps: PowerSteps
    _few: PowerFew
    _most_few: cython.int
    _was_few: cython.bint
    #: Something has changed since the last choice, which was for this budget.
    _is_stale: cython.bint
    _budget: cython.longlong
    #: What jobs draw at the option that each can always be put to: `floor_sum` but for roundings.
    _least_sum: cython.longlong
    #: The limit of all, and what all draw at each limit.
    _limit: cython.int
    _at_limit: cython.longlong[::1]
    #: Jobs that started since the last choice; and whether a job is among these.
    _fresh: JobList
    _is_fresh: cython.int[::1]

    def __init__(self, tables: Any, *, exact_jobs: int = 6) -> None:
        jobs = len(tables.least)
        self.choices = PowerChoices(tables)
        self.floor = numpy.zeros(jobs, dtype=numpy.int64)
        self.level = numpy.full(jobs, -1, dtype=numpy.int32)
        self.changed = JobList()
        self.mate = numpy.full(jobs, -1, dtype=numpy.int32)
        self._own_floor = numpy.zeros(jobs, dtype=numpy.int64)
        self._own_table = numpy.full(jobs, -1, dtype=numpy.int32)
        self._stamp = numpy.zeros(jobs, dtype=numpy.int64)
        self._starts = 0
        self._groups = PowerGroups(self.choices, jobs)
        self._steps = PowerSteps(self.choices, self._groups, jobs)
        self._few = PowerFew(self.choices, self._groups, exact_jobs)
        self._most_few = exact_jobs
        self._was_few = False
        self._is_stale = True
        self.floor_sum = self._budget = self._least_sum = 0
        self._limit = self.choices.num_limits
        self._at_limit = numpy.zeros(self.choices.num_limits, dtype=numpy.int64)
        self._fresh = JobList()
        self._is_fresh = numpy.zeros(jobs, dtype=numpy.int32)

    def check(self) -> None:
        """Raise what making a table has raised."""
        self.choices.raised.raise_kept()

    @compiled
    def enter(
        self, job: cython.int, pairs: Pairs, begin: cython.longlong, end: cython.longlong
    ) -> cython.void:
        """Note that a job has started on these pairs, on which its mate runs, if it has one."""
        mate: cython.int = self.mate[job]
        self._own_floor[job] = self.choices.floor_of(job, pairs, begin, end)
        self._starts += 1
        self._stamp[job] = self._starts
        if self.choices.limits != POWER_NONE:
            self._own_table[job] = self.choices.table_of(job, pairs, begin, end)
        if mate < 0:
            self._add_entry(job, job)
            return
        self._drop_entry(mate)
        self._add_entry(mate, job if self._own_floor[job] > self._own_floor[mate] else mate)

    @compiled
    def leave(self, job: cython.int) -> cython.void:
        """Note that a running job leaves its nodes, and its mate, if it has one."""
        mate: cython.int = self.mate[job]
        self._drop_entry(mate if mate >= 0 and self._stamp[mate] < self._stamp[job] else job)
        self.level[job] = -1
        if mate >= 0:
            self._add_entry(mate, mate)

    @compiled
    def spared(self, job: cython.int) -> cython.longlong:
        """Return what all draw less at the least once a running job has left, nanowatts."""
        mate: cython.int = self.mate[job]
        if mate < 0:
            return self.floor[job]
        return self.floor[job] + self.floor[mate] - self._own_floor[mate]

    @compiled
    def floor_alone(self, job: cython.int) -> cython.longlong:
        """Return the least that a running job would add to the draw alone on its GPUs."""
        return self._own_floor[job]

    @compiled
    def _add_entry(self, job: cython.int, leads: cython.int) -> cython.void:
        """Let an entry draw at least, and choose from, what one of its jobs does."""
        table: cython.int = self._own_table[leads]
        self.floor[job] = self._own_floor[leads]
        self.floor_sum += self.floor[job]
        if self.choices.limits == POWER_NONE:
            return
        self._least_sum += self.choices.least_of(table)
        self._is_stale = True
        if self.choices.limits == POWER_UNIFORM:
            self._add(table, 1)
        else:
            self._steps.make_room(table, self._stamp[job])
        self._groups.enter(job, table, self._stamp[job])
        if self.choices.limits != POWER_UNIFORM:
            self._steps.enter(job)
        self.level[job] = -1
        if not self._is_fresh[job]:
            self._is_fresh[job] = 1
            self._fresh.add(job)

    @compiled
    def _drop_entry(self, job: cython.int) -> cython.void:
        """Let an entry draw nothing, and choose no more."""
        self.floor_sum -= self.floor[job]
        self.floor[job] = 0
        if self.choices.limits == POWER_NONE:
            return
        table = self._groups.table_of[job]
        self._least_sum -= self.choices.least_of(table)
        self._is_stale = True
        if self.choices.limits == POWER_UNIFORM:
            self._add(table, -1)
        else:
            self._steps.leave(job)
        self._groups.leave(job)

    @compiled
    def slow(self, job: cython.int) -> cython.double:
        """Return the time that a running job takes at its limit over that at the highest."""
        if self.choices.limits == POWER_NONE:
            return 1.0
        return self.choices.slow[self._own_table[job] * self.choices.width + self.level[job]]

    @compiled
    def choose(self, budget: cython.longlong) -> cython.int:
        """Choose limits anew if anything changed; return how many jobs' levels did.

        Args:
            budget: nanowatts that all jobs may add to the draw together.
        """
        self.changed.count = 0
        if self.choices.limits == POWER_NONE or not (self._is_stale or budget != self._budget):
            return 0
        self._is_stale = False
        self._budget = budget
        if self.choices.limits == POWER_UNIFORM:
            self._choose_uniform(budget)
        elif self._groups.num_choosing <= self._most_few:
            self._choose_few(budget)
        else:
            self._choose_many(budget)
        for at in range(self._fresh.count):
            job = self._fresh.job[at]
            self._is_fresh[job] = 0
            table = self._groups.table_of[job]
            if table < 0 or self.level[job] >= 0:
                continue
            if self.choices.limits == POWER_UNIFORM:
                self._put(job, self._option_at(table, self._limit))
            elif self.choices.depth[table] == 1:
                self._put(job, 0)
            else:
                self._put(job, self._option_of(job))
        self._fresh.count = 0
        return self.changed.count

    @compiled
    def _put(self, entry: cython.int, level: cython.int) -> cython.void:
        """Let the jobs of an entry have a level; one with fewer limits has its last."""
        self._put_job(entry, level)
        if self.mate[entry] >= 0:
            self._put_job(self.mate[entry], level)

    @compiled
    def _put_job(self, job: cython.int, level: cython.int) -> cython.void:
        last: cython.int = self.choices.depth[self._own_table[job]] - 1
        if level > last:
            level = last
        if self.level[job] != level:
            self.level[job] = level
            self.changed.add(job)

    @compiled
    def _option_at(self, table: cython.int, limit: cython.int) -> cython.int:
        return self.choices.at[table * (self.choices.num_limits + 1) + limit]

    @compiled
    def _option_of(self, job: cython.int) -> cython.int:
        """Return the option that a job's steps have brought it to."""
        table = self._groups.table_of[job]
        return self.choices.hull_option[table * self.choices.width + self._steps.stage[job]]

    @compiled
    def _add(self, table: cython.int, jobs: cython.int) -> cython.void:
        """Add a job to what all draw at each limit, or take it away."""
        for limit in range(self.choices.num_limits):
            option = self._option_at(table, limit)
            self._at_limit[limit] += jobs * self.choices.draw[table * self.choices.width + option]

    @compiled
    def _choose_uniform(self, budget: cython.longlong) -> cython.void:
        limit: cython.int = 0
        while limit < self.choices.num_limits and self._at_limit[limit] > budget:
            limit += 1
        if limit == self._limit:
            return
        for at in range(self._groups.num_busy):
            table = self._groups.busy[at]
            option = self._option_at(table, limit)
            if option != self._option_at(table, self._limit):
                job = self._groups.head[table]
                while job >= 0:
                    self._put(job, option)
                    job = self._groups.after[job]
        self._limit = limit

    @compiled
    def _choose_few(self, budget: cython.longlong) -> cython.void:
        self._was_few = True
        fixed: cython.longlong = self._least_sum
        self._few.gather()
        for at in range(self._few.count):
            fixed -= self.choices.least_of(self._groups.table_of[self._few.job[at]])
        self._few.run(budget - fixed)
        for at in range(self._few.count):
            self._put(self._few.job[at], self._few.option[at])

    @compiled
    def _choose_many(self, budget: cython.longlong) -> cython.void:
        self._steps.run(budget - self._least_sum)
        for at in range(self._steps.moved.count):
            job = self._steps.moved.job[at]
            self._steps.is_moved[job] = 0
            if self._groups.table_of[job] >= 0:
                self._put(job, self._option_of(job))
        self._steps.moved.count = 0
        if self._was_few:
            self._was_few = False
            for at in range(self._groups.num_busy):
                table = self._groups.busy[at]
                job = self._groups.head[table] if self.choices.depth[table] > 1 else -1
                while job >= 0:
                    self._put(job, self._option_of(job))
                    job = self._groups.after[job]

    # From Python, for tests and to look into a run.

    def put(self, job: int, pairs: Pairs, beside: int = -1) -> int:
        """`enter` a job, beside another where one is named; return its floor."""
        if beside >= 0:
            self.mate[job], self.mate[beside] = beside, job
        self.enter(job, pairs, 0, pairs.count)
        return int(self.floor[job])

    def drop(self, job: int) -> None:
        """`leave`."""
        self.leave(job)
        if self.mate[job] >= 0:
            self.mate[self.mate[job]] = -1
        self.mate[job] = -1

    def chosen(self, budget: int) -> list[tuple[int, int, float]]:
        """`choose`; return (job, level, slow) of the jobs whose level has changed, ascending."""
        most = 1 << 62
        count = self.choose(max(min(budget, most), -most))
        jobs = sorted(self.changed.job[at] for at in range(count))
        return [(job, self.level[job], self.slow(job)) for job in jobs]

    def floor_of_waiting(self, job: int) -> int:
        """Return the least that a waiting job could add on any of the cluster's GPU types."""
        return int(self.choices.least[job])
