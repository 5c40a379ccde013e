"""The choice of power limits: against every choice there is, and against the linear bound."""

from __future__ import annotations

from itertools import product
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from windtunnel.sim.power import levels
from windtunnel.sim.power.levels import Choice, optimised, uniform

LIMITS = (300.0, 250.0, 200.0, 150.0, 100.0)


@st.composite
def options(draw: st.DrawFn) -> tuple[Choice, ...]:
    """Return one job's options: limits fall, draws and slow-downs are as noisy as measured ones."""
    count = draw(st.integers(1, 5))
    limits = sorted(draw(st.permutations(LIMITS))[:count], reverse=True)
    draws = [draw(st.integers(0, 40)) for _ in limits]
    slow = [1.0, *(draw(st.integers(10, 40)) / 10 for _ in limits[1:])]
    return tuple(Choice(*row) for row in zip(limits, draws, slow, strict=True))


def cost(jobs: list[Any], places: list[int]) -> tuple[int, float]:
    """Return the draw and the sum of slow-downs of a choice."""
    chosen = [job[place] for job, place in zip(jobs, places, strict=True)]
    return sum(one.draw for one in chosen), sum(one.slow for one in chosen)


@given(jobs=st.lists(options(), min_size=1, max_size=5), spare=st.integers(0, 120))
def test_optimised_limits_are_the_best_there_are(jobs: list[Any], spare: int) -> None:
    budget = sum(min(one.draw for one in job) for job in jobs) + spare
    found = cost(jobs, optimised(jobs, budget))
    every = [cost(jobs, list(places)) for places in product(*(range(len(job)) for job in jobs))]
    assert found[0] <= budget
    # A job without a choice has its one draw; of equals, the one that draws least.
    best = min((slow, draw) for draw, slow in every if draw <= budget)
    assert found[1] == pytest.approx(best[0])


@given(jobs=st.lists(options(), min_size=1, max_size=6), spare=st.integers(0, 120))
def test_many_jobs_are_within_one_upgrade_of_the_best(jobs: list[Any], spare: int) -> None:
    budget = sum(min(one.draw for one in job) for job in jobs) + spare
    best = cost(jobs, optimised(jobs, budget))[1]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(levels, "EXACT_JOBS", 0)
        found = cost(jobs, optimised(jobs, budget))
    assert found[0] <= budget
    most = max(max(one.slow for one in job) - min(one.slow for one in job) for job in jobs)
    assert best - 1e-9 <= found[1] <= best + most + 1e-9


@given(jobs=st.lists(options(), min_size=1, max_size=5), spare=st.integers(0, 120))
def test_uniform_limits_are_the_highest_within_the_budget(jobs: list[Any], spare: int) -> None:
    budget = sum(job[-1].draw for job in jobs) + spare

    def at(limit: float) -> list[int]:
        return [
            next((i for i, one in enumerate(job) if one.limit_w <= limit), len(job) - 1)
            if len(job) > 1
            else 0
            for job in jobs
        ]

    found = uniform(jobs, budget)
    assert cost(jobs, found)[0] <= budget
    within = [limit for limit in LIMITS if cost(jobs, at(limit))[0] <= budget]
    assert found == at(max(within))


def test_the_way_up_the_hull() -> None:
    # 10 W more save 1.0 at first, 10 W more again save 0.2: two jobs share 10 W, not one has 20.
    job = (Choice(3, 20, 1.0), Choice(2, 10, 1.2), Choice(1, 0, 2.2))
    for exact in (levels.EXACT_JOBS, 0):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(levels, "EXACT_JOBS", exact)
            assert optimised([job, job], 20) == [1, 1]
            assert sorted(optimised([job, job], 30)) == [0, 1]
            assert optimised([job, job], 0) == [2, 2]
    assert uniform([job, job], 39) == [1, 1]
