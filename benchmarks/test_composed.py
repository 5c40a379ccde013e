"""Speed of features that meet, and how it grows with the jobs of a stationary workload."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import windtunnel as wt
from windtunnel.policies import Quota
from windtunnel.schema import as_jobs

if TYPE_CHECKING:
    from collections.abc import Callable

    import pyarrow as pa

    from conftest import Figures

#: Nodes fail some 465 times while a million jobs come, and 1,276 times until the last one ends.
FAILURES = "mtbf:24d/mttr:4h/checkpoint:30m/cost:10s/restart:60s"
POWER: dict[str, Any] = {"gpus": {"default": {"idle_w": 60, "active_w": 400}}}
#: The cap is 98 % of what all GPUs draw at most: at times jobs wait for power.
CAP = 0.98 * 400 * 812 * 8
#: Gangs that lie in more racks than they need are slowed down.
RACKS = wt.ClusterSpec((wt.NodeType(812, 8, nodes_per_rack=4),), "812x8 in racks")
#: The same on 64 nodes and with 50,000 jobs: 176 times in all.
FAILURES_OF_64 = "mtbf:5d/mttr:4h/checkpoint:30m/cost:10s/restart:60s"
VCS = [f"v{number}" for number in range(8)]
QUOTAS = dict.fromkeys(VCS, 64)

#: What is flown on 64 nodes of 8: policy, options, target for 50,000 jobs, CPU s.
FLIGHTS: dict[str, tuple[Any, dict[str, Any], float]] = {
    "quotas with reclaim": (Quota(QUOTAS, reclaim_within_cohort="Any"), {}, 3.0),
    "conservative, failures": ("conservative", {"disruptions": FAILURES_OF_64}, 5.0),
    "fair share, conservative": ("fair-share", {"queueing": "conservative"}, 5.0),
    "LAS, failures": ("las", {"disruptions": FAILURES_OF_64}, 2.0),
}


@pytest.mark.parametrize(("policy", "queueing"), [("fifo", "strict"), ("sjf", "skip")])
def test_everything_at_once(
    workload_of: Callable[[int], dict[str, np.ndarray]],
    figures: Figures,
    cpu_seconds: Callable[..., float],
    policy: str,
    queueing: str,
) -> None:
    jobs = as_jobs(workload_of(1_000_000))
    options: dict[str, Any] = {"slowdown": "rack=0.9", "disruptions": FAILURES}
    options |= {"power": POWER, "power_cap": CAP}

    def fly() -> None:
        wt.simulate(jobs, RACKS, policy, queueing=queueing, **options)

    seconds = cpu_seconds(fly, rounds=1)
    what = f"1 M jobs, {policy} {queueing}, failures, slow-downs, cap, whole call"
    figures.rate(what, 2_000_000, seconds, 0.5e6)


@pytest.fixture(scope="module")
def stationary() -> pa.Table:
    """Fifty thousand jobs of 100 users in 8 virtual clusters that offer 90 % of 512 GPUs."""
    count = 50_000
    rng = np.random.default_rng(0)
    shares = [0.40, 0.15, 0.15, 0.20, 0.05, 0.03, 0.02]
    num_gpus = rng.choice([1, 2, 4, 8, 16, 32, 64], count, p=shares)
    duration = np.ceil(rng.lognormal(6.0, 1.7, count))
    between = (num_gpus * duration).mean() / (0.9 * 512)
    users = rng.integers(0, 100, count)
    return as_jobs(
        {
            "submit_time": np.cumsum(rng.exponential(between, count)).round(),
            "duration": duration,
            "num_gpus": num_gpus.astype(float),
            "estimate": duration * rng.choice([1, 2, 5, 10], count),
            "user": [f"u{user}" for user in users],
            "vc": [VCS[user % 8] for user in users],
        }
    )


@pytest.mark.parametrize("name", FLIGHTS)
def test_growth(
    stationary: pa.Table, figures: Figures, cpu_seconds: Callable[..., float], name: str
) -> None:
    """Against the mean of both halves apart: the load of one half alone is chance."""
    policy, options, target = FLIGHTS[name]

    def seconds(jobs: pa.Table) -> float:
        return cpu_seconds(lambda: wt.simulate(jobs, "64x8", policy, **options), rounds=3)

    count = stationary.num_rows // 2
    whole = seconds(stationary)
    halves = seconds(stationary[:count]), seconds(stationary[count:])
    figures.amount(f"50,000 jobs, {name}, whole call", whole, "CPU s", target)
    figures.amount(f"twice the jobs, {name}", 2 * whole / sum(halves), "times", 2.5)


def test_vectorised_key(
    workload_of: Callable[[int], dict[str, np.ndarray]],
    figures: Figures,
    cpu_seconds: Callable[..., float],
) -> None:
    """A Gittins index, in Python: the service that most of the next jobs need, a job's least."""
    workload = workload_of(100_000)
    service = np.sort(workload["duration"] * workload["num_gpus"])
    levels = np.quantile(service, np.linspace(0, 1, 200))
    ends = np.searchsorted(service, levels, side="right")
    sums = np.concatenate([[0.0], np.cumsum(service)])[ends]
    index = np.zeros(len(levels))
    for at in range(len(levels) - 1):
        done = ends[at + 1 :] - ends[at]
        spent = sums[at + 1 :] - sums[at] - levels[at] * done
        spent += (levels[at + 1 :] - levels[at]) * (len(service) - ends[at + 1 :])
        index[at] = (done / np.maximum(spent, 1e-9)).max()

    @wt.policy("gittins-at-once", every=60.0, queueing="skip", preemptive=True)
    def key(jobs: Any, now: float) -> Any:
        del now
        return -np.interp(jobs.run_time * jobs.num_gpus, levels, index)

    jobs = as_jobs(workload)
    seconds = cpu_seconds(lambda: wt.simulate(jobs, "812x8", key), rounds=1)
    figures.amount("100 k jobs, Gittins by a vectorised key, every 60 s", seconds, "CPU s", 5.0)
