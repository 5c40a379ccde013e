"""SenseTime Helios: one cluster's log, and the four in one table."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from windtunnel.errors import SchemaError, SpecError, TraceError
from windtunnel.traces import open_trace
from windtunnel.traces.helios import read_helios

if TYPE_CHECKING:
    from pathlib import Path

HEADER = (
    "job_id,user,vc,gpu_num,cpu_num,node_num,state,submit_time,start_time,end_time,duration,queue\n"
)
ROWS = (
    "7,u1,vcA,8,64,1,COMPLETED,2020-04-01 00:10:00,2020-04-01 00:10:05,2020-04-01 01:10:05,3600,5\n"
    "3,u2,vcB,0,4,1,FAILED,2020-04-01 00:00:30,2020-04-01 00:00:30,2020-04-01 00:00:31,1,0\n"
    "9,u1,vcA,16,128,2,SUSPENDED,2020-04-01 00:20:00,2020-04-01 00:20:00,2020-04-01 00:21:00,59,0\n"
)


def file_of(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "cluster_log.csv"
    path.write_text(text)
    return path


def test_a_log_becomes_jobs(tmp_path: Path) -> None:
    trace = open_trace(file_of(tmp_path, HEADER + ROWS))
    jobs = trace.jobs.to_pydict()
    assert jobs["job_id"] == ["3", "7", "9"]
    assert jobs["submit_time"] == [0.0, 570.0, 1170.0]
    assert jobs["start_time"] == [0.0, 575.0, 1170.0]
    assert jobs["duration"] == [1.0, 3600.0, 59.0]
    assert jobs["source_queue"] == [0.0, 5.0, 0.0]
    assert jobs["status"] == ["failed", "completed", "unknown"]
    assert jobs["vc"] == ["vcB", "vcA", "vcA"]
    assert jobs["num_tasks"] == [1, 1, 2]
    meta = trace.metadata
    assert (meta.epoch, meta.zone) == ("2020-03-31T16:00:30+00:00", "Asia/Shanghai")
    assert any("differs from end minus start in 1 rows" in note for note in meta.notes)
    assert any("'SUSPENDED' (1)" in note for note in meta.notes)
    assert meta.rows_read == 3


def test_a_zone_that_repeats_an_hour_is_noted(tmp_path: Path) -> None:
    text = (HEADER + ROWS).replace("2020-04-01 00", "2020-11-01 01").replace("04-01", "11-01")
    trace = read_helios(file_of(tmp_path, text.replace("11-01 01:10:05", "11-01 02:10:05")))
    assert not any("repeats" in note for note in trace.metadata.notes)
    with pytest.raises(SpecError, match="unknown time zone"):
        read_helios(file_of(tmp_path, HEADER + ROWS), zone="Moon/Crater")
    trace = read_helios(file_of(tmp_path, text), zone="America/Los_Angeles")
    assert any("repeats" in note for note in trace.metadata.notes)


def test_four_clusters_in_one_table(tmp_path: Path) -> None:
    lines = (HEADER + ROWS).splitlines()
    names = ("cluster", "Venus", "Earth", "Venus")
    joined = "\n".join(f"{line},{name}" for line, name in zip(lines, names, strict=True))
    trace = open_trace(file_of(tmp_path, joined.replace("\n7,", "\n3,")))
    jobs = trace.jobs.to_pydict()
    assert jobs["job_id"] == ["Earth/3", "Venus/3", "Venus/9"]
    assert jobs["vc"] == ["Earth/vcB", "Venus/vcA", "Venus/vcA"]
    assert jobs["cluster"] == ["Earth", "Venus", "Venus"]
    assert trace.metadata.zone == "Asia/Shanghai"


def test_the_documented_columns_alone_are_enough(tmp_path: Path) -> None:
    trace = open_trace(file_of(tmp_path, "gpu_num,duration\n1,5\n8,7\n"))
    jobs = trace.jobs.to_pydict()
    assert jobs["job_id"] == ["helios-1", "helios-2"]
    assert jobs["submit_time"] == jobs["status"] == jobs["vc"] == [None, None]
    assert (trace.metadata.epoch, trace.metadata.zone) == (None, None)
    assert any("no times of submission" in note for note in trace.metadata.notes)


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        (("2020-04-01 00:10:05", "2020-04-01T00:10:05+08:00"), TraceError, "without a zone"),
        (("2020-04-01 00:00:30,", "0001-01-01 00:00:30,"), TraceError, "the years 1 to 9999"),
        (("state", "status"), TraceError, "a column 'state'"),
        ((",3600,", ",-3600,"), SchemaError, "'duration': expected a finite number >= 0"),
        (("\n9,", "\n7,"), SchemaError, "each id once"),
    ],
)
def test_bad_rows(
    tmp_path: Path, change: tuple[str, str], error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        read_helios(file_of(tmp_path, (HEADER + ROWS).replace(*change)))
