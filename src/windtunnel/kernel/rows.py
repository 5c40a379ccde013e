"""`Rows`: free states as rows of numbers (`windtunnel.kernel.free.Free.store`).

A row has ``width`` columns for each node. What two states have in common is, column by column, the
lesser number.
"""

from __future__ import annotations

import cython
import numpy

from windtunnel.kernel.marks import compiled


@cython.final
@cython.cclass
class Rows:
    """Rows of equal length in one block of memory.

    Args:
        columns: numbers in a row.
        rows: how many there are.

    Attributes:
        cell: the numbers, row by row.
    """

    columns: cython.longlong
    cell: cython.longlong[::1]

    def __init__(self, columns: int, rows: int) -> None:
        self.columns = columns
        self.cell = numpy.zeros(max(columns * rows, 1), dtype=numpy.int64)

    @compiled
    def copy(self, target: cython.int, source: cython.int) -> cython.void:
        """Make a row equal to another."""
        to: cython.longlong = target * self.columns
        of: cython.longlong = source * self.columns
        for column in range(self.columns):
            self.cell[to + column] = self.cell[of + column]

    @compiled
    def clear(self, target: cython.int) -> cython.void:
        """Make a row all 0."""
        to: cython.longlong = target * self.columns
        for column in range(self.columns):
            self.cell[to + column] = 0
