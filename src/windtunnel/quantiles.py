"""Quantiles, pinned in one place: exact, linear interpolation between order statistics.

This is numpy's default (Hyndman & Fan's type 7) and DuckDB's ``quantile_cont``; other tools'
defaults differ (Polars: nearest; Spark: approximate), so nothing else in windtunnel computes one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence


def quantiles(values: np.ndarray, q: Sequence[float] | float) -> np.ndarray:
    """Return the ``q`` quantiles of ``values``.

    Args:
        values: Float array of shape (n,), any order; NaN is not allowed.
        q: fractions in [0, 1], shape (k,) or a scalar.

    Returns:
        Float array of shape (k,) (or a 0-d array); NaN everywhere where ``values`` is empty.

    >>> quantiles(np.array([1.0, 2.0, 3.0, 4.0]), [0.5, 0.9])
    array([2.5, 3.7])
    """
    if len(values) == 0:
        return np.full(np.shape(q), np.nan)
    return np.asarray(np.quantile(values, q, method="linear"))
