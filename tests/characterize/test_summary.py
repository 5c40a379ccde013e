"""The row of cluster_summary.csv, and why a cell is empty."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pytest

from windtunnel.characterize.summary import COLUMNS, cluster_summary
from windtunnel.schema import as_jobs
from windtunnel.traces.trace import Trace, TraceMetadata

if TYPE_CHECKING:
    from backends import Backend


def _jobs() -> pa.Table:
    return as_jobs(
        {
            "submit_time": [0, 0, 0, 0, 0],
            "start_time": [10, 20, 40, 1, 2],
            "end_time": [110, 70, 240, 4, 6],
            "duration": [100, 50, 200, 3, 4],
            "num_gpus": [1, 2, 8, 0, 0],
            "status": ["completed", "timeout", "cancelled", "completed", "failed"],
            "source_duration": pa.array([110.0, 70.0, 240.0, 4.0, 6.0]),
        }
    )


def test_a_row_by_hand(backend: Backend) -> None:
    summary = cluster_summary(backend(_jobs()), "mine")
    assert summary.why == {}
    assert tuple(summary.row) == COLUMNS
    total = 100 + 2 * 50 + 8 * 200
    assert summary.row == {
        "id": "mine",
        "job_num": 5,
        "cpu_job_num": 2,
        "gpu_job_num": 3,
        "avg_run_time_gpu": pytest.approx(350 / 3),
        "avg_que_time_gpu": pytest.approx(70 / 3),
        "avg_gpu_num": pytest.approx(11 / 3),
        "med_run_time_gpu": 100.0,
        "med_que_time_gpu": 20.0,
        "med_gpu_num": 2.0,
        "max_run_time_gpu": 200.0,
        "max_gpu": 8.0,
        **{f"{state}_rate_gpu": pytest.approx(1 / 3) for state in ("complete", "cancel", "fail")},
        "complete_gpu_time": 100.0,
        "cancel_gpu_time": 1600.0,
        "fail_gpu_time": 100.0,
        "complete_rate_gpu_time": pytest.approx(100 / total),
        "cancel_rate_gpu_time": pytest.approx(1600 / total),
        "fail_rate_gpu_time": pytest.approx(100 / total),
        "avg_run_time_cpu": 3.5,
        "avg_que_time_cpu": 1.5,
        "med_run_time_cpu": 3.5,
        "med_que_time_cpu": 1.5,
        "complete_rate_cpu": 0.5,
        "cancel_rate_cpu": 0.0,
        "fail_rate_cpu": 0.5,
    }


def test_the_sources_own_columns_can_be_taken(backend: Backend) -> None:
    row = cluster_summary(backend(_jobs()), "mine", source=True).row
    assert row["med_run_time_gpu"] == 110.0
    assert row["cancel_gpu_time"] == 8 * 240.0
    assert row["med_que_time_gpu"] == 20.0  # the source has no queueing time


def test_cells_that_cannot_be_had_say_why() -> None:
    jobs = as_jobs({"submit_time": [0, 0, 1], "duration": [1, 3, None], "num_gpus": [1, 1, None]})
    summary = cluster_summary(jobs)
    row, why = summary.row, summary.why
    assert {name for name in COLUMNS if row[name] is None} == set(why)
    assert (row["job_num"], row["gpu_job_num"], row["cpu_job_num"]) == (3, 2, 0)
    assert row["avg_run_time_gpu"] == 2.0
    assert why["id"] == "The jobs table has no name."
    assert why["avg_que_time_gpu"] == "None of 2 GPU jobs has a wait."
    assert why["fail_rate_gpu"] == "How they ended is not known of 2 of 2 jobs."
    assert why["fail_gpu_time"] == "How they ended is not known of 2 of 2 jobs."
    assert why["avg_run_time_cpu"] == "There are no CPU jobs."
    assert summary.left_out["avg_que_time_gpu"] == 2
    assert summary.n["avg_run_time_gpu"] == 2


def test_one_unknown_end_among_thousands_does_not_move_a_rate() -> None:
    count = 4000
    statuses = [None, "failed", *["completed"] * (count - 2)]
    jobs = as_jobs(
        {
            "submit_time": [0] * count,
            "duration": [1] * count,
            "num_gpus": [1] * count,
            "status": statuses,
        }
    )
    summary = cluster_summary(jobs, "x")
    assert summary.row["fail_rate_gpu"] == 1 / count
    assert summary.left_out["fail_rate_gpu"] == 1
    assert summary.n["fail_rate_gpu"] == count - 1


def test_a_trace_gives_its_name(holed: pa.Table) -> None:
    trace = Trace(holed, TraceMetadata("holed", "test"))
    row = cluster_summary(trace).row
    assert list(row) == list(COLUMNS)
    assert row["id"] == "holed"
    assert cluster_summary(_jobs(), "mine").row["id"] == "mine"
    runs = [
        job["duration"]
        for job in holed.to_pylist()
        if job["duration"] is not None and (job["num_gpus"] or 0) > 0
    ]
    assert row["med_run_time_gpu"] == np.median(runs)
    assert row["avg_run_time_gpu"] == pytest.approx(np.mean(runs))
    assert row["job_num"] == holed.num_rows
