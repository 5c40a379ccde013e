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
        free: which nodes nobody has reserved, a row of each slot.
        records: slots made in this cycle, those merged since included.
    """

    nodes: cython.int
    most: cython.int
    records: cython.int
    begin: cython.longlong[::1]
    end: cython.longlong[::1]
    following: cython.int[::1]
    free: cython.schar[::1]

    def __init__(self, nodes: int, most: int) -> None:
        self.nodes, self.most = nodes, most
        room = 2 * most + 3
        self.begin = numpy.zeros(room, dtype=numpy.int64)
        self.end = numpy.zeros(room, dtype=numpy.int64)
        self.following = numpy.zeros(room, dtype=numpy.int32)
        self.free = numpy.zeros(max(room * nodes, 1), dtype=numpy.int8)

    @compiled
    def clear(self, begin: cython.longlong, end: cython.longlong) -> cython.void:
        """Begin with one slot in which all nodes are free."""
        node: cython.int
        self.begin[0] = begin
        self.end[0] = end
        self.following[0] = 0
        self.records = 1
        for node in range(self.nodes):
            self.free[node] = True

    @compiled
    def _add(self, after: cython.int, begin: cython.longlong) -> cython.void:
        """Cut a slot in two at ``begin``."""
        slot: cython.int = self.records
        node: cython.int
        self.begin[slot] = begin
        self.end[slot] = self.end[after]
        self.end[after] = begin
        self.following[slot] = self.following[after]
        self.following[after] = slot
        for node in range(self.nodes):
            self.free[slot * self.nodes + node] = self.free[after * self.nodes + node]
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
        node: cython.int
        row: cython.longlong
        while True:
            if self.end[slot] > start and self.following[slot] != 0 and later == 0:
                later = self.end[slot]
            if self.end[slot] > start:
                if self.begin[slot] > end:
                    break
                row = cython.cast(cython.longlong, slot) * self.nodes
                for node in range(self.nodes):
                    candidate[node] &= self.free[row + node]
            slot = self.following[slot]
            if slot == 0:
                break
        return later

    @compiled
    def is_reserved(
        self, chosen: cython.schar[::1], start: cython.longlong, end: cython.longlong
    ) -> cython.bint:
        """Return whether one of the nodes chosen is reserved at some time in [start, end)."""
        slot: cython.int = 0
        node: cython.int
        row: cython.longlong
        while True:
            if self.end[slot] > start and self.begin[slot] < end:
                row = cython.cast(cython.longlong, slot) * self.nodes
                for node in range(self.nodes):
                    if chosen[node] and not self.free[row + node]:
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
        node: cython.int
        row: cython.longlong
        found: cython.bint = False
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
            row = cython.cast(cython.longlong, slot) * self.nodes
            for node in range(self.nodes):
                if chosen[node]:
                    self.free[row + node] = False
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
        node: cython.int
        for node in range(self.nodes):
            if self.free[slot * self.nodes + node] != self.free[other * self.nodes + node]:
                return False
        return True
