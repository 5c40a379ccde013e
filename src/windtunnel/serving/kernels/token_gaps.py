"""The gaps between consecutive tokens of all requests, counted."""

from __future__ import annotations

import cython
import numpy

from windtunnel.kernel.marks import compiled

#: Beyond so many different gaps they are told apart by this part of a second alone.
_MANY = cython.declare(cython.longlong, 1 << 23)
_PART = cython.declare(cython.double, 2.0**-36)


@cython.final
@cython.cclass
class TokenGaps:
    """Gaps, s, each with how often it occurred.

    Attributes:
        size: how many rows are in use.
        gap: s.
        often: how many tokens came after such a gap.
    """

    size: cython.longlong
    room: cython.longlong
    gap: cython.double[::1]
    often: cython.longlong[::1]

    def __init__(self) -> None:
        self.size = 0
        self.room = 4096
        self.gap = numpy.empty(self.room)
        self.often = numpy.empty(self.room, dtype=numpy.int64)

    @compiled
    def add(self, gap: cython.double, often: cython.longlong) -> cython.void:
        """Count a gap."""
        if self.size > 0 and self.gap[self.size - 1] == gap:
            self.often[self.size - 1] += often
            return
        if self.size == self.room:
            with cython.gil:
                self.make_room()
        self.gap[self.size] = gap
        self.often[self.size] = often
        self.size += 1

    def make_room(self) -> None:
        """Join what is equal, and take more memory where that is not enough."""
        gap, often = numpy.asarray(self.gap), numpy.asarray(self.often)
        if self.room >= _MANY:
            gap, often = joined_gaps(numpy.round(gap / _PART) * _PART, often)
        self.size = len(gap)
        if 2 * self.size > self.room:
            self.room *= 2
        self.gap = numpy.resize(gap, self.room)
        self.often = numpy.resize(often, self.room)

    def told(self) -> tuple[numpy.ndarray, numpy.ndarray]:
        """Return the gaps, s, ascending, and how often each occurred."""
        gap, often = numpy.asarray(self.gap), numpy.asarray(self.often)
        return joined_gaps(gap[: self.size], often[: self.size])


def joined_gaps(gap: numpy.ndarray, often: numpy.ndarray) -> tuple[numpy.ndarray, numpy.ndarray]:
    """Return different gaps in ascending order, with how often each occurred."""
    found, which = numpy.unique(gap, return_inverse=True)
    counts = numpy.zeros(len(found), dtype=numpy.int64)
    numpy.add.at(counts, which, often)
    return found, counts
