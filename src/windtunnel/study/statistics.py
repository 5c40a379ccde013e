"""Bootstrap confidence intervals, for one sample or several strata, without knowing what of.

Percentile and bias-corrected accelerated (BCa) intervals after Efron, "Better bootstrap confidence
intervals", JASA 82 (1987); strata as in Davison and Hinkley, *Bootstrap Methods and Their
Application* (1997), section 5.3.2. Few draws make percentile intervals too short: a resample of n
draws varies (n - 1) / n times as much as the draws do, and its tails are a normal's. So both ends
are moved out to where Student's t would have them (Hesterberg, "What Teachers Should Know About the
Bootstrap", Am. Stat. 69, 2015, section 5.3: the expanded percentile interval).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from statistics import NormalDist
from typing import TYPE_CHECKING

import numpy as np

from windtunnel.checked import checked_choice, checked_count, checked_number

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    #: Index matrices, one a stratum, of shape (resamples, draws) -> values, shape (resamples,).
    Statistic = Callable[[list[np.ndarray]], np.ndarray]

METHODS: tuple[str, ...] = ("bca", "percentile")
#: Numbers of indices held at a time.
_CHUNK = 1_000_000
_NORMAL = NormalDist()


@dataclass(frozen=True)
class Interval:
    """An estimate and where it may lie.

    Attributes:
        estimate: the statistic of all draws.
        low: lower end; None where there is no interval.
        high: upper end; None likewise.
        confidence: how sure, 0 to 1.
        num_draws: independent draws that it rests on.
    """

    estimate: float
    low: float | None
    high: float | None
    confidence: float
    num_draws: int

    @property
    def is_known(self) -> bool:
        """Whether there is an interval."""
        return self.low is not None

    def lies_below(self, value: float) -> bool:
        """Return whether the whole interval is below a value."""
        return self.high is not None and self.high < value

    def lies_above(self, value: float) -> bool:
        """Return whether the whole interval is above a value."""
        return self.low is not None and self.low > value


def bootstrap(
    sizes: Sequence[int],
    statistic: Statistic,
    *,
    confidence: float = 0.95,
    resamples: int = 9999,
    method: str = "bca",
    expand: bool = True,
    seed: int = 0,
) -> Interval:
    """Return a statistic with its bootstrap confidence interval.

    Args:
        sizes: draws in each stratum; strata are resampled by themselves.
        statistic: takes an index matrix a stratum, of shape (r, draws of the stratum), and returns
            r values: row by row, the statistic of the draws with these indices.
        confidence: how sure, between 0 and 1.
        resamples: how many.
        method: ``bca`` or ``percentile``.
        expand: allow for few draws, as Student's t does.
        seed: of the resampling.

    Returns:
        The interval; without ends where a stratum has fewer than two draws, or the statistic of a
        resample is not finite.

    Raises:
        SpecError: an argument is out of range.

    >>> draws = np.array([3.0, 5.0, 4.0, 6.0, 4.5, 5.5])
    >>> found = bootstrap([6], lambda indices: draws[indices[0]].mean(axis=1))
    >>> found.estimate, round(found.low, 2), round(found.high, 2)
    (4.666666666666667, 3.42, 5.65)
    """
    _check(confidence, resamples, method)
    whole = [np.arange(size)[None, :] for size in sizes]
    estimate = float(statistic(whole)[0])
    nothing = Interval(estimate, None, None, confidence, min(sizes, default=0))
    if min(sizes, default=0) < 2 or not math.isfinite(estimate):  # noqa: PLR2004 - nothing varies
        return nothing
    values = _resampled(sizes, statistic, resamples, np.random.default_rng(seed))
    if not np.isfinite(values).all():
        return nothing
    reach = _reach((1 - confidence) / 2, min(sizes) if expand else None)
    tails = (_NORMAL.cdf(-reach), _NORMAL.cdf(reach))
    if method == "bca":
        tails = _bca_tails(reach, values, estimate, acceleration(sizes, statistic))
    low, high = np.percentile(values, [100 * tails[0], 100 * tails[1]])
    return Interval(estimate, float(low), float(high), confidence, min(sizes))


def _check(confidence: float, resamples: int, method: str) -> None:
    checked_number("confidence", confidence, "a number between 0 and 1", above=0, below=1)
    checked_count("resamples", resamples)
    checked_choice("method", method, METHODS)


def _resampled(
    sizes: Sequence[int], statistic: Statistic, resamples: int, rng: np.random.Generator
) -> np.ndarray:
    """Return the statistic of each resample, shape (resamples,)."""
    rows = max(1, _CHUNK // max(1, sum(sizes)))
    parts = []
    for first in range(0, resamples, rows):
        count = min(rows, resamples - first)
        parts.append(statistic([rng.integers(0, size, (count, size)) for size in sizes]))
    return np.concatenate(parts)


def _reach(tail: float, draws: int | None) -> float:
    """Return how many standard deviations a normal's tail begins from its middle; see above."""
    if draws is None:
        return -_NORMAL.inv_cdf(tail)
    return math.sqrt(draws / (draws - 1)) * student_quantile(1 - tail, draws - 1)


