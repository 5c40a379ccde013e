"""`DeviceCluster`: nodes with devices, whatever runs; `DeviceKinds`: what jobs ask of them."""

from __future__ import annotations

from typing import Any

import cython
import numpy

from windtunnel.kernel.marks import compiled
from windtunnel.kernel.node_sets import NodeSets
from windtunnel.kernel.pairs import longer

#: Thousandths of a GPU.
DEVICE_MILLI = cython.declare(cython.int, 1000)
#: Kinds of nodes that are distinguished.
DEVICE_MOST_KINDS = cython.declare(cython.int, 32)
#: Free cores or memory of a node on which they are not constrained.
DEVICE_UNLIMITED = cython.declare(cython.longlong, 1 << 60)


@cython.final
@cython.cclass
class DeviceCluster:
    """The nodes, those that are alike, and racks.

    Args:
        nodes: the cluster, a sequence of `windtunnel.cluster.devices.DeviceNode`.
        pooled: a node's GPUs are one pool of thousandths.

    Attributes:
        nodes: how many.
        words: 64-bit words of a set of nodes.
        top: GPUs of the largest node.
        each: devices of a node in tables: 1 where nodes are pooled.
        pooled: see above.
        gpus: GPUs of each node, (nodes,).
        size_cores: thousandths of cores of each; -1 = not constrained.
        size_mem: MiB of each; -1 = not constrained.
        rank: place of each by name.
        by_name: the nodes are in the order of their names.
        kind: kind of each node, -1 = not distinguished.
        kinds: kinds that are distinguished.
        every: the set of all nodes, one bit each, (words,).
        max_cores: thousandths of cores of the largest node.
        max_milli: thousandths of GPUs of the largest node.
        racks: racks.
        rack_begin: where each rack's nodes begin in ``rack_node``, (racks + 1,).
        rack_node: nodes by rack.
        stamp: the last number that marked a change of a node: two nodes of twins with one stamp
            have the same free.
    """

    nodes: cython.int
    words: cython.int
    top: cython.int
    each: cython.int
    pooled: cython.bint
    gpus: cython.int[::1]
    size_cores: cython.longlong[::1]
    size_mem: cython.longlong[::1]
    rank: cython.int[::1]
    by_name: cython.bint
    kind: cython.int[::1]
    kinds: cython.int
    every: cython.longlong[::1]
    max_cores: cython.longlong
    max_milli: cython.longlong
    racks: cython.int
    rack_begin: cython.int[::1]
    rack_node: cython.int[::1]
    stamp: cython.longlong

    def __init__(self, nodes: Any, pooled: Any) -> None:
        self.nodes = len(nodes)
        self.words = (len(nodes) + 63) // 64
        self.top = max((node.gpus for node in nodes), default=0)
        bits = numpy.arange(64 * self.words) < len(nodes)
        self.every = numpy.packbits(bits, bitorder="little").view("<i8")
        self.pooled = pooled
        self.each = 1 if pooled else self.top
        if self.top > 62 and not pooled:
            raise ValueError(f"{self.top} GPUs a node; at most 62 fit")
        self.gpus = numpy.array([node.gpus for node in nodes], dtype=numpy.int32)
        self.size_cores = _sizes_of([node.cores for node in nodes])
        self.size_mem = _sizes_of([node.mem for node in nodes])
        self.stamp = 1
        cores = max((node.cores for node in nodes if node.cores is not None), default=1)
        self.max_cores = max(cores, 1)
        self.max_milli = max(DEVICE_MILLI * self.top, 1)
        self._rank([node.name for node in nodes])
        self._tell_apart(nodes)
        self._rack([node.rack for node in nodes])

    def _rank(self, names: Any) -> None:
        ranks = numpy.zeros(len(names), dtype=numpy.int32)
        ranks[sorted(range(len(names)), key=names.__getitem__)] = range(len(names))
        self.rank = ranks
        self.by_name = bool((ranks == numpy.arange(len(names))).all())

    def _tell_apart(self, nodes: Any) -> None:
        """Number the kinds of nodes, those with the most nodes first; the last are left out."""
        found: dict = {}
        for index, node in enumerate(nodes):
            key = (node.gpus, node.gpu_type, node.cores, node.mem)
            found.setdefault(key, []).append(index)
        kind = numpy.full(len(nodes), -1, dtype=numpy.int32)
        kept = sorted(found.values(), key=len, reverse=True)[:DEVICE_MOST_KINDS]
        for number, members in enumerate(kept):
            kind[members] = number
        self.kind = kind
        self.kinds = len(kept)

    def _rack(self, racks: Any) -> None:
        """Note the nodes of each rack, racks in order; there are none where nodes state none."""
        names = sorted({rack for rack in racks if rack is not None})
        members = [[i for i, rack in enumerate(racks) if rack == name] for name in names]
        self.racks = len(names)
        self.rack_node = numpy.array([i for rack in members for i in rack], dtype=numpy.int32)
        begins = numpy.cumsum([0] + [len(rack) for rack in members])
        self.rack_begin = begins.astype(numpy.int32)


def _sizes_of(sizes: Any) -> Any:
    return numpy.array([-1 if size is None else size for size in sizes], dtype=numpy.int64)


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
