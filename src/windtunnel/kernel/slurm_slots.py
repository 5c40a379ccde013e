"""`SlurmSlots`: the map of the future that a backfill cycle plans with.

A list of time slots, each with the whole nodes that no pending job has reserved in it.
"""

from __future__ import annotations

import cython
import numpy

from windtunnel.kernel.marks import compiled


@cython.final
@cython.cclass
class SlurmSlots:
    """The time slots of one cycle.

    Args:
        nodes: how many there are.
        most: slots beyond which nothing more is reserved (``bf_node_space_size``).

    Attributes:
        begin, end: of each slot, s.
        following: the next slot; 0 = none.
        taken: which nodes are reserved, a row of each slot, a bit of each node.
        records: slots made in this cycle, those merged since included.
        until: end of the last slot, s.
    """

    nodes: cython.int
    most: cython.int
    records: cython.int
    until: cython.longlong
    begin: cython.longlong[::1]
    end: cython.longlong[::1]
    following: cython.int[::1]
    taken: cython.ulonglong[::1]
    words: cython.longlong
    _row: cython.ulonglong[::1]

    def __init__(self, nodes: int, most: int) -> None:
        self.nodes, self.most, self.until = nodes, most, 0
        capacity = 2 * most + 3
        self.begin = numpy.zeros(capacity, dtype=numpy.int64)
        self.end = numpy.zeros(capacity, dtype=numpy.int64)
        self.following = numpy.zeros(capacity, dtype=numpy.int32)
        self.words = (nodes + 63) // 64
        self.taken = numpy.zeros(max(capacity * self.words, 1), dtype=numpy.uint64)
        self._row = numpy.zeros(max(self.words, 1), dtype=numpy.uint64)

    @compiled
    def clear(self, begin: cython.longlong, end: cython.longlong) -> cython.void:
        """Begin with one slot in which all nodes are free."""
        self.begin[0] = begin
        self.end[0] = self.until = end
        self.following[0] = 0
        self.records = 1
        for word in range(self.words):
            self.taken[word] = 0

    @compiled
    def _add(self, after: cython.int, begin: cython.longlong) -> cython.void:
        """Cut a slot in two at ``begin``."""
        slot: cython.int = self.records
        self.begin[slot] = begin
        self.end[slot] = self.end[after]
        self.end[after] = begin
        self.following[slot] = self.following[after]
        self.following[after] = slot
        for word in range(self.words):
            self.taken[slot * self.words + word] = self.taken[after * self.words + word]
        self.records += 1

    @compiled
    def narrow(
        self,
        candidate: cython.schar[::1],
        start: cython.longlong,
        end: cython.longlong,
    ) -> cython.longlong:
        """Take from the candidates what is reserved in [start, end]; return the next change, or 0.

        A slot that begins in the very second in which the job would end counts, too.
        """
        later: cython.longlong = 0
        slot: cython.int = 0
        for word in range(self.words):
            self._row[word] = 0
        while True:
            if self.end[slot] > start and self.following[slot] != 0 and later == 0:
                later = self.end[slot]
            if self.end[slot] > start:
                if self.begin[slot] > end:
                    break
                for word in range(self.words):
                    self._row[word] |= self.taken[slot * self.words + word]
            slot = self.following[slot]
            if slot == 0:
                break
        for node in range(self.nodes):
            if self._row[node >> 6] >> (node & 63) & 1:
                candidate[node] = False
        return later

    @compiled
    def _pack(self, chosen: cython.schar[::1]) -> cython.void:
        """Write nodes as a row."""
        for word in range(self.words):
            self._row[word] = 0
        for node in range(self.nodes):
            if chosen[node]:
                self._row[node >> 6] |= cython.cast(cython.ulonglong, 1) << (node & 63)

    @compiled
    def is_reserved(
        self, chosen: cython.schar[::1], start: cython.longlong, end: cython.longlong
    ) -> cython.bint:
        """Return whether one of the nodes chosen is reserved at some time in [start, end)."""
        slot: cython.int = 0
        self._pack(chosen)
        while True:
            if self.end[slot] > start and self.begin[slot] < end:
                for word in range(self.words):
                    if self._row[word] & self.taken[slot * self.words + word]:
                        return True
            slot = self.following[slot]
            if slot == 0:
                return False

    @compiled
    def reserve(
        self, chosen: cython.schar[::1], start: cython.longlong, end: cython.longlong
    ) -> cython.void:
        """Take the nodes chosen out of [start, end)."""
        slot: cython.int = 0
        found: cython.bint = False
        self._pack(chosen)
        start = max(start, self.begin[0])
        while not found:
            if self.end[slot] > start:
                self._add(slot, start)
            found = self.end[slot] == start
            if not found:
                slot = self.following[slot]
                if slot == 0:
                    return
        slot = self.following[slot]
        while slot != 0:
            if end < self.end[slot]:
                self._add(slot, end)
            for word in range(self.words):
                self.taken[slot * self.words + word] |= self._row[word]
            if end == self.end[slot]:
                break
            slot = self.following[slot]
        self._merge()

    @compiled
    def _merge(self) -> cython.void:
        """Join the first two neighbours in which the same nodes are free."""
        slot: cython.int = 0
        other: cython.int = self.following[0]
        while other != 0:
            if self._is_equal(slot, other):
                self.end[slot] = self.end[other]
                self.following[slot] = self.following[other]
                return
            slot = other
            other = self.following[slot]

    @compiled
    def _is_equal(self, slot: cython.int, other: cython.int) -> cython.bint:
        for word in range(self.words):
            if self.taken[slot * self.words + word] != self.taken[other * self.words + word]:
                return False
        return True
