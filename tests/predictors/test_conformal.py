"""Conformal intervals: ranks by hand, coverage against the theory."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from job_histories import small_histories

from windtunnel.predictors import predict_online
from windtunnel.predictors.conformal import around, conformal_quantile, log_ratios
from windtunnel.schema import as_jobs


@pytest.mark.parametrize(
    ("count", "coverage", "rank"),
    [(9, 0.9, 9), (8, 0.9, None), (19, 0.9, 18), (99, 0.95, 95), (1, 0.5, 1), (0, 0.5, None)],
)
def test_the_rank_is_the_published_one(count: int, coverage: float, rank: int | None) -> None:
    scores = np.random.default_rng(0).permutation(np.arange(1.0, count + 1))
    assert conformal_quantile(scores, coverage) == (math.inf if rank is None else rank)


@given(st.lists(st.floats(-5, 5), max_size=60), st.sampled_from([0.5, 0.8, 0.9]))
def test_an_interval_leaves_out_at_most_its_share_on_each_side(
    residuals: list[float], coverage: float
) -> None:
    predicted = np.array([0.0, 100.0])
    low, high = around(predicted, np.array(residuals), coverage)
    ends = np.exp(residuals)
    for side, inside in ((low, lambda end: end <= ends + 1e-9), (high, lambda e: e >= ends - 1e-9)):
        # Where 0 s is predicted, (1 + end) / (1 + 0) is the ratio that was let in.
        if 0 < side[0] < math.inf:
            assert inside(1 + side[0]).sum() >= (1 + coverage) / 2 * len(residuals) - 1e-9
    assert (low >= 0).all()


@given(small_histories(), st.sampled_from([0.2, 0.5, 0.6]), st.sampled_from([2.0, 3.0]))
def test_an_interval_rests_on_predictions_whose_jobs_had_ended_at_the_last_refresh(
    jobs: dict[str, list[Any]], coverage: float, refresh: float
) -> None:
    found = predict_online(jobs, "rolling", coverage=coverage, refresh=refresh).to_pylist()
    first = min(jobs["submit_time"])
    for row, prediction in enumerate(found):
        since = first + (jobs["submit_time"][row] - first) // refresh * refresh
        ratios = sorted(
            math.log1p(jobs["duration"][other]) - math.log1p(found[other]["predicted"])
            for other in range(len(found))
            if jobs["end_time"][other] < since and found[other]["predicted"] is not None
        )
        rank = math.ceil((len(ratios) + 1) * (1 + coverage) / 2 - 1e-9)
        if prediction["predicted"] is None or rank > len(ratios):
            assert prediction["low"] is prediction["high"] is None
            continue
        middle = 1 + prediction["predicted"]
        low = max(0.0, middle * math.exp(ratios[len(ratios) - rank]) - 1)
        assert prediction["low"] == pytest.approx(low, rel=1e-9, abs=1e-9)
        high = middle * math.exp(ratios[rank - 1]) - 1
        assert prediction["high"] == pytest.approx(high, rel=1e-9, abs=1e-9)


def test_earlier_errors_of_nothing_leave_a_prediction_as_it_is() -> None:
    truth = np.array([3.0, 1e9, 0.1, 7.7])
    zero = log_ratios(np.tile(truth, 20), np.tile(truth, 20))
    low, high = around(truth, zero, 0.9)
    assert low.tolist() == truth.tolist()
    assert high.tolist() == truth.tolist()


@pytest.mark.parametrize("coverage", [0.5, 0.9])
def test_intervals_around_any_predictor_cover_what_they_say(coverage: float) -> None:
    rng = np.random.default_rng(1)
    count = 6000
    jobs = as_jobs(
        {
            "submit_time": np.arange(count) * 600.0,
            "duration": rng.lognormal(4, 1, count),
            "num_gpus": np.ones(count),
            "user": ["ann"] * count,
        }
    )
    found = predict_online(jobs, "rolling", coverage=coverage)
    low, high = (np.asarray(found[name].to_numpy(zero_copy_only=False)) for name in ("low", "high"))
    there = ~np.isnan(low)
    # The first day's jobs (144 of them) have no earlier errors.
    assert count - 200 <= there.sum() <= count - 144
    inside = ((low <= jobs["duration"].to_numpy()) & (jobs["duration"].to_numpy() <= high))[there]
    # Binomial spread of the jobs and of the 1000 calibration errors, which six sets share.
    spread = math.sqrt(coverage * (1 - coverage) * (1 / there.sum() + 1 / (6 * 1000)))
    assert inside.mean() == pytest.approx(coverage, abs=4 * spread)
