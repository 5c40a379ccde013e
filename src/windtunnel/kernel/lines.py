"""`Lines`: the waiting jobs, one line for each class of jobs that can stand for each other.

What the first job of a line is refused no other of it gets, until there is more capacity. A line is
a heap where rules look at its first job only, and a sorted list where they go on along it. Another
heap has the lines by their first jobs: the whole queue in order is a merge of the lines.
"""

from __future__ import annotations

import cython
import numpy

from windtunnel.kernel.marks import compiled
from windtunnel.kernel.pairs import pairs_zeros
from windtunnel.kernel.sorting import sort_by_key


@cython.final
@cython.cclass
class Lines:
    """Waiting jobs by line, in order of (key, second key if there is one, job number).

    Attributes:
        count: jobs that wait.
        is_sorted: lines are sorted lists; else heaps.
        line_of: line of each job.
        key: of each job, lower first.
        second: the second key of each job, where there is one.
        begin: where each line begins in ``slab``; its first job stands there.
        length: jobs in each line.
        slab: the jobs, line by line, with free cells between.
        tops: lines that are open, a heap by (key, number) of their first jobs.
        num_tops: how many.
        at: place of each line in ``tops``; -1 = empty, or closed.
        closed: lines whose first job was refused, and that have jobs.
        num_closed: how many.
        is_closed: whether a line is.
    """

    count: cython.longlong
    is_sorted: cython.bint
    num_lines: cython.int
    line_of: cython.int[::1]
    key: cython.double[::1]
    has_second: cython.bint
    second: cython.double[::1]
    begin: cython.longlong[::1]
    length: cython.int[::1]
    first_cell: cython.longlong[::1]
    cells: cython.longlong[::1]
    used: cython.longlong
    capacity: cython.longlong
    slab: cython.int[::1]
    tops: cython.int[::1]
    num_tops: cython.int
    at: cython.int[::1]
    closed: cython.int[::1]
    num_closed: cython.int
    is_closed: cython.char[::1]

    def __init__(
        self,
        num_lines: int,
        line_of: numpy.ndarray,
        key: numpy.ndarray,
        *,
        is_sorted: bool,
        second: numpy.ndarray | None = None,
    ) -> None:
        self.count = 0
        self.is_sorted = is_sorted
        self.num_lines = num_lines
        self.line_of = line_of
        self.key = key
        self.has_second = second is not None
        self.second = numpy.zeros(1) if second is None else second
        lines = max(num_lines, 1)
        self.begin = numpy.zeros(lines, dtype=numpy.int64)
        self.length = numpy.zeros(lines, dtype=numpy.int32)
        self.first_cell = numpy.zeros(lines, dtype=numpy.int64)
        self.cells = numpy.zeros(lines, dtype=numpy.int64)
        self.used = 0
        self.capacity = 1024
        self.slab = numpy.empty(self.capacity, dtype=numpy.int32)
        self.tops = numpy.empty(lines, dtype=numpy.int32)
        self.num_tops = 0
        self.at = numpy.full(lines, -1, dtype=numpy.int32)
        self.closed = numpy.empty(lines, dtype=numpy.int32)
        self.num_closed = 0
        self.is_closed = numpy.zeros(lines, dtype=numpy.int8)

    @compiled
    def before(self, one: cython.int, other: cython.int) -> cython.bint:
        """Return whether a job comes before another."""
        if self.key[one] != self.key[other]:
            return self.key[one] < self.key[other]
        if self.has_second and self.second[one] != self.second[other]:
            return self.second[one] < self.second[other]
        return one < other

    @compiled
    def head(self, line: cython.int) -> cython.int:
        """Return the first job of a line that has any."""
        return self.slab[self.begin[line]]

    # The slab.

    def _renew(self, capacity: int) -> None:
        """Begin an empty slab."""
        self.slab = pairs_zeros(capacity, numpy.int32)
        self.capacity = capacity
        self.used = 0

    @compiled
    def _repack(self, wanted: cython.longlong) -> cython.void:
        """Lay the lines out anew, each with free cells, in a slab with so many cells more."""
        at: cython.longlong
        length: cython.longlong
        needed: cython.longlong = wanted
        old: cython.int[::1] = self.slab
        for line in range(self.num_lines):
            needed += self._cells_for(self.length[line])
        with cython.gil:
            self._renew(max(self.capacity, needed + needed // 2))
        for line in range(self.num_lines):
            length = self.length[line]
            begin = self.begin[line]
            for at in range(length):
                self.slab[self.used + at] = old[begin + at]
            self.begin[line] = self.first_cell[line] = self.used
            self.cells[line] = self._cells_for(length)
            self.used += self.cells[line]

    @compiled
    def _cells_for(self, length: cython.longlong) -> cython.longlong:
        """Return how many cells a line of so many jobs is given."""
        return length + length // 4 + 4 if length > 0 else 0

    @compiled
    def _provide_cell(self, line: cython.int) -> cython.bint:
        """Let a line have a free cell behind its last job; return False if there is no memory."""
        first: cython.longlong = self.first_cell[line]
        begin: cython.longlong = self.begin[line]
        length: cython.longlong = self.length[line]
        if begin + length < first + self.cells[line]:
            return True
        if 4 * (begin - first) > self.cells[line]:  # many have left at its front
            self._shift(begin, first, length)
            self.begin[line] = first
            return True
        wanted: cython.longlong = 2 * length + 8
        if self.used + wanted > self.capacity:
            self._repack(wanted)
            first = self.first_cell[line]
            if self.begin[line] + length < first + self.cells[line]:
                return True
            if self.used + wanted > self.capacity:
                return False
        self._shift(self.begin[line], self.used, length)
        self.begin[line] = self.used
        self.first_cell[line] = self.used
        self.cells[line] = wanted
        self.used += wanted
        return True

    @compiled
    def _shift(
        self, source: cython.longlong, target: cython.longlong, many: cython.longlong
    ) -> cython.void:
        if target > source:
            for cell in range(many - 1, -1, -1):
                self.slab[target + cell] = self.slab[source + cell]
        else:
            for cell in range(many):
                self.slab[target + cell] = self.slab[source + cell]

    # Jobs.

    @compiled
    def add(self, job: cython.int) -> cython.void:
        """Let a job wait."""
        line: cython.int = self.line_of[job]
        if not self._provide_cell(line):
            return
        if self.is_sorted:
            self._insert(line, job)
        else:
            self._rise(line, self.length[line], job)
        self.length[line] += 1
        self.count += 1
        if self.is_closed[line]:
            return
        if self.length[line] == 1:
            self.at[line] = self.num_tops
            self.num_tops += 1
            self._top_rise(self.num_tops - 1, line)
        elif self.head(line) == job:
            self._top_rise(self.at[line], line)

    @compiled
    def place_of(self, line: cython.int, job: cython.int) -> cython.longlong:
        """Return where in its sorted line a job stands, or would stand."""
        low: cython.longlong = self.begin[line]
        high: cython.longlong = low + self.length[line]
        if high > low and self.before(self.slab[high - 1], job):
            return high
        while low < high:
            middle = (low + high) >> 1
            if self.before(self.slab[middle], job):
                low = middle + 1
            else:
                high = middle
        return low

    @compiled
    def _insert(self, line: cython.int, job: cython.int) -> cython.void:
        cell: cython.longlong = self.place_of(line, job)
        begin: cython.longlong = self.begin[line]
        end: cython.longlong = begin + self.length[line]
        if cell - begin < end - cell and begin > self.first_cell[line]:
            self._shift(begin, begin - 1, cell - begin)
            self.begin[line] = begin - 1
            self.slab[cell - 1] = job
        else:
            self._shift(cell, cell + 1, end - cell)
            self.slab[cell] = job

    @compiled
    def _rise(self, line: cython.int, hole: cython.longlong, job: cython.int) -> cython.void:
        first: cython.longlong = self.begin[line]
        while hole > 0:
            parent = (hole - 1) >> 1
            if self.before(self.slab[first + parent], job):
                break
            self.slab[first + hole] = self.slab[first + parent]
            hole = parent
        self.slab[first + hole] = job

    @compiled
    def _sink(self, line: cython.int, hole: cython.longlong, job: cython.int) -> cython.void:
        first: cython.longlong = self.begin[line]
        length: cython.longlong = self.length[line]
        child: cython.longlong = 2 * hole + 1
        while child < length:
            if child + 1 < length and self.before(
                self.slab[first + child + 1], self.slab[first + child]
            ):
                child += 1
            if self.before(job, self.slab[first + child]):
                break
            self.slab[first + hole] = self.slab[first + child]
            hole = child
            child = 2 * hole + 1
        self.slab[first + hole] = job

    @compiled
    def pop(self, line: cython.int) -> cython.int:
        """Take the first job out of a line, and return it."""
        job: cython.int = self.head(line)
        self.length[line] -= 1
        self.count -= 1
        if self.is_sorted:
            self.begin[line] += 1
        elif self.length[line] > 0:
            self._sink(line, 0, self.slab[self.begin[line] + self.length[line]])
        self._head_changed(line)
        return job

    @compiled
    def remove_at(self, line: cython.int, cell: cython.longlong) -> cython.void:
        """Take the job in a cell of a sorted line out of it."""
        begin: cython.longlong = self.begin[line]
        end: cython.longlong = begin + self.length[line]
        self.length[line] -= 1
        self.count -= 1
        if cell - begin < end - 1 - cell:
            self._shift(begin, begin + 1, cell - begin)
            self.begin[line] = begin + 1
        else:
            self._shift(cell + 1, cell, end - 1 - cell)
        if cell == begin:
            self._head_changed(line)

    @compiled
    def remove(self, job: cython.int) -> cython.void:
        """Take a job out of its line, wherever it stands."""
        line: cython.int = self.line_of[job]
        if self.is_sorted:
            self.remove_at(line, self.place_of(line, job))
            return
        cell: cython.longlong = 0
        first: cython.longlong = self.begin[line]
        while self.slab[first + cell] != job:
            cell += 1
        self.length[line] -= 1
        self.count -= 1
        last: cython.int = self.slab[first + self.length[line]]
        if cell < self.length[line]:
            if cell > 0 and self.before(last, self.slab[first + ((cell - 1) >> 1)]):
                self._rise(line, cell, last)
            else:
                self._sink(line, cell, last)
        if cell == 0:
            self._head_changed(line)

    @compiled
    def _head_changed(self, line: cython.int) -> cython.void:
        if self.is_closed[line]:
            if self.length[line] == 0:
                self._drop_closed(line)
            return
        if self.length[line] == 0:
            self._top_remove(line)
        elif self.at[line] > 0 and self.before(
            self.head(line), self.head(self.tops[(self.at[line] - 1) >> 1])
        ):
            self._top_rise(self.at[line], line)
        else:
            self._top_sink(self.at[line], line)

    # The heap of lines.

    @compiled
    def _top_rise(self, hole: cython.int, line: cython.int) -> cython.void:
        job: cython.int = self.head(line)
        while hole > 0:
            parent = (hole - 1) >> 1
            if self.before(self.head(self.tops[parent]), job):
                break
            self.tops[hole] = self.tops[parent]
            self.at[self.tops[hole]] = hole
            hole = parent
        self.tops[hole] = line
        self.at[line] = hole

    @compiled
    def _top_sink(self, hole: cython.int, line: cython.int) -> cython.void:
        child: cython.int = 2 * hole + 1
        job: cython.int = self.head(line)
        while child < self.num_tops:
            if child + 1 < self.num_tops and self.before(
                self.head(self.tops[child + 1]), self.head(self.tops[child])
            ):
                child += 1
            if self.before(job, self.head(self.tops[child])):
                break
            self.tops[hole] = self.tops[child]
            self.at[self.tops[hole]] = hole
            hole = child
            child = 2 * hole + 1
        self.tops[hole] = line
        self.at[line] = hole

    @compiled
    def _top_remove(self, line: cython.int) -> cython.void:
        hole: cython.int = self.at[line]
        self.at[line] = -1
        self.num_tops -= 1
        if hole == self.num_tops:
            return
        last: cython.int = self.tops[self.num_tops]
        self.tops[hole] = last
        self.at[last] = hole
        if hole > 0 and self.before(self.head(last), self.head(self.tops[(hole - 1) >> 1])):
            self._top_rise(hole, last)
        else:
            self._top_sink(hole, last)

    @compiled
    def close(self, line: cython.int) -> cython.void:
        """Pass a line over until `reopen`: its first job was refused."""
        self._top_remove(line)
        self.is_closed[line] = True
        self.closed[self.num_closed] = line
        self.num_closed += 1

    @compiled
    def _drop_closed(self, line: cython.int) -> cython.void:
        place: cython.int = 0
        while self.closed[place] != line:
            place += 1
        self.num_closed -= 1
        self.closed[place] = self.closed[self.num_closed]
        self.is_closed[line] = False

    @compiled
    def reopen(self) -> cython.void:
        """Let every line try again: there is more capacity."""
        while self.num_closed > 0:
            self.num_closed -= 1
            line = self.closed[self.num_closed]
            self.is_closed[line] = False
            self.at[line] = self.num_tops
            self.num_tops += 1
            self._top_rise(self.num_tops - 1, line)

    @compiled
    def reorder(self) -> cython.void:
        """Put everything in order again after keys have changed, where there are no second ones."""
        hole: cython.longlong
        self.reopen()
        for line in range(self.num_lines):
            if self.length[line] > 1:
                if self.is_sorted:
                    begin = self.begin[line]
                    sort_by_key(self.slab, begin, begin + self.length[line], self.key)
                else:
                    for hole in range((self.length[line] >> 1) - 1, -1, -1):
                        self._sink(line, hole, self.slab[self.begin[line] + hole])
        for top in range((self.num_tops >> 1) - 1, -1, -1):
            self._top_sink(top, self.tops[top])
