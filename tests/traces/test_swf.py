"""Standard Workload Format."""

from __future__ import annotations

import gzip
from typing import TYPE_CHECKING

import pytest

from windtunnel.errors import SchemaError, TraceError
from windtunnel.traces import open_trace
from windtunnel.traces.swf import read_swf

if TYPE_CHECKING:
    from pathlib import Path

    from windtunnel.traces.trace import Trace

HEADER = "; Version: 2.2\n;UnixStartTime: 1000000000\n; TimeZoneString: Europe/Berlin\n"


def record(**fields: float) -> str:
    """One record, unknown but for the fields given by number: ``f1=7``."""
    values = [fields.get(f"f{number}", -1) for number in range(1, 19)]
    return " ".join(f"{value:.12g}" for value in values) + "\n"


def read(tmp_path: Path, text: str) -> Trace:
    path = tmp_path / "log.swf"
    path.write_text(text)
    return read_swf(path)


def test_fields(tmp_path: Path) -> None:
    text = HEADER + record(
        f1=7, f2=100, f3=20, f4=50, f5=4, f6=49.5, f7=9, f8=8, f9=60, f10=2**20, f11=1,
        f12=3, f13=2, f14=5, f15=6, f16=1, f17=4, f18=30,
    )  # fmt: skip
    trace = read(tmp_path, text)
    job = {k: v for k, v in trace.jobs.to_pylist()[0].items() if v is not None}
    assert job == {
        "job_id": "7",
        "submit_time": 100.0,
        "start_time": 120.0,
        "end_time": 170.0,
        "duration": 50.0,
        "estimate": 60.0,
        "num_gpus": 4.0,
        "mem_gib": 4.0,
        "user": "3",
        "vc": "6",
        "template": "5",
        "status": "completed",
        "group": "2",
        "partition": "1",
        "preceding_job": "4",
        "think_time": 30.0,
    }
    assert trace.metadata.epoch == "2001-09-09T01:46:40+00:00"
    assert trace.metadata.zone == "Europe/Berlin"
    assert trace.metadata.settings["Version"] == "2.2"
    assert trace.cluster is None


def test_unknown_is_null_and_the_requested_size_stands_in(tmp_path: Path) -> None:
    jobs = read(tmp_path, record(f1=1, f2=0, f8=16, f11=5)).jobs
    assert jobs["num_gpus"].to_pylist() == [16.0]
    for name in ("start_time", "end_time", "duration", "estimate", "mem_gib", "user", "vc"):
        assert jobs[name].to_pylist() == [None]
    assert jobs["status"].to_pylist() == ["cancelled"]


@pytest.mark.parametrize(
    ("code", "status"),
    [(0, "failed"), (1, "completed"), (2, "running"), (3, "completed"), (4, "failed"), (-1, None)],
)
def test_status_codes(tmp_path: Path, code: int, status: str | None) -> None:
    jobs = read(tmp_path, record(f1=1, f2=0, f4=5, f5=1, f11=code)).jobs
    assert jobs["status"].to_pylist() == [status]


def test_a_job_cancelled_in_the_queue_never_started(tmp_path: Path) -> None:
    text = record(f1=1, f2=10, f3=7, f5=4, f11=5) + record(f1=2, f2=10, f3=7, f4=3, f5=4, f11=5)
    queued, ran = read(tmp_path, text).jobs.to_pylist()
    assert (queued["start_time"], queued["end_time"], queued["duration"]) == (None, 17.0, None)
    assert (ran["start_time"], ran["end_time"], ran["duration"]) == (17.0, 20.0, 3.0)


def test_parts_of_interrupted_jobs(tmp_path: Path) -> None:
    """Jobs 1: parts then the last; 2: summary and parts; 3: never ended; 4: whole."""
    parts = [(1, 2), (1, 2), (1, 4), (2, 1), (2, 2), (2, 3), (3, 2), (3, 2), (4, 1)]
    text = "".join(
        record(f1=job, f2=job, f4=10 + row, f5=1, f11=code) for row, (job, code) in enumerate(parts)
    )
    trace = read(tmp_path, text)
    assert trace.jobs["job_id"].to_pylist() == ["1", "2", "3", "4"]
    assert trace.jobs["status"].to_pylist() == ["failed", "completed", "running", "completed"]
    assert trace.jobs["duration"].to_pylist() == [12.0, 13.0, 17.0, 18.0]
    assert trace.metadata.dropped == {"partial execution of an interrupted job": 5}
    assert trace.metadata.rows_read == trace.jobs.num_rows + 5


