"""`PowerSteps`: upgrades of running jobs' power limits by gain a watt, while they fit.

The twin of ``_by_gain`` in `windtunnel.sim.power.levels`, which takes the upgrades of all jobs in
order of (gain, start). A *step* is one upgrade of the jobs that have one table of options. What is
left to give away only falls, and so of the jobs with one table the first in order of start have a
step, and the others have not: a step is a count, and the job at its edge. Steps lie in blocks by
gain; those that all jobs take, and those that nobody can, are passed by the block.
"""

from __future__ import annotations

import cython
import numpy

from windtunnel.kernel.job_list import JobList
from windtunnel.kernel.marks import compiled
from windtunnel.kernel.pairs import with_capacity
from windtunnel.kernel.power_choices import PowerChoices
from windtunnel.kernel.power_groups import PowerGroups
from windtunnel.kernel.sorting import sort_by_key

#: Steps of a block, or a few more: equal gains are not parted.
POWER_BLOCK = cython.declare(cython.int, 16)


@cython.final
@cython.cclass
class PowerSteps:
    """The steps that the running jobs have taken.

    Attributes:
        stage: steps that each job has taken: its place on its table's hull.
        moved: jobs whose stage has changed since somebody last emptied it.
        is_moved: whether a job is among these; reset by whoever looks at them.
    """

    choices: PowerChoices
    groups: PowerGroups
    stage: cython.int[::1]
    moved: JobList
    is_moved: cython.int[::1]

    # By table: whether its steps are in the list. By step: jobs that have it, the last of those.
    _capacity: cython.int
    _unlisted: cython.int
    _is_listed: cython.int[::1]
    _taken: cython.int[::1]
    _edge: cython.int[::1]
    _block: cython.int[::1]
    _wanted: cython.int[::1]
    # The steps by (gain, step), and their blocks: what all jobs would draw more by all steps, the
    # least that one step draws more, how many steps not all jobs have, how many somebody has.
    _size: cython.int
    _order: cython.int[::1]
    _blocks: cython.int
    _begin: cython.int[::1]
    _sum: cython.longlong[::1]
    _least: cython.longlong[::1]
    _lacking: cython.int[::1]
    _some: cython.int[::1]
    # Tables that tie: first and last step, the job whose turn it is, how many are still to come.
    _tie_first: cython.int[::1]
    _tie_last: cython.int[::1]
    _tie_job: cython.int[::1]
    _tie_alive: cython.int[::1]

    def __init__(self, choices: PowerChoices, groups: PowerGroups, jobs: int) -> None:
        ints = numpy.zeros(0, dtype=numpy.int32)
        self.choices = choices
        self.groups = groups
        self.stage = numpy.zeros(jobs, dtype=numpy.int32)
        self.moved = JobList()
        self.is_moved = numpy.zeros(jobs, dtype=numpy.int32)
        self._capacity = self._unlisted = self._size = self._blocks = 0
        self._is_listed = self._taken = self._edge = self._block = self._wanted = ints
        self._order = self._begin = self._lacking = self._some = ints
        self._tie_first = self._tie_last = self._tie_job = self._tie_alive = ints
        self._sum = self._least = numpy.zeros(0, dtype=numpy.int64)

    def _grow(self) -> None:
        self._is_listed = with_capacity(self._is_listed, self.choices.num_tables)
        self._capacity = len(self._is_listed)

    def _provide(self) -> None:
        """Make the lists long enough for all steps that there are."""
        capacity = len(self.choices.more) + 1
        self._taken = with_capacity(self._taken, capacity)
        self._edge = with_capacity(self._edge, capacity)
        self._block = with_capacity(self._block, capacity)
        self._wanted = with_capacity(self._wanted, capacity)
        self._order = with_capacity(self._order, capacity)
        self._begin = with_capacity(self._begin, capacity)
        self._sum = with_capacity(self._sum, capacity)
        self._least = with_capacity(self._least, capacity)
        self._lacking = with_capacity(self._lacking, capacity)
        self._some = with_capacity(self._some, capacity)
        self._tie_first = with_capacity(self._tie_first, capacity)
        self._tie_last = with_capacity(self._tie_last, capacity)
        self._tie_job = with_capacity(self._tie_job, capacity)
        self._tie_alive = with_capacity(self._tie_alive, capacity)

    @compiled
    def make_room(self, table: cython.int, stamp: cython.longlong) -> cython.void:
        """Let nobody have steps of a table, if a job is to enter it before others.

        Only the first of its jobs may have a step.
        """
        if table >= self._capacity or not self._is_listed[table] or self.groups.count[table] == 0:
            return
        if self.groups.stamp[self.groups.tail[table]] < stamp:
            return
        first = table * self.choices.width
        for step in range(first + 1, first + self.choices.hull_size[table]):
            self._bring(step, 0)

    @compiled
    def enter(self, job: cython.int) -> cython.void:
        """Note that a job has started, after its group has."""
        table = self.groups.table_of[job]
        count = self.groups.count[table]
        first = table * self.choices.width
        if self.choices.num_tables > self._capacity:
            with cython.gil:
                self._grow()
        self.stage[job] = 0
        if self.choices.hull_size[table] == 1:
            return
        if not self._is_listed[table]:
            self._unlisted += count == 1
            return
        for step in range(first + 1, first + self.choices.hull_size[table]):
            block = self._block[step]
            self._sum[block] += self.choices.more[step]
            self._lacking[block] += self._taken[step] == count - 1

    @compiled
    def leave(self, job: cython.int) -> cython.void:
        """Note that a job stops, before its group does."""
        table = self.groups.table_of[job]
        count = self.groups.count[table]
        first = table * self.choices.width
        if self.choices.hull_size[table] == 1:
            return
        if not self._is_listed[table]:
            self._unlisted -= count == 1
            return
        for step in range(first + 1, first + self.choices.hull_size[table]):
            block = self._block[step]
            self._sum[block] -= self.choices.more[step]
            if self.stage[job] >= step - first:
                self._taken[step] -= 1
                self._some[block] -= self._taken[step] == 0
                if self._edge[step] == job:
                    self._edge[step] = self.groups.before[job]
            else:
                self._lacking[block] -= self._taken[step] == count - 1

    @compiled
    def run(self, left: cython.longlong) -> cython.void:
        """Give every running job the steps that it gets.

        Args:
            left: nanowatts that all may draw together beyond the least that they can.
        """
        for_all: cython.bint = True
        if self._unlisted > 0:
            self._list()
        for block in range(self._blocks):
            begin, end = self._begin[block], self._begin[block + 1]
            if for_all and self._sum[block] <= left:
                left -= self._sum[block]
                if self._lacking[block] > 0:
                    for at in range(begin, end):
                        step = self._order[at]
                        self._bring(step, self.groups.count[self._table_of(step)])
                continue
            for_all = False
            if self._least[block] <= left:
                left = self._walk(begin, end, left)
            elif self._some[block] > 0:
                for at in range(begin, end):
                    self._bring(self._order[at], 0)

    @compiled
    def _walk(self, begin: cython.int, end: cython.int, left: cython.longlong) -> cython.longlong:
        """Give away the steps of a block one by one; return what is left."""
        at = begin
        while at < end:
            step = self._order[at]
            next_at = at + 1
            while (
                next_at < end and self.choices.gain[self._order[next_at]] == self.choices.gain[step]
            ):
                next_at += 1
            if next_at > at + 1:
                left = self._tie(at, next_at, left)
            else:
                taken: cython.longlong = self._alive(step)
                more = self.choices.more[step]
                if more * taken > left:
                    taken = left // more if left > 0 else 0
                left -= taken * more
                self._bring(step, cython.cast(cython.int, taken))
            at = next_at
        return left

    @compiled
    def _table_of(self, step: cython.int) -> cython.int:
        return step // self.choices.width

    @compiled
    def _alive(self, step: cython.int) -> cython.int:
        """Return how many jobs have taken the step before, and so may take this one."""
        table = self._table_of(step)
        if step - 1 == table * self.choices.width:
            return self.groups.count[table]
        return self._taken[step - 1]

    @compiled
    def _bring(self, step: cython.int, count: cython.int) -> cython.void:
        """Let the first so many jobs of a table have a step."""
        block = self._block[step]
        taken = self._taken[step]
        if taken == count:
            return
        table = self._table_of(step)
        every = self.groups.count[table]
        if taken == every:
            self._lacking[block] += 1
        if count == every:
            self._lacking[block] -= 1
        if taken == 0:
            self._some[block] += 1
        if count == 0:
            self._some[block] -= 1
        job = self._edge[step]
        while taken < count:
            job = self.groups.after[job] if taken > 0 else self.groups.head[table]
            taken += 1
            self._move(job, 1)
        while taken > count:
            self._move(job, -1)
            job = self.groups.before[job]
            taken -= 1
        self._edge[step] = job
        self._taken[step] = count

    @compiled
    def _move(self, job: cython.int, steps: cython.int) -> cython.void:
        self.stage[job] += steps
        if not self.is_moved[job]:
            self.is_moved[job] = 1
            self.moved.add(job)

    @compiled
    def _tie(self, begin: cython.int, end: cython.int, left: cython.longlong) -> cython.longlong:
        """Give away steps of equal gain, to job by job in order of start; return what is left."""
        ties: cython.int = 0
        total: cython.longlong = 0
        for at in range(begin, end):
            step = self._order[at]
            table = self._table_of(step)
            if at == begin or self._table_of(self._order[at - 1]) != table:
                self._tie_first[ties] = step
                self._tie_alive[ties] = self._alive(step)
                self._tie_job[ties] = self.groups.head[table]
                ties += 1
            self._tie_last[ties - 1] = step
            self._wanted[step] = self._tie_alive[ties - 1]
            total += self.choices.more[step] * self._wanted[step]
        if total > left:
            for at in range(begin, end):
                self._wanted[self._order[at]] = 0
            left = self._turn_by_turn(ties, left)
        else:
            left -= total
        for at in range(begin, end):
            self._bring(self._order[at], self._wanted[self._order[at]])
        return left

    @compiled
    def _turn_by_turn(self, ties: cython.int, left: cython.longlong) -> cython.longlong:
        while True:
            best = -1
            at = 0
            while at < ties:
                if self._tie_alive[at] == 0 or self.choices.more[self._tie_first[at]] > left:
                    ties -= 1
                    self._tie_first[at] = self._tie_first[ties]
                    self._tie_last[at] = self._tie_last[ties]
                    self._tie_alive[at] = self._tie_alive[ties]
                    self._tie_job[at] = self._tie_job[ties]
                    continue
                if (
                    best < 0
                    or self.groups.stamp[self._tie_job[at]] < self.groups.stamp[self._tie_job[best]]
                ):
                    best = at
                at += 1
            if best < 0:
                return left
            step = self._tie_first[best]
            while step <= self._tie_last[best] and self.choices.more[step] <= left:
                self._wanted[step] += 1
                left -= self.choices.more[step]
                step += 1
            self._tie_job[best] = self.groups.after[self._tie_job[best]]
            self._tie_alive[best] -= 1

    @compiled
    def _list(self) -> cython.void:
        """Take the steps of tables that have jobs into the list."""
        with cython.gil:
            self._provide()
        self._forget()
        for at in range(self.groups.num_busy):
            table = self.groups.busy[at]
            if self._is_listed[table]:
                continue
            self._is_listed[table] = 1
            first = table * self.choices.width
            for step in range(first + 1, first + self.choices.hull_size[table]):
                self._taken[step] = 0
                self._order[self._size] = step
                self._size += 1
        self._unlisted = 0
        sort_by_key(self._order, 0, self._size, self.choices.gain)
        self._cut()

    @compiled
    def _forget(self) -> cython.void:
        """Take the steps of tables without jobs out of the list, once they are too many."""
        kept: cython.int = 0
        for at in range(self._size):
            kept += self.groups.count[self._table_of(self._order[at])] > 0
        if self._size < 2 * kept + 256:
            return
        kept = 0
        for at in range(self._size):
            step = self._order[at]
            table = self._table_of(step)
            if self.groups.count[table] > 0:
                self._order[kept] = step
                kept += 1
            else:
                self._is_listed[table] = 0
        self._size = kept

    @compiled
    def _cut(self) -> cython.void:
        """Cut the list into blocks."""
        block: cython.int = -1
        for at in range(self._size):
            step = self._order[at]
            if block < 0 or (
                at - self._begin[block] >= POWER_BLOCK
                and self.choices.gain[step] != self.choices.gain[self._order[at - 1]]
            ):
                block += 1
                self._begin[block] = at
                self._sum[block] = 0
                self._least[block] = self.choices.more[step]
                self._lacking[block] = 0
                self._some[block] = 0
            count = self.groups.count[self._table_of(step)]
            self._block[step] = block
            self._sum[block] += self.choices.more[step] * count
            if self.choices.more[step] < self._least[block]:
                self._least[block] = self.choices.more[step]
            self._lacking[block] += self._taken[step] != count
            self._some[block] += self._taken[step] > 0
        self._blocks = block + 1
        self._begin[self._blocks] = self._size
