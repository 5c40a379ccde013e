"""`SlurmLicenses`: what a site has of things that are not on its nodes, and who holds them."""

from __future__ import annotations

from typing import Any

import cython
import numpy

from windtunnel.kernel.marks import compiled


@cython.final
@cython.cclass
class SlurmLicenses:
    """Licences: nothing is reserved, so whoever comes while there are enough has them.

    Args:
        total: how many there are, of each kind.
        asked: by job: (kind, how many) of each kind it needs.

    Attributes:
        held: how many the running jobs hold, of each kind.
    """

    total: cython.longlong[::1]
    held: cython.longlong[::1]
    first: cython.int[::1]
    kind: cython.int[::1]
    amount: cython.longlong[::1]

    def __init__(self, total: list[int], asked: Any) -> None:
        self.total = numpy.array([*total, 0], dtype=numpy.int64)
        lengths = numpy.array([len(of) for of in asked], dtype=numpy.int32)
        pairs = [pair for of in asked for pair in of]
        self.first = numpy.concatenate([[0], numpy.cumsum(lengths)]).astype(numpy.int32)
        self.kind = numpy.array([*(kind for kind, _ in pairs), 0], dtype=numpy.int32)
        self.amount = numpy.array([*(amount for _, amount in pairs), 0], dtype=numpy.int64)
        self.clear()

    def clear(self) -> None:
        """Let nobody hold any."""
        self.held = numpy.zeros(len(self.total), dtype=numpy.int64)

    @compiled
    def are_short(self, job: cython.int) -> cython.bint:
        """Return whether there are too few left for a job."""
        for at in range(self.first[job], self.first[job + 1]):
            if self.held[self.kind[at]] + self.amount[at] > self.total[self.kind[at]]:
                return True
        return False

    @compiled
    def turn(self, job: cython.int, sign: cython.int) -> cython.void:
        """Let a job hold what it needs (1), or no longer (-1)."""
        for at in range(self.first[job], self.first[job + 1]):
            self.held[self.kind[at]] += sign * self.amount[at]