def test_an_id_twice_is_an_error(tmp_path: Path) -> None:
    job = record(f1=1, f2=0, f4=1, f5=1, f11=1)
    with pytest.raises(SchemaError, match=r"each id once \(1 row, first in line 3"):
        read(tmp_path, f";a\n{job}{job}")
    last = record(f1=1, f2=0, f4=1, f5=1, f11=3)
    with pytest.raises(SchemaError, match=r"each id once"):
        read(tmp_path, last + last)


def test_unsorted_logs_are_sorted_and_keep_ties(tmp_path: Path) -> None:
    order = [(1, 50), (2, 0), (3, 50), (4, 0)]
    trace = read(tmp_path, "".join(record(f1=i, f2=s, f4=1, f5=1) for i, s in order))
    assert trace.jobs["job_id"].to_pylist() == ["2", "4", "1", "3"]
    assert any("sorted" in note for note in trace.metadata.notes)


def test_wide_blanks_tabs_and_gzip(tmp_path: Path) -> None:
    path = tmp_path / "log.swf.gz"
    text = "  " + record(f1=1, f2=0, f4=1, f5=1).replace(" ", " \t  ") + "\r\n\n"
    path.write_bytes(gzip.compress(text.encode()))
    assert open_trace(path).jobs.num_rows == 1


@pytest.mark.parametrize(
    ("header", "described"),
    [
        ("; MaxNodes: 8\n; MaxProcs: 64\n", "64 GPUs: 8 nodes x 8 GPUs"),
        ("; MaxProcs: 63\n; MaxNodes: 8\n", "63 GPUs in a pool without nodes"),
        ("; MaxProcs: 5\n", "5 GPUs in a pool without nodes"),
        ("; MaxProcs: many\n", None),
    ],
)
def test_cluster_from_the_header(tmp_path: Path, header: str, described: str | None) -> None:
    cluster = read(tmp_path, header + record(f1=1, f2=0, f4=1, f5=1)).cluster
    assert (cluster.describe() if cluster else None) == described


def test_a_doubtful_header_is_noted(tmp_path: Path) -> None:
    header = "; UnixStartTime: soon\n; TimeZoneString: Atlantis/Capital\n; Note: a\n; Note: b\n"
    trace = read(tmp_path, header + record(f1=1, f2=0, f4=1, f5=1))
    assert (trace.metadata.epoch, trace.metadata.zone) == (None, None)
    assert len(trace.metadata.notes) == 2
    assert trace.metadata.settings["Note"] == "a\nb"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (";h\n1 2 3\n", "line 2: expected 18 fields, found 3"),
        (record(f1=1, f2=0, f4=1, f5=1) + "2 0 -1 1", "line 2: expected 18 fields, found 4.*cut"),
        (record(f1=1, f2=0).replace("-1", "x", 1), "line 1, column 'wait': found 'x'"),
        (record(f1=1, f2=0, f6=7).replace(" 7 ", " x "), "column 'average_cpu': found 'x'"),
        (record(f1=1.5, f2=0), "column 'job': found '1.5'; expected a whole number"),
        (record(f1=1, f2=0, f11=9), "column 'status': found '9'; expected one of"),
        ("; only a header\n", "only blank lines"),
        ("", "It is empty"),
        ("job_id,submit_time\n1,2\n", "line 1: expected 18 fields"),
    ],
)
def test_what_is_no_log_says_why(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(TraceError, match=message):
        read(tmp_path, text)


@pytest.mark.data
def test_reference_sample(data_dir: Path) -> None:
    trace = open_trace(data_dir / "formats" / "sample.swf")
    jobs = trace.jobs
    assert jobs.num_rows == 7
    assert jobs["duration"].to_pylist() == [3600, None, 42, 0, 5000, 900, 100]
    assert jobs["start_time"].to_pylist() == [10, None, 60, 90, 170, 80, 95]
    assert jobs["estimate"].to_pylist()[5] is None
    assert sum(trace.metadata.dropped.values()) == 1
    assert trace.metadata.epoch == "2025-10-06T12:00:00+00:00"


@pytest.mark.data
def test_small200_is_the_same_in_both_formats(data_dir: Path) -> None:
    folder = data_dir / "backfill_reference"
    log, table = (open_trace(folder / f"small200.{e}") for e in ("swf", "csv"))
    for name in ("job_id", "submit_time", "num_gpus", "duration", "estimate"):
        assert log.jobs[name].equals(table.jobs[name])
    # The log numbers users from 2 where the table names them u01, u02, ...: the same grouping.
    pairs = set(zip(log.jobs["user"].to_pylist(), table.jobs["user"].to_pylist(), strict=True))
    assert len(pairs) == len({p[0] for p in pairs}) == len({p[1] for p in pairs})
    assert log.cluster is not None
    assert log.cluster.num_gpus == 64
