"""Exact intervals of a Poisson count, and how unlikely a count is."""

from __future__ import annotations

import math

#: Counts from which Wilson's and Hilferty's cube root is exact to 1e-6.
_MANY = 1_000
#: The normal's 97.5 % point.
_Z = 1.959963984540054


def at_most(count: int, mean: float) -> float:
    """Return the probability of ``count`` events or fewer where ``mean`` are expected."""
    if count < 0:
        return 0.0
    if mean <= 0:
        return 1.0
    logs = [k * math.log(mean) - math.lgamma(k + 1) - mean for k in range(count + 1)]
    top = max(logs)
    return min(1.0, math.exp(top) * math.fsum(math.exp(value - top) for value in logs))


def at_least(count: int, mean: float) -> float:
    """Return the probability of ``count`` events or more where ``mean`` are expected."""
    if count <= 0:
        return 1.0
    if mean <= 0:
        return 0.0
    total, k = [], count
    log = k * math.log(mean) - math.lgamma(k + 1) - mean
    while True:
        total.append(math.exp(log))
        k += 1
        log += math.log(mean / k)
        if k > mean and math.exp(log) <= 1e-17 * max(total[0], math.fsum(total)):
            return min(1.0, math.fsum(total))


def interval(count: int) -> tuple[float, float]:
    """Return Garwood's 95 % interval of the mean of a Poisson count (Biometrika 28, 1936).

    >>> [round(bound, 2) for bound in interval(10)]
    [4.8, 18.39]
    """
    return 0.0 if count == 0 else _bound(count, 1), _bound(count + 1, -1)


def _bound(shape: int, sign: int) -> float:
    """Return the 2.5 % (sign 1) or 97.5 % (-1) point of a gamma of whole shape and scale 1."""
    root = 1 - 1 / (9 * shape) - sign * _Z / (3 * math.sqrt(shape))
    guess = shape * root**3
    if shape > _MANY:
        return guess
    low, high = 0.0, 4.0 * shape + 8.0
    for _ in range(60):
        middle = (low + high) / 2
        below = 1 - at_most(shape - 1, middle)  # the gamma's distribution function
        low, high = (low, middle) if below > (0.025 if sign > 0 else 0.975) else (middle, high)
    return (low + high) / 2
