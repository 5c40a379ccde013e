"""Quantiles, pinned in one place: exact, linear interpolation between order statistics.

This is numpy's default (Hyndman & Fan's type 7) and DuckDB's ``quantile_cont``; other tools'
defaults differ (Polars: nearest; Spark: approximate), so nothing else in windtunnel computes one.
"""

from __future__ import annotations

import math
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


def quantile_of_counted(values: np.ndarray, until: np.ndarray, q: float) -> float:
    """Return the ``q`` quantile of sorted values of which each is there several times, or never.

    Args:
        values: Float array of shape (n,), ascending, NaN last: it is the quantile where any is.
        until: how many there are of all up to each, shape (n,); at least one in all.
        q: a fraction in [0, 1].

    >>> quantile_of_counted(np.array([1.0, 2.0, 4.0]), np.array([1, 1, 3]), 0.25)
    2.5
    """
    last = int(until[-1]) - 1
    at = q * last
    below = int(at)
    places = np.searchsorted(until, [below, min(below + 1, last), last], side="right")
    low, high, largest = map(float, values[places])
    if math.isnan(largest):
        return largest
    part = at - below
    # As numpy interpolates, from the nearer end.
    return low + (high - low) * part if part < 0.5 else high - (high - low) * (1 - part)  # noqa: PLR2004
