"""The market's shares: of a window's rounds, whatever their order, and no GPU left over."""

from __future__ import annotations

import pytest

from windtunnel.policies.shockwave.market import Market, MarketRules
from windtunnel.policies.shockwave.work import InPhase, TrainingJob
from windtunnel.throughput.epoch_profile import equal_epochs


def market_of(num_gpus: int, *jobs: tuple[float, float]) -> Market:
    """Return a market with jobs of so many GPUs and seconds."""
    market = Market(num_gpus, MarketRules(), {})
    for number, (gpus, seconds) in enumerate(jobs):
        job = TrainingJob(str(number), gpus, 0.0, equal_epochs(seconds))
        market.admit(number, InPhase(job, seconds), 0.0)
    market.note_jobs()
    return market


def test_all_run_all_the_time_where_all_fit() -> None:
    assert market_of(8, (4, 100.0), (3, 1e6), (0.5, 1e4)).shares() == {0: 1.0, 1: 1.0, 2: 1.0}


def test_rounds_left_over_go_to_those_with_most_to_do() -> None:
    # Of 4 x 20 rounds the short ones need one each; both long ones want more than is left.
    market = market_of(4, (4, 120.0), (4, 120.0), (2, 1e6), (4, 2e6))
    shares = market.shares()
    gangs = {0: 4, 1: 4, 2: 2, 3: 4}
    used = sum(shares[number] * 20 * gangs[number] for number in shares)
    assert used == pytest.approx(80)
    assert all(shares[number] >= 1 / 20 for number in (0, 1))


def test_parts_of_gpus_are_shared_to_the_last_round() -> None:
    shares = market_of(1, *[(0.1, 1e6)] * 12).shares()
    assert sum(shares.values()) * 0.1 == pytest.approx(1)
    assert max(shares.values()) <= 1
