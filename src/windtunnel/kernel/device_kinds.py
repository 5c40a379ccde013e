"""`DeviceKinds`: what each kind of job asks of nodes with devices."""

from __future__ import annotations

from typing import Any

import cython
import numpy

from windtunnel.kernel.marks import compiled
from windtunnel.kernel.node_sets import NodeSets
from windtunnel.kernel.pairs import longer

#: Thousandths of a GPU.
DEVICE_MILLI = cython.declare(cython.int, 1000)


@cython.final
@cython.cclass
class DeviceKinds:
    """The demands (`windtunnel.cluster.devices.DeviceDemand`) as columns; twins share them.

    Args:
        num_nodes: nodes of the cluster.
        demands: the kinds, in order.
        fills: gangs fill nodes in the order of their scores, task by task.
        alike: every kind scores a node alike.
        by_memory: kinds of other memory may score a node otherwise.

    Attributes:
        count: kinds.
        classes: score classes: kinds of one class score a node alike.
        tasks: tasks of the gang.
        whole: whole GPUs of a task.
        part: thousandths of one GPU of a task.
        unit: thousandths that a task has of each of its devices: its part, or all.
        milli: thousandths of GPUs of a task in all.
        cores: thousandths of cores of a task.
        mem: MiB of a task.
        largest: most tasks that one empty node holds.
        capacity: tasks that the empty cluster holds.
        group: what kind of GPU job it is: 0 a share, k whole GPUs, -1 no GPUs.
        chunk: tasks that are scored together.
        scored: score class.
        empties: nodes that run nothing which a gang over several nodes needs at least.
        mask: where the set of its nodes begins in ``sets.bits``, -1 = all nodes.
        sets: the sets of nodes.
    """

    count: cython.int
    classes: cython.int
    fills: cython.bint
    alike: cython.bint
    by_memory: cython.bint
    table: cython.longlong[:, ::1]
    tasks: cython.longlong[::1]
    whole: cython.longlong[::1]
    part: cython.longlong[::1]
    unit: cython.longlong[::1]
    milli: cython.longlong[::1]
    cores: cython.longlong[::1]
    mem: cython.longlong[::1]
    largest: cython.longlong[::1]
    capacity: cython.longlong[::1]
    group: cython.longlong[::1]
    chunk: cython.longlong[::1]
    scored: cython.longlong[::1]
    empties: cython.longlong[::1]
    mask: cython.longlong[::1]
    sets: NodeSets
    _numbers: dict

    def __init__(
        self, num_nodes: Any, demands: Any, fills: Any, alike: Any, by_memory: Any
    ) -> None:
        self.sets = NodeSets(num_nodes)
        self.fills, self.alike, self.by_memory = fills, alike, by_memory
        self._numbers = {}
        self.count = self.classes = 0
        self._cut(numpy.zeros((14, max(len(demands), 8)), dtype=numpy.int64))
        for demand in demands:
            self.add(demand)

    def _cut(self, table: Any) -> None:
        self.table = table
        self.tasks, self.whole, self.part, self.milli = table[0], table[1], table[2], table[3]
        self.cores, self.mem, self.largest = table[4], table[5], table[6]
        self.capacity, self.group, self.chunk = table[7], table[8], table[9]
        self.scored, self.empties, self.mask, self.unit = table[10], table[11], table[12], table[13]

    def _row(self, demand: Any) -> tuple[int, ...]:
        count, largest = demand.count, demand.largest
        chunk = 1 if self.fills else count
        mem = demand.mem if self.by_memory else 0
        key = () if self.alike else (chunk, demand.gpus, demand.milli, demand.cores, mem)
        return (
            *(count, demand.gpus, demand.milli, demand.amount, demand.cores, demand.mem),
            *(largest, demand.capacity, demand.group, chunk),
            self._numbers.setdefault(key, len(self._numbers)),
            # Each of them holds at most ``largest`` tasks, and so does the node that takes the
            # remainder, which need not be one of them.
            (count - 1) // largest if largest else 0,
            self.sets.place(demand.allowed),
            demand.milli or DEVICE_MILLI,
        )

    def add(self, demand: Any) -> int:
        """Add a kind; return its number."""
        kind: cython.int = self.count
        if kind == self.table.shape[1]:
            self._cut(longer(self.table, 2 * kind))
        numpy.asarray(self.table)[:, kind] = self._row(demand)
        self.classes = len(self._numbers)
        self.count += 1
        return int(kind)

    @compiled
    def allows(self, kind: cython.int, which: cython.int) -> cython.bint:
        """Return whether a kind's tasks may run on a node at all: its GPU type is acceptable."""
        return self.mask[kind] < 0 or self.sets.has(self.mask[kind], which)
