"""Values whose counts at given knots are exact: apportionment and drawing inside bins."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray


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

    def apportioned(self, total: int) -> NDArray[np.int64]:
        """Return jobs a bin when ``total`` jobs stand for the real ones, shape (bins,)."""
        return largest_remainder(self.jobs, total)

    def each(self, total: int) -> NDArray[np.int64]:
        """Return the bin of each of so many jobs, ascending, shape (total,)."""
        return np.repeat(np.arange(len(self.jobs)), self.apportioned(total))


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


def largest_remainder(weights: ArrayLike, total: int) -> NDArray[np.int64]:
    """Return whole numbers that sum to ``total`` in proportion to ``weights``.

    Hamilton's method: each share rounded down, what is left goes to the largest remainders; equal
    remainders go to the larger weight, then to the first.

    Args:
        weights: non-negative numbers, not all zero unless ``total`` is 0, shape (parts,).
        total: what the result sums to, >= 0.

    >>> largest_remainder([1, 1, 2], 5).tolist()
    [1, 1, 3]
    """
    weight = np.asarray(weights, dtype=np.float64)
    everything = weight.sum()
    if total == 0 or everything == 0:
        return np.zeros(len(weight), dtype=np.int64)
    quota = weight * (total / everything)
    # Whole quotas come out a rounding error short: pull them back before rounding down.
    nearest = np.rint(quota)
    quota = np.where(np.isclose(quota, nearest, rtol=1e-12, atol=1e-12), nearest, quota)
    parts: NDArray[np.int64] = np.floor(quota).astype(np.int64)
    order = np.lexsort((np.arange(len(weight)), -weight, parts - quota))
    parts[order[: total - int(parts.sum())]] += 1
    return parts


def draw(bins: Bins, index: NDArray[np.int64], rng: np.random.Generator) -> NDArray[np.int64]:
    """Draw a whole number of seconds, log-uniform inside each value's bin.

    The first bin (up to one second) holds atoms: its whole values are equally likely.

    Args:
        bins: where the values lie.
        index: bin of each value, shape (values,).

    Returns:
        Values, shape (values,).
    """
    u = rng.random(len(index))
    low, high = bins.low[index], bins.high[index]
    below = np.maximum(low - 1, 1).astype(np.float64)
    # below * (high / below) ** u lies in [below, high): its floor plus one in [low, high].
    tail = np.floor(below * (high / below) ** u).astype(np.int64) + 1
    atom = low + np.floor(u * (high - low + 1)).astype(np.int64)
    return np.clip(np.where(low > 1, tail, atom), low, high)


def settle(
    values: NDArray[np.int64],
    low: NDArray[np.int64],
    high: NDArray[np.int64],
    total: float,
) -> NDArray[np.int64]:
    """Move values inside their bounds so that their sum is ``total`` rounded down, or near.

    Every value goes the same fraction of the way to its bound, so the order within a bin stays.

    Args:
        values: whole numbers within the bounds, shape (values,).
        low: smallest allowed, shape (values,).
        high: largest allowed, shape (values,).
    """
    lacking = total - float(values.sum())
    bound = high if lacking > 0 else low
    possible = float((bound - values).sum())
    if possible == 0.0:
        return values
    fraction = min(lacking / possible, 1.0)
    exact = np.cumsum(values + fraction * (bound - values))
    # Differences of a rounded running sum: each is its value rounded up or down, the sum is kept.
    moved = np.diff(np.floor(exact + 1e-6), prepend=0.0).astype(np.int64)
    return np.clip(moved, low, high)


def spread(
    values: NDArray[np.int64], low: NDArray[np.int64], high: NDArray[np.int64], amount: int
) -> NDArray[np.int64]:
    """Add a whole ``amount`` of either sign to the values in order, within their bounds."""
    if amount >= 0:
        slack = high - values
        return np.asarray(values + np.clip(amount - (np.cumsum(slack) - slack), 0, slack))
    slack = values - low
    return np.asarray(values - np.clip(-amount - (np.cumsum(slack) - slack), 0, slack))


def onto(
    values: NDArray[np.int64], low: NDArray[np.int64], high: NDArray[np.int64], total: int
) -> NDArray[np.int64]:
    """Move whole values inside their bounds onto a sum, exactly where the bounds allow it."""
    moved = settle(values, low, high, float(total))
    return spread(moved, low, high, total - int(moved.sum()))
