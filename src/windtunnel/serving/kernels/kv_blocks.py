"""Blocks of KV memory that are found again by what they hold: runs, and a free list.

What vLLM's block pool does (Kwon et al., SOSP'23): a freed block keeps its name until it is taken
anew, and the block that was freed first is taken first. Blocks that are named, held and freed
together stand as one run, so that the time is by runs and not by blocks. A block that nobody can
ask for by name is a number and no more.
"""

from __future__ import annotations

import cython
import numpy

from windtunnel.kernel.marks import compiled

#: Columns of a run: its neighbours in the free list; how many requests hold it; its name; its
#: first block's place in a prompt; how many blocks; when it was named; the next run in its bucket
#: of names (of unused rows, the next one); the run that was cut off its end. A cache line.
_BEFORE = cython.declare(cython.int, 0)
_AFTER = cython.declare(cython.int, 1)
_HELD_BY = cython.declare(cython.int, 2)
_NAME = cython.declare(cython.int, 3)
_START = cython.declare(cython.int, 4)
_COUNT = cython.declare(cython.int, 5)
_AGE = cython.declare(cython.int, 6)
_NEXT = cython.declare(cython.int, 7)
_REST = cython.declare(cython.int, 8)
_COLUMNS = cython.declare(cython.int, 16)
#: The name of blocks that have none.
_NAMELESS = cython.declare(cython.int, 0x7FFFFFFF)


