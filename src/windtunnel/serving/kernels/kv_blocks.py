"""Blocks of KV memory that are found again by what they hold: reference counts and a free list.

What vLLM's block pool does (Kwon et al., SOSP'23): a freed block keeps its name until it is taken
anew, and the block that was freed first is taken first.
"""

from __future__ import annotations

import cython
import numpy

from windtunnel.kernel.marks import compiled

#: Columns of a block: its neighbours in the free list, how many requests hold it, its name (0: it
#: has none), and the next block in its bucket of names; the others make it half a cache line.
_BEFORE = cython.declare(cython.int, 0)
_AFTER = cython.declare(cython.int, 1)
_HELD_BY = cython.declare(cython.int, 2)
_NAME = cython.declare(cython.int, 3)
_NEXT = cython.declare(cython.int, 4)
_COLUMNS = cython.declare(cython.int, 8)


@cython.final
@cython.cclass
class KvBlocks:
    """The blocks of all replicas; those of replica r are base[r] .. base[r + 1] - 2.

    Attributes:
        base: (replicas + 1,); the last block of each replica stands for both ends of its free list.
        cells: (blocks, columns).
        bucket: the first block of each bucket of names, -1 where there is none; blocks of one name
            are in order of naming.
        bucket_base, mask: where a replica's buckets start, and how many they are, less one.
    """

    base: cython.longlong[::1]
    cells: cython.int[:, ::1]
    bucket: cython.int[::1]
    bucket_base: cython.longlong[::1]
    mask: cython.longlong[::1]

    def __init__(self, totals: numpy.ndarray) -> None:
        count = int((totals + 1).sum())
        stops = numpy.cumsum(totals + 1).astype(numpy.int64)
        starts = stops - (totals + 1)
        self.base = numpy.append(starts, count)
        cells = numpy.zeros((count, _COLUMNS), dtype=numpy.int32)
        cells[:, _AFTER] = numpy.arange(1, count + 1)
        cells[:, _BEFORE] = numpy.arange(-1, count - 1)
        cells[stops - 1, _AFTER] = starts
        cells[starts, _BEFORE] = stops - 1
        cells[:, _NEXT] = -1
        self.cells = cells
        sizes = 1 << (numpy.ceil(numpy.log2(totals + 1)).astype(numpy.int64) + 1)
        self.mask = sizes - 1
        self.bucket_base = numpy.cumsum(sizes) - sizes
        self.bucket = numpy.full(int(sizes.sum()), -1, dtype=numpy.int32)

    @compiled
    def take(self, r: cython.longlong) -> cython.int:
        """Take the block that was freed first, and forget what it held."""
        block: cython.int = self.cells[self.base[r + 1] - 1, _AFTER]
        self.unlink(block)
        if self.cells[block, _NAME] != 0:
            self.forget(r, block)
        self.cells[block, _HELD_BY] = 1
        return block

    @compiled
    def unlink(self, block: cython.int) -> cython.void:
        """Take a block out of the free list."""
        before: cython.int = self.cells[block, _BEFORE]
        after: cython.int = self.cells[block, _AFTER]
        self.cells[before, _AFTER] = after
        self.cells[after, _BEFORE] = before

    @compiled
    def share(self, block: cython.int) -> cython.bint:
        """Let one request more hold a block; return whether nobody held it."""
        idle: cython.bint = self.cells[block, _HELD_BY] == 0
        if idle:
            self.unlink(block)
        self.cells[block, _HELD_BY] += 1
        return idle

    @compiled
    def is_idle(self, block: cython.int) -> cython.bint:
        """Return whether nobody holds a block."""
        return self.cells[block, _HELD_BY] == 0

    @compiled
    def release(self, r: cython.longlong, block: cython.int) -> cython.bint:
        """Give a block back; return whether nobody holds it any more."""
        end: cython.longlong
        last: cython.int
        self.cells[block, _HELD_BY] -= 1
        if self.cells[block, _HELD_BY] > 0:
            return False
        end = self.base[r + 1] - 1
        last = self.cells[end, _BEFORE]
        self.cells[last, _AFTER] = block
        self.cells[block, _BEFORE] = last
        self.cells[block, _AFTER] = cython.cast(cython.int, end)
        self.cells[end, _BEFORE] = block
        return True

    @compiled
    def find(self, r: cython.longlong, name: cython.int) -> cython.int:
        """Return the block that got the name first; -1: there is none."""
        block: cython.int = self.bucket[self.bucket_base[r] + (name & self.mask[r])]
        while block >= 0 and self.cells[block, _NAME] != name:
            block = self.cells[block, _NEXT]
        return block

    @compiled
    def call(self, r: cython.longlong, block: cython.int, name: cython.int) -> cython.void:
        """Name a block."""
        at: cython.longlong = self.bucket_base[r] + (name & self.mask[r])
        last: cython.int = self.bucket[at]
        self.cells[block, _NAME] = name
        self.cells[block, _NEXT] = -1
        if last < 0:
            self.bucket[at] = block
            return
        while self.cells[last, _NEXT] >= 0:
            last = self.cells[last, _NEXT]
        self.cells[last, _NEXT] = block

    @compiled
    def forget(self, r: cython.longlong, block: cython.int) -> cython.void:
        """Take a block's name away."""
        at: cython.longlong = self.bucket_base[r] + (self.cells[block, _NAME] & self.mask[r])
        last: cython.int = self.bucket[at]
        self.cells[block, _NAME] = 0
        if last == block:
            self.bucket[at] = self.cells[block, _NEXT]
            return
        while self.cells[last, _NEXT] != block:
            last = self.cells[last, _NEXT]
        self.cells[last, _NEXT] = self.cells[block, _NEXT]
