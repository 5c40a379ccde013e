"""`KnownFrom`: from which rank on something is known that holds for all lower ranks as well."""

from __future__ import annotations

import cython
import numpy

from windtunnel.kernel.marks import compiled


@cython.final
@cython.cclass
class KnownFrom:
    """Ranks (key, job) by what they are about, each as long as ``stamp`` is what it was.

    Args:
        count: things that may be known.
    """

    key: cython.double[::1]
    job: cython.int[::1]
    stamp: cython.longlong[::1]

    def __init__(self, count: int) -> None:
        self.key = numpy.zeros(max(count, 1))
        self.job = numpy.zeros(max(count, 1), dtype=numpy.int32)
        self.stamp = numpy.full(max(count, 1), -1, dtype=numpy.int64)

    @compiled
    def note(
        self, at: cython.int, key: cython.double, job: cython.int, stamp: cython.longlong
    ) -> cython.void:
        """Note that something is known from a job's rank on."""
        self.key[at], self.job[at], self.stamp[at] = key, job, stamp

    @compiled
    def covers(
        self, at: cython.int, key: cython.double, job: cython.int, stamp: cython.longlong
    ) -> cython.bint:
        """Return whether it is known at a job's rank."""
        if self.stamp[at] != stamp or key < self.key[at]:
            return False
        return key > self.key[at] or job >= self.job[at]
