"""Pruning and Thompson sampling, each alone."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from toy import TOY

from windtunnel.energy import Trial
from windtunnel.energy.costs import Pricing
from windtunnel.energy.pruning import PruningExplorer
from windtunnel.energy.thompson import GaussianThompson, posterior
from windtunnel.energy.zeus import Zeus

if TYPE_CHECKING:
    from collections.abc import Mapping

SIZES = (8, 16, 32, 64, 128)


def explore(
    costs: Mapping[int, float], default: int, rounds: int = 2
) -> tuple[list[int], list[int]]:
    """Return the sizes in the order of their trials, and the survivors; missing sizes fail."""
    explorer = PruningExplorer(SIZES, default, rounds)
    tried = []
    while (size := explorer.ask()) is not None:
        tried.append(size)
        explorer.tell(costs.get(size, 99.0), reached=size in costs)
    assert explorer.done
    return tried, explorer.survivors


def test_a_round_walks_down_then_up_and_the_next_starts_at_the_best() -> None:
    tried, survivors = explore({16: 5.0, 32: 3.0, 64: 4.0}, default=64)
    assert tried == [64, 32, 16, 8, 128, 32, 16, 64]
    assert survivors == [16, 32, 64]


def test_a_failing_default_ends_the_way_down_only() -> None:
    tried, survivors = explore({8: 1.0, 64: 2.0, 128: 3.0}, default=32, rounds=1)
    assert tried == [32, 64, 128]
    assert survivors == [64, 128]


def test_everything_may_be_pruned() -> None:
    assert explore({}, default=32) == ([32, 64], [])


def test_the_first_of_equals_is_the_next_default() -> None:
    assert explore({32: 3.0, 64: 3.0}, default=64)[0] == [64, 32, 16, 128, 64, 32]


def test_only_the_awaited_result_counts() -> None:
    explorer = PruningExplorer(SIZES, 32)
    assert explorer.awaited is None
    assert (explorer.ask(), explorer.awaited, explorer.ask()) == (32, 32, 32)
    explorer.tell(1.0, reached=True)
    assert explorer.awaited is None


@given(
    costs=st.dictionaries(st.sampled_from(SIZES), st.floats(0.1, 10.0)),
    default=st.sampled_from(SIZES),
)
def test_survivors_were_seen_twice(costs: dict[int, float], default: int) -> None:
    tried, survivors = explore(costs, default)
    assert set(survivors) <= set(costs)
    assert all(tried.count(size) == 2 for size in survivors)
    assert survivors == sorted(survivors)
    if default in costs:
        assert min((costs[s] for s in survivors), default=0.0) == min(costs[s] for s in survivors)


@given(rewards=st.lists(st.floats(-1e6, 0), min_size=2, max_size=20))
def test_a_flat_prior_gives_mean_and_standard_error(rewards: list[float]) -> None:
    mean, deviation = posterior(rewards)
    assert mean == pytest.approx(np.mean(rewards), rel=1e-9, abs=1e-9)
    assert deviation == pytest.approx(np.std(rewards) / math.sqrt(len(rewards)), rel=1e-6, abs=1e-6)


def test_a_prior_pulls() -> None:
    # Variance 4, so precision 1/4 a reward; the prior's 1/2 equals both rewards together.
    assert posterior([-6.0, -2.0], prior_mean=0.0, prior_precision=0.5) == (-2.0, 1.0)


def test_the_order_of_draws_is_the_published_one() -> None:
    bandit = GaussianThompson([8, 16], seed=3)
    bandit.learn(8, [-1.0, -3.0])
    bandit.learn(16, [-2.0, -2.0])
    rng = np.random.default_rng(3)
    for _ in range(20):
        rng.choice(np.array([8, 16]), 2, replace=False)
        draws = {8: rng.normal(-2.0, math.sqrt(0.5)), 16: rng.normal(-2.0, 0.0)}
        assert bandit.draw() == max(draws, key=lambda arm: draws[arm])


def test_arms_with_fewer_than_two_rewards_come_first() -> None:
    bandit = GaussianThompson([8, 16, 32], seed=0)
    bandit.learn(8, [-1.0, -1.1])
    bandit.learn(32, [-0.1])
    assert {bandit.draw() for _ in range(50)} == {16, 32}


def fed(zeus: Zeus, costs: list[tuple[int, float]]) -> Zeus:
    """Return an optimiser that has explored, and has heard these costs since."""
    zeus.begin(TOY, Pricing(TOY, 0.5), seed=1)
    while not zeus.arms:
        size = zeus.predict()
        assert size is not None
        zeus.observe(Trial(size, 200, {8: 3.0, 16: 1.0, 32: 2.0}[size], reached=True))
        if zeus._explorer.done:
            zeus.predict()
    for size, cost in costs:
        zeus.observe(Trial(size, 200, cost, reached=True))
    return zeus


def test_a_window_forgets_what_has_drifted() -> None:
    """Size 16 gets dear for good: with a window its old costs are gone after two more runs."""
    drift = [(16, 9.0), (16, 9.1)]
    windowed = fed(Zeus(window=2), drift)
    assert windowed._bandit is not None
    assert windowed._bandit._posterior[16][0] == pytest.approx(-9.05)
    assert {windowed.predict() for _ in range(50)} == {32}
    everything = fed(Zeus(), drift)
    assert everything._bandit is not None
    assert everything._bandit._posterior[16][0] == pytest.approx(-(1 + 1 + 9 + 9.1) / 4)


def test_results_of_pruned_sizes_do_not_disturb_the_bandit() -> None:
    zeus = fed(Zeus(), [])
    zeus.observe(Trial(999, 200, 0.0, reached=True))
    assert zeus.arms == (8, 16, 32)
    assert zeus.predict() == 16
