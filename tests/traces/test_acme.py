"""Acme: Seren and Kalos, and the earlier traces that AcmeTrace brings along."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from windtunnel.errors import SchemaError, TraceError
from windtunnel.traces import open_trace
from windtunnel.traces.acme import read_acme

if TYPE_CHECKING:
    from pathlib import Path

SEREN = (
    "job_id,user,node_num,gpu_num,cpu_num,type,state,submit_time,start_time,end_time,duration,"
    "queue,gpu_time\n"
    "5778469,u5907,1,8,128,Other,COMPLETED,2023-03-01 00:23:58+08:00,2023-03-01 00:24:11+08:00,"
    "2023-03-01 01:09:04+08:00,2693,13,21544.0\n"
    "5778432,u5907,1,8,128,Other,FAILED,2023-03-01 00:18:22+08:00,2023-03-01 00:18:54+08:00,"
    "2023-03-01 00:20:51+08:00,117,32,936.0\n"
    "5778500,u1,2,0,16,,PREEMPTED,2023-03-01 00:24:00+08:00,2023-03-01 00:24:00+08:00,"
    "2023-03-01 00:24:10+08:00,10,0,0.0\n"
)
KALOS = (
    "job_id,user,node_num,gpu_num,cpu_num,mem_per_pod_GB,shared_mem_per_pod,type,state,"
    "submit_time,start_time,end_time,fail_time,stop_time,duration,queue,gpu_time\n"
    "dlctk696s0jbvitv,uf794,8,64,960,1000,100.0,Other,FAILED,2023-05-17 11:00:58+00:00,"
    "2023-05-17 11:01:08+00:00,2023-05-17 11:01:16+00:00,2023-05-17 11:01:16+00:00,,"
    "18,10.0,1152.0\n"
    "dlc1t2ypl09b8qtp,uf794,8,64,960,1000,100.0,Other,CANCELLED,2023-05-17 11:28:42+00:00,"
    "2023-05-17 11:28:54+00:00,2023-05-17 11:30:04+00:00,,2023-05-17 11:30:04+00:00,"
    "82,12.0,5248.0\n"
    "dlcrunning,u2,1,8,120,,,Eval,RUNNING,2023-05-17 12:00:00+00:00,"
    "2023-05-17 12:00:00+00:00,,,,,0.0,\n"
)


def file_of(tmp_path: Path, text: str, name: str = "t.csv") -> Path:
    path = tmp_path / name
    path.write_text(text)
    return path


def test_the_rows_that_seren_prints(tmp_path: Path) -> None:
    trace = open_trace(file_of(tmp_path, SEREN, "trace_seren.csv"))
    jobs = trace.jobs.to_pydict()
    assert jobs["job_id"] == ["5778432", "5778469", "5778500"]
    assert jobs["submit_time"] == [0.0, 336.0, 338.0]
    assert jobs["start_time"] == [32.0, 349.0, 338.0]
    assert jobs["duration"] == jobs["source_duration"] == [117.0, 2693.0, 10.0]
    assert jobs["source_queue"] == [32.0, 13.0, 0.0]
    assert jobs["num_gpus"] == [8.0, 8.0, 0.0]
    assert jobs["num_tasks"] == [1, 1, 2]
    assert jobs["status"] == ["failed", "completed", "preempted"]
    assert jobs["workload"] == ["Other", "Other", None]
    assert jobs["mem_gib"] == [None] * 3
    meta = trace.metadata
    assert (meta.epoch, meta.zone) == ("2023-02-28T16:18:22+00:00", "Asia/Shanghai")
    assert (meta.rows_read, meta.name) == (3, "trace_seren")
    assert any("differs in 0 of 3 rows" in note for note in meta.notes)
    assert any("sorted by submission" in note for note in meta.notes)


def test_kalos_duration_is_mended_and_the_source_kept(tmp_path: Path) -> None:
    trace = open_trace(file_of(tmp_path, KALOS))
    jobs = trace.jobs.to_pydict()
    assert jobs["duration"] == [8.0, 70.0, None]
    assert jobs["source_duration"] == [18.0, 82.0, None]
    assert jobs["status"] == ["failed", "cancelled", "running"]
    assert jobs["fail_time"] == [18.0, None, None]
    assert jobs["stop_time"] == [None, 1746.0, None]
    assert jobs["mem_gib"] == [pytest.approx(8 * 1000 * 1e9 / 2**30)] * 2 + [None]
    assert jobs["shared_mem_per_pod"] == [100.0, 100.0, None]
    assert (trace.metadata.epoch, trace.metadata.zone) == ("2023-05-17T11:00:58+00:00", "UTC")
    assert any("differs in 2 of 3 rows" in note for note in trace.metadata.notes)


def test_what_is_unclear_is_noted(tmp_path: Path) -> None:
    text = SEREN.replace("PREEMPTED", "SUSPENDED").replace("u1,2,0", "u1,0,0")
    text = text.replace("2023-03-01 00:18:22+08:00", "2023-02-28T16:18:22Z")
    text = text.replace(",gpu_time\n", ",gpu_time,colour\n").replace(".0\n", ".0,red\n")
    trace = read_acme(file_of(tmp_path, text))
    jobs = trace.jobs.to_pydict()
    assert jobs["submit_time"] == [0.0, 336.0, 338.0]
    assert jobs["status"][2] == "unknown"
    assert jobs["num_tasks"][2] is None
    notes = " ".join(trace.metadata.notes)
    assert "States read as unknown: 'SUSPENDED' (1)." in notes
    assert "1 rows name 0 nodes" in notes
    assert "no one zone is known" in notes
    assert "not read: 'colour'" in notes
    assert trace.metadata.zone is None


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        (("2023-03-01 00:18:54+08:00", "2023-03-01 00:18:54"), TraceError, "line 3.*'start_time'"),
        (("2023-03-01 00:18:54+08:00", "2023-13-01 00:18:54+08:00"), TraceError, "its offset"),
        ((",8,128", ",eight,128"), TraceError, "line 2, column 'gpu_num': found 'eight'"),
        (("state", "stat"), TraceError, "a column 'state'.*Did you mean 'stat'"),
        (("u5907,1,8", "u5907,1.5,8"), TraceError, "a whole number of nodes"),
        (("5778469", "5778432"), SchemaError, "each id once"),
        (("2023-03-01 00:18:54", "2023-03-01 00:18:02"), SchemaError, "start_time >= submit_time"),
    ],
)
def test_bad_rows(
    tmp_path: Path, change: tuple[str, str], error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        read_acme(file_of(tmp_path, SEREN.replace(*change)))


def test_a_bad_time_deep_in_the_table_is_found(tmp_path: Path) -> None:
    header, row = SEREN.splitlines()[:2]
    rows = [row.replace("5778469", str(i)) for i in range(50)]
    rows[37] = rows[37].replace("01:09:04+08:00", "noon")
    with pytest.raises(TraceError, match=r"line 39, column 'end_time': found '2023-03-01 noon'"):
        read_acme(file_of(tmp_path, "\n".join([header, *rows])))


def test_philly_as_normalised(tmp_path: Path) -> None:
    text = "gpu_num,duration,state,queue\n1,60.5,Pass,3\n8,10,Killed,\n2,5,Failed,1\n2,5,Lost,1\n"
    trace = open_trace(file_of(tmp_path, text), format="acme-philly")
    jobs = trace.jobs.to_pydict()
    assert jobs["job_id"] == ["philly-1", "philly-2", "philly-3", "philly-4"]
    assert jobs["submit_time"] == [None] * 4
    assert jobs["duration"] == [60.5, 10.0, 5.0, 5.0]
    assert jobs["status"] == ["completed", "cancelled", "failed", "unknown"]
    assert jobs["source_queue"] == [3.0, None, 1.0, 1.0]
    assert any("cannot be replayed" in note for note in trace.metadata.notes)
    named = tmp_path / "philly_trace.csv"
    named.write_text(text)
    assert open_trace(named).jobs.equals(trace.jobs)  # its columns say too little, its name enough


def test_pai_as_normalised(tmp_path: Path) -> None:
    text = (
        "job_name,plan_cpu,plan_gpu,wait_time,status,duration\n"
        "a,600.0,25.0,3,Terminated,480.667\nb,100.0,,,Failed,\nc,50,200,1,Running,7\n"
    )
    trace = open_trace(file_of(tmp_path, text))
    jobs = trace.jobs.to_pydict()
    assert jobs["num_gpus"] == [0.25, None, 2.0]
    assert jobs["num_cpus"] == [6.0, 1.0, 0.5]
    assert jobs["status"] == [None, "failed", None]
    assert jobs["duration"] == [480.667, None, 7.0]
    notes = " ".join(trace.metadata.notes)
    assert "1 of 3 rows have no duration" in notes
    assert "States read as not known: 'Running' (1), 'Terminated' (1)." in notes
    assert "not read: 'job_name'" in notes
    assert trace.metadata.rows_read == 3
