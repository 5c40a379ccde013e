"""Whether a queue settles: against queues of which theory says so."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest

import windtunnel as wt
from windtunnel.sim.observe import stability
from windtunnel.sim.observe.stability import SHORT, STABLE, UNSTABLE, dickey_fuller, waiting_work


def _queue(load: float, jobs: int, seed: int) -> wt.Outcome:
    """Fly an M/M/8 queue."""
    rng = np.random.default_rng(seed)
    table = {
        "submit_time": np.cumsum(rng.exponential(1 / (8 * load), jobs)),
        "duration": rng.exponential(1.0, jobs),
        "num_gpus": np.ones(jobs),
    }
    return wt.simulate(table, "pool:8", "fifo")


def _verdicts(load: float, jobs: int = 2000, runs: int = 40) -> Counter[str]:
    found = (stability.stability(_queue(load, jobs, seed)) for seed in range(runs))
    return Counter(one.verdict for one in found if one is not None)


@pytest.mark.parametrize("load", [0.5, 0.7])
def test_a_queue_that_settles_is_stable(load: float) -> None:
    assert _verdicts(load) == {STABLE: 40}


@pytest.mark.parametrize(("load", "least"), [(1.15, 38), (1.4, 40)])
def test_a_queue_that_grows_is_unstable(load: float, least: int) -> None:
    assert _verdicts(load)[UNSTABLE] >= least


def test_at_load_one_neither_is_reported_but_rarely() -> None:
    """At the border a queue is a random walk; the tests' levels are 2.5 % and 5 %, about."""
    found = _verdicts(1.0, runs=120)
    assert found[UNSTABLE] <= 7
    assert found[STABLE] <= 20
    assert found[SHORT] >= 95


def test_few_jobs_say_nothing() -> None:
    found = stability.stability(_queue(2.0, 200, 1))
    assert found is not None
    assert found.verdict == SHORT


def test_the_drift_is_what_comes_over_what_is_served() -> None:
    """Of 12 GPUs of work that come each second 8 are served: half the cluster is left over."""
    count = 12_000
    jobs = {
        "submit_time": np.arange(count) / 12,
        "duration": np.ones(count),
        "num_gpus": [1] * count,
    }
    numbers = wt.simulate(jobs, "pool:8", "fifo").metrics()
    assert numbers["offered_load"] == pytest.approx(1.5, rel=1e-3)
    assert numbers["backlog_drift"] == pytest.approx(0.5, rel=1e-2)
    assert numbers["stability"] == UNSTABLE


def test_waiting_work_equals_a_plain_count() -> None:
    outcome = _queue(1.1, 300, 7)
    instants = np.linspace(*outcome.counted_span, 41)
    start, submit = outcome.flight.start, outcome.submit_time
    asked = np.asarray(outcome.jobs["duration"])
    plain = [asked[(submit <= at) & (at < start)].sum() for at in instants]
    assert waiting_work(outcome, instants) == pytest.approx(plain, abs=1e-9)


def test_the_last_submission_is_seen_at_the_last_instant() -> None:
    """Of 260 jobs on one GPU the first holds it for good; 259 GPU-seconds wait as the last comes.

    Its time over that between two of 14 instants is a little more than 13 in floats.
    """
    for late in (1.9, 3.7, 15.0):
        jobs = {
            "submit_time": [0.0] * 259 + [late],
            "duration": [100.0] + [1.0] * 259,
            "num_gpus": [1] * 260,
        }
        outcome = wt.simulate(jobs, "pool:1", "fifo")
        work = waiting_work(outcome, np.linspace(*outcome.counted_span, 14))
        assert work.tolist() == [258.0] * 13 + [259.0]


@pytest.mark.parametrize(("freedom", "point"), [(11, 2.200985), (14, 2.144787), (60, 2.000298)])
def test_the_points_of_students_t_are_those_of_tables(freedom: int, point: float) -> None:
    assert stability._t(freedom) == pytest.approx(point, abs=2e-4)


def test_dickey_fuller_tells_a_walk_from_noise() -> None:
    rng = np.random.default_rng(3)
    walks = [dickey_fuller(np.cumsum(rng.normal(size=200))) for _ in range(400)]
    # The 5 % point of the statistic with a constant, at 200 points.
    assert 0.02 <= np.mean(np.array(walks) < -2.876) <= 0.09
    noise = [dickey_fuller(rng.normal(size=200)) for _ in range(50)]
    assert max(noise) < -2.876


def test_a_run_is_measured_inside_its_window() -> None:
    jobs = {
        "submit_time": [0, 10, 20, 30],
        "duration": [100, 100, 10, 10],
        "num_gpus": [1, 1, 1, 1],
    }
    outcome = wt.simulate(jobs, "pool:1", "fifo", window="25%..75%", until=205)
    numbers = outcome.metrics()
    assert (numbers["num_jobs"], numbers["num_finished"], numbers["num_running"]) == (2, 1, 1)
    assert numbers["avg_wait"] == (90 + 180) / 2
    assert numbers["avg_jct"] == 190
    assert numbers["utilization"] == 1
    assert numbers["offered_load"] == 110 / 10
    assert "2 of 4 jobs" in outcome.notes[-1]
    assert "1 of them had not ended" in outcome.notes[-1]
    assert [row["num_jobs"] for row in outcome.by_size().to_pylist()] == [2]


def test_a_horizon_cuts_the_load_with_the_time() -> None:
    """Jobs that it keeps from coming ask for nothing; they made a load of 10 of this one."""
    jobs = {"submit_time": np.arange(0, 1000.0, 10), "duration": [5] * 100, "num_gpus": [1] * 100}
    numbers = wt.simulate(jobs, "pool:1", "fifo", until=100).metrics()
    assert numbers["num_not_submitted"] == 89
    assert numbers["offered_load"] == 11 * 5 / 100
