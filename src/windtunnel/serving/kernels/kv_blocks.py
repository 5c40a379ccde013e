"""Blocks of KV memory that are found again by what they hold: reference counts and a free list.

What vLLM's block pool does (Kwon et al., SOSP'23): a freed block keeps its name until it is taken
anew, and the block that was freed first is taken first.
"""

from __future__ import annotations

import cython
import numpy

from windtunnel.kernel.marks import compiled


@cython.final
@cython.cclass
class KvBlocks:
    """The blocks of all replicas; those of replica r are base[r] .. base[r + 1] - 2.

    Attributes:
        base: (replicas + 1,); the last block of each replica stands for both ends of its free list.
        before, after: neighbours in the free list.
        references: requests that hold a block.
        name: of a block; 0 where it has none.
        bucket: the first block of each bucket of names, -1 where there is none.
        bucket_base, mask: where a replica's buckets start, and how many they are, less one.
        following: the next block in a bucket; blocks of one name are in order of naming.
        node_block, node_before: blocks of requests, as chains from the last block to the first.
        idle: the first node that is free.
    """

    base: cython.longlong[::1]
    before: cython.int[::1]
    after: cython.int[::1]
    references: cython.int[::1]
    name: cython.longlong[::1]
    bucket: cython.int[::1]
    bucket_base: cython.longlong[::1]
    mask: cython.longlong[::1]
    following: cython.int[::1]
    node_block: cython.int[::1]
    node_before: cython.int[::1]
    idle: cython.int

    def __init__(self, totals: numpy.ndarray) -> None:
        count = int((totals + 1).sum())
        stops = numpy.cumsum(totals + 1).astype(numpy.int64)
        starts = stops - (totals + 1)
        ends = stops - 1
        self.base = numpy.append(starts, count)
        after = numpy.arange(1, count + 1, dtype=numpy.int32)
        before = numpy.arange(-1, count - 1, dtype=numpy.int32)
        after[ends] = starts
        before[starts] = ends
        self.after = after
        self.before = before
        self.references = numpy.zeros(count, dtype=numpy.int32)
        self.name = numpy.zeros(count, dtype=numpy.int64)
        self.following = numpy.full(count, -1, dtype=numpy.int32)
        sizes = 1 << (numpy.ceil(numpy.log2(totals + 1)).astype(numpy.int64) + 1)
        self.mask = sizes - 1
        self.bucket_base = numpy.concatenate([[0], numpy.cumsum(sizes)])
        self.bucket = numpy.full(int(sizes.sum()), -1, dtype=numpy.int32)
        self.node_block = numpy.empty(0, dtype=numpy.int32)
        self.node_before = numpy.empty(0, dtype=numpy.int32)
        self.idle = -1

    @compiled
    def take(self, r: cython.longlong) -> cython.int:
        """Take the block that was freed first, and forget what it held."""
        end: cython.longlong = self.base[r + 1] - 1
        block: cython.int = self.after[end]
        self.unlink(block)
        if self.name[block] != 0:
            self.forget(r, block)
        self.references[block] = 1
        return block

    @compiled
    def unlink(self, block: cython.int) -> cython.void:
        """Take a block out of the free list."""
        self.after[self.before[block]] = self.after[block]
        self.before[self.after[block]] = self.before[block]

    @compiled
    def release(self, r: cython.longlong, block: cython.int) -> cython.bint:
        """Give a block back; return whether nobody holds it any more."""
        self.references[block] -= 1
        if self.references[block] > 0:
            return False
        end: cython.longlong = self.base[r + 1] - 1
        last: cython.int = self.before[end]
        self.after[last] = block
        self.before[block] = last
        self.after[block] = cython.cast(cython.int, end)
        self.before[end] = block
        return True

    @compiled
    def find(self, r: cython.longlong, name: cython.longlong) -> cython.int:
        """Return the block that got the name first; -1: there is none."""
        block: cython.int = self.bucket[self.bucket_base[r] + (name & self.mask[r])]
        while block >= 0 and self.name[block] != name:
            block = self.following[block]
        return block

    @compiled
    def call(self, r: cython.longlong, block: cython.int, name: cython.longlong) -> cython.void:
        """Name a block."""
        at: cython.longlong = self.bucket_base[r] + (name & self.mask[r])
        last: cython.int = self.bucket[at]
        self.name[block] = name
        self.following[block] = -1
        if last < 0:
            self.bucket[at] = block
            return
        while self.following[last] >= 0:
            last = self.following[last]
        self.following[last] = block

    @compiled
    def forget(self, r: cython.longlong, block: cython.int) -> cython.void:
        """Take a block's name away."""
        at: cython.longlong = self.bucket_base[r] + (self.name[block] & self.mask[r])
        last: cython.int = self.bucket[at]
        self.name[block] = 0
        if last == block:
            self.bucket[at] = self.following[block]
            return
        while self.following[last] != block:
            last = self.following[last]
        self.following[last] = self.following[block]

    @compiled
    def append(self, chain: cython.int, block: cython.int) -> cython.int:
        """Return a chain with one block more."""
        if self.idle < 0:
            with cython.gil:
                self.more_nodes()
        node: cython.int = self.idle
        self.idle = self.node_before[node]
        self.node_block[node] = block
        self.node_before[node] = chain
        return node

    @compiled
    def shorten(self, chain: cython.int) -> cython.int:
        """Return a chain without its last block."""
        rest: cython.int = self.node_before[chain]
        self.node_before[chain] = self.idle
        self.idle = chain
        return rest

    def more_nodes(self) -> None:
        """Double the nodes of chains."""
        old = len(self.node_block)
        new = max(2 * old, 4096)
        before = numpy.arange(1, new + 1, dtype=numpy.int32)
        before[:old] = self.node_before
        before[new - 1] = -1
        block = numpy.empty(new, dtype=numpy.int32)
        block[:old] = self.node_block
        self.node_block = block
        self.node_before = before
        self.idle = old
