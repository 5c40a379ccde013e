"""Apportionment and drawing inside bins."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from windtunnel.traces.synthetic.coupling import joint, whole_table
from windtunnel.traces.synthetic.knots import (
    bins_from_knots,
    bins_from_points,
    draw,
    largest_remainder,
    onto,
    settle,
    spread,
)

weights = st.lists(st.integers(0, 10**6), min_size=1, max_size=40).filter(any)


@given(weights, st.integers(0, 10**7))
def test_largest_remainder_sums_stays_near_and_keeps_the_order(
    parts: list[int], total: int
) -> None:
    result = largest_remainder(parts, total)
    exact = np.array(parts) * total / sum(parts)
    assert result.sum() == total
    assert (result >= 0).all()
    assert (np.abs(result - exact) < 1 + 1e-6).all()
    order = np.argsort(parts, kind="stable")
    steps = np.diff(np.array(parts)[order])
    assert (np.diff(result[order])[steps > 0] >= 0).all()


@given(weights)
def test_largest_remainder_of_the_whole_is_the_weights(parts: list[int]) -> None:
    assert largest_remainder(parts, sum(parts)).tolist() == parts


counts = st.lists(st.integers(0, 50), min_size=2, max_size=20).filter(any)


@given(counts, st.integers(0, 20), st.integers(0, 2**32), st.integers(0, 1))
def test_drawn_values_keep_every_knot(jobs: list[int], above: int, seed: int, first: int) -> None:
    cumulative = np.cumsum(jobs)
    total = int(cumulative[-1]) + above
    bins = bins_from_knots(cumulative, total, first=first, maximum=2 ** (len(jobs) + 1))
    index = np.repeat(np.arange(len(bins.jobs)), bins.jobs)
    values = draw(bins, index, np.random.default_rng(seed))
    assert len(values) == total
    assert values.min() >= first
    assert [int((values <= 2**k).sum()) for k in range(len(jobs))] == cumulative.tolist()
    assert values.max() <= 2 ** (len(jobs) + 1)


bounded = st.lists(
    st.tuples(st.integers(0, 10**6), st.integers(0, 10**6), st.floats(0, 1)), min_size=1
)


@given(bounded, st.floats(-0.2, 1.2))
def test_settle_stays_inside_and_reaches_what_can_be_reached(
    triples: list[tuple[int, int, float]], where: float
) -> None:
    low = np.array([a for a, _, _ in triples])
    high = low + np.array([b for _, b, _ in triples])
    values = low + np.floor((high - low) * np.array([f for *_, f in triples])).astype(np.int64)
    total = float(np.floor(low.sum() + where * (high - low).sum()))
    moved = settle(values, low, high, total)
    assert ((low <= moved) & (moved <= high)).all()
    reachable = min(max(total, low.sum()), high.sum())
    assert abs(moved.sum() - reachable) <= 2
    exact = spread(moved, low, high, int(reachable) - int(moved.sum()))
    assert exact.sum() == reachable
    assert ((low <= exact) & (exact <= high)).all()


@pytest.mark.slow
@settings(deadline=None)
@given(
    st.lists(st.integers(0, 60), min_size=4, max_size=12).filter(any),
    st.lists(st.integers(0, 1000), min_size=1, max_size=8).filter(any),
    st.data(),
)
def test_the_table_between_durations_and_sizes_keeps_both_margins(
    rows: list[int], shares: list[int], data: st.DataObject
) -> None:
    cumulative = np.cumsum(rows)
    bins = bins_from_knots(cumulative, int(cumulative[-1]), first=1, maximum=2 ** (len(rows) - 1))
    columns = largest_remainder(shares, sum(rows))
    gpus = 2 ** np.arange(len(shares), dtype=np.int64)
    means = data.draw(
        st.lists(st.floats(1, 3000), min_size=len(shares), max_size=len(shares)), label="means"
    )
    table = joint(bins, bins.jobs, columns, gpus, columns * np.array(means))
    assert (table >= 0).all()
    assert table.sum(axis=1).tolist() == bins.jobs.tolist()
    assert table.sum(axis=0).tolist() == columns.tolist()


@given(
    st.dictionaries(st.integers(1, 5000), st.integers(0, 60), min_size=1, max_size=12),
    st.integers(0, 20),
    st.integers(0, 2**32),
)
def test_drawn_values_keep_points_anywhere(steps: dict[int, int], above: int, seed: int) -> None:
    knots = sorted(steps)
    cumulative = np.cumsum([steps[k] for k in knots]).tolist()
    total = cumulative[-1] + above
    points = dict(zip(knots, cumulative, strict=True))
    bins = bins_from_points(points, total, first=1, maximum=6000)
    assert (bins.low <= bins.high).all()
    index = np.repeat(np.arange(len(bins.jobs)), bins.jobs)
    values = draw(bins, index, np.random.default_rng(seed))
    assert len(values) == total
    assert [int((values <= k).sum()) for k in knots] == cumulative


@given(bounded, st.integers(-(10**6), 10**7))
def test_onto_reaches_every_sum_that_the_bounds_allow(
    triples: list[tuple[int, int, float]], total: int
) -> None:
    low = np.array([a for a, _, _ in triples])
    high = low + np.array([b for _, b, _ in triples])
    values = low + np.floor((high - low) * np.array([f for *_, f in triples])).astype(np.int64)
    moved = onto(values, low, high, total)
    assert ((low <= moved) & (moved <= high)).all()
    assert moved.sum() == min(max(total, low.sum()), high.sum())


@settings(deadline=None)
@given(
    st.lists(st.lists(st.floats(0.1, 50), min_size=3, max_size=3), min_size=1, max_size=8),
    st.data(),
)
def test_a_whole_table_has_its_margins(table: list[list[float]], data: st.DataObject) -> None:
    counts = st.lists(st.integers(0, 99), min_size=len(table), max_size=len(table))
    rows = np.array(data.draw(counts, label="rows"))
    columns = largest_remainder([3, 1, 2], int(rows.sum()))
    fitted = np.array(table)
    for _ in range(200):
        fitted *= columns / np.maximum(fitted.sum(axis=0), 1e-12)
        fitted *= (rows / np.maximum(fitted.sum(axis=1), 1e-12))[:, None]
    whole = whole_table(fitted, rows, columns)
    assert (whole >= 0).all()
    assert whole.sum(axis=1).tolist() == rows.tolist()
    assert whole.sum(axis=0).tolist() == columns.tolist()
