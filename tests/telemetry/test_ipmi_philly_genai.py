"""Power of servers, Philly's minutes and GenTD26's containers, in the layouts of their files."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from windtunnel.characterize.telemetry_counts import percentiles
from windtunnel.errors import SpecError, TraceError
from windtunnel.telemetry import open_telemetry
from windtunnel.telemetry.philly_util import ODD_ROW

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def ipmi(tmp_path: Path) -> Path:
    head = "Time,CPU_Power,MEM_Power,Sys_Total_Power\n"
    (tmp_path / "GPU_AB_Power.csv").write_text(
        head + "2023-08-01 00:00:00,200,90,2000\n2023-08-01 00:00:00,210,,2100\n"
        "2023-08-01 00:05:00,205,95,\n"
    )
    (tmp_path / "GPU_C_Power.csv").write_text(
        "Time,IP,Sys_Total_Power\n2023-08-01 00:00:00,10.0.0.9,3000\n"
    )
    (tmp_path / "CPU_D_Power.csv").write_text("Time,Sys_Total_Power\n2023-08-01 00:00:00,546\n")
    return tmp_path


def test_power_of_gpu_nodes_is_that_of_types_a_b_and_c(ipmi: Path) -> None:
    telemetry = open_telemetry(ipmi)
    assert telemetry.format == "ipmi"
    rows = telemetry.table().to_pylist()
    assert [(r["metric"], r["node"], r["value"]) for r in rows] == [
        ("GPU_NODE_POWER", None, 2000.0),
        ("GPU_NODE_POWER", None, 2100.0),
        ("GPU_NODE_POWER", "10.0.0.9", 3000.0),
        ("CPU_NODE_POWER", None, 546.0),
    ]
    assert telemetry.rows_read == 5
    assert sum(telemetry.dropped.values()) == 1
    types = open_telemetry(ipmi, by_type=True).table()["metric"].to_pylist()
    assert types == ["GPU_A", "GPU_B", "GPU_C", "CPU_D"]
    only = open_telemetry(ipmi, metric="CPU_NODE_POWER")
    assert only.table()["value"].to_pylist() == [546.0]
    assert only.rows_read == 5 == only.samples + sum(only.dropped.values())


def test_ipmi_files_that_are_none(ipmi: Path) -> None:
    with pytest.raises(SpecError, match="GPU_NODE_POWER"):
        open_telemetry(ipmi, metric="GPU_A")
    (ipmi / "GPU_C_Power.csv").write_text("Time,Power\n2023-08-01 00:00:00,1\n")
    with pytest.raises(TraceError, match="a column 'Sys_Total_Power'"):
        open_telemetry(ipmi).table()


GPU_HEAD = "time,machineId,gpu0_util,gpu1_util\n"


def test_minutes_of_philly_gpus(tmp_path: Path) -> None:
    """The zone's name tells the repeated hour of 2017-11-05 apart."""
    path = tmp_path / "cluster_gpu_util"
    path.write_text(
        GPU_HEAD + "2017-11-05 01:30:00 PDT,m29,60.8,NA,\n2017-11-05 01:30:00 PST,m29,100.0,0.0,\n"
    )
    telemetry = open_telemetry(path, epoch="2017-11-05T08:30:00+00:00")
    assert telemetry.format == "philly-gpu-util"
    assert [tuple(row.values()) for row in telemetry.table().to_pylist()] == [
        (0.0, "m29", "gpu0", None, "gpu_util", 60.8),
        (3600.0, "m29", "gpu0", None, "gpu_util", 100.0),
        (3600.0, "m29", "gpu1", None, "gpu_util", 0.0),
    ]
    assert telemetry.rows_read == 4


def test_rows_with_and_without_the_last_comma_and_odd_ones(tmp_path: Path) -> None:
    path = tmp_path / "cluster_gpu_util"
    path.write_text(
        GPU_HEAD + "2017-10-03 00:08:00 PDT,m1,1,2,\n2017-10-03 00:08:00 PDT,m2,3,4\n"
        "2017-10-03 00:08:00 PDT,m3,5,6,7,\n2017-10-03 00:08:00 PDT,m4\n"
        "2017-10-03 00:09:00 PDT,m5,8,9,\n"
    )
    telemetry = open_telemetry(path)
    assert telemetry.table()["value"].to_pylist() == [1.0, 2.0, 3.0, 4.0, 8.0, 9.0]
    assert telemetry.dropped == {ODD_ROW: 4}
    assert telemetry.rows_read == 10
    with pytest.raises(TraceError, match="line 4: expected 5 fields, found 6"):
        open_telemetry(path, bad_rows="raise").table()
    path.write_text(GPU_HEAD + "2017-10-03 00:08:00 PDT,m1,1,2\n2017-10-03 00:08:00 PDT,m2,3,4,\n")
    assert open_telemetry(path).table()["value"].to_pylist() == [1.0, 2.0, 3.0, 4.0]


