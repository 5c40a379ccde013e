"""Alibaba's trace with spot jobs."""

from __future__ import annotations

import csv
from collections import Counter
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from windtunnel.companions import NODE_COLUMNS
from windtunnel.errors import SchemaError, SpecError, TraceError
from windtunnel.traces.native import read_native
from windtunnel.traces.readers import reader_for
from windtunnel.traces.spot import _NODES, read_spot

if TYPE_CHECKING:
    from pathlib import Path

HEADER = (
    "job_name,organization,gpu_model,cpu_request,gpu_request,worker_num,submit_time,duration,"
    "job_type\n"
)
JOBS = "7,57,A100,15,1,94,960,71718,Spot\n8,13,A10,20,2,1,0,2764799,HP\n9,13,,8,0.5,2,960,10,Spot\n"
NODES = (
    "gpu_model,gpu_capacity_num,cpu_num,node_name\n"
    "A10,1,128,0\nA100,8,128,1\nA100,8,128,2\nA10,1,128,3\n"
)


def jobs_file(tmp_path: Path, text: str = HEADER + JOBS) -> Path:
    path = tmp_path / "job_info_df.csv"
    path.write_text(text)
    return path


def test_requests_are_those_of_one_worker(tmp_path: Path) -> None:
    trace = read_spot(jobs_file(tmp_path))
    jobs = trace.jobs.to_pydict()
    assert jobs["job_id"] == ["8", "7", "9"]
    assert jobs["submit_time"] == [0.0, 960.0, 960.0]
    assert jobs["duration"] == [2764799.0, 71718.0, 10.0]
    assert jobs["num_gpus"] == [2.0, 94.0, 1.0]
    assert jobs["num_tasks"] == [1, 94, 2]
    assert jobs["num_cpus"] == [20.0, 15.0 * 94, 16.0]
    assert jobs["gpu_type"] == ["A10", "A100", None]
    assert jobs["vc"] == ["13", "57", "13"]
    assert jobs["workload"] == ["HP", "Spot", "Spot"]
    assert jobs["priority"] == [1.0, 0.0, 0.0]
    for name in ("start_time", "end_time", "estimate", "user", "status"):
        assert jobs[name] == [None] * 3
    assert (trace.metadata.rows_read, trace.metadata.epoch) == (3, None)
    assert any("sorted" in note for note in trace.metadata.notes)
    assert (trace.cluster, trace.nodes) == (None, None)


def test_nodes_beside_the_jobs_or_named(tmp_path: Path) -> None:
    elsewhere = tmp_path / "other.csv"
    elsewhere.write_text(NODES)
    assert read_spot(jobs_file(tmp_path)).nodes is None
    for nodes in (elsewhere, None):
        if nodes is None:
            (tmp_path / "node_info_df.csv").write_text(NODES)
        trace = read_spot(jobs_file(tmp_path), nodes=nodes)
        assert trace.nodes is not None
        assert trace.nodes.column_names == [column.name for column in NODE_COLUMNS]
        assert trace.nodes["node"].to_pylist() == ["0", "1", "2", "3"]
        assert trace.cluster is not None
        assert [(t.count, t.gpus, t.gpu_type, t.cpus) for t in trace.cluster.node_types] == [
            (1, 1, "A10", 128.0),
            (2, 8, "A100", 128.0),
            (1, 1, "A10", 128.0),
        ]
    assert any("node_info_df.csv" in note for note in trace.metadata.notes)


def test_the_header_tells_the_format(tmp_path: Path) -> None:
    head = (HEADER + JOBS).encode()
    assert reader_for(jobs_file(tmp_path), head).read is read_spot
    ours = b"job_id,submit_time,duration,num_gpus\n"
    assert reader_for(tmp_path / "jobs.csv", ours).read is read_native


