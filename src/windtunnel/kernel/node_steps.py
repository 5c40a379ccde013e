"""`NodeSteps`: what is free on each node from now on, a step function of time for each node.

A step has the amounts that nobody holds of the node's columns (`windtunnel.kernel.free.Free.store`)
and, by access set, how many holds on the node the set does not know. Steps that follow each other
differ, so that a look along a node sees its own changes alone.
"""

from __future__ import annotations

import cython
import numpy

from windtunnel.kernel.marks import compiled
from windtunnel.kernel.pairs import pairs_zeros


@cython.final
@cython.cclass
class NodeSteps:
    """Steps of nodes, those of a node side by side, the first of them now.

    Args:
        num_nodes: nodes or pools.
        columns: amounts of a node.
        sets: access sets whose closed nodes are counted.

    Attributes:
        first: the step of each node that is now.
        behind: behind the last step of each node, which does not end.
        time: when each step begins, s.
        value: amounts of each step, then its counts of holds: ``step * stride + column``.
    """

    nodes: cython.int
    stride: cython.int
    capacity: cython.longlong
    first: cython.longlong[::1]
    behind: cython.longlong[::1]
    time: cython.double[::1]
    value: cython.longlong[::1]

    def __init__(self, num_nodes: int, columns: int, sets: int) -> None:
        self.nodes, self.stride = num_nodes, columns + sets
        self.capacity = 16
        self.time = numpy.zeros(max(num_nodes, 1) * 16)
        self.value = numpy.zeros(max(num_nodes, 1) * 16 * self.stride, dtype=numpy.int64)
        self.first = numpy.zeros(max(num_nodes, 1), dtype=numpy.int64)
        self.behind = numpy.zeros(max(num_nodes, 1), dtype=numpy.int64)

    def _grow(self) -> None:
        rows, old = max(self.nodes, 1), self.capacity
        capacity = 2 * old
        time = pairs_zeros((rows, capacity), numpy.float64)
        time[:, :old] = numpy.asarray(self.time).reshape(rows, old)
        value = pairs_zeros((rows, capacity * self.stride), numpy.int64)
        value[:, : old * self.stride] = numpy.asarray(self.value).reshape(rows, -1)
        self.time, self.value = time.reshape(-1), value.reshape(-1)
        shift = numpy.arange(rows, dtype=numpy.int64) * old
        self.first = numpy.asarray(self.first) + shift
        self.behind = numpy.asarray(self.behind) + shift
        self.capacity = capacity

    @compiled
    def begin(self, node: cython.int, now: cython.double) -> cython.longlong:
        """Let a node have one step, and return it; its values are not set yet."""
        self.first[node] = node * self.capacity
        self.behind[node] = self.first[node] + 1
        self.time[self.first[node]] = now
        return self.first[node]

    @compiled
    def forget(self, now: cython.double) -> cython.void:
        """Drop what lies before now."""
        for node in range(self.nodes):
            step = self.first[node]
            while step + 1 < self.behind[node] and self.time[step + 1] <= now:
                step += 1
            self.first[node] = step
            self.time[step] = now

    @compiled
    def at(self, node: cython.int, time: cython.double) -> cython.longlong:
        """Return the step of a node that is at a time; now for what is past."""
        low: cython.longlong = self.first[node]
        high: cython.longlong = self.behind[node] - 1
        while low < high:
            middle = (low + high + 1) >> 1
            if self.time[middle] <= time:
                low = middle
            else:
                high = middle - 1
        return low

    @compiled
    def least(
        self, node: cython.int, column: cython.int, step: cython.longlong, stop: cython.double
    ) -> cython.longlong:
        """Return the least that a column has in a step and those that begin before ``stop`` (s)."""
        found: cython.longlong = self.value[step * self.stride + column]
        step += 1
        while step < self.behind[node] and self.time[step] < stop:
            found = min(found, self.value[step * self.stride + column])
            step += 1
        return found

    @compiled
    def most(
        self, node: cython.int, column: cython.int, step: cython.longlong, stop: cython.double
    ) -> cython.longlong:
        """Return the most that a column has in a step and those that begin before ``stop`` (s)."""
        found: cython.longlong = self.value[step * self.stride + column]
        step += 1
        while step < self.behind[node] and self.time[step] < stop:
            found = max(found, self.value[step * self.stride + column])
            step += 1
        return found

    # Changes.

    @compiled
    def open(self, node: cython.int) -> cython.void:
        """Provide two more steps of a node; its steps may get other numbers."""
        base: cython.longlong = node * self.capacity
        if self.behind[node] + 2 <= base + self.capacity:
            return
        if self.first[node] - base < self.capacity // 4:
            with cython.gil:
                self._grow()
            return
        self._shift(self.first[node], self.behind[node], base - self.first[node])
        self.behind[node] += base - self.first[node]
        self.first[node] = base

    @compiled
    def cut(self, node: cython.int, time: cython.double) -> cython.longlong:
        """Return the step that begins at a time, made where there is none; now for what is past."""
        found: cython.longlong = self.at(node, time)
        if self.time[found] >= time:
            return found
        self._shift(found, self.behind[node], 1)
        self.behind[node] += 1
        self.time[found + 1] = time
        return found + 1

    @compiled
    def join(self, node: cython.int, step: cython.longlong) -> cython.void:
        """Drop a step, if there is one, that is as the one before."""
        if step <= self.first[node] or step >= self.behind[node]:
            return
        for column in range(self.stride):
            if (
                self.value[step * self.stride + column]
                != self.value[(step - 1) * self.stride + column]
            ):
                return
        self._shift(step + 1, self.behind[node], -1)
        self.behind[node] -= 1

    @compiled
    def _shift(
        self, begin: cython.longlong, end: cython.longlong, by: cython.longlong
    ) -> cython.void:
        """Move the steps from ``begin`` to before ``end`` by so many places."""
        width: cython.longlong = self.stride
        if by > 0:
            for cell in range(end - 1, begin - 1, -1):
                self.time[cell + by] = self.time[cell]
            for cell in range(end * width - 1, begin * width - 1, -1):
                self.value[cell + by * width] = self.value[cell]
        else:
            for cell in range(begin, end):
                self.time[cell + by] = self.time[cell]
            for cell in range(begin * width, end * width):
                self.value[cell + by * width] = self.value[cell]

    @compiled
    def add(
        self, node: cython.int, column: cython.int, change: cython.longlong, begin: cython.double
    ) -> cython.void:
        """Add to a column of a node from ``begin`` (s) on."""
        self.open(node)
        first = self.cut(node, begin)
        for step in range(first, self.behind[node]):
            self.value[step * self.stride + column] += change
        self.join(node, first)
