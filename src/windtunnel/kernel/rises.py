"""`Rises`: where and when there is more capacity than before."""

from __future__ import annotations

import cython
import numpy

from windtunnel.kernel.marks import compiled
from windtunnel.kernel.pairs import longer
from windtunnel.kernel.promises import Promises
from windtunnel.kernel.state import State

#: The node of a rise for jobs that do not go on one node whole.
RISES_WIDE = cython.declare(cython.int, -1)


@cython.final
@cython.cclass
class Rises:
    """The rises since the last decision: nodes and times.

    Args:
        promises: what jobs are promised.

    Attributes:
        count: rises.
        everywhere: there may be more capacity anywhere: rises do not tell.
        round: the present one, of those in which jobs are looked at; 0 = it has not begun.
        node: of each rise.
        begin, end: when, s.
        origin: the job whose move it was, -1 = nobody's; it is looked at until there in the round
            after ``born``.
        many: of a rise for jobs that do not go on one node whole how many rises of nodes, which
            stand before it, are the same; 0 = it is not known where it is.
    """

    promises: Promises
    state: State
    count: cython.int
    capacity: cython.int
    everywhere: cython.bint
    round: cython.int
    node: cython.int[::1]
    begin: cython.double[::1]
    end: cython.double[::1]
    origin: cython.int[::1]
    born: cython.int[::1]
    many: cython.int[::1]

    def __init__(self, promises: Promises) -> None:
        self.promises, self.state = promises, promises.state
        self.count = self.capacity = self.round = 0
        self.node = self.origin = self.born = self.many = numpy.zeros(0, dtype=numpy.int32)
        self.begin = self.end = numpy.zeros(0)

    def _grow(self) -> None:
        capacity = 2 * self.capacity + 64
        self.node = longer(self.node, capacity)
        self.begin = longer(self.begin, capacity)
        self.end = longer(self.end, capacity)
        self.origin = longer(self.origin, capacity)
        self.born = longer(self.born, capacity)
        self.many = longer(self.many, capacity)
        self.capacity = capacity

    @compiled
    def clear(self) -> cython.void:
        """Forget all rises."""
        self.count = 0
        self.everywhere = False
        self.round = 0

    @compiled
    def note_node(self, node: cython.int, begin: cython.double, end: cython.double) -> cython.void:
        """Note that there is more capacity on a node."""
        self._add(node, begin, end, -1)
        self._add(RISES_WIDE, begin, end, -1)

    @compiled
    def note(
        self, job: cython.int, begin: cython.double, end: cython.double, origin: cython.int
    ) -> cython.void:
        """Note that more is free where a job has its place, from ``begin`` until ``end``."""
        if begin < self.state.now:
            begin = self.state.now
        if end <= begin:
            return
        for at in range(
            self.promises.first[job], self.promises.first[job] + self.promises.size[job]
        ):
            self._add(self.promises.places.node[at], begin, end, origin)
        self._add(RISES_WIDE, begin, end, origin)
        self.many[self.count - 1] = self.promises.size[job]

    @compiled
    def _add(
        self, node: cython.int, begin: cython.double, end: cython.double, origin: cython.int
    ) -> cython.void:
        if self.count == self.capacity:
            with cython.gil:
                self._grow()
        self.node[self.count] = node
        self.begin[self.count] = begin
        self.end[self.count] = end
        self.origin[self.count] = origin
        self.born[self.count] = self.round
        self.many[self.count] = 0
        self.count += 1

    @compiled
    def begin_later(self, first_rise: cython.int, time: cython.double) -> cython.void:
        """Let the last rises begin at ``time`` at the earliest: until then as much is held."""
        for rise in range(first_rise, self.count):
            self.begin[rise] = max(self.begin[rise], time)
            if self.begin[rise] >= self.end[rise]:
                self.count = first_rise
                return