@pytest.mark.parametrize(
    ("text", "error", "message"),
    [
        (HEADER + JOBS.replace(",HP", ",High"), TraceError, "line 3, column 'job_type': .*'High'"),
        (HEADER + JOBS.replace(",94,", ",many,"), TraceError, "line 2, column 'worker_num'"),
        (HEADER + JOBS.replace(",94,", ",,"), TraceError, "line 2, column 'worker_num'"),
        (HEADER + JOBS.replace(",94,", ",0,"), SchemaError, "num_tasks.*line 2"),
        (HEADER + JOBS.replace("8,13", "7,13"), SchemaError, "each id once.*'7'"),
        (HEADER.replace("duration", "run") + JOBS, TraceError, "a column 'duration'"),
        (HEADER + JOBS[:-20], TraceError, "cut"),
        (HEADER, TraceError, "no rows"),
    ],
)
def test_bad_jobs(tmp_path: Path, text: str, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        read_spot(jobs_file(tmp_path, text))


def test_bad_rows_are_left_out_and_counted_on_request(tmp_path: Path) -> None:
    path = jobs_file(tmp_path, HEADER + JOBS.replace(",94,", ",0,"))
    trace = read_spot(path, bad_rows="drop")
    assert trace.jobs["job_id"].to_pylist() == ["8", "9"]
    assert list(trace.metadata.dropped.values()) == [1]
    assert trace.metadata.rows_read == 3


@pytest.mark.parametrize(
    ("text", "error", "message"),
    [
        (NODES.replace(",2\n", ",1\n"), TraceError, "line 4, column 'node_name': found '1'"),
        (NODES.replace("A100,8,", "A100,,"), TraceError, "line 3, column 'gpu_capacity_num'"),
        (NODES.replace("A100,8,", "A100,1.5,"), TraceError, "line 3, column 'gpu_capacity_num'"),
        (NODES.replace("A100,8,", "A100,-8,"), SpecError, "0 or more GPUs"),
        (NODES.replace("128", "0"), SpecError, "a number > 0"),
        ("gpu_model\nA10\n", TraceError, "a column 'node_name'"),
    ],
)
def test_bad_nodes(tmp_path: Path, text: str, error: type[Exception], message: str) -> None:
    path = tmp_path / "node_info_df.csv"
    path.write_text(text)
    with pytest.raises(error, match=message):
        _NODES.read(path)


ROW = st.tuples(
    st.integers(0, 99),
    st.sampled_from(["A10", "H800", ""]),
    st.integers(0, 128),
    st.sampled_from([0, 0.5, 1, 8]),
    st.integers(1, 500),
    st.integers(0, 10**7),
    st.integers(0, 10**8),
    st.sampled_from(["HP", "Spot"]),
)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(rows=st.lists(ROW, min_size=1, max_size=12))
def test_totals_agree_with_plain_python(tmp_path: Path, rows: list[tuple[object, ...]]) -> None:
    text = HEADER + "".join(
        ",".join(map(str, (number, *row))) + "\n" for number, row in enumerate(rows)
    )
    path = jobs_file(tmp_path, text)
    jobs = read_spot(path).jobs.to_pylist()
    with path.open() as file:
        plain = list(csv.DictReader(file))
    plain.sort(key=lambda row: float(row["submit_time"]))
    for job, row in zip(jobs, plain, strict=True):
        workers = int(row["worker_num"])
        assert job["job_id"] == row["job_name"]
        assert job["num_gpus"] == float(row["gpu_request"]) * workers
        assert job["num_cpus"] == float(row["cpu_request"]) * workers


@pytest.mark.data
def test_the_published_nodes(data_dir: Path) -> None:
    """4,278 nodes with 10,412 GPUs, by type as counted from the file in its README."""
    table, cluster = _NODES.read(data_dir / "alibaba_v2026_spot" / "node_info_df.csv")
    assert (cluster.num_nodes, cluster.num_gpus) == (4_278, 10_412)
    assert table.num_rows == 4_278
    counts = Counter(zip(table["gpu_type"].to_pylist(), table["num_gpus"].to_pylist(), strict=True))
    assert counts == {
        ("A10", 1.0): 2_494,
        ("A100-SXM4-80GB", 8.0): 432,
        ("A800-SXM4-80GB", 8.0): 22,
        ("H800", 8.0): 219,
        ("GPU-series-1", 1.0): 902,
        ("GPU-series-1", 4.0): 10,
        ("GPU-series-1", 8.0): 77,
        ("GPU-series-2", 8.0): 122,
    }
