"""`NodeSets`: sets of nodes as bits, each set once."""

from __future__ import annotations

from typing import Any

import cython
import numpy

from windtunnel.kernel.marks import compiled
from windtunnel.kernel.pairs import longer


@cython.final
@cython.cclass
class NodeSets:
    """Sets of nodes, 64 nodes a word; states of one cluster share one of these.

    Args:
        num_nodes: nodes of the cluster.

    Attributes:
        words: 64-bit words of a set.
        bits: the sets, one behind the other, (sets x words,).
    """

    words: cython.int
    bits: cython.longlong[::1]
    _everywhere: object
    _places: dict

    def __init__(self, num_nodes: Any) -> None:
        self._everywhere = (1 << num_nodes) - 1  # of an object: a C integer would overflow
        self.words = (num_nodes + 63) // 64
        self.bits = numpy.zeros(0, dtype=numpy.int64)
        self._places = {}

    def place(self, allowed: Any) -> int:
        """Return where a set begins in ``bits``, -1 for the set of all nodes.

        Args:
            allowed: the set as a bitset; a negative number has all nodes but a few.
        """
        kept: Any = allowed & self._everywhere
        if kept == self._everywhere:
            return -1
        if kept not in self._places:
            begin = len(self.bits)
            self._places[kept] = begin
            self.bits = longer(self.bits, begin + self.words)
            new = numpy.frombuffer(kept.to_bytes(self.words * 8, "little"), dtype="<i8")
            numpy.asarray(self.bits)[begin:] = new
        return int(self._places[kept])

    @compiled
    def has(self, place: cython.longlong, node: cython.int) -> cython.bint:
        """Return whether a node is in the set that begins at a place, which is not -1."""
        return (self.bits[place + (node >> 6)] >> (node & 63)) & 1 != 0
