"""Intervals with a guaranteed coverage, whatever the predictor: split conformal prediction.

Vovk et al., *Algorithmic Learning in a Random World*, 2005; quantile regression made conformal:
Romano, Patterson, Candes, NeurIPS 2019, theorem 1. With n scores of jobs that the predictor did not
learn from, the ceil((n + 1) * coverage)-th smallest holds the next job's score with at least the
probability ``coverage``, as long as the jobs are exchangeable: where the work drifts, coverage is
what the back-test counts.
"""

from __future__ import annotations

import math

import numpy as np


def conformal_quantile(scores: np.ndarray, coverage: float) -> float:
    """Return the ceil((n + 1) * coverage)-th smallest score; infinity where there are too few.

    Args:
        scores: float64, shape (n,), no NaN.

    >>> (
    ...     conformal_quantile(np.array([3.0, 1.0, 2.0, 4.0]), 0.75),
    ...     conformal_quantile(np.ones(5), 0.9),
    ... )
    (4.0, inf)
    """
    # Rounding must not lift an exact product above its whole number: 0.9 * (9 + 1) is 9.
    rank = math.ceil(round((len(scores) + 1) * coverage, 9))
    if rank > len(scores):
        return math.inf
    return float(np.partition(scores, rank - 1)[rank - 1])


def log_ratios(truth: np.ndarray, predicted: np.ndarray) -> np.ndarray:
    """Return log((1 + truth) / (1 + predicted)), a negative prediction counted as 0."""
    ratios: np.ndarray = np.log1p(truth) - np.log1p(np.maximum(predicted, 0.0))
    return ratios


def around(
    predicted: np.ndarray, residuals: np.ndarray, coverage: float
) -> tuple[np.ndarray, np.ndarray]:
    """Return intervals around predictions from the log ratios of earlier ones.

    Each side leaves out half of 1 - coverage.

    Args:
        predicted: seconds, shape (rows,); NaN = no prediction, and no interval.
        residuals: `log_ratios` of jobs whose durations became known, shape (n,).

    Returns:
        Lower and upper ends, seconds, shape (rows,); 0 and infinity where n is too small.
    """
    side = (1 + coverage) / 2
    up = conformal_quantile(residuals, side)
    down = conformal_quantile(-residuals, side)
    middle = np.maximum(predicted, 0.0)
    # expm1(log1p(x) + r), written so that r = 0 gives x to the last digit.
    ends = [middle + (1 + middle) * np.expm1(ratio) for ratio in (-down, up)]
    return np.maximum(ends[0], 0.0), ends[1]
