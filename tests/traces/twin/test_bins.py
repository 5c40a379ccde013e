"""`Bins`: groups of at least so many values, described by their means."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from windtunnel.traces.twin.bins import Bins, draw_bins, fit_bins
from windtunnel.traces.twin.fidelity import distance

LEVELS = (0.1, 0.25, 0.5, 0.75, 0.9)
values = st.lists(st.one_of(st.integers(0, 20), st.integers(0, 10**7)), min_size=1, max_size=300)


def test_ten_values_by_hand() -> None:
    found = fit_bins(np.array([9.0, 1, 2, 3, 8, 4, 5, 6, 7, 100]), min_count=2, bins=2)
    # Halves of five, split towards the ends of the distribution while both parts have two.
    assert found == Bins([3, 2, 2, 3], [2.0, 4.5, 6.5, 39.0], [], whole=True)


def test_a_value_that_many_share_stays_what_it_is() -> None:
    found = fit_bins(np.array([0.0] * 50 + [0.25] * 3 + [10.0] * 47), min_count=5, bins=10)
    assert found is not None
    # Three values are too few for a group: two of the nearer atom's jobs make them one.
    assert found.jobs == [48, 5, 47]
    assert found.mean == [0.0, 0.15, 10.0]
    assert found.atoms == [0, 2]


@given(values, st.integers(2, 9), st.integers(2, 40))
def test_groups_are_large_and_are_means_of_neighbours(
    given_values: list[int], min_count: int, bins: int
) -> None:
    found = fit_bins(np.array(given_values, dtype=float), min_count=min_count, bins=bins)
    if len(given_values) < min_count:
        assert found is None
        return
    assert found is not None
    assert found.fault() == ""
    assert min(found.jobs) >= min_count
    assert sum(found.jobs) == len(given_values)
    ordered, at = sorted(given_values), 0
    for jobs, mean in zip(found.jobs, found.mean, strict=True):  # the oracle: plain sums
        assert mean == pytest.approx(sum(ordered[at : at + jobs]) / jobs, rel=1e-8, abs=1e-8)
        at += jobs
    top = sum(ordered[-min_count:]) / min_count
    assert found.mean[-1] <= top * (1 + 1e-8)


@given(values, st.integers(2, 9), st.integers(0, 3))
def test_drawn_values_have_the_published_sum_and_nearly_the_distribution(
    given_values: list[int], min_count: int, seed: int
) -> None:
    source = np.array(given_values, dtype=float)
    found = fit_bins(source, min_count=min_count, bins=32)
    if found is None:
        return
    drawn = draw_bins(found, len(source), np.random.default_rng(seed))
    assert (drawn >= 0).all()
    assert (drawn == np.rint(drawn)).all()
    assert drawn.sum() == pytest.approx(source.sum(), rel=1e-6, abs=0.5001 + 1e-6 * len(source))
    # A group's stretch reaches into its neighbours, no farther: two groups at most lie between.
    share = max(found.jobs) / len(source)
    apart = distance(source, drawn)
    assert apart is not None
    assert apart <= 2 * share + 1e-9
    assert drawn.max() <= np.ceil(found.mean[-1])


def test_a_smooth_distribution_is_met_within_one_group() -> None:
    source = np.random.default_rng(1).lognormal(5, 2, 20_000)
    found = fit_bins(source, min_count=5, bins=32)
    assert found is not None
    drawn = draw_bins(found, len(source), np.random.default_rng(2))
    apart = distance(source, drawn)
    assert apart is not None
    assert apart < 1 / 32
    assert drawn.sum() == pytest.approx(source.sum(), rel=1e-6)
    assert np.quantile(drawn, 0.99) == pytest.approx(np.quantile(source, 0.99), rel=0.05)


def test_negative_values_such_as_priorities_are_drawn_too() -> None:
    source = np.repeat([-5.0, -1.0, 3.0], 20)
    found = fit_bins(source, min_count=5, bins=8)
    assert found is not None
    assert sorted(draw_bins(found, 60, np.random.default_rng(0))) == sorted(source)


def test_how_far_a_group_alone_spreads_by_hand() -> None:
    five = np.array([1.0, 2, 4, 8, 16])
    found = fit_bins(five, min_count=3, bins=1, spread=True)
    # ln 2 times the standard deviation of 0, 1, 2, 3, 4, which is the square root of 2: 0.98.
    assert found == Bins([5], [6.2], [], whole=True, spread=1.0)
    drawn = np.sort(draw_bins(found, 5, np.random.default_rng(0)))
    assert drawn.sum() == 31
    assert np.abs(drawn - five).max() <= 2
    many = draw_bins(found, 5000, np.random.default_rng(0))
    assert many.sum() == 31_000
    assert many.min() >= 1
    assert np.median(many) == 4
    two = fit_bins(np.array([*five, 1e6, 1e6, 1e6]), min_count=3, bins=2, spread=True)
    assert two is not None
    assert (len(two.jobs), two.spread) == (2, 0.0)


@pytest.mark.parametrize(
    "known",
    [
        [0.0, 1, 2, 4, 8],  # of 0 there is no logarithm
        [7.0] * 5,  # no spread at all
        [1.0, 20, 300, 4000],  # too few to tell more than their mean
    ],
)
def test_of_a_group_without_a_crowd_or_above_0_no_spread_is_published(known: list[float]) -> None:
    found = fit_bins(np.array(known), min_count=3, bins=1, spread=True)
    assert found is not None
    assert (len(found.jobs), found.spread) == (1, 0.0)


@given(
    st.lists(st.integers(1, 9).flatmap(lambda n: st.integers(1, 10**n)), min_size=5, max_size=40),
    st.integers(0, 3000),
)
def test_a_spread_group_keeps_its_mean(given_values: list[int], count: int) -> None:
    source = np.array(given_values, dtype=float)
    found = fit_bins(source, min_count=len(source), bins=2, spread=True)
    assert found is not None
    assert found.fault() == ""
    drawn = draw_bins(found, count, np.random.default_rng(0))
    assert len(drawn) == count
    assert drawn.sum() == pytest.approx(count * source.mean(), rel=1e-6, abs=0.5001)
    assert (drawn >= 0).all()
    assert (drawn == np.rint(drawn)).all()


@pytest.mark.parametrize(
    "wrong",
    [
        Bins([5], [1.0], spread=-0.1),
        Bins([5], [1.0], spread=1e9),
        Bins([5], [1.0], spread=float("nan")),
        Bins([5], [0.0], spread=0.5),
        Bins([5, 5], [1.0, 2.0], spread=0.5),
    ],
)
def test_a_spread_that_cannot_be_is_a_fault(wrong: Bins) -> None:
    assert "a group alone" in wrong.fault()


def test_many_small_heavy_tailed_groups_keep_their_quantiles() -> None:
    rng = np.random.default_rng(3)
    for seed in range(20):
        parts = [rng.lognormal(5, 2, 8) for _ in range(40)]
        source = np.concatenate(parts)
        drawn = []
        for part in parts:
            found = fit_bins(part, min_count=5, bins=32, spread=True)
            assert found is not None
            drawn.append(draw_bins(found, len(part), np.random.default_rng(seed)))
        ratio = np.quantile(np.concatenate(drawn), LEVELS) / np.quantile(source, LEVELS)
        assert np.abs(np.log(ratio)).max() < np.log(1.6)  # 10 and more from means alone
