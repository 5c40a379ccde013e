"""Tiers 1 and 2: static orders and keys, their rounds, and the choice of the engine."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import windtunnel as wt
from windtunnel.sim.contract import FunctionPolicy
from windtunnel.testing import assert_outcomes_equal

ENGINES = ("reference", "compiled")
JOBS = {
    "job_id": ["a", "b", "c", "d"],
    "submit_time": [0.0, 1.0, 2.0, 2.0],
    "duration": [6.0, 3.0, 1.0, 2.0],
    "num_gpus": [2.0, 2.0, 1.0, 1.0],
}


def widest(jobs: wt.Jobs) -> Any:
    """Most GPUs first."""
    return -jobs.num_gpus


def shortest(job: wt.JobView, now: float) -> float:
    """Shortest first."""
    return job.duration


@pytest.mark.parametrize("engine", ENGINES)
def test_a_rank_orders_the_queue(engine: str) -> None:
    out = wt.simulate(JOBS, "pool:2", widest, engine=engine)
    # a to 6, then b (2 GPUs) to 9, then c and d together.
    assert out.table["start_time"].to_pylist() == [0, 6, 9, 9]
    assert out.settings["policy"] == "widest"


@pytest.mark.parametrize("engine", ENGINES)
def test_a_key_orders_the_queue(engine: str) -> None:
    out = wt.simulate(JOBS, "pool:2", shortest, engine=engine)
    # a to 6, then c and d, then b when both GPUs are free.
    assert out.table["start_time"].to_pylist() == [0, 8, 6, 6]


@pytest.mark.parametrize("cluster", ["pool:4", "2x2"])
@pytest.mark.parametrize("queueing", ["strict", "skip"])
@pytest.mark.parametrize("preemptive", [False, True])
def test_a_key_is_the_same_on_both_engines(
    cluster: str, queueing: str, *, preemptive: bool
) -> None:
    def key(job: wt.JobView, now: float) -> float:
        return (now % 7) * job.num_gpus - job.duration / 2 + 0.0 * job.remaining

    rng = np.random.default_rng(3)
    jobs = {
        "submit_time": rng.integers(0, 300, 300).astype(float),
        "duration": rng.integers(0, 9, 300).astype(float),
        "num_gpus": rng.choice([0.0, 1.0, 2.0, 3.0, 4.0], 300),
    }
    policy = FunctionPolicy(key, preemptive=preemptive)
    runs = [wt.simulate(jobs, cluster, policy, queueing=queueing, engine=e) for e in ENGINES]
    assert_outcomes_equal(*runs)
    assert runs[0].metrics()["num_waited"] > 30
    assert (runs[0].metrics()["num_preemptions"] > 0) == preemptive


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize(
    ("policy", "time", "job", "message"),
    [
        (
            lambda jobs: jobs.num_gpus[:2],
            None,
            None,
            r"rank returned shape \(2,\); expected \(4,\)",
        ),
        (lambda jobs: 1.0, None, None, r"rank returned shape \(\); expected \(4,\)"),
        (lambda jobs: jobs.estimate, None, "a", r"rank is NaN for 4 job\(s\)"),
        (lambda job, now: np.nan if now == 2 else 1.0, 2.0, "c", "key is NaN"),
    ],
)
def test_an_unusable_order_is_refused(
    engine: str, policy: Any, time: float | None, job: str | None, message: str
) -> None:
    with pytest.raises(wt.PolicyError, match=message) as error:
        wt.simulate(JOBS, "pool:2", policy, engine=engine)
    assert (error.value.time, error.value.job) == (time, job)


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("policy", [lambda jobs: ["x"] * 4, lambda job, now: None])
def test_an_order_that_is_no_number_is_refused(engine: str, policy: Any) -> None:
    with pytest.raises(wt.PolicyError, match="<lambda>"):
        wt.simulate(JOBS, "pool:2", policy, engine=engine)


@pytest.mark.parametrize("engine", ENGINES)
def test_negative_zero_ties_with_zero(engine: str) -> None:
    jobs = {"submit_time": [0.0] * 3, "duration": [2.0] * 3, "num_gpus": [1.0] * 3}
    for policy in (
        lambda jobs: np.array([0.0, -0.0, 0.0]),
        lambda job, now: -0.0 if job.job_id == "1" else 0.0,
    ):
        out = wt.simulate(jobs, "pool:1", policy, engine=engine)
        assert out.table["start_time"].to_pylist() == [0, 2, 4]


@pytest.mark.parametrize("engine", ENGINES)
def test_infinite_keys_are_an_order_too(engine: str) -> None:
    ranks = np.array([np.inf, 0.0, -np.inf, np.inf])
    jobs = {**JOBS, "submit_time": [0.0] * 4, "num_gpus": [1.0] * 4}
    out = wt.simulate(jobs, "pool:1", lambda jobs: ranks, engine=engine)
    assert out.table["start_time"].to_pylist() == [4, 1, 0, 10]


def test_keys_are_asked_again_at_rounds() -> None:
    def turned(job: wt.JobView, now: float) -> float:
        return job.duration if now < 4 else -job.duration

    jobs = {
        "submit_time": [0.0, 0.0, 0.0],
        "duration": [5.0, 2.0, 3.0],
        "num_gpus": [1.0, 1.0, 1.0],
    }
    once = wt.simulate(jobs, "pool:1", turned)
    assert once.table["start_time"].to_pylist() == [5, 0, 2]
    for queueing in ("strict", "skip"):
        rounds = FunctionPolicy(turned, every=4.0)
        again = wt.simulate(jobs, "pool:1", rounds, queueing=queueing)
        # b at 0, c at 2 (to 5); at 4 the order turns, but only a is left.
        assert again.table["start_time"].to_pylist() == [5, 0, 2]
        assert again.settings["engine"] == "compiled"
    early = FunctionPolicy(lambda job, now: turned(job, now + 3), every=1.0)
    # At 1 (asked as if at 4) the order turns: a (5) goes before c (3) at 2.
    assert wt.simulate(jobs, "pool:1", early).table["start_time"].to_pylist() == [2, 0, 7]


def test_attained_service_is_ranked_anew_every_round() -> None:
    def attained(job: wt.JobView, now: float) -> float:
        return job.run_time * job.num_gpus

    policy = FunctionPolicy(attained, "las", preemptive=True, every=2.0)
    jobs = {"submit_time": [0.0, 0.0], "duration": [4.0, 3.0], "num_gpus": [1.0, 1.0]}
    out = wt.simulate(jobs, "pool:1", policy)
    # a 0-2 (2 attained against 0), b 2-4 (tie at 2: a was first), a 4-6 and done, b 6-7.
    assert [(s["row"], s["start"], s["end"]) for s in out.segments.to_pylist()] == [
        (0, 0, 2),
        (1, 2, 4),
        (0, 4, 6),
        (1, 6, 7),
    ]


@pytest.mark.parametrize("every", [0.0, -1.0, float("inf"), float("nan")])
def test_rounds_need_a_length(every: float) -> None:
    with pytest.raises(wt.PolicyError, match="expected seconds > 0"):
        wt.simulate(JOBS, "pool:2", FunctionPolicy(shortest, every=every))


def test_every_policy_flies_compiled_by_default() -> None:
    def decide(now: float, queue: Any, cluster: Any) -> Any:
        return [wt.Start(job) for job in queue if cluster.fit(job)][:1]

    for policy in ("fifo", "srtf", shortest, widest, decide, FunctionPolicy(shortest, every=1.0)):
        assert wt.simulate(JOBS, "pool:2", policy).settings["engine"] == "compiled"
    assert wt.simulate(JOBS, "pool:2", engine="reference").settings["engine"] == "reference"
    with pytest.raises(wt.SpecError, match=r"unknown name 'compield'\. Did you mean 'compiled'\?"):
        wt.simulate(JOBS, "pool:2", engine="compield")


@pytest.mark.parametrize("engine", ENGINES)
def test_conservative_promises_anew_after_a_late_end(engine: str) -> None:
    jobs = JOBS | {
        "submit_time": [0.0, 1.0, 2.0, 3.0],
        "duration": [10.0, 5.0, 5.0, 5.0],
        "estimate": [5.0, 5.0, 5.0, 5.0],
        "num_gpus": [2.0, 2.0, 2.0, 2.0],
    }
    out = wt.simulate(jobs, "pool:2", "conservative", engine=engine)
    # a, expected at 5, ends at 10. b was promised 5, and again and again until a is gone; c was
    # promised 10, which is b's now; d was promised 15, which stands: c goes behind it.
    assert out.table["start_time"].to_pylist() == [0, 10, 20, 15]