def test_minutes_of_philly_machines(tmp_path: Path) -> None:
    cpu = tmp_path / "cluster_cpu_util"
    cpu.write_text("time,machine_id,cpu_util\n2017-11-27 00:04:00 PST,m29,31.845\n"
                   "2017-11-27 00:05:00 PST,m29,NA\n")  # fmt: skip
    telemetry = open_telemetry(cpu)
    assert telemetry.format == "philly-cpu-util"
    (row,) = telemetry.table().to_pylist()
    assert (row["node"], row["gpu"], row["metric"], row["value"]) == (
        "m29",
        None,
        "cpu_util",
        31.845,
    )
    memory = tmp_path / "cluster_mem_util"
    memory.write_text(
        "time,machine_id,mem_total,mem_free\n2017-10-03 00:06:00 PDT,m1,1000.0,250.0\n"
        "2017-10-03 00:06:00 PDT,m2,NA,NA\n2017-10-03 00:06:00 PDT,m3,0,0\n"
    )
    telemetry = open_telemetry(memory)
    assert telemetry.table()["value"].to_pylist() == [75.0]
    assert telemetry.rows_read == 3 == telemetry.samples + sum(telemetry.dropped.values())
    assert any("mem_total 0" in note for note in telemetry.notes)


def test_philly_rows_that_are_none(tmp_path: Path) -> None:
    path = tmp_path / "cluster_gpu_util"
    path.write_text(GPU_HEAD + "2017-10-03 00:08:00 PDT,m1,1,2,\n2017-10-03 00:08:00 CET,m1,1,2,\n")
    with pytest.raises(TraceError, match=r"line 3, column 'time'.*CET"):
        open_telemetry(path).table()
    path.write_text(
        GPU_HEAD + "2017-10-03 00:08:00 PDT,m1,1,2,\n2017-10-03 00:08:00 PDT,m1,1,??,\n"
    )
    with pytest.raises(TraceError, match=r"line 3, column 'gpu1_util': found '\?\?'"):
        open_telemetry(path).table()
    with pytest.raises(TraceError, match="a column 'machine_id'"):
        open_telemetry(path, format="philly-cpu-util").table()


@pytest.mark.data
def test_the_published_telemetry_of_containers(data_dir: Path) -> None:
    """Median 0, P90 24.7 and P99 78.6 % of GPU duty; medians of latencies in ms."""
    folder = data_dir / "alibaba_v2026_genai"
    telemetry = open_telemetry(folder / "pod_gpu_duty_cycle_anon.parquet")
    assert telemetry.format == "genai"
    found = percentiles(telemetry.relation(), at=[50, 90, 99]).to_pylist()
    assert [round(row["value"], 1) for row in found] == [0.0, 24.7, 78.6]
    assert {row["n"] for row in found} == {157_417}
    for name, median in (
        ("basemodel_update_latency", 22_718),
        ("lora_update_latency", 4_378),
        ("pipeline_update_latency", 8_454),
        ("pipeline_inference_data", 15_132),
    ):
        table = open_telemetry(folder / f"{name}_anon.parquet").table()
        assert round(float(np.median(table["value"].to_numpy()))) == median
        assert set(table["metric"].to_pylist()) == {name}
    qps = open_telemetry(folder / "qps.parquet")
    assert qps.metrics == ("qps[API Requests]", "qps[Generative Requests]")
    api = open_telemetry(folder / "qps.parquet", metric="qps[API Requests]")
    assert api.table().num_rows + sum(api.dropped.values()) == 24_627
    queue = open_telemetry(folder / "queue_size_raw_anon.parquet").table()
    assert queue["node"].null_count == queue.num_rows == 1_434
    with pytest.raises(TraceError, match="a column 'timestamp_anon'"):
        open_telemetry(folder / "lora_request_trace.parquet").table()


def test_a_fraction_documented_as_percent_is_noted(tmp_path: Path) -> None:
    path = tmp_path / "pod_memory_util_anon.csv"
    path.write_text("timestamp_anon,container_ip,value\n1662858720.0,abc,0.25\n1662858780.0,abc,\n")
    telemetry = open_telemetry(path)
    assert telemetry.format == "genai"
    (row,) = telemetry.table().to_pylist()
    assert (row["metric"], row["node"], row["value"]) == ("pod_memory_util", "abc", 0.25)
    assert any("a fraction" in note for note in telemetry.notes)


def test_a_cut_parquet_file_and_one_with_words(tmp_path: Path) -> None:
    path = tmp_path / "x.parquet"
    table = pa.table({"timestamp_anon": [1.0], "container_ip": ["a"], "value": ["much"]})
    pq.write_table(table, path)
    with pytest.raises(TraceError, match=r"column 'value'.*a column of numbers"):
        open_telemetry(path).table()
    path.write_bytes(path.read_bytes()[:-20])
    with pytest.raises(TraceError, match="a whole Parquet file"):
        open_telemetry(path).table()
