"""`kernel.PowerLevels` against `windtunnel.sim.power`: the same floors and levels, bit for bit."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING, Any

import pytest

from windtunnel import kernel
from windtunnel.cluster.spec import ClusterSpec, NodeType
from windtunnel.schema import as_jobs
from windtunnel.sim.demands import DeviceRules
from windtunnel.sim.power import levels as reference_levels
from windtunnel.sim.power.plan import CapPlan, Draw
from windtunnel.sim.power.tables import Tables
from windtunnel.sim.power.watts import Watts
from windtunnel.sim.problem import build

if TYPE_CHECKING:
    from windtunnel.sim.problem import Problem

SIZES = (0.25, 0.5, 1.0, 2.0, 3.0, 4.0)
#: Slower by, and W less, at each limit: on one GPU some of the gains come out equal.
STRAIGHT = (0.979902985087362, 20.1)
LIMITS = (400.0, 300.0, 250.0, 200.0, 150.0, 100.0)


def problem_of(rng: random.Random, count: int, types: int) -> Problem:
    """Return jobs on nodes, devices or thousandths of one GPU type or of several."""
    names = [None] if types == 1 else [f"T{number}" for number in range(types)]
    cluster = ClusterSpec(tuple(NodeType(count=2, gpus=4, gpu_type=name) for name in names))
    shape = rng.choice(("nodes", "devices", "pooled"))
    devices = None if shape == "nodes" else DeviceRules(pooled=shape == "pooled")
    sizes = SIZES if devices is not None else [size for size in SIZES if size >= 1]
    jobs = {
        "submit_time": [0.0] * count,
        "duration": [1.0] * count,
        "num_gpus": [rng.choice(sizes) for _ in range(count)],
        "gpu_type": [rng.choice((None, None, *names)) for _ in range(count)],
    }
    return build(as_jobs(jobs), cluster, as_pool=False, devices=devices, oversize="reject")


def draws_of(rng: random.Random) -> tuple[Draw, ...]:
    """Return the power limits of one kind of work on one type; they may tie."""
    count = rng.choice((1, 2, 3, 5, 6))
    limits = sorted(rng.sample(LIMITS, count), reverse=True)
    how = rng.choice(("round", "odd", "straight"))
    watts = rng.choice((1.0, 1.0, 2e3))
    rows = []
    for number, limit in enumerate(limits):
        if how == "straight":  # but for roundings: gains that are equal, or nearly so
            slower, less = STRAIGHT
            rows.append(Draw(limit, 200.0 - less * number, 1 / (1 + slower * number)))
        elif how == "round":
            speed = 1.0 if number == 0 else rng.choice((1.0, 0.8, 0.5, 0.25))
            rows.append(Draw(limit, watts * rng.choice((40, 80, 120, 160)), speed))
        else:
            speed = 1.0 if number == 0 else rng.uniform(0.3, 1.1)
            rows.append(Draw(limit, watts * (limit * rng.uniform(0.6, 1.05) - 55.1), speed))
    return tuple(rows)


def cap_of(rng: random.Random, problem: Problem, types: int, limits: str) -> CapPlan:
    """Return a plan with a few kinds of work."""
    kinds = rng.randint(1, 4)
    names = list(dict.fromkeys(problem.types))
    draws = {(kind, t): draws_of(rng) for kind in range(kinds) for t in range(types)}
    if kinds > 1 and rng.random() < 0.5:
        draws.update({(1, t): draws[0, t] for t in range(types)})
    return CapPlan(
        rows=lambda start: iter([(start, 1.0)]),
        highest_w=1e9,
        period=float("inf"),
        limits=limits,
        pue=1.0,
        base_w=0.0,
        wake_w=(),
        kind_of=tuple(rng.randrange(kinds) for _ in problem.rows),
        type_of=tuple(names.index(name) for name in problem.types),
        draws=draws,
    )


def where_of(rng: random.Random, problem: Problem) -> list[tuple[int, int]]:
    """Return some nodes, in any order, and something on each."""
    picked = [rng.randrange(len(problem.sizes)) for _ in range(rng.choice((1, 1, 2, 3)))]
    if problem.devices and not problem.pooled:
        return [(node, rng.randrange(16)) for node in picked]
    grants = (100, 250, 333, 1000, 4000) if problem.pooled else (1, 2, 4)
    return [(node, rng.choice(grants)) for node in picked]


class Both:
    """The two side by side.

    Args:
        rng: what happens.
        limits: how limits are chosen.
        jobs: how many jobs there are.
        exact_jobs: up to so many jobs with a choice the choice is exact.
    """

    def __init__(self, rng: random.Random, limits: str, jobs: int, exact_jobs: int = 6) -> None:
        types = rng.choice((1, 1, 2, 3))
        self.rng = rng
        self.problem = problem_of(rng, jobs, types)
        cap = cap_of(rng, self.problem, types, limits)
        fixed = rng.random() < 0.7
        self.watts = Watts(self.problem, cap, fixed=fixed)
        self.limits = limits
        self.power = kernel.PowerLevels(Tables(self.watts), exact_jobs=exact_jobs)
        self.where: dict[int, list[tuple[int, int]]] = {}
        self.mate: dict[int, int] = {}
        self.levels: dict[int, int] = {}

    def change(self) -> None:
        """Start a job that does not run, alone or beside one that does, or stop one that does."""
        job = self.rng.randrange(len(self.problem.rows))
        if job in self.where:
            self.power.drop(job)
            del self.where[job]
            self.levels.pop(job, None)
            self.mate.pop(self.mate.pop(job, -1), None)
            return
        alone = [other for other in self.where if other not in self.mate]
        beside = self.rng.choice(alone) if alone and self.rng.random() < 0.3 else -1
        where = self.where.get(beside) or where_of(self.rng, self.problem)
        self.where[job] = where
        if beside >= 0:
            self.mate[job], self.mate[beside] = beside, job
        floor = 0 if beside >= 0 else self.floor(job)
        assert self.power.put(job, kernel.pairs_of(where), beside) == floor

    def floor(self, job: int) -> int:
        return int(self.watts.floor(job, self.where[job]))

    def options(self, job: int) -> Any:
        return self.watts.choices(job, self.where[job])

    def leads(self) -> list[int]:
        """Return the running jobs by whose options limits are chosen, in order of start."""
        order = list(self.where)
        first = [job for job in order if order.index(self.mate.get(job, job)) >= order.index(job)]
        return [max((job, self.mate.get(job, job)), key=self.floor) for job in first]

    def check(self) -> None:
        """Choose with the budgets that matter, between the least and the most that all draw."""
        leads = self.leads()
        assert self.power.floor_sum == sum(map(self.floor, leads))
        options = [self.options(job) for job in leads]
        least = sum(min(one.draw for one in some) for some in options)
        most = sum(max(one.draw for one in some) for some in options)
        share = self.rng.choice((-0.1, 0.0, 0.1, 0.5, 0.9, 1.0, self.rng.random()))
        between = least + round(share * (most - least))
        budget = self.rng.choice((between, self.rng.randint(0, most + 1)))
        found = getattr(reference_levels, self.limits)(options, budget)
        expected = {
            job: min(level, len(self.options(job)) - 1)
            for lead, level in zip(leads, found, strict=True)
            for job in (lead, self.mate.get(lead, lead))
        }
        chosen = self.power.chosen(budget)
        self.levels |= {job: level for job, level, _ in chosen}
        assert self.levels == expected
        assert all(slow == self.options(job)[level].slow for job, level, slow in chosen)
        assert self.power.chosen(budget) == []


@pytest.mark.sample(40)
@pytest.mark.parametrize("limits", ["uniform", "optimised"])
@pytest.mark.parametrize("seed", range(100))
def test_levels_are_those_of_the_reference(seed: int, limits: str) -> None:
    rng = random.Random(seed)  # noqa: S311 - no secret
    # Few jobs, so that the exact choice and the other one take turns; or many.
    both = Both(rng, limits, jobs=rng.choice((9, 14, 60)))
    for _ in range(60):
        for _ in range(rng.choice((0, 1, 1, 2, 12))):
            both.change()
        both.check()


@pytest.mark.sample(15)
@pytest.mark.parametrize("seed", range(60))
def test_levels_by_gain_are_those_of_the_reference(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reference_levels, "EXACT_JOBS", 0)
    rng = random.Random(1000 + seed)  # noqa: S311 - no secret
    both = Both(rng, "optimised", jobs=rng.choice((5, 20, 150)), exact_jobs=0)
    for _ in range(60):
        for _ in range(rng.choice((0, 1, 1, 2, 30))):
            both.change()
        both.check()


@pytest.mark.parametrize("limits", ["none", "uniform", "optimised"])
@pytest.mark.parametrize("seed", range(20))
def test_waiting_jobs_have_the_reference_s_least_floors(seed: int, limits: str) -> None:
    rng = random.Random(2000 + seed)  # noqa: S311 - no secret
    both = Both(rng, limits, jobs=20)
    for job in range(len(both.problem.rows)):
        assert both.power.floor_of_waiting(job) == both.watts.least_floor(job)
    for _ in range(20):
        both.change()
    assert both.power.floor_sum == sum(map(both.floor, both.leads()))
