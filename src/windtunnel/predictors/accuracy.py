"""How far predictions are from the truth: pure functions from arrays to numbers.

The relative error is |predicted - true| / true, the measure of the PAI study (Weng et al.,
NSDI'22: "within 25 %"), bounds included. Where the truth is 0 s it is 0 for a prediction of 0 and
infinite for any other. The log ratio ln(predicted / true) treats a factor too much and a factor too
little alike; it is defined where both are positive.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from windtunnel.quantiles import quantiles

if TYPE_CHECKING:
    from collections.abc import Sequence

#: Relative errors, in per cent, within which jobs are counted.
WITHIN: tuple[int, ...] = (10, 25, 50, 100)
#: Percentiles of the log ratio.
LOG_RATIO_PERCENTS: tuple[int, ...] = (5, 25, 50, 75, 95)
#: Relative errors at which their distribution is given.
ERROR_GRID: tuple[float, ...] = (
    *(0.0, 0.01, 0.02, 0.05, 0.1, 0.15, 0.2, 0.25, 0.3, 0.4, 0.5, 0.75),
    *(1.0, 1.5, 2.0, 3.0, 5.0, 10.0, 20.0, 50.0, 100.0, 1000.0),
)


def relative_errors(predicted: np.ndarray, truth: np.ndarray) -> np.ndarray:
    """Return |predicted - true| / true, shape (n,).

    Args:
        predicted: seconds, shape (n,).
        truth: seconds >= 0, shape (n,).

    >>> relative_errors(np.array([15.0, -10.0, 0.0, 1.0]), np.array([10.0, 10.0, 0.0, 0.0]))
    array([0.5, 2. , 0. , inf])
    """
    distance = np.abs(predicted - truth)
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        errors = distance / truth
    return np.where(distance == 0, 0.0, errors)


def accuracy(predicted: np.ndarray, truth: np.ndarray) -> dict[str, float | int | None]:
    """Return how far predictions are from the truth.

    Args:
        predicted: seconds, shape (n,), NaN = no prediction.
        truth: seconds >= 0, shape (n,), no NaN.

    Returns:
        ``n``; ``num_predicted``, ``num_unpredicted`` (together n); shares of the predicted jobs
        ``within_10``, ``within_25``, ``within_50``, ``within_100`` (per cent of the truth);
        ``median_error``, ``p90_error`` (relative); ``mae`` (mean absolute error, s);
        ``num_log_ratios`` and ``log_ratio_p5`` ... ``log_ratio_p95``. None where there is nothing
        to measure.
    """
    there = ~np.isnan(predicted)
    predictions, true = predicted[there], truth[there]
    errors = relative_errors(predictions, true)
    positive = (predictions > 0) & (true > 0)
    ratios = np.log(predictions[positive] / true[positive])
    some = len(predictions) > 0
    median, p90 = _interpolated(errors, (0.5, 0.9))
    log_ratios = quantiles(ratios, [p / 100 for p in LOG_RATIO_PERCENTS])
    return {
        "n": len(predicted),
        "num_predicted": len(predictions),
        "num_unpredicted": len(predicted) - len(predictions),
        **{f"within_{w}": float((errors <= w / 100).mean()) if some else None for w in WITHIN},
        "median_error": median,
        "p90_error": p90,
        "mae": float(np.abs(predictions - true).mean()) if some else None,
        "num_log_ratios": len(ratios),
        **{
            f"log_ratio_p{p}": float(value) if len(ratios) else None
            for p, value in zip(LOG_RATIO_PERCENTS, log_ratios, strict=True)
        },
    }


def _interpolated(errors: np.ndarray, q: Sequence[float]) -> list[float | None]:
    """Return quantiles of errors of which some may be infinite."""
    if len(errors) == 0:
        return [None] * len(q)
    ordered = np.sort(errors)
    places = [share * (len(ordered) - 1) for share in q]
    finite = ordered[np.isfinite(ordered)]
    # Between a number and infinity, interpolating gives infinity.
    known = [place <= len(finite) - 1 for place in places]
    if not any(known):
        return [np.inf] * len(q)
    return [
        float(quantiles(finite, place / max(len(finite) - 1, 1))) if inside else np.inf
        for place, inside in zip(places, known, strict=True)
    ]


def error_cdf(
    predicted: np.ndarray, truth: np.ndarray, at: Sequence[float] = ERROR_GRID
) -> np.ndarray:
    """Return the share of the predicted jobs whose relative error is at most each of ``at``.

    Returns:
        float64, shape of ``at``; NaN where nothing is predicted.
    """
    there = ~np.isnan(predicted)
    errors = np.sort(relative_errors(predicted[there], truth[there]))
    if len(errors) == 0:
        return np.full(len(at), np.nan)
    shares: np.ndarray = np.searchsorted(errors, np.asarray(at), side="right") / len(errors)
    return shares


def coverage(low: np.ndarray, high: np.ndarray, truth: np.ndarray) -> dict[str, float | int | None]:
    """Return how many durations lie in their intervals, the ends counted.

    Args:
        low: lower ends, s, shape (n,), NaN = no interval.
        high: upper ends.
        truth: seconds, shape (n,).

    Returns:
        ``num_intervals``; ``coverage`` (share of them that hold the truth); ``median_width`` (s).
        None where there is no interval.
    """
    there = ~np.isnan(low) & ~np.isnan(high)
    inside = (low[there] <= truth[there]) & (truth[there] <= high[there])
    width = quantiles(high[there] - low[there], 0.5)
    some = bool(there.any())
    return {
        "num_intervals": int(there.sum()),
        "coverage": float(inside.mean()) if some else None,
        "median_width": float(width) if some else None,
    }
