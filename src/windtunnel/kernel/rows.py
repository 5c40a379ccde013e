"""`Rows`: free states as rows of numbers, so that many of them can be kept, compared and met.

A row has ``width`` columns for each node. What two states have in common is, column by column, the
lesser number (`windtunnel.kernel.free.Free.store`).
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
        room: rows for which there is room at first.

    Attributes:
        cell: the numbers, row by row.
    """

    columns: cython.longlong
    room: cython.int
    cell: cython.longlong[::1]

    def __init__(self, columns: int, room: int) -> None:
        self.columns = columns
        self.room = room
        self.cell = numpy.zeros(max(columns * room, 1), dtype=numpy.int64)

    def grow(self, room: int) -> None:
        """Make room for so many rows."""
        cell = numpy.zeros(max(self.columns * room, 1), dtype=numpy.int64)
        cell[: self.columns * self.room] = numpy.asarray(self.cell)[: self.columns * self.room]
        self.cell = cell
        self.room = room

    @compiled
    def copy(self, target: cython.int, source: cython.int) -> cython.void:
        """Make a row equal to another."""
        to: cython.longlong = target * self.columns
        of: cython.longlong = source * self.columns
        column: cython.longlong
        for column in range(self.columns):
            self.cell[to + column] = self.cell[of + column]

    @compiled
    def clear(self, target: cython.int) -> cython.void:
        """Make a row all 0."""
        to: cython.longlong = target * self.columns
        column: cython.longlong
        for column in range(self.columns):
            self.cell[to + column] = 0

    @compiled
    def meet(self, target: cython.int, source: cython.int) -> cython.void:
        """Keep in a row only what another has, too."""
        to: cython.longlong = target * self.columns
        of: cython.longlong = source * self.columns
        column: cython.longlong
        for column in range(self.columns):
            self.cell[to + column] = min(self.cell[to + column], self.cell[of + column])
