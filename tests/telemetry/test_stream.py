"""The stream itself: formats found, time moved, bytes counted, errors that stay what they are."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from windtunnel.companions import SAMPLE_COLUMNS, companion_schema
from windtunnel.errors import SpecError, TraceError
from windtunnel.telemetry import TELEMETRY_FORMATS, open_telemetry, sample_batches

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def wide(tmp_path: Path) -> Path:
    path = tmp_path / "GPU_UTIL.csv"
    rows = "".join(f"{1_690_819_200 + 15 * i},{i},{i / 2}\n" for i in range(100))
    path.write_text("Time,10.0.0.1-0,10.0.0.1-1\n" + rows)
    return path


def test_every_way_to_read_gives_the_same_samples(wide: Path, tmp_path: Path) -> None:
    telemetry = open_telemetry(wide, epoch=1_690_819_200)
    table = telemetry.table()
    assert table.num_rows == telemetry.samples == 200
    assert table["time"].to_pylist()[-1] == 99 * 15.0
    assert pa.Table.from_batches(telemetry.batches()).equals(table)
    assert telemetry.reader().read_all().equals(table)
    assert telemetry.relation().order_by(["time", "gpu"]).to_pyarrow().equals(table)
    assert telemetry.write_parquet(str(tmp_path / "s.parquet")) == 200
    assert pq.read_table(tmp_path / "s.parquet").equals(table)
    assert telemetry.epoch == "2023-07-31T16:00:00+00:00"
    assert "acme-wide" in repr(telemetry)


def test_batches_are_bounded_however_many_rows_there_are(
    wide: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sample_batches, "BATCH_ROWS", 10)
    sizes = [found.num_rows for found in open_telemetry(wide).batches()]
    assert sizes == [10] * 20


def test_counts_are_of_the_latest_reading(wide: Path) -> None:
    telemetry = open_telemetry(wide)
    assert (telemetry.rows_read, telemetry.samples, telemetry.dropped) == (0, 0, {})
    for _ in range(2):
        stream = telemetry.batches()
        assert next(stream).schema.equals(companion_schema(SAMPLE_COLUMNS))
        assert telemetry.rows_read == 200
        stream.close()


def test_options_that_are_none(wide: Path) -> None:
    with pytest.raises(SpecError, match="Did you mean 'acme-wide'"):
        open_telemetry(wide, format="acme")
    with pytest.raises(SpecError, match="epoch"):
        open_telemetry(wide, epoch="soon")
    with pytest.raises(SpecError, match="epoch"):
        open_telemetry(wide, epoch=1_690_819_200_000)
    with pytest.raises(SpecError, match="options of acme-wide"):
        open_telemetry(wide, time=5)
    wide.write_text("Time,a-0\n2023-08-01 00:00:00,1\n")
    elsewhere = open_telemetry(wide, zone="China")
    with pytest.raises(SpecError, match="unknown time zone"):
        elsewhere.table()
    assert {"acme-wide", "ipmi", "dcgm", "genai", "philly-gpu-util"} <= set(TELEMETRY_FORMATS)


@pytest.mark.parametrize(
    ("name", "text", "format_"),
    [
        ("a.csv", "Time," + ",".join(f"10.0.{i}.1-0" for i in range(900)) + "\n", "acme-wide"),
        ("cluster_cpu_util", "time,machine_id,cpu_util\n", "philly-cpu-util"),
        ("cluster_mem_util", "time,machine_id,mem_total,mem_free\n", "philly-mem-util"),
        ("x.json", '\n{"status":"success"}', "prometheus-json"),
        ("metrics", "# TYPE x gauge\nx 1\n", "dcgm"),
        ("qps.csv", "timestamp_anon,container_ip,request_type,value\n", "genai"),
        ("CPU_D_Power.csv", "Time,Sys_Total_Power\n", "ipmi"),
    ],
)
def test_a_format_is_found_by_the_first_bytes(
    tmp_path: Path, name: str, text: str, format_: str
) -> None:
    (tmp_path / name).write_text(text)
    assert open_telemetry(tmp_path / name).format == format_
    if format_ in {"acme-wide", "ipmi"}:
        assert open_telemetry(tmp_path).format == format_


def test_an_error_in_the_middle_of_a_query_is_ours(wide: Path) -> None:
    wide.write_text(wide.read_text() + "late,1,2\n")
    telemetry = open_telemetry(wide)
    with pytest.raises(TraceError, match="line 102, column 'Time': found 'late'"):
        telemetry.relation().count().to_pyarrow()
    assert telemetry.samples == 0
