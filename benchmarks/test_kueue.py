"""Speed of policy kueue: many queues and cohorts over a large tree, asked for more than it has."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from windtunnel.cluster.spec import ClusterSpec
from windtunnel.cluster.topology.tree import HOST
from windtunnel.placements.whole import BestFit
from windtunnel.policies.kueue import objects
from windtunnel.policies.kueue.manifests import Manifests
from windtunnel.policies.kueue.policy import Kueue
from windtunnel.schema import conform
from windtunnel.sim import flying
from windtunnel.sim import problem as problems

if TYPE_CHECKING:
    from collections.abc import Callable

    from conftest import Figures
    from windtunnel.sim.problem import Problem

GPU = "nvidia.com/gpu"
QUEUES, COHORTS, NODES = 1_000, 100, 5_000
SIZES = [1, 2, 4, 8, 16, 32, 64]
SHARES = [0.55, 0.15, 0.12, 0.13, 0.03, 0.015, 0.005]


def manifests() -> Manifests:
    """A thousand queues of 40 GPUs, ten a cohort, over 10 blocks of 25 racks of 20 hosts."""
    quota = objects.ResourceGroup((objects.FlavorQuotas("h100", {GPU: objects.Quota(40)}),), (GPU,))
    rules = objects.Preemption("LowerPriority", "LowerPriority")
    queues = [
        objects.ClusterQueue(
            f"q{i}", cohort=f"c{i % COHORTS}", resource_groups=(quota,), preemption=rules
        )
        for i in range(QUEUES)
    ]
    hosts = [
        objects.Node(
            f"n{i}",
            {"block": f"b{i // 500}", "rack": f"r{i // 20}", HOST: f"n{i:05}"},
            {GPU: 8, "pods": 110},
        )
        for i in range(NODES)
    ]
    return Manifests(
        queues=tuple(queues),
        flavors=(objects.Flavor("h100", topology="dc"),),
        topologies=(objects.Topology("dc", ("block", "rack", HOST)),),
        nodes=tuple(hosts),
    )


def workloads(count: int, load: float) -> pa.Table:
    """Jobs as those of the golden million, on 40,000 GPUs."""
    rng = np.random.default_rng(0)
    gpus = rng.choice(SIZES, p=SHARES, size=count)
    duration = np.ceil(rng.lognormal(6.0, 1.8, count))
    span = (gpus * duration).sum() / (load * NODES * 8)
    asks = np.where(gpus > 8, "preferred:rack", "unconstrained")
    asks = np.where(gpus > 32, "required:block", asks)
    columns = {
        "job_id": [f"j{i}" for i in range(count)],
        "submit_time": np.sort(rng.uniform(0, span, count)),
        "duration": duration,
        "num_gpus": gpus.astype(float),
        "vc": [f"q{i}" for i in (QUEUES * rng.random(count) ** 1.5).astype(int)],
        "priority": rng.integers(0, 3, count).astype(float),
        "topology": asks,
    }
    return conform(pa.table(columns))


def fly(problem: Problem) -> None:
    """Fly workloads under the manifests."""
    run = Kueue(manifests()).for_run(problem)
    flying.run(problem, run, BestFit(), queueing="strict")


def test_a_thousand_queues(figures: Figures, cpu_seconds: Callable[..., float]) -> None:
    cluster = ClusterSpec.uniform(nodes=NODES, gpus_per_node=8)
    took = {}
    for count in (25_000, 50_000):
        problem = problems.build(workloads(count, 1.1), cluster, as_pool=False)
        took[count] = cpu_seconds(partial(fly, problem), rounds=1)
    figures.amount("50 k workloads, 1,000 queues, 5,000 nodes", took[50_000], "s", 30)
    figures.amount("   over 25 k workloads", took[50_000] / took[25_000], "times", 2.5)
