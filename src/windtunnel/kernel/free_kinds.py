"""`FreeKinds`: what each kind of job asks of whole GPUs of nodes, or of a pool."""

from __future__ import annotations

from typing import Any

import cython
import numpy

from windtunnel.kernel.marks import compiled
from windtunnel.kernel.node_sets import NodeSets
from windtunnel.kernel.pairs import longer


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
    most: cython.longlong
    table: cython.longlong[:, ::1]
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
        self.count = 0
        self._cut(numpy.zeros((8, max(len(demands), 8)), dtype=numpy.int64))
        for demand in demands:
            self.add(demand)

    def _cut(self, table: Any) -> None:
        self.table = table
        self.gpus, self.task, self.cpus, self.largest = table[0], table[1], table[2], table[3]
        self.smallest, self.empties, self.pods, self.mask = table[4], table[5], table[6], table[7]

    def add(self, demand: Any) -> int:
        """Add a kind; return its number."""
        kind: cython.int = self.count
        if kind == self.table.shape[1]:
            self._cut(longer(self.table, 2 * kind))
        numpy.asarray(self.table)[:, kind] = (
            *(demand.gpus, demand.task, demand.cpus, demand.largest, demand.smallest),
            *(self._empties(demand), demand.pods, self.sets.place(demand.allowed)),
        )
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
