"""Errors, against values worked by hand and a second implementation."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from windtunnel.predictors.accuracy import (
    ERROR_GRID,
    LOG_RATIO_PERCENTS,
    WITHIN,
    accuracy,
    coverage,
    error_cdf,
    relative_errors,
)

seconds = st.one_of(st.just(0.0), st.floats(0.5, 1e6), st.integers(0, 5).map(float))
predictions = st.one_of(st.just(float("nan")), st.floats(-1e6, 1e6), st.integers(-5, 5).map(float))


def test_by_hand() -> None:
    truth = np.array([100.0, 100.0, 100.0, 100.0, 0.0, 0.0, 10.0])
    predicted = np.array([110.0, 75.0, 200.0, -50.0, 0.0, 1.0, math.nan])
    found = accuracy(predicted, truth)
    # Errors 0.1, 0.25, 1, 1.5, 0, infinite; one without a prediction.
    assert (found["n"], found["num_predicted"], found["num_unpredicted"]) == (7, 6, 1)
    assert [found[f"within_{w}"] for w in WITHIN] == [2 / 6, 3 / 6, 3 / 6, 4 / 6]
    assert found["median_error"] == pytest.approx((0.25 + 1) / 2)
    assert found["p90_error"] == math.inf
    assert found["mae"] == pytest.approx((10 + 25 + 100 + 150 + 0 + 1) / 6)
    assert found["num_log_ratios"] == 3
    assert found["log_ratio_p50"] == pytest.approx(math.log(1.1))
    assert error_cdf(predicted, truth, (0.0, 0.25, 1e9)).tolist() == [1 / 6, 3 / 6, 5 / 6]


@given(st.lists(st.tuples(predictions, seconds), max_size=30))
def test_a_second_implementation_agrees(pairs: list[tuple[float, float]]) -> None:
    def error(p: float, t: float) -> float:
        return 0.0 if p == t else math.inf if t == 0 else abs(p - t) / t

    def middle(values: list[float], q: float) -> float:
        values = sorted(values)
        place = q * (len(values) - 1)
        low, high = values[math.floor(place)], values[math.ceil(place)]
        return low if low == high else low + (high - low) * (place - math.floor(place))

    judged = [(p, t) for p, t in pairs if not math.isnan(p)]
    errors = [error(p, t) for p, t in judged]
    ratios = [math.log(p / t) for p, t in judged if p > 0 and t > 0]
    expected: dict[str, Any] = {
        "n": len(pairs),
        "num_predicted": len(judged),
        "num_unpredicted": len(pairs) - len(judged),
        "num_log_ratios": len(ratios),
        "median_error": middle(errors, 0.5) if errors else None,
        "p90_error": middle(errors, 0.9) if errors else None,
        "mae": sum(abs(p - t) for p, t in judged) / len(judged) if judged else None,
    }
    for w in WITHIN:
        share = sum(e <= w / 100 for e in errors) / len(errors) if errors else None
        expected[f"within_{w}"] = share
    for p in LOG_RATIO_PERCENTS:
        expected[f"log_ratio_p{p}"] = middle(ratios, p / 100) if ratios else None
    predicted, truth = (np.array([pair[i] for pair in pairs], dtype=float) for i in (0, 1))
    found = accuracy(predicted, truth)
    assert found.keys() == expected.keys()
    for key, value in expected.items():
        if value is None:
            assert found[key] is None
        else:
            assert found[key] == pytest.approx(value, rel=1e-9, abs=1e-12)
    shares = [sum(e <= at for e in errors) / len(errors) if errors else math.nan
              for at in ERROR_GRID]  # fmt: skip
    assert error_cdf(predicted, truth).tolist() == pytest.approx(shares, nan_ok=True)
    assert relative_errors(*np.array(judged, dtype=float).reshape(-1, 2).T).tolist() == (
        pytest.approx(errors)
    )


def test_coverage_counts_the_ends_and_leaves_out_what_has_no_interval() -> None:
    low, high = np.array([1.0, 1.0, 1.0, math.nan]), np.array([3.0, 3.0, 3.0, math.nan])
    found = coverage(low, high, np.array([1.0, 3.0, 3.5, 2.0]))
    assert found == {"num_intervals": 3, "coverage": 2 / 3, "median_width": 2.0}
    none = coverage(low[3:], high[3:], np.array([2.0]))
    assert none == {"num_intervals": 0, "coverage": None, "median_width": None}
