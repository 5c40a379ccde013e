"""What the market believes of a job, worked by hand."""

from __future__ import annotations

import pytest

from windtunnel.policies.shockwave.forecast import Forecast
from windtunnel.policies.shockwave.work import TrainingJob
from windtunnel.throughput.epoch_profile import equal_epochs


def test_the_goal_is_a_mean_over_time_and_a_tenth_of_the_last() -> None:
    job = Forecast(TrainingJob("j", 1, 0.0, equal_epochs(100.0)), 0.0, 10.0)
    job.fair_finishes = [(0, 100.0), (3, 200.0)]
    assert job.goal(4) == pytest.approx(0.9 * (3 * 100 + 1 * 200) / 4 + 0.1 * 200)
