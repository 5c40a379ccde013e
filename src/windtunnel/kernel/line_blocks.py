"""`LineBlocks`: waiting jobs with a promise by line, in blocks that are looked at together.

Who may start earlier by a time in which there is room is the first of a line that starts later than
the time begins, and is not longer than it. Most blocks have nobody like it.
"""

from __future__ import annotations

import cython
import numpy
from cython.cimports.libc.math import fabs

from windtunnel.kernel.endless import ENDLESS
from windtunnel.kernel.lines import Lines
from windtunnel.kernel.marks import compiled
from windtunnel.kernel.pairs import pairs_zeros
from windtunnel.kernel.promises import Promises

#: Two to this power are jobs of a line that are looked at together before each by itself.
BLOCKS_JOBS = cython.declare(cython.int, 6)
#: What roundings may make of a time, as a part of it.
BLOCKS_SLACK = cython.declare(cython.double, 1e-12)


@cython.final
@cython.cclass
class LineBlocks:
    """What the jobs in the cells of `Lines` are promised.

    A block is 2^`BLOCKS_JOBS` jobs of a line in order.

    Args:
        promises: what jobs are promised.

    Attributes:
        cell_of: where each waiting job stands in its line.
        start_at: promised start of the job in each cell, s.
        span_at: what it is expected to take, s; inf = it has no promise.
        first_block: of each line.
        least_span: what the shortest of a block's jobs is expected to take, s.
        first_start, last_start: between when all promised starts of a block are, s.
    """

    promises: Promises
    lines: Lines
    cell_of: cython.longlong[::1]
    start_at: cython.double[::1]
    span_at: cython.double[::1]
    first_block: cython.int[::1]
    capacity: cython.longlong
    least_span: cython.double[::1]
    first_start: cython.double[::1]
    last_start: cython.double[::1]

    def __init__(self, promises: Promises) -> None:
        self.promises, self.lines = promises, promises.state.lines
        self.cell_of = numpy.zeros(max(promises.state.num_jobs, 1), dtype=numpy.int64)
        self.start_at, self.span_at = numpy.zeros(0), numpy.zeros(0)
        self.first_block = numpy.zeros(max(self.lines.num_lines, 1), dtype=numpy.int32)
        self._grow_blocks(64)

    def _grow_blocks(self, capacity: int) -> None:
        self.least_span = pairs_zeros(2 * capacity, numpy.float64)
        self.first_start = pairs_zeros(2 * capacity, numpy.float64)
        self.last_start = pairs_zeros(2 * capacity, numpy.float64)
        self.capacity = 2 * capacity

    def _grow_cells(self) -> None:
        self.span_at = pairs_zeros(self.lines.slab.shape[0], numpy.float64)
        self.start_at = pairs_zeros(self.lines.slab.shape[0], numpy.float64)

    @compiled
    def survey(self) -> cython.void:
        """Note what the jobs of each block are like; the lines do not change until all is done."""
        at: cython.longlong
        block: cython.int = -1
        most: cython.longlong = (self.lines.count >> BLOCKS_JOBS) + self.lines.num_tops
        if most > self.capacity:
            with cython.gil:
                self._grow_blocks(most)
        if self.start_at.shape[0] < self.lines.slab.shape[0]:
            with cython.gil:
                self._grow_cells()
        for top in range(self.lines.num_tops):
            line = self.lines.tops[top]
            self.first_block[line] = block + 1
            if self.promises.promised_in[line] == 0:
                continue  # nobody of it is looked at
            for at in range(self.lines.length[line]):
                if at & ((1 << BLOCKS_JOBS) - 1) == 0:
                    block += 1
                    self.least_span[block] = self.first_start[block] = ENDLESS
                    self.last_start[block] = -ENDLESS
                cell = self.lines.begin[line] + at
                job = self.lines.slab[cell]
                self.cell_of[job] = cell
                self.span_at[cell] = ENDLESS
                self.start_at[cell] = -ENDLESS
                if self.promises.is_promised(job):
                    self.span_at[cell] = self.promises.planned(job)
                    self.start_at[cell] = self.promises.start[job]
                    self.least_span[block] = min(self.least_span[block], self.span_at[cell])
                    self.first_start[block] = min(self.first_start[block], self.start_at[cell])
                    self.last_start[block] = max(self.last_start[block], self.start_at[cell])

    @compiled
    def move_cell(self, line: cython.int, cell: cython.longlong) -> cython.void:
        """Note that the job of a cell starts earlier now."""
        old: cython.double = self.start_at[cell]
        first: cython.longlong = self.lines.begin[line]
        length: cython.longlong = self.lines.length[line]
        block: cython.int = self._block_of(line, cell)
        at: cython.longlong = (cell - first) >> BLOCKS_JOBS << BLOCKS_JOBS
        end: cython.longlong = min(at + (1 << BLOCKS_JOBS), length)
        self.start_at[cell] = self.promises.start[self.lines.slab[cell]]
        self.first_start[block] = min(self.first_start[block], self.start_at[cell])
        if old < self.last_start[block]:
            return
        self.last_start[block] = -ENDLESS
        while at < end:
            self.last_start[block] = max(self.last_start[block], self.start_at[first + at])
            at += 1

    @compiled
    def _block_of(self, line: cython.int, cell: cython.longlong) -> cython.int:
        return self.first_block[line] + cython.cast(
            cython.int, (cell - self.lines.begin[line]) >> BLOCKS_JOBS
        )

    @compiled
    def _block_end(
        self, line: cython.int, cell: cython.longlong, end: cython.longlong
    ) -> cython.longlong:
        """Return where the block of a cell ends, or the search does."""
        begin: cython.longlong = self.lines.begin[line]
        return min(end, begin + ((((cell - begin) >> BLOCKS_JOBS) + 1) << BLOCKS_JOBS))

    @compiled
    def cell_behind(self, line: cython.int, job: cython.int) -> cython.longlong:
        """Return where in a line those stand who are behind a job; -1 = behind nobody."""
        if job < 0:
            return self.lines.begin[line]
        if self.lines.line_of[job] == line:
            return self.cell_of[job] + 1
        return self.lines.place_of(line, job)

    # Who may start earlier.

    @compiled
    def longest_in(self, begin: cython.double, end: cython.double) -> cython.double:
        """Return how long jobs are at most that fit into a time, and some more, s."""
        return (
            (end - begin) + BLOCKS_SLACK * (fabs(begin) + fabs(end)) if end < ENDLESS else ENDLESS
        )

    @compiled
    def first_in(
        self,
        line: cython.int,
        cell: cython.longlong,
        end: cython.longlong,
        begin: cython.double,
        longest: cython.double,
        until: cython.double,
    ) -> cython.longlong:
        """Return the first cell whose job may move to ``begin``, or up to its own place.

        Args:
            line: where to look.
            cell: from where on.
            end: until where.
            begin: jobs that start later count, s.
            longest: if they take that long at most, s;
            until: or start until then, s.
        """
        while cell < end:
            last = self._block_end(line, cell, end)
            block = self._block_of(line, cell)
            if self.last_start[block] > begin and (
                self.least_span[block] <= longest or self.first_start[block] <= until
            ):
                while cell < last:
                    # Without a branch for each: which of them fails first, nobody can foresee.
                    is_short: cython.bint = self.span_at[cell] <= longest
                    is_near: cython.bint = self.start_at[cell] <= until
                    is_later: cython.bint = self.start_at[cell] > begin
                    if is_later & (is_short | is_near):
                        return cell
                    cell += 1
            cell = last
        return end

    @compiled
    def first_around(
        self,
        line: cython.int,
        cell: cython.longlong,
        end: cython.longlong,
        begin: cython.double,
        until: cython.double,
    ) -> cython.longlong:
        """Return the first cell whose job has its place in a time from ``begin`` to ``until``."""
        while cell < end:
            last = self._block_end(line, cell, end)
            if self.first_start[self._block_of(line, cell)] < until:
                while cell < last:
                    if (
                        self.start_at[cell] < until
                        and self.promises.stop[self.lines.slab[cell]] > begin
                    ):
                        return cell
                    cell += 1
            cell = last
        return end
