"""Traces in the archives that they are published in."""

from __future__ import annotations

import io
import tarfile
import zipfile
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from windtunnel.errors import SpecError, TraceError
from windtunnel.traces import open_trace

if TYPE_CHECKING:
    from pathlib import Path

TABLE = "job_id,submit_time,duration,num_gpus\na,0,10,1\nb,5,20,2\n"
LOG = (
    "job_id,user,vc,gpu_num,cpu_num,node_num,state,submit_time,start_time,end_time,duration,queue\n"
    "5,u,v,8,64,1,COMPLETED,{0} 00:00:00,{0} 00:00:05,{0} 01:00:05,3600,5\n"
    "6,u,v,1,4,1,FAILED,{0} 00:01:00,{0} 00:01:05,{0} 00:01:15,10,5\n"
)


def tarred(path: Path, files: dict[str, bytes], mode: str = "w:gz") -> Path:
    with tarfile.open(path, mode) as archive:  # type: ignore[call-overload] # a mode in a variable
        for name, content in files.items():
            entry = tarfile.TarInfo(name)
            entry.size = len(content)
            archive.addfile(entry, io.BytesIO(content))
    return path


def zipped(path: Path, files: dict[str, bytes]) -> Path:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in files.items():
            archive.writestr(name, content)
    return path


def parquet() -> bytes:
    file = io.BytesIO()
    pods = {
        **{name: ["a", "b"] for name in ("pod_id", "gpu_spec_public", "priority_class")},
        "job_type_public": ["dev", "training"],
        "gpu_request": [1.0, 8.0],
        "duration_hours": [1.5, 2.0],
        "schedule_delay_sec": [3, None],
    }
    pq.write_table(pa.table(pods), file)
    return file.getvalue()


@pytest.mark.parametrize("name", ["t.tar.gz", "t.tgz", "t.tar", "t.zip"])
def test_an_archive_with_one_table_is_that_table(tmp_path: Path, name: str) -> None:
    files = {"data/t.csv": TABLE.encode(), "data/._t.csv": b"x", "__MACOSX/t.csv": b"x"}
    if name.endswith("zip"):
        path = zipped(tmp_path / name, files)
    else:
        path = tarred(tmp_path / name, files, "w" if name.endswith(".tar") else "w:gz")
    assert open_trace(path).jobs["duration"].to_pylist() == [10.0, 20.0]


def test_the_format_is_found_by_what_is_inside(tmp_path: Path) -> None:
    log = tarred(tmp_path / "venus.tar.gz", {"cluster_log.csv": LOG.format("2020-04-01").encode()})
    assert open_trace(log).jobs["vc"].to_pylist() == ["v", "v"]
    pods = zipped(tmp_path / "summary.zip", {"summary/part-000.parquet": parquet()})
    trace = open_trace(pods)
    assert trace.jobs["duration"].to_pylist() == [5400.0, 7200.0]
    assert trace.jobs["submit_time"].null_count == 2


@pytest.mark.parametrize(
    ("files", "message"),
    [
        ({"a.csv": b"x", "b.csv": b"y"}, "one file. It holds 'a.csv', 'b.csv': unpack it"),
        ({}, "one file. It holds none"),
    ],
)
def test_which_table_is_meant(tmp_path: Path, files: dict[str, bytes], message: str) -> None:
    with pytest.raises(TraceError, match=message):
        open_trace(tarred(tmp_path / "t.tar", {".hidden": b"", **files}, "w"), format="native")


def test_a_damaged_archive(tmp_path: Path) -> None:
    path = zipped(tmp_path / "t.zip", {"t.csv": TABLE.encode() * 50})
    path.write_bytes(path.read_bytes()[:-30])
    with pytest.raises(TraceError, match=r"t\.zip: expected a whole archive"):
        open_trace(path, format="native")


def test_a_damaged_archive_packed_by_lzma(tmp_path: Path) -> None:
    file = tmp_path / "jobs.zip"
    with zipfile.ZipFile(file, "w", zipfile.ZIP_LZMA) as archive:
        archive.writestr("jobs.csv", b"job_id,num_gpu\n" + bytes(range(256)) * 20)
    data = bytearray(file.read_bytes())
    data[60:120] = b"\xff" * 60
    file.write_bytes(data)
    for reader in (None, "tiresias"):
        with pytest.raises(TraceError, match="cut or damaged"):
            open_trace(file, format=reader)


def test_a_bomb(tmp_path: Path) -> None:
    path = zipped(tmp_path / "t.zip", {"t.csv": b"0" * 2**27})
    with pytest.raises(TraceError, match="grows at most 200 times"):
        open_trace(path, format="native")


@pytest.mark.parametrize("packed", [True, False])
def test_helios_as_it_is_published(tmp_path: Path, packed: bool) -> None:  # noqa: FBT001
    logs = {
        "Earth/cluster_log.csv": LOG.format("2020-04-02").encode(),
        "Venus/cluster_log.csv": LOG.format("2020-04-01").encode(),
        "Venus/cluster_gpu_number.csv": b"date,total\n2020-04-01,8\n",
    }
    path = tmp_path / ("data.zip" if packed else "data")
    if packed:
        zipped(path, {f"data/{name}": content for name, content in logs.items()})
    for name, content in logs.items() if not packed else ():
        (path / name).parent.mkdir(parents=True, exist_ok=True)
        (path / name).write_bytes(content)
    trace = open_trace(path)
    jobs = trace.jobs.to_pydict()
    assert jobs["job_id"] == ["Venus/5", "Venus/6", "Earth/5", "Earth/6"]
    assert jobs["vc"] == ["Venus/v", "Venus/v", "Earth/v", "Earth/v"]
    assert jobs["submit_time"] == [0.0, 60.0, 86400.0, 86460.0]
    assert jobs["end_time"][2] == 86400.0 + 3605.0
    assert trace.metadata.epoch == "2020-03-31T16:00:00+00:00"  # midnight in Shanghai
    assert trace.metadata.rows_read == 4
    venus = open_trace(f"{path}:cluster=venus")
    assert venus.jobs["job_id"].to_pylist() == ["5", "6"]
    with pytest.raises(TraceError, match=r"expected Saturn/cluster_log\.csv"):
        open_trace(path, cluster="Saturn")
    with pytest.raises(SpecError, match="Known: Earth, Saturn, Uranus, Venus"):
        open_trace(path, cluster="Venice")


def test_a_bad_row_is_reported_with_its_log(tmp_path: Path) -> None:
    bad = LOG.format("2020-04-01").replace(",3600,", ",long,").encode()
    path = zipped(tmp_path / "data.zip", {"Venus/cluster_log.csv": bad})
    with pytest.raises(TraceError, match=r"data\.zip/Venus/cluster_log\.csv, line 2.*'long'"):
        open_trace(path)
