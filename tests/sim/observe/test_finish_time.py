"""Finish-time fairness, worked out by hand and integrated second by second."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import windtunnel as wt
from windtunnel.errors import SpecError

#: On two GPUs, first come, first served: a 0-30, b 0-10, c 10-35, d 30-70.
JOBS = {
    "job_id": list("abcd"),
    "submit_time": [0, 0, 1, 4],
    "duration": [30, 10, 25, 40],
    "num_gpus": [1, 1, 1, 1],
    "user": ["u", "v", "u", "v"],
}


def column(out: wt.Outcome, name: str, among: str = "jobs", over: str = "lifetime") -> list[Any]:
    return list(out.finish_time_fairness(among, over=over)[name].to_pylist())


def test_by_hand_while_running() -> None:
    out = wt.simulate(JOBS, "pool:2", "fifo")
    # Active jobs: 2 to 1 s, 3 to 4 s, 4 to 10 s, 3 to 30 s, 2 to 35 s, then 1; so each GPU-second
    # takes 1, 1.5, 2, 1.5, 1 and 1 s on an equal part of two GPUs.
    isolated = [1 + 4.5 + 12 + 30, 1 + 4.5 + 12, 30 + 5, 40]
    assert column(out, "isolated_time", over="running") == pytest.approx(isolated, rel=1e-12)
    assert column(out, "jct") == [30, 10, 34, 66]
    rho = [30 / 47.5, 10 / 17.5, 34 / 35, 66 / 40]
    assert column(out, "rho", over="running") == pytest.approx(rho, rel=1e-12)
    assert out.fairness(over="running") == {
        "avg_rho": pytest.approx(np.mean(rho)),
        "p50_rho": pytest.approx(np.median(rho)),
        "p99_rho": pytest.approx(np.quantile(rho, 0.99)),
        "max_rho": pytest.approx(1.65),
        "share_rho_over_1": 0.25,
        "num_rho": 4,
    }


def test_by_hand_over_lifetimes() -> None:
    out = wt.simulate(JOBS, "pool:2", "fifo")
    # The same seconds, now from submission to end, as a mean that multiplies the run time.
    c, d = 4.5 + 12 + 30 + 5, 12 + 30 + 5 + 35
    isolated = [47.5, 17.5, 25 * c / 34, 40 * d / 66]
    assert column(out, "isolated_time") == pytest.approx(isolated, rel=1e-12)
    rho = [30 / 47.5, 10 / 17.5, 34**2 / (25 * c), 66**2 / (40 * d)]
    assert column(out, "rho") == pytest.approx(rho, rel=1e-12)
    assert out.fairness()["max_rho"] == pytest.approx(66**2 / (40 * d))
    with pytest.raises(SpecError, match="Did you mean 'lifetime'"):
        out.fairness(over="life time")


def test_by_hand_among_users() -> None:
    # Two users until 35 s, one after: half of two GPUs is all that any of these jobs can use.
    out = wt.simulate(JOBS, "pool:2", "fifo")
    assert column(out, "isolated_time", "user") == [30, 10, 25, 40]
    assert column(out, "rho", "user") == pytest.approx([1, 1, 34 / 25, 66 / 40])
    assert out.fairness("user")["share_rho_over_1"] == 0.5
    with pytest.raises(SpecError, match="Did you mean 'user'"):
        out.fairness("users")


def test_a_preempted_job_and_what_its_overhead_costs() -> None:
    # One GPU. A 0-4, B 4-6, A from 6: 1 s to restore, then its last 6 s, to 13.
    jobs = {"submit_time": [0, 4], "duration": [10, 2], "num_gpus": [1, 1]}
    out = wt.simulate(jobs, "pool:1", "srtf", restore_time=1)
    assert column(out, "isolated_time", over="running") == [10, 4]
    assert column(out, "rho", over="running") == [1.3, 0.5]
    # Two of A's 13 s there were two.
    assert column(out, "isolated_time") == pytest.approx([10 * 15 / 13, 4])


def test_who_is_alone_loses_nothing() -> None:
    jobs = {"submit_time": [5], "duration": [7.3], "num_gpus": [3]}
    out = wt.simulate(jobs, "pool:4", "fifo")
    assert column(out, "rho") == pytest.approx([1], rel=1e-15)
    assert out.fairness()["share_rho_over_1"] == 0
    # A lone user whose jobs all fit at once.
    jobs = {
        "submit_time": [0, 1, 2],
        "duration": [9, 9, 9],
        "num_gpus": [1, 2, 1],
        "user": ["u"] * 3,
    }
    assert column(wt.simulate(jobs, "pool:4", "fifo"), "rho", "user") == [1, 1, 1]


def test_jobs_without_a_rho() -> None:
    jobs = {
        "submit_time": [0, 0, 0, None, 9],
        "duration": [0, 50, 5, 5, 5],
        "num_gpus": [1, 1, 0, 1, 1],
    }
    out = wt.simulate(jobs, "pool:1", "fifo", until=8, incomplete="reject")
    # No work, cut by the horizon, a CPU job that ran at once, rejected, not submitted.
    assert column(out, "rho") == [None, None, 1, None, None]
    assert out.fairness()["num_rho"] == 1
    none = wt.simulate(jobs, "pool:1", "fifo", until=1, incomplete="reject").fairness()
    assert none["num_rho"] == 0
    assert none["avg_rho"] is None


def test_it_is_the_sum_second_by_second() -> None:
    rng = np.random.default_rng(3)
    count, gpus = 60, 6
    jobs = {
        "submit_time": np.sort(rng.integers(0, 300, count)),
        "duration": rng.integers(1, 60, count),
        "num_gpus": rng.choice([1, 2, 4, 6], count),
    }
    out = wt.simulate(jobs, f"pool:{gpus}", "srtf")
    submit, end = out.submit_time, out.flight.end
    seconds = np.arange(int(end.max()))
    active = np.array([((submit <= t) & (t < end)).sum() for t in seconds])
    worked, lifetime = np.zeros(count), np.zeros(count)
    stretch = np.maximum(1, np.outer(out.num_gpus, active) / gpus)
    for row in out.segments.to_pylist():
        here = slice(int(row["start"]), int(row["end"]))
        worked[row["row"]] += stretch[row["row"], here].sum()
    for job in range(count):
        lifetime[job] = stretch[job, int(submit[job]) : int(end[job])].mean()
    assert column(out, "isolated_time", over="running") == pytest.approx(worked, rel=1e-12)
    expected = jobs["duration"] * lifetime
    assert column(out, "isolated_time") == pytest.approx(expected, rel=1e-12)
    assert out.metrics()["num_preemptions"] > 5
