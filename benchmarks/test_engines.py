"""Speed of the kernel and of its specification; an event = an arrival or a completion."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import pytest

import windtunnel as wt
from windtunnel.placements.whole import BestFit
from windtunnel.policies import resolve_policy
from windtunnel.schema import as_jobs
from windtunnel.sim import flying, reference

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    import pyarrow as pa

    from conftest import Figures
    from windtunnel.sim.problem import Problem


@pytest.mark.parametrize(
    ("policy", "queueing", "target"),
    [
        ("fifo", "strict", 5e6),
        ("sjf", "strict", 5e6),
        ("fifo", "skip", 1e6),
        ("sjf", "skip", 5e6),
        ("fifo", "easy", 1.25e6),
        ("srtf", "skip", 0.75e6),
        ("sjf-preemptive", "skip", 1e6),
    ],
)
def test_compiled_million_jobs(
    million: Problem,
    figures: Figures,
    cpu_seconds: Callable[..., float],
    policy: str,
    queueing: str,
    target: float,
) -> None:
    chosen = resolve_policy(policy)
    seconds = cpu_seconds(
        lambda: flying.run(million, chosen, BestFit(), queueing=queueing), rounds=5
    )
    figures.rate(f"1 M jobs, {policy} {queueing}", 2_000_000, seconds, target)


def test_quota_walk(million: Problem, figures: Figures, cpu_seconds: Callable[..., float]) -> None:
    chosen = resolve_policy("srtf")
    rules = {"queueing": "skip", "preemption": "quota_walk"}
    seconds = cpu_seconds(lambda: flying.run(million, chosen, BestFit(), **rules), rounds=3)
    figures.rate("1 M jobs, srtf skip by the quota walk", 2_000_000, seconds, 1.5e6)


@pytest.mark.parametrize("policy", ["fifo", "sjf"])
def test_reference_hundred_thousand_jobs(
    hundred_thousand: Problem, figures: Figures, cpu_seconds: Callable[..., float], policy: str
) -> None:
    chosen = resolve_policy(policy)
    seconds = cpu_seconds(
        lambda: reference.run(hundred_thousand, chosen, BestFit(), queueing="strict"), rounds=1
    )
    figures.rate(f"reference, 100 k jobs, {policy} strict", 200_000, seconds, 0.03e6)


def in_order(now: float, queue: Iterable[wt.JobView], cluster: object) -> Iterable[wt.Start]:
    """First come, first served, as a user would write it at tier 3."""
    del now
    for job in queue:
        where = cluster.fit(job)
        if where is None:
            return
        yield wt.Start(job, where)


def everybody_who_fits(now: float, queue: Iterable[wt.JobView], cluster: object) -> object:
    """Start all who fit, in order of arrival; no thought is given to what was refused."""
    del now
    for job in queue:
        where = cluster.fit(job)
        if where is not None:
            yield wt.Start(job, where)


def test_greedy_python_policy(
    hundred_thousand: Problem, figures: Figures, cpu_seconds: Callable[..., float]
) -> None:
    """Offered load 1.1: 151 jobs wait on average."""
    problem = replace(hundred_thousand, submit=hundred_thousand.submit * (0.95 / 1.1))
    chosen = resolve_policy(everybody_who_fits)
    seconds = cpu_seconds(
        lambda: flying.run(problem, chosen, BestFit(), queueing="strict"), rounds=3
    )
    figures.amount("100 k jobs, tier-3 Python policy, all who fit", seconds, "CPU s", 3.0)


def test_python_policy(
    hundred_thousand: Problem, figures: Figures, cpu_seconds: Callable[..., float]
) -> None:
    chosen = resolve_policy(in_order)
    seconds = cpu_seconds(
        lambda: flying.run(hundred_thousand, chosen, BestFit(), queueing="strict"), rounds=3
    )
    figures.amount(
        "100 k jobs, tier-3 Python policy, first come, first served", seconds, "CPU s", 0.5
    )


def queued_workload(count: int) -> dict[str, np.ndarray]:
    """Return jobs that offer 95 % of 512 GPUs and ask for up to ten times their run time."""
    rng = np.random.default_rng(0)
    shares = [0.40, 0.15, 0.15, 0.20, 0.05, 0.03, 0.02]
    num_gpus = rng.choice([1, 2, 4, 8, 16, 32, 64], p=shares, size=count).astype(float)
    duration = np.ceil(rng.lognormal(6.0, 1.7, count))
    between = (num_gpus * duration).mean() / (0.95 * 512)
    return {
        "submit_time": np.cumsum(rng.exponential(between, count)).round(),
        "duration": duration,
        "num_gpus": num_gpus,
        "estimate": duration * rng.choice([1, 2, 5, 10], count),
    }


@pytest.mark.parametrize(
    ("policy", "cluster", "target"),
    [("easy", "pool:512", 1e5), ("easy", "64x8", 1e5), ("easy-sjbf", "64x8", 1e5)],
)
def test_backfilling(
    figures: Figures, cpu_seconds: Callable[..., float], policy: str, cluster: str, target: float
) -> None:
    jobs = as_jobs(queued_workload(20_000))
    seconds = cpu_seconds(lambda: wt.simulate(jobs, cluster, policy), rounds=3)
    figures.rate(f"{policy}, 20,000 jobs on {cluster}, whole call", 20_000, seconds, target)


def test_conservative_all_at_once(
    figures: Figures, cpu_seconds: Callable[..., float], all_at_once: pa.Table
) -> None:
    """At each completion some 200 promises move."""
    seconds = cpu_seconds(lambda: wt.simulate(all_at_once, "64x8", "conservative"), rounds=1)
    figures.amount("conservative, 8,000 jobs at once on 64x8, whole call", seconds, "CPU s", 5.0)


def test_las_million_jobs(figures: Figures, cpu_seconds: Callable[..., float]) -> None:
    jobs = as_jobs(queued_workload(1_000_000))
    seconds = cpu_seconds(lambda: wt.simulate(jobs, "64x8", "las"), rounds=1)
    figures.amount("las, 1 M jobs on 64x8, rounds of 60 s", seconds, "CPU s", 60)
