"""The largest product: hand-worked cases and optimality conditions."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from windtunnel.errors import InfeasibleError
from windtunnel.optimize.geometric_mean import largest_product


def test_powers_split_a_cake() -> None:
    cake = largest_product(
        "cake",
        np.eye(3),
        np.array([1.0, 2.0, 5.0]),
        rows=np.ones((1, 3)),
        upper=np.array([4.0]),
        start=np.full(3, 0.1),
    )
    assert cake == pytest.approx([0.5, 1.0, 2.5], rel=1e-8)


@pytest.mark.slow
@settings(deadline=None, derandomize=True, database=None)
@given(seed=st.integers(0, 1_000))
def test_no_feasible_point_promises_more(seed: int) -> None:
    """At the optimum sum p (g y / g x) <= sum p for every feasible y: the gradient's condition."""
    rng = np.random.default_rng(seed)
    functions, columns, rows = rng.integers(1, 5), rng.integers(1, 6), rng.integers(1, 4)
    gains = rng.uniform(0.1, 3, (functions, columns))
    powers = rng.uniform(0.5, 2, functions)
    matrix, upper = rng.uniform(0.1, 1, (rows, columns)), rng.uniform(0.5, 2, rows)
    best = largest_product(
        "random", gains, powers, rows=matrix, upper=upper, start=np.full(columns, 1e-3)
    )
    assert (matrix @ best <= upper).all()
    assert (best > 0).all()
    optimize = pytest.importorskip("scipy.optimize")
    slope = gains.T @ (powers / (gains @ best))
    most = -optimize.linprog(-slope, matrix, upper).fun
    assert most <= powers.sum() * (1 + 1e-7)


def test_no_interior() -> None:
    with pytest.raises(InfeasibleError, match="strictly within"):
        largest_product(
            "x", np.eye(1), np.ones(1), rows=np.eye(1), upper=np.zeros(1), start=np.ones(1)
        )