def _bca_tails(
    reach: float, values: np.ndarray, estimate: float, acceleration: float
) -> tuple[float, float]:
    """Return tails corrected for bias and for a spread that changes with the value."""
    below = float((values < estimate).mean() + (values <= estimate).mean()) / 2
    if not 0 < below < 1:  # all resamples on one side: nothing to correct by
        return _NORMAL.cdf(-reach), _NORMAL.cdf(reach)
    bias = _NORMAL.inv_cdf(below)

    def corrected(normal: float) -> float:
        shifted = bias + normal
        scale = 1 - acceleration * shifted
        if scale <= 0:  # beyond the pole that the end goes to
            return float(shifted > 0)
        return _NORMAL.cdf(bias + shifted / scale)

    return corrected(-reach), corrected(reach)


def acceleration(sizes: Sequence[int], statistic: Statistic) -> float:
    """Return BCa's acceleration, by the jackknife; 0 where leaving a draw out changes nothing."""
    cubes = squares = 0.0
    for stratum, size in enumerate(sizes):
        left = np.concatenate(
            [
                statistic(_without(sizes, stratum, rows))
                for rows in np.array_split(np.arange(size), max(1, size * size // _CHUNK))
                if len(rows)
            ]
        )
        influence = (size - 1) * (left.mean() - left) / size
        cubes += float((influence**3).sum())
        squares += float((influence**2).sum())
    return cubes / (6 * squares**1.5) if squares > 0 else 0.0


def _without(sizes: Sequence[int], stratum: int, rows: np.ndarray) -> list[np.ndarray]:
    """Return index matrices with each of these draws of one stratum left out in turn."""
    indices = [np.broadcast_to(np.arange(size), (len(rows), size)) for size in sizes]
    others = np.arange(sizes[stratum] - 1)[None, :]
    indices[stratum] = others + (others >= rows[:, None])
    return indices


@lru_cache(maxsize=256)
def student_quantile(probability: float, freedom: int) -> float:
    """Return a quantile of Student's t, by bisection of its distribution.

    Args:
        probability: between 0.5 and 1.
        freedom: degrees of freedom, at least 1.

    >>> round(student_quantile(0.975, 9), 6)
    2.262157
    """
    low, high = 0.0, 1.0
    while _student_between(high, freedom) < 2 * probability - 1:
        high *= 2
    for _ in range(200):
        middle = (low + high) / 2
        if _student_between(middle, freedom) < 2 * probability - 1:
            low = middle
        else:
            high = middle
    return (low + high) / 2


def _student_between(t: float, freedom: int) -> float:
    """Return P(|T| < t), in closed form (Abramowitz and Stegun, 26.7.3 and 26.7.4)."""
    theta = math.atan2(t, math.sqrt(freedom))
    sine, cosine = math.sin(theta), math.cos(theta)
    if freedom % 2:
        term, total = cosine, 0.0
        for k in range(1, (freedom - 1) // 2 + 1):
            total += term
            term *= cosine * cosine * 2 * k / (2 * k + 1)
        return 2 / math.pi * (theta + sine * total)
    term, total = 1.0, 0.0
    for k in range(1, freedom // 2 + 1):
        total += term
        term *= cosine * cosine * (2 * k - 1) / (2 * k)
    return sine * total
