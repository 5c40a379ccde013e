"""`FreeKinds`: what each kind of job asks of whole GPUs of nodes, or of a pool."""

from __future__ import annotations

from typing import Any

import cython
import numpy

from windtunnel.kernel.marks import compiled
from windtunnel.kernel.node_sets import NodeSets


@cython.final
@cython.cclass
class FreeKinds:
    """The demands (`windtunnel.cluster.free.Demand`) as columns; states of one cluster share them.

    Args:
        sizes: GPU units of each node or pool, (nodes,).
        demands: the kinds, in order.

    Attributes:
        count: kinds.
        gpus: GPU units of the whole gang.
        task: GPU units of one task.
        cpus: thousandths of cores of the whole gang.
        largest: most GPU units that it could use on one empty node.
        smallest: least such number above 0.
        empties: empty nodes that it needs at least, where it is larger than a node.
        pods: pods of one size, where a topology places them; else 0.
        mask: where the set of its nodes begins in ``sets.bits``, -1 = all nodes.
        sets: the sets of nodes.
    """

    count: cython.int
    room: cython.int
    most: cython.longlong
    gpus: cython.longlong[::1]
    task: cython.longlong[::1]
    cpus: cython.longlong[::1]
    largest: cython.longlong[::1]
    smallest: cython.longlong[::1]
    empties: cython.longlong[::1]
    pods: cython.longlong[::1]
    mask: cython.longlong[::1]
    sets: NodeSets

    def __init__(self, sizes: Any, demands: Any) -> None:
        self.sets = NodeSets(len(sizes))
        self.most = max(sizes, default=0)
        self.count = self.room = 0
        self._grow(len(demands))
        for demand in demands:
            self.add(demand)

    def _grow(self, room: int) -> None:
        self.room = max(room, 8)
        old = numpy.zeros(0, dtype=numpy.int64)
        self.gpus = _with_room(self.gpus if self.count else old, self.room)
        self.task = _with_room(self.task if self.count else old, self.room)
        self.cpus = _with_room(self.cpus if self.count else old, self.room)
        self.largest = _with_room(self.largest if self.count else old, self.room)
        self.smallest = _with_room(self.smallest if self.count else old, self.room)
        self.empties = _with_room(self.empties if self.count else old, self.room)
        self.pods = _with_room(self.pods if self.count else old, self.room)
        self.mask = _with_room(self.mask if self.count else old, self.room)

    def add(self, demand: Any) -> int:
        """Add a kind; return its number."""
        if self.count == self.room:
            self._grow(2 * self.room)
        kind: cython.int = self.count
        self.gpus[kind] = demand.gpus
        self.task[kind] = demand.task
        self.cpus[kind] = demand.cpus
        self.largest[kind] = demand.largest
        self.smallest[kind] = demand.smallest
        self.empties[kind] = self._empties(demand)
        self.pods[kind] = demand.pods
        self.mask[kind] = self.sets.place(demand.allowed)
        self.count += 1
        return int(kind)

    @compiled
    def allows(self, kind: cython.int, node: cython.int) -> cython.bint:
        """Return whether jobs of a kind may use a node at all: its GPU type is acceptable."""
        return self.mask[kind] < 0 or self.sets.has(self.mask[kind], node)

    def _empties(self, demand: Any) -> Any:
        """Return how many empty nodes a gang needs at least; fewer is a quick no.

        An empty node holds at most ``largest``, and so does the node that takes the remainder; that
        one need not be empty, unless nothing less than a whole node holds ``largest``.
        """
        if demand.largest == 0:
            return 0
        if demand.largest == self.most:
            return demand.gpus // demand.largest
        return (demand.gpus - 1) // demand.largest


def _with_room(column: Any, room: int) -> Any:
    """Return a column with room for more numbers, Int64 array (room,)."""
    larger = numpy.zeros(room, dtype=numpy.int64)
    larger[: len(column)] = column
    return larger
