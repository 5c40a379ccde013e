"""`Groups`: sizes of templates and batches, published and drawn."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from windtunnel.traces.twin.groups import Groups, draw_groups, fit_groups, pack

sizes = st.lists(st.one_of(st.integers(1, 3), st.integers(1, 500)), min_size=1, max_size=200)


def test_sizes_by_hand() -> None:
    found = fit_groups(np.array([1] * 7 + [2] * 5 + [3, 4, 10, 100, 1000]), min_count=5, bins=4)
    assert found == Groups([7, 5, 5], [1.0, 2.0, 223.4])


@given(sizes, st.integers(2, 8))
def test_classes_are_large_and_the_sum_is_kept(given_sizes: list[int], k: int) -> None:
    found = fit_groups(np.array(given_sizes), min_count=k, bins=16)
    total = sum(given_sizes)
    if total < k:
        assert found is None
        return
    assert found is not None
    assert found.fault() == ""
    assert sum(found.count) == len(given_sizes)
    assert np.dot(found.count, found.size) == pytest.approx(total)
    assert min(found.count) >= k or (len(found.count) == 1 and len(given_sizes) < k)
    drawn = draw_groups(found, total)
    assert drawn.sum() == total
    assert (np.diff(drawn) <= 0).all()
    assert (drawn >= 1).all()


@given(sizes, st.integers(1, 1000))
def test_any_number_of_jobs_can_be_grouped(given_sizes: list[int], jobs: int) -> None:
    found = fit_groups(np.array([*given_sizes, 1, 1]), min_count=2, bins=16)
    assert found is not None
    drawn = draw_groups(found, jobs)
    assert drawn.sum() == jobs
    assert (drawn >= 1).all()


@given(st.lists(st.integers(1, 40), min_size=1, max_size=12), st.integers(0, 5))
def test_every_job_gets_a_group_of_the_right_size(blocks: list[int], seed: int) -> None:
    block = np.repeat(np.arange(len(blocks)), blocks)
    rng = np.random.default_rng(seed)
    groups = np.sort(rng.multinomial(len(block), np.ones(6) / 6))[::-1]
    groups = groups[groups > 0]
    label = pack(block, groups, rng)
    assert np.bincount(label).tolist() == groups.tolist()


def test_a_group_that_fits_stays_in_one_block() -> None:
    block = np.repeat([0, 1], [10, 6])
    label = pack(block, np.array([8, 5, 1, 1, 1]), np.random.default_rng(0))
    for group in range(5):
        assert len(set(block[label == group].tolist())) == 1
