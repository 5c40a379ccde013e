"""`kernel.Pace` against `windtunnel.sim.neighbours`: the same rates, bit for bit."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING, Any

import pytest

import windtunnel as wt
from windtunnel import kernel
from windtunnel.cluster.parse import parse_cluster
from windtunnel.cluster.spec import ClusterSpec, NodeType
from windtunnel.schema import as_jobs
from windtunnel.sim.demands import DeviceRules
from windtunnel.sim.factor_tables import ShareFactor, SpreadFactor
from windtunnel.sim.neighbours import Neighbours
from windtunnel.sim.problem import build

if TYPE_CHECKING:
    from windtunnel.sim.problem import Problem

NAMES = ("a", "b", "c", None)
SIZES = (0.25, 0.5, 1.0, 2.0, 3.0, 4.0, 6.0, 8.0)


def cluster_of(rng: random.Random) -> ClusterSpec:
    """Return a small cluster with racks and cores, or without."""
    per_rack = rng.choice((None, 2))
    cpus = rng.choice((None, 16.0, 7.5))
    kinds = rng.choice((((3, 4),), ((2, 4), (2, 2)), ((4, 8),)))
    return ClusterSpec(
        tuple(
            NodeType(count=count, gpus=gpus, cpus=cpus, nodes_per_rack=per_rack)
            for count, gpus in kinds
        )
    )


def model_of(rng: random.Random, cluster: ClusterSpec, *, pooled: bool) -> wt.Slowdown:
    """Return a model that the cluster can have."""
    names = [name for name in NAMES if name]
    spread_by = [SpreadFactor(name, rng.choice(SIZES), rng.uniform(0.2, 1.3)) for name in names]
    pairs = {(one, two) for one in names for two in names if one <= two}
    share_by = []
    for one, two in sorted(pairs):
        if rng.random() < 0.6:
            factor = rng.uniform(0.2, 1)
            other = factor if one == two else rng.uniform(0.2, 1)
            share_by.append(ShareFactor(one, two, factor, other))
    shares = not pooled and rng.random() < 0.7
    return wt.Slowdown(
        spread=rng.choice((1.0, 0.42)),
        rack=rng.choice((1.0, 0.8)) if cluster.racks else 1.0,
        share=rng.choice((1.0, 0.7)) if shares else 1.0,
        cpu=rng.choice((0.0, 0.28)) if cluster.node_types[0].cpus else 0.0,
        spread_by=tuple(spread_by) if rng.random() < 0.5 else (),
        share_by=tuple(share_by) if shares and rng.random() < 0.7 else (),
        **_network(rng, cluster),
    )


def _network(rng: random.Random, cluster: ClusterSpec) -> dict[str, Any]:
    if rng.random() < 0.4:
        return {}
    links = {"host": rng.uniform(1, 20)}
    if cluster.racks:
        links["rack"] = rng.uniform(1, 20)
    return {"traffic": 7.0, "links": links}


def problem_of(rng: random.Random, cluster: ClusterSpec, devices: DeviceRules | None) -> Problem:
    """Return some jobs on it."""
    count = 12
    sizes = SIZES if devices is not None else [size for size in SIZES if size >= 1]
    gpus = [rng.choice(sizes) for _ in range(count)]
    jobs = {
        "submit_time": [0.0] * count,
        "duration": [1.0] * count,
        "num_gpus": gpus,
        "num_cpus": [rng.choice((None, 0.0, 1.0, 2.5, 3.3)) for _ in range(count)],
        "workload": [rng.choice(NAMES) for _ in range(count)],
        "template": [rng.choice(NAMES) for _ in range(count)],
    }
    table = as_jobs(jobs)
    return build(table, cluster, as_pool=False, devices=devices, oversize="reject")


def where_of(rng: random.Random, problem: Problem) -> list[tuple[int, int]]:
    """Return some nodes, in any order, and something on each; a node may stand there twice."""
    nodes = range(len(problem.sizes))
    picked = [rng.choice(nodes) for _ in range(rng.randint(1, 4))]
    if not problem.devices:
        return [(node, rng.randint(1, 4)) for node in picked]
    if problem.pooled:
        return [(node, rng.choice((0, 250, 1000, 1500, 4000))) for node in picked]
    gpus = [problem.devices[node].gpus for node in picked]
    return [(node, rng.randrange(1 << most)) for node, most in zip(picked, gpus, strict=True)]


@pytest.mark.sample(60)
@pytest.mark.parametrize("seed", range(300))
def test_rates_are_those_of_the_reference(seed: int) -> None:
    rng = random.Random(seed)  # noqa: S311 - no secret
    pooled = rng.random() < 0.3
    devices = None if rng.random() < 0.25 else DeviceRules(pooled=pooled, resources=False)
    cluster = cluster_of(rng)
    problem = problem_of(rng, cluster, devices)
    model = model_of(rng, cluster, pooled=problem.pooled)
    reference = Neighbours(model, problem, cluster)
    pace = kernel.Pace(reference, problem)
    # Rates as an engine keeps them: those that were not touched stay as they are.
    running: dict[int, float] = {}
    for _ in range(60):
        for _ in range(rng.randint(1, 3)):
            job = rng.randrange(len(problem.rows)) if len(problem.rows) else 0
            if job in running:
                reference.leave(job)
                pace.drop(job)
                del running[job]
            elif len(problem.rows):
                where = where_of(rng, problem)
                reference.enter(job, where)
                pace.put(job, kernel.pairs_of(where))
                running[job] = 1.0
        rates = pace.settle()
        assert [job for job, _ in rates] == sorted(job for job, _ in rates)
        assert {job for job, _ in rates} <= set(running)
        running.update(rates)
        assert running == {job: reference.rate(job) for job in running}
        assert pace.settle() == []


def simple(num: int, gpus: float = 1.0) -> dict[str, Any]:
    return {"submit_time": [0.0] * num, "duration": [1.0] * num, "num_gpus": [gpus] * num}


def test_nothing_slows_anybody_on_a_pool_or_without_a_model() -> None:
    problem = build(as_jobs(simple(2)), parse_cluster("1x4"), as_pool=True)
    pace = kernel.Pace(None, problem)
    pace.put(0, kernel.pairs_of([(0, 1)]))
    assert pace.settle() == []
    pace.drop(0)


def test_a_job_that_left_and_came_again_is_listed_once() -> None:
    cluster = parse_cluster("2x4")
    problem = build(as_jobs(simple(2, 2.0)), cluster, as_pool=False)
    pace = kernel.Pace(Neighbours(wt.Slowdown(spread=0.5), problem, cluster), problem)
    both = kernel.pairs_of([(0, 1), (1, 1)])
    pace.put(1, both)
    pace.put(0, both)
    pace.drop(0)
    assert pace.settle() == [(1, 0.5)]
    pace.put(0, both)
    pace.drop(0)
    pace.put(0, both)
    assert pace.settle() == [(0, 0.5)]
    pace.drop(0)
    pace.put(0, kernel.pairs_of([(0, 2)]))
    assert pace.settle() == []  # at rate 1, as every stay begins
