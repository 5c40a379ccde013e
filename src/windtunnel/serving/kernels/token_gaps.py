"""The gaps between consecutive tokens of all requests, counted."""

from __future__ import annotations

import cython
import numpy

from windtunnel.kernel.marks import compiled

#: Of a table's rows, 2 to this power at most: beyond, gaps are distinguished less finely.
_MOST_BITS = cython.declare(cython.longlong, 19)
#: Of a gap; the word that counts them has 63 bits.
_MOST_PARTS = cython.declare(cython.double, 2.0**62)
_GAP_SPREAD = cython.declare(cython.ulonglong, 0x9E3779B97F4A7C15)
#: What a word of 64 bits does by itself; plain Python needs this mask for it.
_GAP_WORD = cython.declare(cython.ulonglong, 0xFFFFFFFFFFFFFFFF)


@cython.final
@cython.cclass
class TokenGaps:
    """Gaps, each with how often it occurred: a table with open addressing.

    Attributes:
        size: how many gaps.
        bits: 2 to this power is the number of the table's rows.
        total: of all gaps, s.
        parts: of a second, by which gaps are kept apart: 2^44, far finer than clocks, or less where
            there are too many different ones for a table that is quick, or one is of days.
        rows: gaps in parts of a second, -1 where there is none, and how many tokens came after.
    """

    size: cython.longlong
    bits: cython.longlong
    total: cython.double
    parts: cython.double
    rows: cython.longlong[:, ::1]

    def __init__(self) -> None:
        self.size = 0
        self.bits = 12
        self.total = 0.0
        self.parts = 2.0**44
        self.rows = numpy.full((1 << 12, 2), [-1, 0], dtype=numpy.int64)

    @compiled
    def add(self, gap: cython.double, often: cython.longlong) -> cython.void:
        """Count a gap, s."""
        self.total += gap * often
        while gap * self.parts > _MOST_PARTS:
            with cython.gil:
                self.coarsen()
        self.put(cython.cast(cython.longlong, gap * self.parts + 0.5), often)
        if 2 * self.size > self.rows.shape[0]:
            with cython.gil:
                self.grow()

    @compiled
    def put(self, parts: cython.longlong, often: cython.longlong) -> cython.void:
        """Count a gap in parts of a second."""
        last: cython.longlong = self.rows.shape[0] - 1
        word: cython.ulonglong = (cython.cast(cython.ulonglong, parts) * _GAP_SPREAD) & _GAP_WORD
        at: cython.longlong = word >> (64 - self.bits)
        while self.rows[at, 0] != parts:
            if self.rows[at, 0] < 0:
                self.rows[at, 0] = parts
                self.size += 1
                break
            at = (at + 1) & last
        self.rows[at, 1] += often

    def grow(self) -> None:
        """Move the gaps to a table of twice the rows, or tell them apart less finely."""
        if self.bits == _MOST_BITS:
            self.coarsen()
            return
        self.bits += 1
        self.move(1)

    def coarsen(self) -> None:
        """Tell gaps apart a quarter as finely."""
        self.parts /= 4
        self.move(4)

    def move(self, divisor: int) -> None:
        """Put the gaps into a table of ``bits``, their parts divided and rounded."""
        rows = numpy.asarray(self.rows)
        rows = rows[rows[:, 0] >= 0]
        rows[:, 0] = (rows[:, 0] + divisor // 2) // divisor
        self.rows = numpy.zeros((1 << self.bits, 2), dtype=numpy.int64)
        numpy.asarray(self.rows)[:, 0] = -1
        self.size = 0
        self.put_all(rows)

    def put_all(self, rows: cython.longlong[:, ::1]) -> None:
        """Count many gaps."""
        k: cython.longlong
        for k in range(rows.shape[0]):
            self.put(rows[k, 0], rows[k, 1])

    def data(self) -> tuple[numpy.ndarray, numpy.ndarray]:
        """Return the gaps, s, ascending, and how often each occurred."""
        rows = numpy.asarray(self.rows)
        rows = rows[rows[:, 0] >= 0]
        rows = rows[numpy.argsort(rows[:, 0])]
        return rows[:, 0] / self.parts, rows[:, 1].copy()
