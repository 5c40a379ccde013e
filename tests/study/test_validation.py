"""A replay beside the record: exact where the policy is the true one, honest where it is not."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from windtunnel.cluster import ClusterSpec
from windtunnel.errors import SpecError
from windtunnel.schema import as_jobs
from windtunnel.study.nodes_in_use import busy_nodes, nodes_in_use, read_nodes_in_use
from windtunnel.study.simulate import simulate
from windtunnel.study.validation import validate
from windtunnel.traces import open_trace
from windtunnel.traces.sacct_writer import write_sacct

if TYPE_CHECKING:
    from pathlib import Path

CLUSTER = ClusterSpec.uniform(nodes=4, gpus_per_node=8)


def flown(policy: str, n: int = 400, seed: int = 0) -> Any:
    """Return jobs whose recorded times are those of a run under a policy."""
    rng = np.random.default_rng(seed)
    jobs = {
        "job_id": [str(k + 1) for k in range(n)],
        "submit_time": np.cumsum(rng.integers(0, 120, n)).astype(float),
        "duration": rng.integers(10, 4000, n).astype(float),
        "num_gpus": rng.choice([1.0, 2.0, 4.0, 8.0, 16.0], n),
        "priority": rng.integers(0, 3, n).astype(float),
    }
    table = simulate(jobs, CLUSTER, policy=policy).table
    return as_jobs(
        {
            **jobs,
            "start_time": table["start_time"],
            "end_time": table["end_time"],
            "status": ["completed"] * n,
        }
    )


@pytest.mark.parametrize("policy", ["fifo", "sjf", "priority"])
def test_a_trace_of_a_known_policy_is_reproduced_exactly(policy: str, tmp_path: Path) -> None:
    jobs = flown(policy)
    write_sacct(jobs, tmp_path / "log.sacct")
    log = open_trace(tmp_path / "log.sacct").jobs
    found = validate(log, CLUSTER, ["fifo", "sjf", "priority"])
    (best, second, _) = found.runs()
    assert best["policy"] == policy
    assert found.is_exact(policy)
    assert (best["same_share"], best["avg_error"], best["bias"]) == (1.0, 0.0, 0.0)
    assert (best["queue_error"], best["utilization_error"]) == (0.0, 0.0)
    assert best["utilization"] == pytest.approx(best["recorded_utilization"])
    assert second["avg_error"] > 0
    assert not found.is_exact(second["policy"])
    assert sum(row["n"] for row in found.by_size(policy)) == 400
    assert sum(row["n"] for row in found.by_hour(policy)) == 400


@given(delay=st.integers(1, 10_000))
def test_an_error_is_what_was_put_in(delay: int) -> None:
    """Every job of an idle cluster is recorded to have waited for so long."""
    submit = np.arange(5) * 20_000.0
    jobs = as_jobs(
        {
            "submit_time": submit,
            "start_time": submit + delay,
            "duration": [100.0] * 5,
            "num_gpus": [1, 2, 4, 8, 32],
        }
    )
    (run,) = validate(jobs, CLUSTER, ["fifo"]).runs()
    assert (run["avg_error"], run["bias"], run["avg_wait"]) == (delay, -delay, 0)
    assert run["recorded_p90_wait"] == delay
    assert run["same_share"] == (delay <= 1)


def test_a_cluster_that_none_of_the_jobs_fits_reproduces_nothing() -> None:
    jobs = as_jobs(
        {
            "submit_time": [0],
            "start_time": [0],
            "duration": [10],
            "num_gpus": [1],
            "gpu_type": ["A100"],
        }
    )
    found = validate(
        jobs, ClusterSpec.uniform(nodes=4, gpus_per_node=8, gpu_type="V100"), ["fifo", "sjf"]
    )
    assert [(row["n"], row["avg_error"]) for row in found.runs()] == [(0, None)] * 2
    assert not found.is_exact("fifo")


def test_jobs_that_never_ran_are_left_out_and_counted() -> None:
    jobs = as_jobs(
        {
            "submit_time": [0, 0, 0, 0],
            "start_time": [0, None, 0, 0],
            "duration": [10, 0, 10, None],
            "num_gpus": [1, 1, 0, 1],
        }
    )
    found = validate(jobs, CLUSTER, ["fifo"])
    assert found.recorded.jobs.num_rows == 1
    assert found.left_out == {
        "without a known submission, run time or number of GPUs": 1,
        "without GPUs": 1,
        "that never started": 1,
    }


def test_without_recorded_starts_nothing_is_compared() -> None:
    jobs = as_jobs({"submit_time": [0, 1], "duration": [10, 10], "num_gpus": [32, 32]})
    found = validate(jobs, CLUSTER, ["fifo"])
    (run,) = found.runs()
    assert not found.has_starts
    assert not found.is_exact("fifo")
    assert run["avg_wait"] == 4.5
    assert {run[key] for key in ("avg_error", "same_share", "queue_error")} == {None}


def test_openb_and_philly(data_dir: Path) -> None:
    openb = open_trace("openb")
    assert openb.cluster is not None
    (run,) = validate(openb.jobs, openb.cluster, ["fifo"], oversize="reject").runs()
    start, submit = (np.array(openb.jobs[n].to_numpy()) for n in ("start_time", "submit_time"))
    gpus = np.array(openb.jobs["num_gpus"].to_numpy())
    assert run["n"] == int((~np.isnan(start) & (gpus > 0)).sum())
    assert run["recorded_avg_wait"] == pytest.approx(np.nanmean((start - submit)[gpus > 0]))
    philly = open_trace("philly")
    assert philly.cluster is not None
    found = validate(philly.jobs, philly.cluster, ["fifo"], queueing="skip")
    assert not found.has_starts


def test_nodes_in_use_are_those_that_run_a_job(tmp_path: Path) -> None:
    """Two nodes of 8: one is handed from job to job at 3600 s, the other used for an hour."""
    jobs = {
        "submit_time": [0, 0, 3600],
        "duration": [3600, 7200, 3600],
        "num_gpus": [8, 8, 8],
    }
    run = simulate(jobs, ClusterSpec.uniform(nodes=3, gpus_per_node=8))
    instants, counts = busy_nodes(run)
    assert (instants.tolist(), counts.tolist()) == ([0.0, 7200.0], [2.0, 0.0])
    path = tmp_path / "nodes.csv"
    path.write_text(
        "time,active,total\n2020-01-01 00:00:00,2,3\n2020-01-01 01:00:00,3,3\n"
        "2020-01-01 02:00:00,0,3\n",
        encoding="utf-8",
    )
    with pytest.raises(SpecError, match="no date"):
        read_nodes_in_use(path, epoch=None, zone=None)
    times, active = read_nodes_in_use(path, epoch=1577836800.0, zone="UTC")
    summary = nodes_in_use(run, times, active).summary()
    assert summary == {
        "hours": 2,
        "recorded": 2.5,
        "replayed": 2.0,
        "error": 0.5,
        "correlation": None,
    }


def test_phillys_nodes_in_use(data_dir: Path) -> None:
    philly = open_trace("philly")
    assert philly.cluster is not None
    assert philly.metadata.epoch is not None
    epoch = datetime.fromisoformat(philly.metadata.epoch).timestamp()
    times, active = read_nodes_in_use(
        data_dir / "philly" / "philly_node_sequence.csv.gz", epoch=epoch, zone=philly.metadata.zone
    )
    assert len(times) == 105_644
    found = validate(philly.jobs, philly.cluster, ["fifo"], queueing="skip")
    summary = nodes_in_use(found.outcomes["fifo"], times, active).summary()
    assert summary["recorded"] == pytest.approx(active.mean(), rel=0.02)
    assert summary["hours"] > 1700
    assert 0 < summary["replayed"] <= 352
