"""Bins of whole seconds between points of a cumulative distribution, and the jobs in each."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray


@dataclass(frozen=True)
class Bins:
    """Whole seconds ``low[k] <= x <= high[k]`` between neighbouring knots, and jobs in each.

    Attributes:
        low: smallest value, shape (bins,).
        high: largest value, shape (bins,).
        jobs: jobs in the bin, shape (bins,).
    """

    low: NDArray[np.int64]
    high: NDArray[np.int64]
    jobs: NDArray[np.int64]

    @property
    def mean(self) -> NDArray[np.float64]:
        """Mean of whole seconds drawn log-uniformly in each bin, about, shape (bins,)."""
        low, high = self.low - 1.0, self.high.astype(np.float64)
        wide = (self.high > self.low) & (self.low > 1)
        ratio = np.log(np.where(wide, high, 2.0) / np.where(wide, low, 1.0))
        # Values are rounded up to whole seconds: half a second on average.
        tail = np.clip((high - low) / ratio + 0.5, self.low, self.high)
        return np.where(wide, tail, (self.low + self.high) / 2.0)


def bins_from_knots(counts: NDArray[np.int64], total: int, *, first: int, maximum: int) -> Bins:
    """Return the bins between the knots 2^0, 2^1, ... and above the last one.

    Args:
        counts: cumulative jobs at each knot, shape (knots,).
        total: all jobs; those above the last knot go up to ``maximum``.
        first: smallest value of the first bin, 0 or 1.
        maximum: largest value, s.
    """
    points = {2**k: int(count) for k, count in enumerate(counts)}
    return bins_from_points(points, total, first=first, maximum=maximum)


def bins_from_points(points: dict[int, int], total: int, *, first: int, maximum: int) -> Bins:
    """Return the bins between arbitrary points of a cumulative distribution.

    Args:
        points: whole seconds, all >= ``first`` -> jobs with at most so many; in any order.
        total: all jobs; those above the last point go up to ``maximum``.
        first: smallest value of the first bin.
        maximum: largest value, s.
    """
    knots = np.array(sorted(points), dtype=np.int64)
    counts = np.array([points[k] for k in knots.tolist()], dtype=np.int64)
    high = np.append(np.minimum(knots, maximum), max(maximum, int(knots[-1])))
    low = np.concatenate([[first], np.minimum(knots + 1, high[1:])])
    return Bins(low, high, np.diff(counts, prepend=0, append=total))
