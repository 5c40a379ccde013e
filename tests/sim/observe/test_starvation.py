"""Who is overtaken and who waits longest: by hand, and against counting pair by pair."""

from __future__ import annotations

import csv
from typing import TYPE_CHECKING

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import windtunnel as wt
from windtunnel.sim.observe.starvation import smaller_after
from windtunnel.traces.pai_simulator import read_pai_simulator

if TYPE_CHECKING:
    from pathlib import Path

#: One GPU, shortest first: a 0-10, c 10-11, d 11-12, b 12-22.
JOBS = {
    "submit_time": [0, 1, 2, 3],
    "duration": [10, 10, 1, 1],
    "num_gpus": [1, 1, 1, 1],
}


def test_two_jobs_overtake_one() -> None:
    out = wt.simulate(JOBS, "pool:1", "sjf")
    assert out.overtaken().tolist() == [0, 2, 0, 0]
    assert out.oldest_waiting().to_pydict() == {
        "row": [1],
        "from_time": [1],
        "until_time": [12],
        "wait_from": [0],
        "wait_until": [11],
    }
    (row,) = out.starvation().to_pylist()
    assert row == {
        "size": "1",
        "num_jobs": 4,
        "num_unstarted": 0,
        "p99_wait": pytest.approx(8 + 0.97 * 3),
        "max_wait": 11,
        "overtaken_share": 0.25,
        "avg_overtaken": 0.5,
        "p99_overtaken": pytest.approx(0.97 * 2),
        "max_overtaken": 2,
        "p99_bounded_slowdown": pytest.approx(1 + 0.97 * 1.1),
        "max_bounded_slowdown": pytest.approx(2.1),
    }


def test_first_come_first_served_overtakes_nobody() -> None:
    out = wt.simulate(JOBS, "pool:1", "fifo")
    assert out.overtaken().tolist() == [0, 0, 0, 0]
    # b waits 1-10, c is next until 20, d until 21.
    found = out.oldest_waiting()
    assert found["row"].to_pylist() == [1, 2, 3]
    assert found["from_time"].to_pylist() == [1, 10, 20]
    assert found["wait_until"].to_pylist() == [9, 18, 18]


def test_a_job_that_still_waits_counts() -> None:
    out = wt.simulate(JOBS, "pool:1", "sjf", until=10.5)
    assert out.overtaken().tolist() == [0, 1, 0, 0]
    (row,) = out.starvation().to_pylist()
    assert (row["num_unstarted"], row["max_wait"]) == (2, 9.5)
    assert out.metrics()["max_wait"] == 8  # of those that started
    assert out.oldest_waiting()["until_time"].to_pylist() == [10.5]


def test_ties_overtake_nobody() -> None:
    # Submitted together; and the last two start together on two GPUs.
    jobs = {"submit_time": [0, 0, 0], "duration": [9, 1, 1], "num_gpus": [1, 1, 1]}
    assert wt.simulate(jobs, "pool:1", "sjf").overtaken().tolist() == [0, 0, 0]
    jobs = {"submit_time": [0, 1, 2], "duration": [9, 1, 1], "num_gpus": [2, 1, 1]}
    assert wt.simulate(jobs, "pool:2", "sjf").overtaken().tolist() == [0, 0, 0]


def test_groups_without_submitted_jobs_have_no_row() -> None:
    jobs = {**JOBS, "vc": ["x", "x", None, "late"], "submit_time": [0, 1, 2, 99]}
    out = wt.simulate(jobs, "pool:1", "sjf", until=50)
    rows = out.starvation("vc").to_pylist()
    assert [(row["vc"], row["num_jobs"]) for row in rows] == [("(none)", 1), ("x", 2)]
    nothing = wt.simulate({"submit_time": [], "duration": [], "num_gpus": []}, "pool:2", "fifo")
    assert nothing.starvation().num_rows == nothing.oldest_waiting().num_rows == 0


@pytest.mark.data
@pytest.mark.parametrize(("policy", "longest"), [("fifo", 45_699), ("sjf", 31_051)])
def test_the_recorded_runs_of_another_simulator(data_dir: Path, policy: str, longest: int) -> None:
    folder = data_dir / "pai_sim_reference"
    jobs = read_pai_simulator(folder / "dev_jobs_2000.csv").jobs
    with (folder / "per_job_dev_jobs_2000__pool_20gpu_464cpu.csv").open(encoding="utf-8") as file:
        recorded = {row["job_id"]: row for row in csv.DictReader(file)}
    column = f"jct__dev_one_20g_{policy.upper()}"
    jct = np.array([float(recorded[job][column]) for job in jobs["job_id"].to_pylist()])
    submit, duration, gpus = (
        jobs[name].to_numpy() for name in ("submit_time", "duration", "num_gpus")
    )
    start = submit + jct - duration
    out = wt.simulate(jobs, wt.ClusterSpec.pool(20, 464), policy, queueing="skip")
    later = submit[None, :] > submit[:, None]
    passed = (later & (start[None, :] < start[:, None])).sum(axis=1)
    assert out.overtaken().tolist() == passed.tolist()
    assert passed.max() > 100
    rows = {row["size"]: row for row in out.starvation().to_pylist()}
    for size, members in (("1", gpus == 1), ("5-8", (gpus > 4) & (gpus <= 8))):
        wait = (jct - duration)[members]
        assert rows[size]["num_jobs"] == members.sum()
        assert rows[size]["max_wait"] == wait.max()
        assert rows[size]["p99_wait"] == pytest.approx(np.quantile(wait, 0.99))
        assert rows[size]["max_overtaken"] == passed[members].max()
    assert max(row["max_wait"] for row in rows.values()) == longest  # as published


@settings(max_examples=200)
@given(st.integers(0, 40).flatmap(lambda n: st.permutations(range(n))))
def test_smaller_after_counts_inversions(values: list[int]) -> None:
    expected = [sum(b < a for b in values[i + 1 :]) for i, a in enumerate(values)]
    assert smaller_after(np.array(values, dtype=np.int64)).tolist() == expected
