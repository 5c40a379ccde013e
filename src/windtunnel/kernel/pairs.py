"""`Pairs`: (node, grant) pairs, the form in which the kernel says where jobs run.

A grant is what a job has on a node: GPU units on whole-GPU nodes and pools, thousandths of GPUs on
pooled nodes, and where devices are modelled the devices themselves, one bit each.
"""

from __future__ import annotations

from typing import Any

import cython
import numpy

from windtunnel.kernel.marks import compiled

#: Times that there was no memory for a longer array. The loop ends with any: what it went on with
#: may lack something. Memory is the process's, so this is, too.
PAIRS_REFUSED = cython.declare(cython.longlong, 0)


@cython.final
@cython.cclass
class Pairs:
    """A growing list of (node, grant) pairs.

    Attributes:
        count: pairs in the list.
        node: node (or pool) of each.
        grant: what is held there.
    """

    count: cython.longlong
    capacity: cython.longlong
    node: cython.int[::1]
    grant: cython.longlong[::1]

    def __init__(self, capacity: int = 64) -> None:
        self.count = 0
        self.capacity = max(capacity, 1)
        self.node = numpy.empty(self.capacity, dtype=numpy.int32)
        self.grant = numpy.empty(self.capacity, dtype=numpy.int64)

    def _grow(self) -> None:
        capacity = self.capacity + self.capacity // 2 + 64
        self.node = longer(self.node, capacity)
        self.grant = longer(self.grant, capacity)
        self.capacity = capacity

    @compiled
    def add(self, node: cython.int, grant: cython.longlong) -> cython.void:
        """Append a pair."""
        if self.count == self.capacity:
            with cython.gil:
                self._grow()
        self.node[self.count] = node
        self.grant[self.count] = grant
        self.count += 1

    @compiled
    def add_up(
        self, begin: cython.longlong, node: cython.int, grant: cython.longlong
    ) -> cython.void:
        """Add to what a node has among the pairs from ``begin`` on, or append it."""
        for at in range(begin, self.count):
            if self.node[at] == node:
                self.grant[at] += grant
                return
        self.add(node, grant)

    @compiled
    def extend(self, other: Pairs, begin: cython.longlong, end: cython.longlong) -> cython.void:
        """Append some of another list's pairs."""
        for at in range(begin, end):
            self.add(other.node[at], other.grant[at])

    def nodes(self) -> numpy.ndarray:
        """Return the nodes, Int32 array (count,)."""
        return numpy.asarray(self.node)[: self.count].copy()

    def grants(self) -> numpy.ndarray:
        """Return the grants, Int64 array (count,)."""
        return numpy.asarray(self.grant)[: self.count].copy()


def pairs_zeros(shape: object, kind: object) -> numpy.ndarray:
    """Return a new array of zeros, for what the loop needs while it goes on.

    Raises:
        MemoryError: there is no memory; the loop, in which nothing can be raised, hears of it.
    """
    global PAIRS_REFUSED  # noqa: PLW0603 - the process has one memory
    try:
        return numpy.zeros(shape, dtype=kind)
    except MemoryError:
        PAIRS_REFUSED += 1
        raise


def longer(array: object, length: int) -> numpy.ndarray:
    """Return an array (a table of columns) with what another has at its beginning, then 0.

    Nothing here is code in Python: an interrupt, which is raised there, finds no half-made array.
    """
    old = numpy.asarray(array)
    last: Any = old.ndim - 1  # of an object: Cython has no negative indices
    new = pairs_zeros((*old.shape[:last], length), old.dtype)
    new[..., : old.shape[last]] = old
    return new


def with_capacity(array: object, least: int) -> numpy.ndarray:
    """Return an array with at least so many entries; where it had fewer, with some to spare."""
    have = numpy.asarray(array)
    return have if len(have) >= least else longer(have, least + least // 2 + 16)


def appended(array: object, count: int, values: Any) -> numpy.ndarray:
    """Return an array with its first ``count`` entries, and these behind them."""
    found = with_capacity(array, count + len(values))
    found[count : count + len(values)] = values
    return found
