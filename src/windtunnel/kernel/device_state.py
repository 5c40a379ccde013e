"""`DeviceState`: what is free of each GPU, of the cores and of the memory of every node.

Besides, nodes are kept in sets, one bit a node, by which searches go: on a cluster in use most
nodes are full, or run nothing and are like others of their kind.
"""

from __future__ import annotations

from typing import Any

import cython
import numpy

from windtunnel.kernel.bits import bit_at, lowest_bit
from windtunnel.kernel.device_cluster import DEVICE_MILLI, DEVICE_UNLIMITED, DeviceCluster
from windtunnel.kernel.marks import compiled
from windtunnel.kernel.rows import Rows

#: Rows of ``sets``: nodes that run something, or whose kind is not distinguished; nodes with GPUs
#: left; then nodes with at least 1, 2 ... free GPUs; nodes one device of which has at least 64, 128
#: ... free thousandths; and of each kind those that run nothing.
SET_IN_USE = cython.declare(cython.int, 0)
SET_WITH_GPUS = cython.declare(cython.int, 1)
SET_LEVELS = cython.declare(cython.int, 2)
#: Sets by the most that one device has free; each is wider than the next by so many thousandths,
#: as a shift.
DEVICE_BUCKETS = cython.declare(cython.int, 15)
BUCKET_SHIFT = cython.declare(cython.int, 6)
#: More tasks than a node ever has; a row (`Rows`) says how many fewer there are.
ROW_TASKS = cython.declare(cython.longlong, 1 << 30)


