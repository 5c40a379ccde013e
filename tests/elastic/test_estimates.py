"""Policies that resize jobs or share GPU types fly on predicted work, too."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from elastic_cases import MODELS, NODES, ToyModel, jobs_of

import windtunnel as wt
from windtunnel.sim.expected_work import expected_left, expected_whole

#: Policies that never ask how much is left: no estimate may change their runs.
DEAF = ("fixed-plan", "synergy", "antman", "equal-share")
ASK = ("shortest-first", "least-area-first", "morphling", "morphling:priced")
SHARING = ("gavel:min_total_duration_perf", "shockwave:min_total_duration", "shockwave:market")


def workload(seed: int) -> dict[str, Any]:
    """Return jobs of toy models that queue up."""
    rng = np.random.default_rng(seed)
    rows = [
        (float(at), ("steep", "flat")[at % 2], (1, 2, 4)[at % 3], "ga", int(steps), at % 4 == 0)
        for at, steps in enumerate(rng.integers(1, 60, 24))
    ]
    jobs = jobs_of(*rows)
    jobs["duration"] = rng.integers(1, 60, 24).astype(float).tolist()
    return jobs


def flown(policy: str, estimates: str | None, seed: int = 3, **more: Any) -> wt.Outcome:
    """Fly the workload."""
    options = {"models": MODELS, "penalty": 3.0} if policy in DEAF + ASK else {}
    jobs = workload(seed)
    if not options:
        jobs["num_gpus"] = [min(gpus, 2) for gpus in jobs["num_gpus"]]
        policy += ":round=10"
    where = NODES if options else "pool:6"
    return wt.simulate(jobs, where, policy, estimates=estimates, **options, **more)


def test_a_job_that_outruns_what_is_expected() -> None:
    # Expected 10 of 30: 4 are done, then 12, then 25.
    left = expected_left(np.array([1 / 3]), np.array([30.0]), np.array([26.0]))
    assert left == pytest.approx([6.0])
    assert expected_left(1 / 3, 30.0, 18.0) == pytest.approx(8.0)
    assert expected_left(1 / 3, 30.0, 5.0) == pytest.approx(15.0)
    assert expected_left(1 / 3, 30.0, 0.0) == 0.0
    assert (expected_whole(np.full(3, 1e-9), np.array([0.0, 1e-9, 5.0])) > [0, 1e-9, 5.0]).all()


@pytest.mark.sample(3)
@pytest.mark.parametrize("policy", ASK + SHARING)
def test_the_truth_predicted_is_the_truth_known(policy: str) -> None:
    known = flown(policy, None)
    for estimates in ("perfect", "oracle", "noise:sigma=0"):
        assert flown(policy, estimates).table.equals(known.table), estimates
    assert known.settings["estimates"] == "perfect"


@pytest.mark.parametrize("policy", DEAF)
def test_policies_that_do_not_ask_do_not_change(policy: str) -> None:
    assert flown(policy, "noise:sigma=2").table.equals(flown(policy, None).table)


@pytest.mark.sample(2)
@pytest.mark.parametrize("policy", ASK + SHARING[:2])
def test_errors_change_what_others_do(policy: str) -> None:
    changed = [
        not flown(policy, "noise:sigma=2", seed).table.equals(flown(policy, None, seed).table)
        for seed in range(3)
    ]
    assert any(changed)


def test_the_shortest_is_the_one_that_is_expected_to_be() -> None:
    jobs = {
        "submit_time": [0.0, 0.0, 0.0],
        "duration": [10.0, 100.0, 10.0],
        "estimate": [10.0, 20.0, 50.0],
        "num_gpus": [8, 8, 8],
    }
    out = wt.simulate(jobs, "1x8", "shortest-first", penalty=0, estimates="recorded")
    assert out.table["end_time"].to_pylist() == [10.0, 110.0, 120.0]
    known = wt.simulate(jobs, "1x8", "shortest-first", penalty=0)
    assert known.table["end_time"].to_pylist() == [10.0, 120.0, 20.0]
    del jobs["estimate"]
    with pytest.raises(wt.SchemaError, match="requested wall time"):
        wt.simulate(jobs, "1x8", "shortest-first", estimates="recorded")


def test_on_average_knowing_is_no_worse() -> None:
    known, noisy = (
        np.mean([flown("shortest-first", how, seed).metrics()["avg_jct"] for seed in range(20)])
        for how in (None, "noise:sigma=2")
    )
    assert known <= noisy


def test_disrupted_flights_go_by_estimates_on_both_engines() -> None:
    more: dict[str, Any] = {"disruptions": "mtbf:200s/mttr:20s", "slowdown": "spread=0.5"}
    for policy in ("shortest-first", "morphling:priced"):
        runs = [
            flown(policy, "noise:sigma=1", engine=engine, **more)
            for engine in ("compiled", "reference")
        ]
        assert runs[0].table.equals(runs[1].table)


@pytest.mark.parametrize(
    "policy", ["pollux:tiresias", "pollux:optimus", "pollux:pollux", "pollux:sia"]
)
def test_pollux_decides_on_options(policy: str) -> None:
    jobs = workload(1)
    label = f"{policy}:interval=10"
    out = wt.simulate(jobs, NODES, label, models=MODELS, penalty=3)
    assert out.metrics()["num_finished"] == 24
    assert out.settings["policy"] == label
    assert max(out.utilization()["gpus"].to_pylist()) <= 16
    noisy = wt.simulate(jobs, NODES, label, models=MODELS, penalty=3, estimates="noise:sigma=2")
    assert noisy.table.equals(out.table) == (policy != "pollux:optimus")
    starts = np.array(out.table["start_time"].to_pylist())
    assert (starts % 10 == 0).all()
    with pytest.raises(wt.SpecError, match="slowdown"):
        wt.simulate(jobs, NODES, f"{policy}:interference=0.5", models=MODELS)


def test_sia_starts_jobs_whose_smallest_size_it_never_gives() -> None:
    """Halves of two nodes are no configuration of Sia's; two whole nodes are four times as much."""
    models = {"wide": ToyModel((("ga", (2, 2), 1, 2.0), ("ga", (8, 8), 1, 1.0)))}
    jobs = jobs_of((0, "wide", 4, "ga", 10))
    out = wt.simulate(jobs, NODES, "pollux:sia:interval=10", models=models, penalty=3)
    assert out.metrics()["avg_jct"] == 13.0
