"""The largest product of linear functions over a polytope, by a barrier method.

Boyd and Vandenberghe, "Convex Optimization", 2004, section 11.3.
"""

from __future__ import annotations

import numpy as np

from windtunnel.errors import InfeasibleError

#: The duality gap at which the method stops, in units of the logarithm.
GAP = 1e-10
_GROWTH = 10.0
_MAX_NEWTON = 60


def largest_product(
    name: str,
    gains: np.ndarray,
    powers: np.ndarray,
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
    """
    x = np.array(start, float)
    if (x <= 0).any() or (rows @ x >= upper).any() or (gains @ x <= 0).any():
        raise InfeasibleError(name, "there is no point strictly within all limits")
    count = len(upper) + len(x)
    sharpness = float(powers.sum())
    while True:
        x = _centred(x, sharpness, gains, powers, rows, upper)
        if count / sharpness < GAP * powers.sum():
            return x
        sharpness *= _GROWTH


def _centred(
    x: np.ndarray,
    sharpness: float,
    gains: np.ndarray,
    powers: np.ndarray,
    rows: np.ndarray,
    upper: np.ndarray,
) -> np.ndarray:
    """Return the minimum of the barrier function by Newton's method with backtracking."""
    for _ in range(_MAX_NEWTON):
        got, room = gains @ x, upper - rows @ x
        pull = sharpness * powers / got
        gradient = rows.T @ (1 / room) - gains.T @ pull - 1 / x
        hessian = (gains.T * (pull / got)) @ gains + (rows.T / room**2) @ rows
        # In units of x the matrix is well scaled: near a bound x is small, 1/x^2 large.
        scaled = hessian * np.outer(x, x) + np.eye(len(x))
        # Where the best point is not the only one the matrix is singular to rounding: the
        # shortest of the equal steps is as good as any.
        step = -x * np.linalg.lstsq(scaled, gradient * x)[0]
        decrease = -float(gradient @ step)
        if decrease < 1e-12:  # noqa: PLR2004 - half the squared Newton decrement
            break
        length = _longest(x, step, room, rows @ step)
        moved = x + length * step
        while length > 1e-12 and _rise(  # noqa: PLR2004
            x, moved, sharpness, gains, powers, rows, upper
        ) > -0.1 * length * decrease:
            length /= 2
            moved = x + length * step
        if length <= 1e-12:  # noqa: PLR2004 - rounding hides any further descent
            break
        x = moved
    return x


def _longest(x: np.ndarray, step: np.ndarray, room: np.ndarray, used: np.ndarray) -> float:
    """Return the longest step up to 1 that stays strictly inside."""
    with np.errstate(divide="ignore", invalid="ignore"):
        bounds = np.concatenate([
            np.where(step < 0, -x / step, np.inf), np.where(used > 0, room / used, np.inf)
        ])
    return min(1.0, 0.99 * float(bounds.min(initial=np.inf)))


def _rise(
    x: np.ndarray,
    moved: np.ndarray,
    sharpness: float,
    gains: np.ndarray,
    powers: np.ndarray,
    rows: np.ndarray,
    upper: np.ndarray,
) -> float:
    """Return how much the barrier function rises between two points, by ratios: no cancellation."""
    gained = powers @ np.log((gains @ moved) / (gains @ x))
    room = np.log((upper - rows @ moved) / (upper - rows @ x)).sum()
    return float(-sharpness * gained - room - np.log(moved / x).sum())
