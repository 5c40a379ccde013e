"""The largest product of linear functions over a polytope, by a barrier method.

Boyd and Vandenberghe, "Convex Optimization", 2004, section 11.3.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from windtunnel.errors import InfeasibleError

#: The duality gap at which the method stops, in units of the logarithm.
GAP = 1e-10
_GROWTH = 10.0
_MAX_NEWTON = 60
_SMALL = 1e-12


@dataclass(frozen=True)
class _Barrier:
    """The function sharpness x sum powers log(gains x) + sum log(slack) + sum log x, negated."""

    gains: np.ndarray
    powers: np.ndarray
    rows: np.ndarray
    upper: np.ndarray
    sharpness: float

    def newton(self, x: np.ndarray) -> tuple[np.ndarray, float]:
        """Return Newton's step, and the squared decrement it promises."""
        got, slack = self.gains @ x, self.upper - self.rows @ x
        pull = self.sharpness * self.powers / got
        gradient = self.rows.T @ (1 / slack) - self.gains.T @ pull - 1 / x
        hessian = (self.gains.T * (pull / got)) @ self.gains + (self.rows.T / slack**2) @ self.rows
        # In units of x the matrix is well scaled: near a bound x is small, 1/x^2 large.
        scaled = hessian * np.outer(x, x) + np.eye(len(x))
        # Where the best point is not the only one the matrix is singular to rounding: the
        # shortest of the equal steps is as good as any.
        step = -x * np.linalg.lstsq(scaled, gradient * x)[0]
        return step, -float(gradient @ step)

    def longest(self, x: np.ndarray, step: np.ndarray) -> float:
        """Return the longest step up to 1 that stays strictly inside."""
        slack, used = self.upper - self.rows @ x, self.rows @ step
        with np.errstate(divide="ignore", invalid="ignore"):
            own = np.where(step < 0, -x / step, np.inf)
            others = np.where(used > 0, slack / used, np.inf)
        bound = min(float(own.min(initial=np.inf)), float(others.min(initial=np.inf)))
        return min(1.0, 0.99 * bound)

    def rise(self, x: np.ndarray, moved: np.ndarray) -> float:
        """Return how much the function rises between two points, by ratios: no cancellation."""
        gained = self.powers @ np.log((self.gains @ moved) / (self.gains @ x))
        slack = np.log((self.upper - self.rows @ moved) / (self.upper - self.rows @ x)).sum()
        return float(-self.sharpness * gained - slack - np.log(moved / x).sum())

    def lowest(self, x: np.ndarray) -> np.ndarray:
        """Return the minimum, from x, by Newton's method with backtracking."""
        for _ in range(_MAX_NEWTON):
            step, decrement = self.newton(x)
            if decrement < _SMALL:
                break
            length = self.longest(x, step)
            while length > _SMALL and self.rise(x, x + length * step) > -0.1 * length * decrement:
                length /= 2
            if length <= _SMALL:  # rounding hides any further descent
                break
            x = x + length * step
        return x


def largest_product(
    name: str,
    gains: np.ndarray,
    powers: np.ndarray,
    *,
    rows: np.ndarray,
    upper: np.ndarray,
    start: np.ndarray,
) -> np.ndarray:
    """Maximise sum_i powers[i] log(gains[i] @ x) subject to rows @ x <= upper and x >= 0.

    Args:
        name: what to call the model in errors.
        gains: non-negative, shape (functions, columns).
        powers: > 0, shape (functions,).
        rows: shape (rows, columns).
        upper: shape (rows,).
        start: a point strictly inside, shape (columns,).

    Returns:
        The best x, shape (columns,).

    Raises:
        InfeasibleError: the start is not strictly inside, or some function is 0 there.

    >>> both = np.ones((1, 2))
    >>> largest_product(
    ...     "split", np.eye(2), np.ones(2), rows=both, upper=np.ones(1), start=np.full(2, 0.1)
    ... ).round(6)
    array([0.5, 0.5])
    """
    x = np.array(start, float)
    if (x <= 0).any() or (rows @ x >= upper).any() or (gains @ x <= 0).any():
        raise InfeasibleError(name, "there is no point strictly within all limits")
    count = len(upper) + len(x)
    total = float(powers.sum())
    sharpness = total
    while True:
        x = _Barrier(gains, powers, rows, upper, sharpness).lowest(x)
        if count / sharpness < GAP * total:
            return x
        sharpness *= _GROWTH
