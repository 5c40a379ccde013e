"""Pieces of constant draw, and their exact sum over time."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from windtunnel.sim.flight import PowerRecord


class Levels:
    """Things that draw two kinds of watts over spans, counted exactly by distinct watts.

    One exact count for each distinct pair of draws, then watts: no drift, however long.

    Args:
        watts: Float array (m, 2).
        amount: Float array (m,), whole numbers.
        start: Float array (m,), s.
        end: Float array (m,), s.
    """

    def __init__(
        self, watts: np.ndarray, amount: np.ndarray, start: np.ndarray, end: np.ndarray
    ) -> None:
        self._pairs, kind = np.unique(watts.reshape(-1, 2), axis=0, return_inverse=True)
        self._kind, self._amount = kind.ravel(), amount
        self.times = np.concatenate([start, end])

    @property
    def count(self) -> int:
        """Distinct pairs of draws."""
        return len(self._pairs)

    def changes(self, before: int, after: int) -> list[np.ndarray]:
        """Return the change of each count at each time, with zeros before and after."""
        found = []
        for kind in range(self.count):
            mine = np.where(self._kind == kind, self._amount, 0.0)
            found.append(np.concatenate([np.zeros(before), mine, -mine, np.zeros(after)]))
        return found

    def watts(
        self, counts: list[np.ndarray], units: float, length: int
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return the sums of the two kinds of watts, shape (length,); counts are in units."""
        sums = [np.zeros(length), np.zeros(length)]
        for pair, count in zip(self._pairs, counts, strict=True):
            for which in (0, 1):
                sums[which] = sums[which] + count / units * pair[which]
        return sums[0], sums[1]


def pieces(
    record: PowerRecord | None, stay: np.ndarray, start: np.ndarray, end: np.ndarray
) -> tuple[np.ndarray, ...]:
    """Return entry, start, end and power level of the pieces of entries of constant level.

    Args:
        record: what policies of power did; None = all at level 0.
        stay: Int array (e,), each entry's segment.
        start: Float array (e,), s.
        end: Float array (e,), s.
    """
    if record is None:
        return np.arange(len(stay)), start, end, np.zeros(len(stay), dtype=np.int64)
    counts = np.diff(record.level_offset)[stay]
    entry = np.repeat(np.arange(len(stay)), counts)
    within = np.arange(len(entry)) - np.repeat(np.cumsum(counts) - counts, counts)
    piece = record.level_offset[stay[entry]] + within
    begin = record.level_start[piece]
    stop = np.append(begin[1:], 0.0)
    is_last = within == counts[entry] - 1
    stop = np.where(is_last, end[entry], stop)
    # An entry may be a part of its stay.
    begin = np.maximum(begin, start[entry])
    stop = np.maximum(begin, np.minimum(stop, end[entry]))
    return entry, begin, stop, record.level[piece]
