"""Samples that name a job by the id under which Slurm ran it."""

from __future__ import annotations

import ibis
import pyarrow as pa

from windtunnel.characterize.named_jobs import with_jobs_named
from windtunnel.companions import SAMPLE_COLUMNS, companion
from windtunnel.schema import as_jobs


def jobs_of_samples(jobs: pa.Table, samples: list[tuple[float, str | None]]) -> list[str | None]:
    """Return the job of each sample (time, name), in order of time; none is lost or doubled."""
    columns = {
        "time": pa.array([time for time, _ in samples], pa.float64()),
        "job_id": pa.array([name for _, name in samples], pa.string()),
        "metric": pa.array(["GPU_UTIL"] * len(samples)),
        "value": pa.array([1.0] * len(samples)),
    }
    table = ibis.memtable(companion(SAMPLE_COLUMNS, columns))
    found = with_jobs_named(table, jobs)
    assert found.columns == tuple(column.name for column in SAMPLE_COLUMNS)
    rows = sorted(found.to_pyarrow().to_pylist(), key=lambda row: row["time"])
    assert [row["time"] for row in rows] == sorted(time for time, _ in samples)
    return [row["job_id"] for row in rows]


def test_a_task_is_known_by_its_raw_id() -> None:
    jobs = as_jobs(
        {
            "job_id": ["17_1", "17_2", "17_3", "17_4", "9"],
            "job_id_raw": ["21", "22", "17", "17", None],
            "submit_time": [0.0] * 5,
            "start_time": [0.0, 0.0, None, None, 0.0],
            "end_time": [10.0, 10.0, None, None, 10.0],
            "duration": [10.0, 10.0, 0.0, 0.0, 10.0],
            "num_gpus": [1.0] * 5,
        }
    )
    samples = [(1.0, "21"), (2.0, "22"), (3.0, "17"), (4.0, "9"), (5.0, None), (20.0, "21")]
    # 17 is the array, of which two tasks wait; 21 has ended before 20 s.
    assert jobs_of_samples(jobs, samples) == ["17_1", "17_2", "17", "9", None, "21"]


def test_a_requeued_job_has_the_samples_of_each_run() -> None:
    jobs = as_jobs(
        {
            "job_id": ["7", "7#2", "7#3", "8"],
            "submit_time": [0.0, 10.0, 30.0, 0.0],
            "start_time": [0.0, 15.0, 40.0, 0.0],
            "end_time": [12.0, 25.0, None, 99.0],
            "duration": [12.0, 10.0, 5.0, 99.0],
            "num_gpus": [1.0] * 4,
            "status": ["node_fail", "preempted", "running", "completed"],
        }
    )
    samples = [(1.0, "7"), (13.0, "7"), (15.0, "7"), (24.0, "7"), (60.0, "7"), (61.0, "8")]
    # Between its runs nobody knows better than the name.
    assert jobs_of_samples(jobs, samples) == ["7", "7", "7#2", "7#2", "7#3", "8"]


def test_names_that_are_ids_stay() -> None:
    jobs = as_jobs({"submit_time": [0.0], "duration": [1.0], "num_gpus": [1.0]})
    table = ibis.memtable(pa.table({"job_id": ["x"]}))
    assert with_jobs_named(table, jobs) is table
