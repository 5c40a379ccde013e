"""`NodeTimes`: things that happen on nodes, a list in order of time for each node."""

from __future__ import annotations

import cython
import numpy

from windtunnel.kernel.marks import compiled
from windtunnel.kernel.pairs import pairs_zeros


@cython.final
@cython.cclass
class NodeTimes:
    """Numbered items, each at a time on a node.

    Args:
        num_nodes: nodes or pools.

    Attributes:
        length: items of each node.
        capacity: cells for each node; the items of a node begin at ``node * capacity``.
        time: when each item is, s.
        item: its number.
    """

    nodes: cython.int
    capacity: cython.longlong
    length: cython.int[::1]
    time: cython.double[::1]
    item: cython.int[::1]

    def __init__(self, num_nodes: int) -> None:
        self.nodes = num_nodes
        self.length = numpy.zeros(max(num_nodes, 1), dtype=numpy.int32)
        self._grow(16)

    def clear(self) -> None:
        """Forget all items."""
        self.length = numpy.zeros(max(self.nodes, 1), dtype=numpy.int32)

    def _grow(self, capacity: int) -> None:
        rows = max(self.nodes, 1)
        kept = min(self.capacity, capacity)
        times, items = (
            pairs_zeros((rows, capacity), numpy.float64),
            pairs_zeros((rows, capacity), numpy.int32),
        )
        if kept:
            times[:, :kept] = numpy.asarray(self.time).reshape(rows, -1)
            items[:, :kept] = numpy.asarray(self.item).reshape(rows, -1)
        self.time, self.item = times.reshape(-1), items.reshape(-1)
        self.capacity = capacity

    @compiled
    def count_until(self, node: cython.int, time: cython.double) -> cython.int:
        """Return how many of a node's items are at ``time`` (s) or before."""
        first: cython.longlong = node * self.capacity
        low: cython.int = 0
        high: cython.int = self.length[node]
        while low < high:
            middle = (low + high) >> 1
            if self.time[first + middle] <= time:
                low = middle + 1
            else:
                high = middle
        return low

    @compiled
    def add(self, node: cython.int, time: cython.double, item: cython.int) -> cython.void:
        """Let an item be on a node, too."""
        if self.length[node] == self.capacity:
            with cython.gil:
                self._grow(2 * self.capacity)
        place = node * self.capacity + self.count_until(node, time)
        at = node * self.capacity + self.length[node]
        while at > place:
            self.time[at] = self.time[at - 1]
            self.item[at] = self.item[at - 1]
            at -= 1
        self.time[place] = time
        self.item[place] = item
        self.length[node] += 1

    @compiled
    def remove(self, node: cython.int, time: cython.double, item: cython.int) -> cython.void:
        """Take an item off a node; it is there at that time."""
        at: cython.longlong = node * self.capacity + self.count_until(node, time) - 1
        while self.item[at] != item:
            at -= 1
        self.length[node] -= 1
        last = node * self.capacity + self.length[node]
        while at < last:
            self.time[at] = self.time[at + 1]
            self.item[at] = self.item[at + 1]
            at += 1
