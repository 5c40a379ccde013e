"""`SpanTrees`: whether anybody of a line is short enough for a time, and starts later than that.

For each line a tree over its jobs, the shortest first, knows the latest start of each of its parts.
"""

from __future__ import annotations

import cython
import numpy

from windtunnel.kernel.lines import Lines
from windtunnel.kernel.marks import compiled
from windtunnel.kernel.pairs import longer, pairs_zeros
from windtunnel.kernel.promises import PROMISE_MADE, PROMISE_NEVER, Promises

#: So many new jobs are each put in where they belong; for more all are sorted.
TREES_FEW = cython.declare(cython.int, 8)


@cython.final
@cython.cclass
class SpanTrees:
    """Promised starts of waiting jobs by line and by how long they are expected to take.

    The node ``i`` of a line's tree has the nodes ``2 * i`` and ``2 * i + 1`` below it; the leaves
    are its last half.

    Args:
        promises: what jobs are promised.

    Attributes:
        count: jobs that are known.
        by_span: these, the shortest first.
        known_span: what each job was expected to take when it was put there, s; -1 = it is not.
        first: where the spans of each line begin in ``span``; its tree begins at twice that.
        leaves: jobs of each line.
        leaf_of: where in ``latest`` each job is.
        span: what the jobs of a line are expected to take, ascending, s.
        latest: the latest start of each part of the trees, s.
    """

    promises: Promises
    lines: Lines
    count: cython.int
    by_span: cython.int[::1]
    known_span: cython.double[::1]
    first: cython.longlong[::1]
    leaves: cython.int[::1]
    leaf_of: cython.longlong[::1]
    span: cython.double[::1]
    latest: cython.double[::1]

    def __init__(self, promises: Promises) -> None:
        self.promises, self.lines = promises, promises.state.lines
        jobs, lines = max(promises.state.num_jobs, 1), max(self.lines.num_lines, 1)
        self.count = 0
        self.known_span = numpy.full(jobs, -1.0)
        self.leaf_of = numpy.zeros(jobs, dtype=numpy.int64)
        self.first = numpy.zeros(lines, dtype=numpy.int64)
        self.leaves = numpy.zeros(lines, dtype=numpy.int32)
        self.by_span = numpy.zeros(0, dtype=numpy.int32)
        self.span = self.latest = numpy.zeros(0)

    def _grow(self, capacity: int) -> None:
        self.latest = pairs_zeros(2 * capacity, numpy.float64)
        self.span = pairs_zeros(capacity, numpy.float64)
        self.by_span = longer(self.by_span, capacity)

    @compiled
    def survey(self) -> cython.void:
        """Bring the trees up to what all who wait are promised."""
        kept: cython.int
        if self.by_span.shape[0] < self.count + self.lines.count:
            with cython.gil:
                self._grow(2 * (self.count + self.lines.count))
        self._drop()
        kept = self.count
        self._add()
        if self.count > kept:
            self._sort(kept)
        self._plant()

    @compiled
    def _has_promise(self, job: cython.int) -> cython.bint:
        return self.promises.what[job] == PROMISE_MADE or self.promises.what[job] == PROMISE_NEVER

    @compiled
    def _drop(self) -> cython.void:
        """Drop who has no promise any more, or is expected to take another time."""
        at: cython.int
        job: cython.int
        kept: cython.int = 0
        for at in range(self.count):
            job = self.by_span[at]
            if self._has_promise(job) and self.promises.planned(job) == self.known_span[job]:
                self.by_span[kept] = job
                kept += 1
            else:
                self.known_span[job] = -1.0
        self.count = kept

    @compiled
    def _add(self) -> cython.void:
        """Add who is not known yet."""
        top: cython.int
        line: cython.int
        job: cython.int
        cell: cython.longlong
        for top in range(self.lines.num_tops):
            line = self.lines.tops[top]
            if self.promises.promised_in[line] == 0:
                continue
            for cell in range(
                self.lines.begin[line], self.lines.begin[line] + self.lines.length[line]
            ):
                job = self.lines.slab[cell]
                if self.known_span[job] < 0.0 and self._has_promise(job):
                    self.known_span[job] = self.promises.planned(job)
                    self.by_span[self.count] = job
                    self.count += 1

    @compiled
    def _sort(self, kept: cython.int) -> cython.void:
        """Sort all, of whom the first ``kept`` are: by Shell's sort."""
        gap: cython.int = 1
        at: cython.int
        hole: cython.int
        job: cython.int
        if self.count - kept > TREES_FEW:
            kept = 0
            while gap < self.count // 3:
                gap = 3 * gap + 1
        while gap > 0:
            for at in range(max(gap, kept), self.count):
                job = self.by_span[at]
                hole = at
                while (
                    hole >= gap and self.known_span[self.by_span[hole - gap]] > self.known_span[job]
                ):
                    self.by_span[hole] = self.by_span[hole - gap]
                    hole -= gap
                self.by_span[hole] = job
            gap //= 3

    @compiled
    def _plant(self) -> cython.void:
        """Make the tree of each line."""
        top: cython.int
        at: cython.int
        line: cython.int
        job: cython.int
        node: cython.longlong
        tree: cython.longlong = 0
        for top in range(self.lines.num_tops):
            line = self.lines.tops[top]
            self.first[line] = tree
            self.leaves[line] = 0
            tree += self.lines.length[line]
        for at in range(self.count):
            job = self.by_span[at]
            line = self.lines.line_of[job]
            self.span[self.first[line] + self.leaves[line]] = self.known_span[job]
            self.leaf_of[job] = self.leaves[line]
            self.leaves[line] += 1
        for at in range(self.count):
            job = self.by_span[at]
            line = self.lines.line_of[job]
            self.leaf_of[job] += 2 * self.first[line] + self.leaves[line]
            self.latest[self.leaf_of[job]] = self.promises.start[job]
        for top in range(self.lines.num_tops):
            line = self.lines.tops[top]
            tree = 2 * self.first[line]
            for node in range(self.leaves[line] - 1, 0, -1):
                self.latest[tree + node] = max(
                    self.latest[tree + 2 * node], self.latest[tree + 2 * node + 1]
                )

    @compiled
    def move(self, job: cython.int) -> cython.void:
        """Note that a job starts earlier now."""
        tree: cython.longlong = 2 * self.first[self.lines.line_of[job]]
        node: cython.longlong = self.leaf_of[job] - tree
        latest: cython.double
        self.latest[tree + node] = self.promises.start[job]
        while node > 1:
            node >>= 1
            latest = max(self.latest[tree + 2 * node], self.latest[tree + 2 * node + 1])
            if latest == self.latest[tree + node]:
                return
            self.latest[tree + node] = latest

    @compiled
    def has(self, line: cython.int, begin: cython.double, longest: cython.double) -> cython.bint:
        """Return whether a job starts later than ``begin`` and takes ``longest`` at most."""
        low: cython.longlong = self.first[line]
        high: cython.longlong = low + self.leaves[line]
        tree: cython.longlong = 2 * low
        middle: cython.longlong
        while low < high:
            middle = (low + high) >> 1
            if self.span[middle] <= longest:
                low = middle + 1
            else:
                high = middle
        high = self.leaves[line] + low - self.first[line]
        low = self.leaves[line]
        while low < high:
            if low & 1:
                if self.latest[tree + low] > begin:
                    return True
                low += 1
            if high & 1:
                high -= 1
                if self.latest[tree + high] > begin:
                    return True
            low >>= 1
            high >>= 1
        return False
