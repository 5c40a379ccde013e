"""`NodeUse`: how many nodes are in use, for those that may sleep."""

from __future__ import annotations

import cython
import numpy

from windtunnel.kernel.marks import compiled
from windtunnel.kernel.pairs import Pairs


@cython.final
@cython.cclass
class NodeUse:
    """The nodes that jobs run on.

    Args:
        nodes: of the cluster.

    Attributes:
        in_use: nodes on which anybody runs.
    """

    in_use: cython.int
    _users: cython.int[::1]
    _peak: cython.int

    def __init__(self, nodes: int) -> None:
        self._users = numpy.zeros(nodes, dtype=numpy.int32)
        self.in_use = self._peak = 0

    @compiled
    def add(
        self, pairs: Pairs, first: cython.longlong, last: cython.longlong, sign: cython.int
    ) -> cython.void:
        """Let a job run on some pairs (1), or no more (-1)."""
        for pair in range(first, last):
            node = pairs.node[pair]
            self.in_use -= self._users[node] > 0
            self._users[node] += sign
            self.in_use += self._users[node] > 0
        if self.in_use > self._peak:
            self._peak = self.in_use

    def take_peak(self) -> int:
        """Return the most nodes in use since this was asked last."""
        peak = self._peak
        self._peak = self.in_use
        return peak
