"""Goodput of runs with failures: every part by hand, intervals against known values."""

from __future__ import annotations

import numpy as np
import pytest

import windtunnel as wt
from windtunnel import poisson
from windtunnel.sim.disruptions import (
    Checkpointing,
    Disruptions,
    FailureModel,
    Maintenance,
    NodeFailure,
)
from windtunnel.sim.observe.goodput import KEYS, PARTS, parts, waited

ONE = {"submit_time": [0], "duration": [100], "num_gpus": [4]}
COSTS = Checkpointing(interval=20, cost=2, restart_cost=5, startup_cost=3)


@pytest.mark.parametrize("engine", ["auto", "reference"])
def test_every_part_by_hand(engine: str) -> None:
    """Startup to 3, checkpoints at 23-25 and 45-47, failed at 50; from 60: 5, then 60 + 2 x 2."""
    down = Disruptions(
        node_failures=(NodeFailure(node=0, time=50, until=60, cause="GPU"),), checkpoint=COSTS
    )
    out = wt.simulate(ONE, "1x4", disruptions=down, engine=engine)
    metrics = out.metrics()
    held = 119
    assert metrics["goodput"] == pytest.approx(100 / held)
    assert metrics["badput_initialization"] == pytest.approx(3 / held)
    assert metrics["badput_checkpoint"] == pytest.approx(8 / held)
    assert metrics["badput_restart"] == pytest.approx(5 / held)
    assert metrics["badput_lost_work"] == pytest.approx(3 / held)
    assert metrics["badput_slowdown"] == 0
    assert metrics["badput_waiting_for_replacement"] == pytest.approx(10 / held)
    assert metrics["ettr"] == pytest.approx(100 / 129)
    assert metrics["mttf"] == held
    assert metrics["num_restarts"] == 1
    assert out.losses_by_cause().to_pylist() == [
        {"cause": "GPU", "num_stops": 1, "lost_work": 12.0, "waiting_for_replacement": 40.0}
    ]
    (row,) = out.goodput_by_size().to_pylist()
    assert {name: row[name] for name in KEYS} == {name: metrics[name] for name in KEYS}
    assert (row["size"], row["num_jobs"], row["num_failures"]) == ("3-4", 1, 1)


def test_without_failures_there_is_none() -> None:
    out = wt.simulate(ONE, "1x4")
    assert [out.metrics()[name] for name in KEYS] == [None] * len(KEYS)
    assert out.goodput_by_size().num_rows == out.losses_by_cause().num_rows == 0


def test_a_drained_job_waits_and_loses_nothing() -> None:
    window = Maintenance(start=40, end=70, nodes=(0,), on_start="checkpoint")
    out = wt.simulate(ONE, "1x4", disruptions=Disruptions(maintenance=[window]))
    (row,) = out.losses_by_cause().to_pylist()
    assert (row["cause"], row["num_stops"], row["lost_work"]) == ("maintenance", 1, 0.0)
    assert row["waiting_for_replacement"] == 4 * 30
    assert out.metrics()["mttf"] is None  # it did not fail


def test_a_job_that_never_goes_on_waits_until_the_end() -> None:
    down = Disruptions(node_failures=(NodeFailure(node=0, time=50),))
    out = wt.simulate(ONE, "1x4", disruptions=down, until=80)
    assert waited(out).tolist() == [30]
    assert out.metrics()["ettr"] == 0


def test_who_goes_on_at_once_waits_for_nothing_also_if_others_come_first_then() -> None:
    """At 8 the gang goes on with node 2 in place of 0, and gives way to the job that comes then."""
    jobs = {
        "submit_time": [0, 8],
        "duration": [20, 10],
        "num_gpus": [2, 2],
        "priority": [0, 1],
    }
    down = Disruptions(node_failures=(NodeFailure(node=0, time=8),), on_failure="swap")
    out = wt.simulate(jobs, "3x1", "priority-preemptive", disruptions=down)
    assert out.segments["row"].to_pylist() == [0, 0, 1, 0]
    assert out.segments["start"].to_pylist() == [0, 8, 8, 18]
    assert out.table["num_preemptions"].to_pylist() == [1, 0]
    assert waited(out).tolist() == [0]


def test_parts_add_up_to_what_was_held() -> None:
    random = np.random.default_rng(3)
    jobs = {
        "submit_time": np.sort(random.uniform(0, 5_000, 200)),
        "duration": random.exponential(600, 200),
        "num_gpus": random.choice([1.0, 2.0, 8.0], 200),
    }
    down = Disruptions(failure_models=[FailureModel(mtbf=3_000, mttr=200)], checkpoint=COSTS)
    out = wt.simulate(jobs, "4x8", "srtf", disruptions=down, seed=2)
    split = parts(out)
    assert tuple(split) == PARTS
    assert sum(v.sum() for v in split.values()) == pytest.approx(out.metrics()["gpu_time"])
    assert all((values >= 0).all() for values in split.values())
    assert out.metrics()["num_preemptions"] > 0
    assert out.losses_by_cause()["lost_work"].to_pylist() == [
        pytest.approx(out.metrics()["lost_gpu_time"])
    ]


@pytest.mark.parametrize(
    ("count", "low", "high"), [(0, 0.0, 3.6889), (1, 0.0253, 5.5716), (10, 4.7954, 18.3904)]
)
def test_garwoods_bounds(count: int, low: float, high: float) -> None:
    assert poisson.interval(count) == pytest.approx((low, high), abs=1e-4)


def test_bounds_of_large_counts_go_on_smoothly() -> None:
    small, large = poisson.interval(1_000), poisson.interval(1_001)
    assert large[0] - small[0] == pytest.approx(0.97, abs=0.01)
    assert large[1] - small[1] == pytest.approx(1.03, abs=0.01)


def test_tails_of_the_poisson_distribution_are_exact() -> None:
    assert poisson.at_most(2, 3.0) == pytest.approx(0.42319008)
    assert poisson.at_least(3, 3.0) == pytest.approx(1 - 0.42319008)
    assert poisson.at_least(20, 1.0) == pytest.approx(1.58e-19, rel=0.01)
