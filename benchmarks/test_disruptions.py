"""Speed of runs in which nodes fail."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import numpy as np
import pytest

from windtunnel.cluster.spec import ClusterSpec
from windtunnel.placements.whole import BestFit
from windtunnel.policies import resolve_policy
from windtunnel.sim import flying
from windtunnel.sim.disruptions import parse_disruptions
from windtunnel.sim.disruptions.plan import resolve

if TYPE_CHECKING:
    from conftest import Figures
    from windtunnel.sim.problem import Problem

FAILURES = "mtbf:1d/mttr:1h/checkpoint:10m/cost:10s/restart:30s"


@pytest.mark.parametrize(
    ("policy", "queueing", "target"), [("fifo", "strict", 0.5e6), ("sjf", "skip", 0.5e6)]
)
def test_failures_of_nodes(
    hundred_thousand: Problem, figures: Figures, policy: str, queueing: str, target: float
) -> None:
    chosen, cluster = resolve_policy(policy), ClusterSpec.uniform(nodes=812, gpus_per_node=8)

    def seconds() -> float:
        # A plan's random streams are used up by the run.
        plan = resolve(parse_disruptions(FAILURES), hundred_thousand, cluster, seed=0)
        begin = time.process_time()
        flight = flying.run(
            hundred_thousand, chosen, BestFit(), queueing=queueing, disruptions=plan
        )
        taken = time.process_time() - begin
        assert flight.interruptions is not None
        assert flight.interruptions.failures.sum() > 1_000
        return taken

    median = float(np.median([seconds() for _ in range(3)]))
    figures.rate(f"100 k jobs, nodes fail, {policy} {queueing}", 200_000, median, target)
