"""Random failures against theory: Young's and Daly's optimal interval, availability, Poisson.

References:
    J. W. Young, "A first order approximation to the optimum checkpoint interval", CACM 17 (1974).
    J. T. Daly, "A higher order estimate of the optimum checkpoint interval for restart dumps",
    Future Generation Computer Systems 22 (2006).
"""

from __future__ import annotations

import math

import numpy as np
import pytest

import windtunnel as wt
from windtunnel.sim.disruptions import Checkpointing, Disruptions, FailureModel, JobFailures

MTBF, REPAIR, RESTART, COST, WORK = 1000.0, 30.0, 20.0, 10.0, 2000.0
SEEDS = range(400)
#: Young: sqrt(2 x cost x MTBF).
YOUNG = math.sqrt(2 * COST * MTBF)
#: Daly, equation 37: a higher order.
DALY = YOUNG * (1 + math.sqrt(COST / (2 * MTBF)) / 3 + COST / (2 * MTBF) / 9) - COST


def expected_time(interval: float) -> float:
    """Return the mean completion time of the job, s (exponential failures, fixed repair).

    A piece of work and its checkpoint need ``length`` seconds without a failure; after one, they
    need the restart, too. Time to get through L seconds so: (exp(L / M) - 1) (M + D).
    """
    pieces = math.ceil(WORK / interval)
    total = 0.0
    for piece in range(pieces):
        last = piece == pieces - 1
        length = WORK - piece * interval if last else interval + COST
        again = math.expm1((RESTART + length) / MTBF) * (MTBF + REPAIR)
        total += -math.expm1(-length / MTBF) * (MTBF + REPAIR + again)
    return total


def mean_time(interval: float) -> tuple[float, float]:
    """Return the mean of many runs, and its standard error."""
    jobs = {"submit_time": [0.0], "duration": [WORK], "num_gpus": [1.0]}
    given = Disruptions(
        failure_models=[FailureModel(mtbf=MTBF, mttr=REPAIR, repair="fixed")],
        checkpoint=Checkpointing(interval=interval, cost=COST, restart_cost=RESTART),
    )
    ends = [
        wt.simulate(jobs, "1x1", disruptions=given, seed=seed).metrics()["makespan"]
        for seed in SEEDS
    ]
    return float(np.mean(ends)), float(np.std(ends) / math.sqrt(len(ends)))


@pytest.mark.slow
@pytest.mark.parametrize("factor", [1.0, 0.25, 4.0])
def test_mean_completion_is_the_closed_form(factor: float) -> None:
    mean, error = mean_time(factor * YOUNG)
    assert abs(mean - expected_time(factor * YOUNG)) < 3.5 * error


@pytest.mark.slow
def test_youngs_interval_is_best() -> None:
    best, _ = mean_time(YOUNG)
    assert best < mean_time(YOUNG / 5)[0]
    assert best < mean_time(YOUNG * 7)[0]
    exact = min((WORK / pieces for pieces in range(4, 40)), key=expected_time)
    assert exact == pytest.approx(DALY, rel=0.1)
    assert expected_time(YOUNG) < 1.01 * expected_time(exact)


@pytest.mark.parametrize("model", [
    FailureModel(mtbf=300, mttr=100),
    FailureModel(mtbf=300, mttr=100, distribution="weibull", shape=0.7, repair="fixed"),
])  # fmt: skip
def test_availability(model: FailureModel) -> None:
    """GPUs are up for mtbf / (mtbf + mttr) of the time in the long run, whatever the shape."""
    span, nodes = 40_000.0, 100
    jobs = {"submit_time": [0.0, 0.0], "duration": [1.0, span], "num_gpus": [1.0, 0.0]}
    out = wt.simulate(jobs, f"{nodes}x1", disruptions=Disruptions(failure_models=[model]), seed=1)
    found = out.flight.interruptions
    assert found is not None
    held = np.diff(np.append(np.clip(found.up_time, 0.0, span), span))
    # Some 100 cycles a node, each of a share with a deviation below 1 / 4: less than 1 % for all.
    assert (held * found.up_gpus).sum() / span / nodes == pytest.approx(0.75, abs=0.01)


def test_failures_of_jobs_are_a_poisson_process_of_gpu_time() -> None:
    """So many failures per GPU-hour that is held, whoever holds it."""
    count = 50
    jobs = {
        "submit_time": [0.0] * count,
        "duration": [36_000.0] * count,
        "num_gpus": [float(1 + row % 4) for row in range(count)],
    }
    given = Disruptions(
        job_failures=JobFailures(rate=0.5), checkpoint=Checkpointing(interval="5m", cost=1)
    )
    metrics = wt.simulate(jobs, "200x1", disruptions=given).metrics()
    mean = 0.5 * metrics["gpu_time"] / 3600
    assert abs(metrics["num_failures"] - mean) < 4 * math.sqrt(mean)
    assert metrics["num_failures"] == metrics["num_restarts"] > 500


def test_a_node_more_leaves_the_others_as_they_were() -> None:
    """Each node draws its own failures."""
    given = Disruptions(failure_models=[FailureModel(mtbf=100, mttr=10)])

    def ends(nodes: int) -> list[float]:
        jobs = {
            "submit_time": [0.0] * nodes,
            "duration": [500.0] * nodes,
            "num_gpus": [1.0] * nodes,
            "gpu_type": [f"T{node}" for node in range(nodes)],
        }
        cluster = ",".join(f"1x1:T{node}" for node in range(nodes))
        found: list[float] = (
            wt.simulate(jobs, cluster, disruptions=given).table["end_time"].to_pylist()
        )
        return found

    assert ends(4)[:3] == ends(3)
