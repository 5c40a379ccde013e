"""Shares of the busiest: quotas, dealing, waits by user, final states, gangs, groups."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from windtunnel.traces.synthetic.concentration import deal, grouped, quotas
from windtunnel.traces.synthetic.final_states import balance, states_by_size
from windtunnel.traces.synthetic.recurrence import deal_gangs, groups_of_users, jobs_of_users
from windtunnel.traces.synthetic.request_facts import Gangs, Recurrence
from windtunnel.traces.synthetic.size_facts import SizeStatus, StatusBySize
from windtunnel.traces.synthetic.waits import calm_short_jobs, waits_by_user

TOP, SHARE = [1.0, 2.0, 5.0, 10.0, 20.0, 50.0], [30.0, 41.0, 60.0, 75.0, 88.0, 99.0]


def test_quotas_meet_every_point_and_fall() -> None:
    share = quotas(TOP, SHARE, 200)
    assert share.sum() == pytest.approx(1.0)
    for percent, expected in zip(TOP, SHARE, strict=True):
        assert 100 * share[: round(2 * percent)].sum() == pytest.approx(expected)
    assert (np.diff(share) <= 1e-15).all()
    assert (share >= 0).all()


@settings(deadline=None, max_examples=40)
@given(st.integers(0, 2**32), st.integers(1, 3000), st.floats(0.1, 3.0))
def test_dealing_misses_a_quota_by_little(seed: int, things: int, sigma: float) -> None:
    rng = np.random.default_rng(seed)
    weight = np.exp(rng.normal(0, sigma, things))
    quota = quotas(TOP, SHARE, 100)
    owner = deal(weight, quota, rng)
    assert ((owner >= 0) & (owner < 100)).all()
    had = np.bincount(owner, weight, 100)
    assert had.sum() == pytest.approx(weight.sum())
    # Nobody is above the quota by more than the heaviest thing.
    assert (had <= quota * weight.sum() + weight.max() + 1e-6).all()


def test_dealing_many_things_meets_the_shares() -> None:
    rng = np.random.default_rng(1)
    weight = np.exp(rng.normal(0, 2.0, 100_000))
    quota = quotas(TOP, SHARE, 200)
    had = np.bincount(deal(weight, quota, rng), weight, 200) / weight.sum()
    assert had == pytest.approx(quota, abs=1e-4)
    assert (had > 0).all()


def test_grouping_is_a_partition_by_owner() -> None:
    owner = np.array([2, 0, 2, 1, 0])
    assert [g.tolist() for g in grouped(owner, 4)] == [[1, 4], [3], [0, 2], []]


def test_waits_by_user_meet_the_sum_and_the_shares() -> None:
    rng = np.random.default_rng(3)
    share = quotas(TOP, SHARE, 200)
    owner = rng.integers(200, size=50_000)
    waits = waits_by_user(owner, share, 0.4, 2.0, total=10**8, maximum=10**7, rng=rng)
    assert waits.sum() == 10**8
    assert np.median(waits) == 0
    had = np.sort(np.bincount(owner, waits, 200))[::-1] / 10**8
    assert had == pytest.approx(share, abs=1e-6)


def test_calming_keeps_the_waits_of_every_law() -> None:
    rng = np.random.default_rng(4)
    queue = np.floor(np.exp(rng.normal(3, 2.5, 20_000))).astype(np.int64)
    duration = np.exp(rng.normal(6, 2, 20_000))
    law = rng.integers(3, size=20_000)
    calmed = calm_short_jobs(queue, duration, law, 0.09, rng)
    short = duration <= np.median(duration)
    assert (queue > duration)[short].mean() > 0.15
    assert (calmed > duration)[short].mean() == pytest.approx(0.09, abs=1e-4)
    assert (calmed > duration)[~short].sum() == (queue > duration)[~short].sum()
    for one in range(3):
        assert sorted(calmed[law == one]) == sorted(queue[law == one])


def test_states_by_size_are_exact_and_balanced_to_the_second() -> None:
    rng = np.random.default_rng(5)
    gpus = np.repeat([1, 8, 64], [6000, 3000, 1000])
    duration = rng.integers(2, 1000, 10_000)
    total = int(gpus @ duration)
    wanted = {"completed": total // 2, "cancelled": total // 3}
    wanted["failed"] = total - sum(wanted.values())
    facts = SizeStatus(
        wanted,
        [
            StatusBySize((1, 1), {"completed": 4000, "cancelled": 1000, "failed": 1000}),
            StatusBySize((64, 64), {"completed": 300, "cancelled": 500, "failed": 200}),
            StatusBySize((1, 999), {"completed": 2000, "cancelled": 500, "failed": 500}),
        ],
    )
    state = states_by_size(facts, gpus, duration, rng)
    for entry, size in zip(facts.by_gpus, (1, 64, 8), strict=True):
        counts = np.bincount(state[gpus == size], minlength=3)
        assert dict(zip(facts.names, counts.tolist(), strict=True)) == entry.jobs
    low, high = np.ones_like(duration), duration + 1000
    settled = balance(facts, state, gpus, duration, (low, high))
    assert ((low <= settled) & (settled <= high)).all()
    assert (settled == duration)[gpus > 1].all()
    for code, name in enumerate(facts.names):
        assert int((gpus * settled)[state == code].sum()) == wanted[name]


def test_gangs_are_dealt_to_those_that_can_have_them() -> None:
    facts = Gangs([1, 3, 8, 50, 300], [700, 30, 170, 60, 40])
    rng = np.random.default_rng(6)
    large, scarce, thirds = (np.zeros(1000, dtype=bool) for _ in range(3))
    large[:100], scarce[80:300], thirds[500:520] = True, True, True
    tasks = deal_gangs(facts, large, scarce, thirds, rng)
    values, counts = np.unique(tasks, return_counts=True)
    assert dict(zip(values.tolist(), counts.tolist(), strict=True)) == dict(
        zip(facts.tasks, facts.jobs, strict=True)
    )
    assert tasks[large].max() <= 8
    assert tasks[scarce].max() <= 100
    assert (tasks[thirds] % 3 == 0).all()


FACTS = Recurrence(users=100, jobs=[10, 100], percent=[20.0, 54.0], most=5000, runs=5, share=0.65)


@settings(deadline=None, max_examples=40)
@given(st.integers(0, 2**32))
def test_users_and_groups_of_the_real_size_meet_their_points(seed: int) -> None:
    rng = np.random.default_rng(seed)
    of_users = jobs_of_users(FACTS, 40_000, 40_000, rng)
    assert of_users.sum() == 40_000
    assert [(of_users <= k).sum() for k in (10, 100)] == [20, 54]
    user, size = groups_of_users(FACTS, of_users, rng)
    assert np.bincount(user, size, 100).tolist() == of_users.tolist()
    assert size[size >= 5].sum() == 26_000
    assert (size > 0).all()


@settings(deadline=None, max_examples=40)
@given(st.integers(0, 2**32), st.integers(1, 300))
def test_groups_of_few_jobs_account_for_every_job(seed: int, jobs: int) -> None:
    rng = np.random.default_rng(seed)
    of_users = jobs_of_users(FACTS, jobs, 40_000, rng)
    user, size = groups_of_users(FACTS, of_users, rng)
    assert of_users.sum() == size.sum() == jobs
    assert np.bincount(user, size, 100).tolist() == of_users.tolist()
    assert size[size >= 5].sum() <= 0.65 * jobs + 1