@cython.final
@cython.cclass
class KvBlocks:
    """The blocks of all replicas.

    In the free list a run's last block comes first, as a request gives its blocks back in that
    order: taking blocks shortens the run at its end. What a request holds is a chain of rows.

    Attributes:
        cells: (runs, columns); row r stands for both ends of replica r's free list.
        unused: the first row that was given back, and ``fresh`` those never used.
        bucket: the first run of each bucket of names, -1 where there is none.
        bucket_base, mask: where a replica's buckets start, and how many they are, less one.
        age: of the next name.
        stop: behind the blocks that were found.
        last: the last row of what a request holds; -1 where it holds nothing with a name.
        holds: (rows, 3): a run, how many blocks from its begin on, and the row before.
        hold_unused, hold_fresh: rows as above.
        chain: scratch.
    """

    cells: cython.int[:, ::1]
    unused: cython.int
    fresh: cython.int
    bucket: cython.int[::1]
    bucket_base: cython.longlong[::1]
    mask: cython.longlong[::1]
    age: cython.int
    stop: cython.longlong
    last: cython.int[::1]
    holds: cython.int[:, ::1]
    hold_unused: cython.int
    hold_fresh: cython.int
    chain: cython.int[::1]

    def __init__(self, totals: numpy.ndarray, requests: int) -> None:
        replicas = len(totals)
        # Each run has a block at least.
        self.cells = numpy.empty((int(totals.sum()) + 2 * replicas, _COLUMNS), dtype=numpy.int32)
        self.unused = -1
        self.fresh = 2 * replicas
        ends = numpy.asarray(self.cells)[: 2 * replicas]
        ends[:] = 0
        own = numpy.arange(replicas)
        ends[:replicas, _BEFORE] = ends[:replicas, _AFTER] = own + replicas
        ends[replicas:, _BEFORE] = ends[replicas:, _AFTER] = own
        ends[replicas:, _NAME] = _NAMELESS
        ends[replicas:, _COUNT] = totals
        sizes = 1 << numpy.ceil(numpy.log2(totals // 4 + 16)).astype(numpy.int64)
        self.mask = sizes - 1
        self.bucket_base = numpy.cumsum(sizes) - sizes
        self.bucket = numpy.full(int(sizes.sum()), -1, dtype=numpy.int32)
        self.age = 0
        self.stop = 0
        self.last = numpy.full(requests, -1, dtype=numpy.int32)
        self.holds = numpy.empty((1 << 12, 3), dtype=numpy.int32)
        self.hold_unused = -1
        self.hold_fresh = 0
        self.chain = numpy.empty(int(totals.max(initial=0)) + 1, dtype=numpy.int32)

    @compiled
    def new_run(
        self, name: cython.int, start: cython.longlong, count: cython.longlong, age: cython.int
    ) -> cython.int:
        """Return a run that nobody holds, in no list."""
        run: cython.int = self.unused
        if run >= 0:
            self.unused = self.cells[run, _NEXT]
        else:
            run = self.fresh
            self.fresh += 1
        self.cells[run, _HELD_BY] = 0
        self.cells[run, _NAME] = name
        self.cells[run, _START] = cython.cast(cython.int, start)
        self.cells[run, _COUNT] = cython.cast(cython.int, count)
        self.cells[run, _AGE] = age
        self.cells[run, _REST] = -1
        return run

    @compiled
    def link(self, run: cython.int, after: cython.int) -> cython.void:
        """Put a run into the free list, before ``after``."""
        before: cython.int = self.cells[after, _BEFORE]
        self.cells[before, _AFTER] = run
        self.cells[run, _BEFORE] = before
        self.cells[run, _AFTER] = after
        self.cells[after, _BEFORE] = run

    @compiled
    def unlink(self, run: cython.int) -> cython.void:
        """Take a run out of the free list."""
        before: cython.int = self.cells[run, _BEFORE]
        after: cython.int = self.cells[run, _AFTER]
        self.cells[before, _AFTER] = after
        self.cells[after, _BEFORE] = before

    @compiled
    def take(self, r: cython.longlong, count: cython.longlong) -> cython.void:
        """Take the blocks that were freed first, and forget what they held."""
        run: cython.int
        taken: cython.int
        while count > 0:
            run = self.cells[r, _AFTER]
            taken = cython.cast(cython.int, min(count, self.cells[run, _COUNT]))
            self.cells[run, _COUNT] -= taken
            count -= taken
            if self.cells[run, _COUNT] == 0:
                self.unlink(run)
                if self.cells[run, _NAME] != _NAMELESS:
                    self.forget(r, run)
                self.cells[run, _NEXT] = self.unused
                self.unused = run

    @compiled
    def give(self, r: cython.longlong, count: cython.longlong) -> cython.void:
        """Give blocks without names back."""
        end: cython.int = cython.cast(cython.int, r)
        run: cython.int = self.cells[end, _BEFORE]
        if count == 0:
            return
        if run != end and self.cells[run, _NAME] == _NAMELESS:
            self.cells[run, _COUNT] += cython.cast(cython.int, count)
        else:
            self.link(self.new_run(_NAMELESS, 0, count, 0), end)

    @compiled
    def find(
        self, r: cython.longlong, name: cython.int, at: cython.longlong, end: cython.longlong
    ) -> cython.int:
        """Return the run whose block at ``at`` got the name first; -1: there is none.

        ``stop`` is behind the blocks up to ``end`` that the same run has, and got first.
        """
        head: cython.int = self.bucket[self.bucket_base[r] + (name & self.mask[r])]
        run: cython.int = head
        best: cython.int = -1
        start: cython.longlong
        while run >= 0:
            start = self.cells[run, _START]
            if (
                self.cells[run, _NAME] == name
                and start <= at < start + self.cells[run, _COUNT]
                and (best < 0 or self.cells[run, _AGE] < self.cells[best, _AGE])
            ):
                best = run
            run = self.cells[run, _NEXT]
        if best < 0:
            return best
        self.stop = min(end, self.cells[best, _START] + self.cells[best, _COUNT])
        run = head
        while run >= 0:
            start = self.cells[run, _START]
            if (
                self.cells[run, _NAME] == name
                and at < start < self.stop
                and self.cells[run, _AGE] < self.cells[best, _AGE]
            ):
                self.stop = start
            run = self.cells[run, _NEXT]
        return best

    @compiled
    def is_idle(self, run: cython.int) -> cython.bint:
        """Return whether nobody holds a run."""
        return self.cells[run, _HELD_BY] == 0

    @compiled
    def call(self, r: cython.longlong, run: cython.int) -> cython.void:
        """Let a run be found by its name."""
        at: cython.longlong = self.bucket_base[r] + (self.cells[run, _NAME] & self.mask[r])
        self.cells[run, _NEXT] = self.bucket[at]
        self.bucket[at] = run

    @compiled
    def forget(self, r: cython.longlong, run: cython.int) -> cython.void:
        """Let a run be found no more."""
        at: cython.longlong = self.bucket_base[r] + (self.cells[run, _NAME] & self.mask[r])
        last: cython.int = self.bucket[at]
        if last == run:
            self.bucket[at] = self.cells[run, _NEXT]
            return
        while self.cells[last, _NEXT] != run:
            last = self.cells[last, _NEXT]
        self.cells[last, _NEXT] = self.cells[run, _NEXT]

    @compiled
    def cut(self, r: cython.longlong, run: cython.int, at: cython.longlong) -> cython.int:
        """Cut a run before the block at ``at``; return the later part."""
        count: cython.int = cython.cast(cython.int, at - self.cells[run, _START])
        rest: cython.int = self.new_run(
            self.cells[run, _NAME], at, self.cells[run, _COUNT] - count, self.cells[run, _AGE]
        )
        self.cells[run, _COUNT] = count
        self.call(r, rest)
        if self.cells[run, _HELD_BY] == 0:
            self.link(rest, run)
        else:
            self.cells[rest, _HELD_BY] = self.cells[run, _HELD_BY]
            self.cells[rest, _REST] = self.cells[run, _REST]
            self.cells[run, _REST] = rest
        return rest

    @compiled
    def share(
        self, r: cython.longlong, i: cython.longlong, run: cython.int, at: cython.longlong
    ) -> cython.bint:
        """Let a request hold the blocks ``at`` .. ``stop`` - 1, too; return whether nobody did."""
        idle: cython.bint = self.cells[run, _HELD_BY] == 0
        if self.cells[run, _START] < at:
            run = self.cut(r, run, at)
        if self.cells[run, _START] + self.cells[run, _COUNT] > self.stop:
            self.cut(r, run, self.stop)
        if idle:
            self.unlink(run)
        self.hold(i, run)
        return idle

    @compiled
    def name(
        self,
        r: cython.longlong,
        i: cython.longlong,
        name: cython.int,
        start: cython.longlong,
        end: cython.longlong,
    ) -> cython.void:
        """Name blocks that a request holds."""
        run: cython.int = self.new_run(name, start, end - start, self.age)
        self.age += 1
        self.call(r, run)
        self.hold(i, run)

    @compiled
    def hold(self, i: cython.longlong, run: cython.int) -> cython.void:
        """Write down that a request holds a run."""
        row: cython.int = self.hold_unused
        if row >= 0:
            self.hold_unused = self.holds[row, 2]
        else:
            row = self.hold_fresh
            self.hold_fresh += 1
            if row == self.holds.shape[0]:
                with cython.gil:
                    self.grow()
        self.cells[run, _HELD_BY] += 1
        self.holds[row, 0] = run
        self.holds[row, 1] = self.cells[run, _COUNT]
        self.holds[row, 2] = self.last[i]
        self.last[i] = row

    def grow(self) -> None:
        """Give ``holds`` twice the rows."""
        rows = numpy.asarray(self.holds)
        self.holds = numpy.zeros((2 * len(rows), rows.shape[1]), dtype=rows.dtype)
        numpy.asarray(self.holds)[: len(rows)] = rows

    @compiled
    def release(self, r: cython.longlong, i: cython.longlong) -> cython.longlong:
        """Take all that a request holds by name back, the last block first.

        Returns:
            How many blocks nobody holds any more.
        """
        row: cython.int = self.last[i]
        before: cython.int
        run: cython.int
        left: cython.int
        parts: cython.longlong
        freed: cython.longlong = 0
        while row >= 0:
            run = self.holds[row, 0]
            left = self.holds[row, 1]
            parts = 0
            while left > 0:
                self.chain[parts] = run
                parts += 1
                left -= self.cells[run, _COUNT]
                run = self.cells[run, _REST]
            while parts > 0:
                parts -= 1
                run = self.chain[parts]
                self.cells[run, _HELD_BY] -= 1
                if self.cells[run, _HELD_BY] == 0:
                    freed += self.cells[run, _COUNT]
                    self.link(run, cython.cast(cython.int, r))
            before = self.holds[row, 2]
            self.holds[row, 2] = self.hold_unused
            self.hold_unused = row
            row = before
        self.last[i] = -1
        return freed
