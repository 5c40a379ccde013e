"""Speed of runs with slow-downs: gangs, shares of GPUs, cores, racks."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import windtunnel as wt
from windtunnel.schema import as_jobs
from windtunnel.sim.factor_tables import ShareFactor

if TYPE_CHECKING:
    from collections.abc import Callable

    from conftest import Figures

JOBS = 20_000
#: 64 nodes of 8 GPUs and 96 cores in racks of 8.
CLUSTER = wt.ClusterSpec((wt.NodeType(64, 8, "A100", 96.0, None, 8),), "64x8")
MODEL = wt.Slowdown(
    spread=0.8, rack=0.9, share=0.9, cpu=0.28, share_by=(ShareFactor("a", "b", 0.8, 0.7),)
)


def workload(count: int) -> dict[str, np.ndarray]:
    """Return jobs, a third of them on shares, that offer 60 % of the GPUs at rate 1."""
    rng = np.random.default_rng(0)
    sizes, shares = [0.25, 0.5, 1, 2, 4, 8, 16], [0.25, 0.1, 0.3, 0.13, 0.1, 0.08, 0.04]
    num_gpus = rng.choice(sizes, p=shares, size=count)
    duration = np.ceil(rng.lognormal(6.0, 1.5, count))
    between = (num_gpus * duration).mean() / (0.6 * 512)
    return {
        "submit_time": np.cumsum(rng.exponential(between, count)).round(),
        "duration": duration,
        "num_gpus": num_gpus,
        "num_tasks": np.where(num_gpus > 1, np.maximum(num_gpus / 2, 1), 1).astype(int),
        "num_cpus": num_gpus * 8,
        "estimate": duration * rng.choice([1, 2, 5, 10], count),
        "workload": rng.choice(["a", "b", "c"], count),
    }


@pytest.mark.parametrize(("policy", "target"), [("sjf", 5e4), ("easy", 5e4), ("srtf", 3e4)])
def test_slow_downs(
    figures: Figures, cpu_seconds: Callable[..., float], policy: str, target: float
) -> None:
    jobs = as_jobs(workload(JOBS))
    options: dict[str, Any] = {"placement": "most_idle:gang=fill", "slowdown": MODEL}
    options |= {"queueing": "skip"} if policy == "sjf" else {}
    seconds = cpu_seconds(lambda: wt.simulate(jobs, CLUSTER, policy, **options), rounds=3)
    what = f"{policy} with slow-downs, 20,000 jobs on 64x8, whole call"
    figures.rate(what, JOBS, seconds, target)
