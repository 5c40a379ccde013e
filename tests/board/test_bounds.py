"""No schedule is better than the lower bounds, and some meet them."""

from __future__ import annotations

import numpy as np
import pytest

import windtunnel as wt
from windtunnel.board.bounds import least_total, lower_bound
from windtunnel.board.flights import measured_jobs
from windtunnel.board.record import record
from windtunnel.board.scenarios import SCENARIOS, SEEDS, Scenario
from windtunnel.board.workloads import draw


def _jobs(seed: int, count: int, most: int) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(seed)
    return {
        "submit_time": np.sort(rng.integers(0, 60, count)).astype(float),
        "duration": rng.integers(1, 40, count).astype(float),
        "num_gpus": rng.integers(1, most + 1, count).astype(float),
    }


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize("policy", ["fifo", "srtf", "sjf", "easy-perfect", "las", "srsf"])
def test_no_schedule_is_below_the_bound(seed: int, policy: str) -> None:
    jobs = _jobs(seed, 12, 4)
    found = wt.simulate(jobs, "pool:4", policy).table["jct"].to_numpy().sum()
    area = jobs["duration"] * jobs["num_gpus"]
    assert found >= least_total(jobs["submit_time"], jobs["duration"], area, 4) - 1e-6


@pytest.mark.parametrize("seed", range(12))
def test_on_one_gpu_srtf_meets_the_bound(seed: int) -> None:
    jobs = _jobs(seed, 15, 1)
    found = wt.simulate(jobs, "pool:1", "srtf").table["jct"].to_numpy().sum()
    bound = least_total(jobs["submit_time"], jobs["duration"], jobs["duration"], 1)
    assert found == pytest.approx(bound, rel=1e-12)


def test_mean_busy_times_bound_jobs_that_all_start_together() -> None:
    # Two jobs of one GPU on two: both end at 10. One fast machine alone would say 5 and 10.
    one = np.ones(2)
    assert least_total(0 * one, 10 * one, 10 * one, 2) == 20
    # Four of them: 10, 10, 20, 20; the fast machine's 5, 10, 15, 20, the mean busy times' 60.
    four = np.ones(4)
    assert least_total(0 * four, 10 * four, 10 * four, 2) == 60


@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda scenario: scenario.name)
def test_nobody_on_the_board_is_below_the_bounds(scenario: Scenario) -> None:
    for name, entry in record()["policies"].items():
        for value, bound in zip(
            entry["values"].get(scenario.name, ()), record()["bounds"][scenario.name], strict=False
        ):
            assert value >= bound * (1 - 1e-9), name


def test_the_recorded_bounds_are_those_of_the_scenarios() -> None:
    for scenario in SCENARIOS:
        drawn = draw(scenario, SEEDS[0])
        bound = lower_bound(drawn, measured_jobs(drawn))
        assert record()["bounds"][scenario.name][0] == pytest.approx(bound, rel=1e-8)
