"""`Split`: no small cell, no small rest, exact totals."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from windtunnel.traces.twin.split import Split, draw_split, fit_split


def test_a_table_by_hand() -> None:
    #            a   b  c
    # stratum 0: 10  3  0   -> b too small: 3 of rest, which is too small: a joins it
    # stratum 1: 20  6  2   -> c too small: rest 2, b joins it
    cells = np.array([[10, 3, 0], [20, 6, 2]])
    flat = np.repeat(np.arange(6), cells.ravel())
    split, counted_as = fit_split(flat // 3, flat % 3, (2, 3), 5)
    # c has two jobs in all: it is counted with a, the largest of the rest.
    assert split == Split([[0, 0, 0], [20, 0, 0]], [12, 9, 0])
    assert np.bincount(counted_as + 1).tolist() == [21, 20]


@given(st.lists(st.tuples(st.integers(0, 4), st.integers(0, 5)), max_size=200), st.integers(2, 7))
def test_numbers_are_large_and_totals_exact(pairs: list[tuple[int, int]], k: int) -> None:
    count = {s: sum(a == s for a, _ in pairs) for s in range(5)}
    pairs = sorted(p for p in pairs if count[p[0]] >= k)  # strata are large
    names = sorted({s for s, _ in pairs})
    if not pairs:
        return
    stratum = np.array([names.index(s) for s, _ in pairs])
    category = np.array([c for _, c in pairs])
    split, counted_as = fit_split(stratum, category, (len(names), 6), k)
    totals = np.bincount(stratum).tolist()
    assert split.fault(totals, 6) == ""
    numbers = [n for row in (*split.listed, split.rest) for n in row]
    rests = [t - sum(row) for t, row in zip(totals, split.listed, strict=True)]
    assert all(n == 0 or n >= k for n in (*numbers, *rests))
    original = np.bincount(category, minlength=6)
    large = original >= k
    assert (split.totals()[large] - original[large] >= 0).all()
    assert (split.totals()[large] - original[large] <= original[~large].sum()).all()
    drawn, of_rest = draw_split(split, totals, stratum, np.random.default_rng(0))
    assert np.bincount(drawn, minlength=6).tolist() == split.totals().tolist()
    assert of_rest.sum() == (counted_as < 0).sum() == sum(rests)


def test_another_number_of_jobs_keeps_the_shares() -> None:
    split = Split([[60, 40, 0], [0, 0, 0]], [0, 30, 70])
    stratum = np.repeat([0, 1], [1000, 1000])
    drawn, _ = draw_split(split, [100, 100], stratum, np.random.default_rng(3))
    assert np.bincount(drawn[:1000], minlength=3).tolist() == [600, 400, 0]
    assert np.bincount(drawn[1000:], minlength=3).tolist() == [0, 300, 700]
