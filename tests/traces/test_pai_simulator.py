"""Job files of the PAI simulator."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow.compute as pc
import pyarrow.csv as pcsv
import pytest

from windtunnel import simulate
from windtunnel.errors import SchemaError, TraceError
from windtunnel.traces import open_trace

if TYPE_CHECKING:
    from pathlib import Path

HEADER = (
    "job_id,user,group,gpu_type,num_inst,num_cpu,num_gpu,submit_time,duration,wait_time,"
    "user_dur,user_gpu_dur,group_dur,group_gpu_dur\n"
)
ROWS = (
    "0,u1,g1,MISC,3,8,0.25,286,1344.7,2.5,4394.88,11517.75,1405.33,1405.33\n"
    "1,u2,g2,CPU,1,4,0,200,0,0.0,951.90,601.62,653.62,653.62\n"
    "2,u2,,T4,2,12,1,200,52,,35.81,35.77,41.25,41.86\n"
)


def file_of(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "pai.csv"
    path.write_text(text)
    return path


def test_a_job_is_a_gang(tmp_path: Path) -> None:
    trace = open_trace(file_of(tmp_path, HEADER + ROWS))
    jobs = trace.jobs.to_pydict()
    assert jobs["job_id"] == ["1", "2", "0"]
    assert jobs["num_tasks"] == [1, 2, 3]
    assert jobs["num_gpus"] == [0.0, 2.0, 0.75]
    assert jobs["num_cpus"] == [4.0, 24.0, 24.0]
    assert jobs["duration"] == [1.0, 52.0, 1344.0]
    assert jobs["gpu_type"] == [None, "T4", "MISC"]
    assert jobs["template"] == ["g2", None, "g1"]
    assert jobs["source_queue"] == [0.0, None, 2.5]
    assert jobs["user_gpu_dur"] == [601.62, 35.77, 11517.75]
    assert jobs["estimate"] == [None] * 3
    notes = " ".join(trace.metadata.notes)
    assert "1 durations were cut to whole seconds and 1 of 0 seconds were raised to 1" in notes
    assert "1 jobs name the machines without GPUs" in notes
    assert trace.metadata.rows_read == 3


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        (("1344.7", "long"), TraceError, "line 2, column 'duration': found 'long'"),
        (("1344.7", "-0.5"), SchemaError, "'duration': expected a finite number >= 0"),
        (("MISC,3,", "MISC,0,"), SchemaError, "'num_tasks': expected a whole number >= 1"),
        (
            ("MISC,3,", "MISC,9999999999999999,"),
            TraceError,
            "line 2.*instances, at most 2,147,483,647",
        ),
        (("MISC,3,", "MISC,2.5,"), TraceError, "a whole number of instances"),
    ],
)
def test_bad_rows(
    tmp_path: Path, change: tuple[str, str], error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        open_trace(file_of(tmp_path, (HEADER + ROWS).replace(*change)), format="pai-sim")


TOTALS = (
    "job_id,user,num_gpu,num_cpu,num_pod,duration,job_name,submit_time,group,gpu_type,wait_time,"
    "user_dur,group_dur,group_gpu_dur\n"
    "0,u1,0.0,2.0,1.0,34,j1,0,g1,CPU,3,386.0,6793.5,34.0\n"
    "1,u1,3.0,72.0,12.0,15748,j1,3,g1,T4,2,386.0,6793.5,15199.0\n"
    "2,u2,0.25,6.0,1.0,84,j2,5,g2,MISC,18,693.0,67.0,66.0\n"
)


def test_requests_of_a_file_with_pods_are_those_of_the_job(tmp_path: Path) -> None:
    trace = open_trace(file_of(tmp_path, TOTALS))
    jobs = trace.jobs.to_pydict()
    assert jobs["num_gpus"] == [0.0, 3.0, 0.25]
    assert jobs["num_cpus"] == [2.0, 72.0, 6.0]
    assert jobs["num_tasks"] == [1, 12, 1]
    assert jobs["group_gpu_dur"] == [34.0, 15199.0, 66.0]
    assert "totals of num_pod pods" in " ".join(trace.metadata.notes)


def test_the_published_simulator_flies_totals_as_one_task(tmp_path: Path) -> None:
    path = file_of(tmp_path, TOTALS)
    jobs = open_trace(f"{path}:pods=no").jobs.to_pydict()
    assert jobs["num_tasks"] == [1, 1, 1]
    assert jobs["num_gpus"] == [0.0, 3.0, 0.25]
    out = simulate(open_trace(path, pods=False), "1x4", policy="sju", compat="pai")
    assert out.table["status"].to_pylist().count("finished") == 3


def test_a_file_that_says_neither_is_refused(tmp_path: Path) -> None:
    path = file_of(tmp_path, TOTALS.replace("num_pod", "pods"))
    with pytest.raises(TraceError, match="'num_pod'"):
        open_trace(path, format="pai-sim-totals")


@pytest.mark.data
@pytest.mark.parametrize(
    ("name", "rows", "instances"), [("dev_jobs_2000", 2000, 2000), ("dev_gang_900", 900, 2927)]
)
def test_reference_files(data_dir: Path, name: str, rows: int, instances: int) -> None:
    path = data_dir / "pai_sim_reference" / f"{name}.csv"
    trace = open_trace(path)
    jobs = trace.jobs
    assert jobs.num_rows == trace.metadata.rows_read == rows
    assert pc.sum(jobs["num_tasks"]).as_py() == instances
    raw = pcsv.read_csv(path)
    expected = np.sum(raw["num_gpu"].to_numpy() * raw["num_inst"].to_numpy())
    assert pc.sum(jobs["num_gpus"]).as_py() == pytest.approx(expected)
    assert pc.min(jobs["duration"]).as_py() >= 1