@cython.final
@cython.cclass
class DeviceState:
    """What is free on each node, as tables that are copied at once.

    Args:
        cluster: the nodes.
        counts_groups: count the tasks of each group on every node.

    Attributes:
        cores: free thousandths of cores of each node, (nodes,).
        mem: free MiB of each node.
        stamp: mark of each node's last change (`DeviceCluster.stamp`).
        sets: sets of nodes, a row each, (rows x words,).
        total: free thousandths of each node's GPUs, (nodes,).
        idle: GPUs of each node that nobody uses; a pooled state cannot tell.
        tasks: tasks on each node.
        most_free: most free thousandths of one device.
        level: in how many sets by free GPUs the node is, and in how many by `most_free`.
        bucket: ditto.
        devices: free thousandths of each device, (nodes x each,); of a pooled node of all in one.
        held: tasks with GPUs on each node by group, (nodes x groups,); empty if not counted.
        groups: groups that are counted.
        idlers: nodes that run nothing.
        free: free thousandths of all GPUs.
        within: scratch: the nodes that a search looks at, as bits.
        left: scratch: free thousandths of one node's devices, less what is about to be taken.
    """

    cluster: DeviceCluster
    first_bucket: cython.int
    first_kind: cython.int
    wide: cython.longlong[::1]
    narrow: cython.int[::1]
    cores: cython.longlong[::1]
    mem: cython.longlong[::1]
    stamp: cython.longlong[::1]
    sets: cython.longlong[::1]
    total: cython.int[::1]
    idle: cython.int[::1]
    tasks: cython.int[::1]
    most_free: cython.int[::1]
    level: cython.int[::1]
    bucket: cython.int[::1]
    devices: cython.int[::1]
    held: cython.int[::1]
    groups: cython.int
    idlers: cython.longlong
    free: cython.longlong
    within: cython.longlong[::1]
    left: cython.int[::1]

    def __init__(self, cluster: DeviceCluster, counts_groups: Any) -> None:
        which: cython.int
        device: cython.int
        self.cluster = cluster
        self.free = self.idlers = 0
        self.groups = cluster.top + 1 if counts_groups else 0
        self._cut()
        for which in range(cluster.nodes):
            self.cores[which] = cluster.size_cores[which]
            self.mem[which] = cluster.size_mem[which]
            if cluster.size_cores[which] < 0:
                self.cores[which] = DEVICE_UNLIMITED
            if cluster.size_mem[which] < 0:
                self.mem[which] = DEVICE_UNLIMITED
            self.stamp[which] = 1
            self.idle[which] = cluster.gpus[which]
            if cluster.pooled:
                self.devices[which] = cluster.gpus[which] * DEVICE_MILLI
            else:
                for device in range(cluster.gpus[which]):
                    self.devices[which * cluster.each + device] = DEVICE_MILLI
            self.sets[SET_IN_USE * cluster.words + (which >> 6)] |= bit_at(which & 63)
            self._sum_up(which)
        self.idlers = cluster.nodes

    def _cut(self) -> None:
        """Make the tables, all in two blocks, so that a copy is two copies of memory."""
        nodes = self.cluster.nodes
        self.first_bucket = SET_LEVELS + self.cluster.top
        self.first_kind = self.first_bucket + DEVICE_BUCKETS
        rows = self.first_kind + self.cluster.kinds
        wide = numpy.zeros(3 * nodes + rows * self.cluster.words, dtype=numpy.int64)
        self.cores, self.mem = wide[:nodes], wide[nodes : 2 * nodes]
        self.stamp, self.sets = wide[2 * nodes : 3 * nodes], wide[3 * nodes :]
        self.wide = wide
        lengths = [nodes] * 6
        lengths += [nodes * self.cluster.each, nodes * self.groups]
        ends = numpy.cumsum(lengths).tolist()
        narrow = numpy.zeros(sum(lengths), dtype=numpy.int32)
        parts = [narrow[end - length : end] for end, length in zip(ends, lengths, strict=True)]
        self.total, self.idle, self.tasks, self.most_free = parts[:4]
        self.level, self.bucket, self.devices, self.held = parts[4:]
        self.narrow = narrow
        self.within = numpy.zeros(self.cluster.words, dtype=numpy.int64)
        self.left = numpy.zeros(max(self.cluster.each, 1), dtype=numpy.int32)

    def twin(self) -> DeviceState:
        """Return an equal copy."""
        twin: DeviceState = DeviceState.__new__(DeviceState)
        twin.cluster, twin.groups = self.cluster, self.groups
        twin._cut()
        twin.copy_from(self)
        return twin

    @compiled
    def copy_from(self, other: DeviceState) -> cython.void:
        """Become equal to another state of the same cluster."""
        self.wide[:] = other.wide
        self.narrow[:] = other.narrow
        self.free = other.free
        self.idlers = other.idlers
        if self.cluster is not other.cluster:
            for which in range(self.cluster.nodes):  # its stamps mean something else
                self.mark(which)

    @compiled
    def mark(self, which: cython.int) -> cython.void:
        """Note that a node has changed."""
        self.cluster.stamp += 1
        self.stamp[which] = self.cluster.stamp

    # Sets of nodes.

    @compiled
    def sort_in(self, which: cython.int) -> cython.void:
        """Put a node that has changed into the sets that it belongs to."""
        word: cython.int = which >> 6
        words: cython.int = self.cluster.words
        bit: cython.longlong = bit_at(which & 63)
        own: cython.int = self.cluster.kind[which]
        if own >= 0 and self._is_fresh(which):
            if self.sets[SET_IN_USE * words + word] & bit:
                self.sets[SET_IN_USE * words + word] ^= bit
                self.sets[(self.first_kind + own) * words + word] |= bit
        elif not self.sets[SET_IN_USE * words + word] & bit:
            self.sets[SET_IN_USE * words + word] |= bit
            if own >= 0:
                self.sets[(self.first_kind + own) * words + word] &= ~bit
        if self.total[which] > 0:
            self.sets[SET_WITH_GPUS * words + word] |= bit
        else:
            self.sets[SET_WITH_GPUS * words + word] &= ~bit
        self._sort_in_levels(which)

    @compiled
    def _is_fresh(self, which: cython.int) -> cython.bint:
        """Return whether a node runs nothing and has all that others of its kind have then.

        In what is left of a node for a plan there may be less, whoever took it.
        """
        cores: cython.longlong = self.cluster.size_cores[which]
        mem: cython.longlong = self.cluster.size_mem[which]
        if self.tasks[which] != 0:
            return False
        if self.total[which] != self.cluster.gpus[which] * DEVICE_MILLI:
            return False
        if self.cores[which] != (DEVICE_UNLIMITED if cores < 0 else cores):
            return False
        return self.mem[which] == (DEVICE_UNLIMITED if mem < 0 else mem)

    @compiled
    def _sort_in_levels(self, which: cython.int) -> cython.void:
        level: cython.int = self.idle[which]
        bucket: cython.int = self.most_free[which] >> BUCKET_SHIFT
        if self.cluster.pooled:
            level = self.total[which] // DEVICE_MILLI
            bucket = 0
        level = min(max(level, 0), self.cluster.top)
        bucket = min(max(bucket, 0), DEVICE_BUCKETS)
        self._step(which, SET_LEVELS, self.level[which], level)
        self._step(which, self.first_bucket, self.bucket[which], bucket)
        self.level[which] = level
        self.bucket[which] = bucket

    @compiled
    def _step(
        self, which: cython.int, first: cython.int, before: cython.int, after: cython.int
    ) -> cython.void:
        """Let a node be in so many sets of a series instead of so many before."""
        word: cython.int = which >> 6
        bit: cython.longlong = bit_at(which & 63)
        for row in range(before, after):
            self.sets[(first + row) * self.cluster.words + word] |= bit
        for row in range(after, before):
            self.sets[(first + row) * self.cluster.words + word] &= ~bit

    @compiled
    def first_idle(self, own: cython.int) -> cython.int:
        """Return the first node of a kind, in ``within``, that runs nothing, or -1."""
        words: cython.int = self.cluster.words
        begin: cython.int = (self.first_kind + own) * words
        for word in range(words):
            found = self.sets[begin + word] & self.within[word]
            if found != 0:
                return (word << 6) + lowest_bit(found)
        return -1

    @compiled
    def is_within(self, which: cython.int) -> cython.bint:
        """Return whether a search looks at a node."""
        return (self.within[which >> 6] >> (which & 63)) & 1 != 0

    @compiled
    def look_past(self, which: cython.int) -> cython.void:
        """Let the search look at a node no more."""
        self.within[which >> 6] &= ~bit_at(which & 63)

    @compiled
    def first_devices(
        self, which: cython.int, count: cython.longlong, idle: cython.bint
    ) -> cython.longlong:
        """Return the first so many devices of a node that nobody uses, or that some do, as bits."""
        first: cython.int = which * self.cluster.each
        found: cython.longlong = 0
        for device in range(self.cluster.gpus[which]):
            if count > 0 and idle == (self.devices[first + device] == DEVICE_MILLI):
                found |= bit_at(device)
                count -= 1
        return found

    # Sums.

    @compiled
    def find_most_free(self, which: cython.int) -> cython.void:
        """Note the most free thousandths of one device of a node."""
        first: cython.int = which * self.cluster.each
        most: cython.int = 0
        for device in range(first, first + self.cluster.gpus[which]):
            most = max(most, self.devices[device])
        self.most_free[which] = most

    @compiled
    def _sum_up(self, which: cython.int) -> cython.void:
        """Make everything anew that follows from what is free on each device of a node."""
        each: cython.int = self.cluster.each
        self.free -= self.total[which]
        self.total[which] = 0
        if not self.cluster.pooled:
            self.idle[which] = 0
            self.find_most_free(which)
        for at in range(which * each, (which + 1) * each):
            self.total[which] += self.devices[at]
            if not self.cluster.pooled and self.devices[at] == DEVICE_MILLI:
                self.idle[which] += 1
        self.free += self.total[which]
        self.sort_in(which)

    # As a row of numbers (`windtunnel.kernel.rows`): of each node its devices, cores and memory,
    # and how many tasks, in all and of each group, there are fewer than `ROW_TASKS`.

    @compiled
    def width(self) -> cython.int:
        """Return how many columns a node has in a row."""
        return self.cluster.each + 3 + self.groups

    @compiled
    def store(self, rows: Rows, row: cython.int) -> cython.void:
        """Write what is free as a row."""
        each: cython.int = self.cluster.each
        for which in range(self.cluster.nodes):
            at = row * rows.columns + which * self.width()
            for column in range(each):
                rows.cell[at + column] = self.devices[which * each + column]
            at += each
            rows.cell[at] = self.cores[which]
            rows.cell[at + 1] = self.mem[which]
            rows.cell[at + 2] = ROW_TASKS - self.tasks[which]
            for column in range(self.groups):
                rows.cell[at + 3 + column] = ROW_TASKS - self.held[which * self.groups + column]

    @compiled
    def load(self, rows: Rows, row: cython.int) -> cython.void:
        """Become what a row says; less than nothing is nothing."""
        self.idlers = 0
        for which in range(self.cluster.nodes):
            if self._load_node(rows, row * rows.columns + which * self.width(), which):
                self.mark(which)
                self._sum_up(which)
            if self.tasks[which] == 0:
                self.idlers += 1

    @compiled
    def _load_node(self, rows: Rows, at: cython.longlong, which: cython.int) -> cython.bint:
        """Read a node's columns, which begin at ``at``; return whether anything is new."""
        each: cython.int = self.cluster.each
        changes: cython.bint = False
        for column in range(each):
            new = cython.cast(cython.int, max(rows.cell[at + column], 0))
            changes = changes or new != self.devices[which * each + column]
            self.devices[which * each + column] = new
        at += each
        changes = changes or self.cores[which] != max(rows.cell[at], 0)
        changes = changes or self.mem[which] != max(rows.cell[at + 1], 0)
        self.cores[which] = max(rows.cell[at], 0)
        self.mem[which] = max(rows.cell[at + 1], 0)
        new = cython.cast(cython.int, max(ROW_TASKS - rows.cell[at + 2], 0))
        changes = changes or new != self.tasks[which]
        self.tasks[which] = new
        for column in range(self.groups):
            new = cython.cast(cython.int, max(ROW_TASKS - rows.cell[at + 3 + column], 0))
            changes = changes or new != self.held[which * self.groups + column]
            self.held[which * self.groups + column] = new
        return changes
