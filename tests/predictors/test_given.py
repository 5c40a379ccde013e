"""Columns, the truth, and the documented noise."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np
import pytest
from job_histories import history

from windtunnel.errors import SpecError
from windtunnel.predictors import resolve_predictor
from windtunnel.predictors.given import Noise
from windtunnel.schema import as_jobs

if TYPE_CHECKING:
    import pyarrow as pa

COUNT = 20_000


def many(duration: float = 50.0) -> pa.Table:
    return as_jobs(
        {
            "submit_time": np.arange(COUNT, dtype=float),
            "duration": np.full(COUNT, duration),
            "num_gpus": np.ones(COUNT),
        }
    )


def test_columns_and_estimates_are_read_as_they_stand() -> None:
    jobs = as_jobs(
        {
            "submit_time": [0.0, 1.0],
            "duration": [5.0, 6.0],
            "num_gpus": [1.0, 1.0],
            "estimate": [60.0, None],
            "group_dur": [7, 8],
            "shell": ["sh", "bash"],
        }
    )
    assert resolve_predictor("column:group_dur").predict(jobs).tolist() == [7.0, 8.0]
    asked = resolve_predictor("requested").explain(jobs)
    assert asked.seconds[0] == 60.0
    assert math.isnan(asked.seconds[1])
    assert asked.source.tolist() == [0, 5]
    assert resolve_predictor("oracle").predict(jobs).tolist() == [5.0, 6.0]
    with pytest.raises(SpecError, match="Did you mean 'group_dur'"):
        resolve_predictor("column:grup_dur").predict(jobs)
    with pytest.raises(SpecError, match="holds 'sh' in row 1; expected numbers"):
        resolve_predictor("column:shell").predict(jobs)


@pytest.mark.parametrize("seed", [0, 1, 2**64 - 1])
def test_noise_has_the_documented_shares(seed: int) -> None:
    jobs = many()
    error = np.abs(Noise(seed).predict(jobs) / 50.0 - 1)
    for low, high, share in ((0, 0.1, 0.1), (0.1, 0.5, 0.4), (0.5, 1, 0.2), (1, 10, 0.2),
                             (10, 100, 0.1)):  # fmt: skip
        inside = (error >= low - 1e-12) & (error < high - 1e-12)
        # Four standard deviations of a binomial share.
        assert inside.mean() == pytest.approx(share, abs=4 * math.sqrt(share * (1 - share) / COUNT))
        # Uniform inside the band: the mean is in the middle, within four standard errors.
        middle, width = (low + high) / 2, high - low
        deviation = 4 * width / math.sqrt(12 * inside.sum())
        assert error[inside].mean() == pytest.approx(middle, abs=deviation)


def test_the_sign_of_the_noise_is_as_documented() -> None:
    jobs = many()
    predicted = {sign: Noise(sign=sign).predict(jobs) for sign in ("random", "plus", "factor")}
    over = predicted["random"] > 50
    assert over.mean() == pytest.approx(0.5, abs=4 * math.sqrt(0.25 / COUNT))
    # 30 % of the jobs are off by more than the truth, half of them downwards.
    assert (predicted["random"] < 0).mean() == pytest.approx(
        0.15, abs=4 * math.sqrt(0.1275 / COUNT)
    )
    assert (predicted["plus"] >= 50).all()
    assert (predicted["factor"] > 0).all()
    assert (predicted["factor"][over] == predicted["random"][over]).all()
    error = predicted["plus"] / 50 - 1
    assert predicted["random"][~over] == pytest.approx(50 * (1 - error[~over]))
    assert predicted["factor"][~over] == pytest.approx(50 / (1 + error[~over]))


def test_a_jobs_noise_depends_on_its_id_and_the_seed_alone() -> None:
    jobs = history(100)
    model = Noise(7)
    whole = model.predict(jobs)
    order = np.random.default_rng(0).permutation(100)[:40]
    assert (model.predict(jobs.take(order)) == whole[order]).all()
    assert not (Noise(8).predict(jobs) == whole).any()
    for params in ({"seed": -1}, {"sign": "minus"}):
        with pytest.raises(SpecError):
            Noise(**params)
