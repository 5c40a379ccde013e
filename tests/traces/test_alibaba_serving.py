"""Alibaba's serving traces: DLRM instances (v2025) and diffusion requests (v2026)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pcsv
import pyarrow.parquet as pq
import pytest

from windtunnel.errors import SchemaError, SpecError, TraceError
from windtunnel.traces import open_trace
from windtunnel.traces.dlrm import read_dlrm
from windtunnel.traces.genai import read_genai

if TYPE_CHECKING:
    from pathlib import Path

DLRM = (
    "instance_sn,role,app_name,cpu_request,cpu_limit,gpu_request,gpu_limit,rdma_request,"
    "rdma_limit,memory_request,memory_limit,disk_request,disk_limit,max_instance_per_node,"
    "creation_time,scheduled_time,deletion_time\n"
    "i0,HN,app_0,12,12,1,1,25,25,120.0,120.0,680.0,800.0,8,,,\n"
    "i1,CN,app_1,64,64,0,0,1,1,320.0,320.0,255.0,300.0,-1,1435629.0,1435630.0,1435760.0\n"
    "i2,CN,app_1,64,64,0,0,1,1,320.0,320.0,255.0,300.0,-1,475.0,480.0,\n"
)
GENAI = (
    "gmt_create,predict_type,predict_status,exec_time_seconds,groupId,prompt_length,"
    "negative_prompt_length,num_images_per_prompt,num_inference_steps,"
    "checkpoint_model_version_id,num_lora\n"
    "2024-11-15 18:16:14,TXT_2_IMG,SUCCEED,43.0,G1,93.0,,1.0,40.0,M1,0\n"
    "2024-11-15 16:57:50,TXT_2_IMG,FAILED,3.0,G0,63.0,26.0,1.0,30.0,M0,1\n"
    "2024-11-15 18:17:06,INPAINTING,PROCESSING,0.0,G1,,,,,,0\n"
)


def file_of(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "t.csv"
    path.write_text(text)
    return path


def counts(column: Any) -> dict[str, int]:
    return {row["values"]: row["counts"] for row in pc.value_counts(column).to_pylist()}


def test_instances_become_jobs(tmp_path: Path) -> None:
    trace = open_trace(file_of(tmp_path, DLRM))
    jobs = trace.jobs.to_pydict()
    assert jobs["job_id"] == ["i2", "i1", "i0"]
    assert jobs["submit_time"] == [475.0, 1435629.0, None]
    assert jobs["duration"] == [None, 130.0, None]
    assert jobs["status"] == ["running", None, "running"]
    assert jobs["num_gpus"] == [0.0, 0.0, 1.0]
    assert jobs["mem_gib"] == [320.0, 320.0, 120.0]
    assert jobs["workload"] == ["CN", "CN", "HN"]
    assert jobs["max_instance_per_node"] == [-1.0, -1.0, 8.0]
    notes = " ".join(trace.metadata.notes)
    assert "1 instances were there before" in notes
    assert "2 have no duration" in notes
    assert trace.metadata.rows_read == 3


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        (("1435630.0", "soon"), TraceError, "line 3, column 'scheduled_time': found 'soon'"),
        (("1435630.0", "1.0"), SchemaError, "start_time >= submit_time"),
        (("app_name", "app"), TraceError, "a column 'app_name'"),
    ],
)
def test_bad_instances(
    tmp_path: Path, change: tuple[str, str], error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        read_dlrm(file_of(tmp_path, DLRM.replace(*change)))


@pytest.mark.data
def test_published_instances(data_dir: Path) -> None:
    trace = open_trace("dlrm")
    jobs = trace.jobs
    assert jobs.num_rows == trace.metadata.rows_read == 23_871
    assert counts(jobs["workload"]) == {"HN": 7_386, "CN": 16_485}
    assert pc.count_distinct(jobs["template"]).as_py() == 156
    assert pc.sum(jobs["num_gpus"]).as_py() == 7_386
    hn = jobs.filter(pc.equal(jobs["workload"], "HN"))
    assert pc.min_max(hn["num_gpus"]).as_py() == {"min": 1.0, "max": 1.0}
    narrow = pc.and_(pc.equal(hn["num_cpus"], 8.0), pc.equal(hn["rdma_request"], 25.0))
    assert pc.sum(narrow).as_py() == 5_680
    cn = jobs.filter(pc.equal(jobs["workload"], "CN"))
    assert np.median(cn["num_cpus"].to_numpy()) == 64
    assert np.median(cn["mem_gib"].to_numpy()) == 320
    assert [jobs[n].null_count for n in ("submit_time", "start_time", "end_time")] == [
        7_280,
        7_280,
        8_878,
    ]
    wait = pc.subtract(jobs["start_time"], jobs["submit_time"]).drop_null().to_numpy()
    assert len(wait) == 16_591
    assert np.quantile(wait, [0.5, 0.9]).tolist() == [0.0, 59.0]
    assert np.quantile(wait, 0.99) == pytest.approx(1_651, abs=1)
    assert counts(jobs["status"])["running"] == 8_878


def test_requests_become_jobs(tmp_path: Path) -> None:
    trace = open_trace(file_of(tmp_path, GENAI))
    jobs = trace.jobs.to_pydict()
    assert jobs["job_id"] == ["genai-2", "genai-1", "genai-3"]
    assert jobs["submit_time"] == [0.0, 4704.0, 4756.0]
    assert jobs["duration"] == [3.0, 43.0, 0.0]
    assert jobs["status"] == ["failed", "completed", "running"]
    assert jobs["num_gpus"] == [1.0] * 3
    assert jobs["user"] == ["G0", "G1", "G1"]
    assert jobs["template"] == ["M0", "M1", None]
    assert jobs["num_lora"] == [1.0, 0.0, 0.0]
    assert (trace.metadata.epoch, trace.metadata.zone) == (None, None)
    assert any("taken to need 1 GPUs" in note for note in trace.metadata.notes)
    assert read_genai(file_of(tmp_path, GENAI), gpus=0.5).jobs["num_gpus"].to_pylist() == [0.5] * 3


def test_parquet_holds_the_same_requests(tmp_path: Path) -> None:
    plain = file_of(tmp_path, GENAI)
    path = tmp_path / "t.parquet"
    kinds = {"gmt_create": pa.string()}
    options = pcsv.ConvertOptions(column_types=kinds, strings_can_be_null=True)
    table = pcsv.read_csv(plain, convert_options=options)
    pq.write_table(table, path)
    assert open_trace(path, format="genai").jobs.to_pydict() == read_genai(plain).jobs.to_pydict()
    assert open_trace(path).jobs.equals(open_trace(path, format="genai").jobs)  # by its columns
    timed = table.set_column(0, "gmt_create", table["gmt_create"].cast(pa.timestamp("s")))
    assert table.column_names[0] == "gmt_create"
    pq.write_table(timed, path)
    assert open_trace(path).jobs.to_pydict() == read_genai(plain).jobs.to_pydict()
    path.write_bytes(path.read_bytes()[:-20])
    with pytest.raises(TraceError, match="a whole Parquet file"):
        open_trace(path, format="genai")
    pq.write_table(table.slice(0, 0), path)
    with pytest.raises(TraceError, match="at least one row"):
        open_trace(path, format="genai")
    pq.write_table(pa.table({"gmt_create": [{"a": 1}]}), path)
    with pytest.raises(TraceError, match="a whole Parquet file"):
        open_trace(path, format="genai")


def test_bad_requests(tmp_path: Path) -> None:
    with pytest.raises(TraceError, match="line 2, column 'gmt_create': found 'today'"):
        read_genai(file_of(tmp_path, GENAI.replace("2024-11-15 18:16:14", "today")))
    with pytest.raises(SchemaError, match="'duration': expected a finite number >= 0"):
        read_genai(file_of(tmp_path, GENAI.replace(",43.0,", ",-43.0,")))
    for gpus in (0, -1, float("nan"), float("inf")):
        with pytest.raises(SpecError, match="a number above 0"):
            read_genai(file_of(tmp_path, GENAI), gpus=gpus)


@pytest.mark.data
def test_published_requests(data_dir: Path) -> None:
    path = data_dir / "alibaba_v2026_genai" / "lora_request_trace.parquet"
    trace = open_trace(path, format="genai")
    jobs = trace.jobs
    assert jobs.num_rows == trace.metadata.rows_read == 26_823
    run = jobs["duration"].to_numpy()
    assert np.quantile(run, [0.5, 0.9, 0.99, 1]).tolist() == [23, 53, 106, 567]
    assert counts(jobs["workload"]) == {
        "TXT_2_IMG": 24_438,
        "IMG_2_IMG": 2_199,
        "INPAINTING": 186,
    }
    assert counts(jobs["status"]) == {
        "completed": 26_392,
        "failed": 398,
        "pending": 30,
        "running": 3,
    }
    loras = counts(jobs["num_lora"])
    assert [loras[n] for n in (0, 1, 2)] == [22_329, 4_195, 255]
    assert pc.count_distinct(jobs["template"]).as_py() == 86
    assert pc.count_distinct(jobs["user"]).as_py() == 4_247
    span = pc.max(jobs["submit_time"]).as_py()
    assert span == 23 * 86_400 + 36 * 60 + 7
