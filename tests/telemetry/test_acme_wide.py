"""Acme's wide files: the layout, and the authors' cleaning, against pandas' own words for it."""

from __future__ import annotations

import gzip
from datetime import datetime
from typing import TYPE_CHECKING

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from windtunnel.companions import SAMPLE_COLUMNS, companion_schema
from windtunnel.errors import SpecError, TraceError, WindtunnelError
from windtunnel.telemetry import blocks, open_telemetry
from windtunnel.telemetry.acme_wide import MANGLED, STEPS, in_mangled_window, rescaled

if TYPE_CHECKING:
    from pathlib import Path

SHANGHAI_0300 = datetime.fromisoformat("2023-08-01T00:00:00+08:00").timestamp()


def write(path: Path, text: str) -> Path:
    path.write_text(text)
    return path


def test_a_gpu_file_as_published(tmp_path: Path) -> None:
    path = write(
        tmp_path / "GPU_UTIL.csv",
        "Time,10.140.0.1-0,10.140.0.1-7,10.140.1.2-0\n"
        "2023-08-01 00:00:00+08:00,99.0,,0.0\n"
        "2023-08-01 00:00:15+08:00,100.0,3.5,\n",
    )
    telemetry = open_telemetry(path, epoch="2023-07-31T16:00:00+00:00")
    assert telemetry.format == "acme-wide"
    assert telemetry.metrics == ("GPU_UTIL",)
    table = telemetry.table()
    assert table.schema.equals(companion_schema(SAMPLE_COLUMNS))
    assert [tuple(row.values()) for row in table.to_pylist()] == [
        (0.0, "10.140.0.1", "0", None, "GPU_UTIL", 99.0),
        (0.0, "10.140.1.2", "0", None, "GPU_UTIL", 0.0),
        (15.0, "10.140.0.1", "0", None, "GPU_UTIL", 100.0),
        (15.0, "10.140.0.1", "7", None, "GPU_UTIL", 3.5),
    ]
    assert telemetry.rows_read == 6
    assert telemetry.samples == 4
    assert telemetry.dropped == {"no value (blank, NaN or offline)": 2}


@pytest.mark.parametrize(
    "time",
    ["2023-08-01 00:00:00", "2023-07-31T16:00:00Z", "2023-08-01 00:00:00+08:00", "1690819200"],
)
def test_every_form_of_time_is_the_same_instant(tmp_path: Path, time: str) -> None:
    path = write(tmp_path / "NODE_IB_SEND.csv", f"Time,10.0.0.1\n{time},5\n")
    (row,) = open_telemetry(path).table().to_pylist()
    assert row["time"] == SHANGHAI_0300 == 1690819200.0
    assert (row["node"], row["gpu"], row["metric"]) == ("10.0.0.1", None, "NODE_IB_SEND")


def test_a_folder_with_parts_and_a_metric_in_one_piece(tmp_path: Path) -> None:
    for month in ("07", "08"):
        write(
            tmp_path / f"GPU_TEMP-2023-{month}.csv", f"Time,a-0\n2023-{month}-01 00:00:00,{month}\n"
        )
    write(tmp_path / "XID_ERRORS.csv", "Time,a-0\n2023-07-01 00:00:00,31\n")
    write(tmp_path / "XID_ERRORS-2023-07.csv", "Time,a-0\n2023-07-01 00:00:00,99\n")
    (tmp_path / "README.txt").write_text("no table")
    telemetry = open_telemetry(tmp_path)
    assert telemetry.metrics == ("GPU_TEMP", "XID_ERRORS")
    assert telemetry.table()["value"].to_pylist() == [7.0, 8.0, 31.0]
    assert any("1 parts were not read" in note for note in telemetry.notes)
    only = open_telemetry(tmp_path, metric="GPU_TEMP")
    assert only.table().num_rows == 2
    with pytest.raises(SpecError, match="Did you mean 'GPU_TEMP'"):
        open_telemetry(tmp_path, metric="GPU_TEMPS")


def test_a_raw_export_is_cleaned_as_the_notebook_cleans_it(tmp_path: Path) -> None:
    first, last = MANGLED
    path = write(
        tmp_path / "NODE_MEMORY_UTILIZATION.csv",
        "Time,10.0.0.1,10.0.0.2,gone\n"
        f"{last + 15:.0f},0.25,0.1234567,\n"
        f"{first - 15:.0f},0.5,0.6,\n"
        f"{first:.0f},1,1,\n"
        f"{last:.0f},1,1,1\n"
        f"{first - 15:.0f},9,9,\n",
    )
    telemetry = open_telemetry(path, clean="raw")
    table = telemetry.table()
    assert table["time"].to_pylist() == [first - 15] * 2 + [last + 15] * 2
    assert table["value"].to_pylist() == [50.0, 60.0, 25.0, 12.346]
    assert telemetry.rows_read == 15 == telemetry.samples + sum(telemetry.dropped.values())
    assert telemetry.dropped["a row whose time stood before"] == 3
    assert any("1 of 3 columns" in note for note in telemetry.notes)
    published = open_telemetry(path)
    assert published.table()["value"].to_pylist()[:2] == [0.25, 0.1234567]
    assert published.samples == 11


def test_each_step_can_be_taken_alone(tmp_path: Path) -> None:
    path = write(
        tmp_path / "NODE_IB_SEND.csv",
        "Time,10.0.0.1-mlx5_0\n30,1.23456\n15,2\n15,3\n",
    )
    assert open_telemetry(path).table()["node"].to_pylist() == ["10.0.0.1-mlx5_0"] * 3
    raw = open_telemetry(path, clean="raw").table()
    assert raw["node"].to_pylist() == ["10.0.0.1"] * 2
    assert raw["value"].to_pylist() == [2.0, 1.23456]
    alone = open_telemetry(path, clean=("sort",)).table()
    assert alone["value"].to_pylist() == [2.0, 3.0, 1.23456]
    unique = open_telemetry(path, clean=("unique-time",)).table()
    assert unique["value"].to_pylist() == [1.23456, 2.0]
    with pytest.raises(SpecError, match="sort"):
        open_telemetry(path, clean=("sorted",))
    with pytest.raises(SpecError, match="unknown name 'True'"):
        open_telemetry(path, clean=True)
    with pytest.raises(SpecError, match="published"):
        open_telemetry(path, clean="yes")


@pytest.mark.parametrize(
    ("metric", "raw", "clean"),
    [
        ("NODE_CPU_UTILIZATION", 0.1234567, 12.346),
        ("NODE_IB_RECEIVE", 12.34567, 12.34567),
        ("SM_ACTIVE", 0.5, 50.0),
        ("DCGM_FI_PROF_PIPE_TENSOR_ACTIVE", 0.33333333, 33.333),
        ("SM_OCCUPANCY", 0.0000049, 0.0),
        ("POWER_USAGE", 62.149, 62.1),
        ("GPU_UTIL", 99.4567, 99.4567),
        ("FB_USED", 71234.0, 71234.0),
        ("MEM_CLOCK", 1215.0, 1215.0),
    ],
)
def test_percent_and_rounding_by_metric(metric: str, raw: float, clean: float) -> None:
    assert rescaled(metric, np.array([[raw]]), frozenset(STEPS))[0, 0] == clean
    assert rescaled(metric, np.array([[raw]]), frozenset())[0, 0] == raw


def test_the_window_holds_both_of_its_ends_and_only_memory() -> None:
    times = np.array(
        [
            datetime.fromisoformat(f"2023-07-19T{clock}+08:00").timestamp()
            for clock in ("11:34:59", "11:35:00", "14:01:00", "14:01:01")
        ]
    )
    inside = in_mangled_window("NODE_MEMORY_UTILIZATION", times)
    assert inside.tolist() == [False, True, True, False]
    assert not in_mangled_window("NODE_CPU_UTILIZATION", times).any()


def test_memory_in_percent_of_80_gib(tmp_path: Path) -> None:
    path = write(tmp_path / "FB_USED.csv", "Time,a-0\n0,40960\n15,81920\n")
    telemetry = open_telemetry(path, gpu_mem_mib=80 * 1024)
    assert telemetry.metrics == ("FB_USED_PERCENT",)
    table = telemetry.table()
    assert table["value"].to_pylist() == [50.0, 100.0]
    assert set(table["metric"].to_pylist()) == {"FB_USED_PERCENT"}
    with pytest.raises(SpecError, match="above 0"):
        open_telemetry(path, gpu_mem_mib=0)


@settings(max_examples=40, deadline=None)
@given(
    st.lists(
        st.tuples(
            st.integers(0, 12), st.lists(st.none() | st.floats(0, 1), min_size=3, max_size=3)
        ),
        min_size=1,
        max_size=20,
    ),
    st.integers(1, 200),
    st.integers(1, 3),
)
def test_raw_rows_in_any_order_and_any_blocks_give_what_a_plain_loop_gives(
    tmp_path_factory: pytest.TempPathFactory,
    rows: list[tuple[int, list[float | None]]],
    size: int,
    parts: int,
) -> None:
    folder = tmp_path_factory.mktemp("wide")
    header = "Time,n1-0,n1-1,n2-0\n"
    lines = [f"{t},{','.join('' if v is None else repr(v) for v in vs)}\n" for t, vs in rows]
    for part in range(parts):
        chunk = lines[part * len(lines) // parts : (part + 1) * len(lines) // parts]
        write(folder / f"SM_ACTIVE-2023-{part}.csv", header + "".join(chunk))
    seen: dict[int, list[float | None]] = {}
    for t, values in rows:
        seen.setdefault(t, values)
    expected = [
        (float(t), node, gpu, round(np.float64(v) * 100, 3))
        for t in sorted(seen)
        for (node, gpu), v in zip((("n1", "0"), ("n1", "1"), ("n2", "0")), seen[t], strict=True)
        if v is not None
    ]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(blocks, "BLOCK_BYTES", size)
        telemetry = open_telemetry(folder, format="acme-wide", clean="raw")
        found = telemetry.table().to_pylist()
    assert [(r["time"], r["node"], r["gpu"], r["value"]) for r in found] == expected
    assert telemetry.rows_read == 3 * len(rows)
    assert telemetry.rows_read == telemetry.samples + sum(telemetry.dropped.values())


def test_gzip_and_progress_in_bytes(tmp_path: Path) -> None:
    path = tmp_path / "GPU_UTIL.csv.gz"
    path.write_bytes(gzip.compress(b"Time,a-0\n0,1\n15,2\n"))
    reports: list[tuple[int, int]] = []
    telemetry = open_telemetry(path, progress=lambda done, total: reports.append((done, total)))
    assert telemetry.table().num_rows == 2
    assert reports[-1] == (path.stat().st_size, path.stat().st_size)
    path.write_bytes(gzip.compress(b"Time,a-0\n15,1\n0,2\n"))
    shuffled = open_telemetry(path, clean="raw")
    with pytest.raises(TraceError, match="gunzip it first"):
        shuffled.table()


GOOD = "Time,a-0,a-1\n2023-08-01 00:00:00,1,2\n"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (GOOD + "2023-08-01 00:00:15,1,x\n", "line 3, column 'a-1': found 'x'; expected a number"),
        (GOOD + "\n2023-08-01 00:00:15,1\n", "line 4: expected 3 fields, found 2.*cut"),
        (GOOD + "2023-08-01 00:00:15,1,2,3\n", "line 3: expected 3 fields, found 4"),
        (GOOD + "soon,1,2\n", "line 3, column 'Time': found 'soon'; expected times of one form"),
        (GOOD + ",1,2\n", "line 3, column 'Time'.*expected a time"),
        (GOOD + "1690819200000,1,2\n", "line 3, column 'Time'"),
        ("Time,a-0\n1690819200000,1\n", "line 2.*not milliseconds"),
        ("time,a-0\n0,1\n", "a column 'Time'"),
        ("Time\n0\n", "a column for each device"),
        ("Time,a-0,a-0\n0,1,2\n", "each column name once"),
        ("", "It is empty"),
        ("Time,a-0\n0,\0\n", "line 2.*NUL"),
        ('Time,a-0\n0,1\n15,"2\n30,3"\n45,4\n', "line 3.*(quote|number)"),
    ],
)
@pytest.mark.parametrize("clean", ["published", "raw"])
def test_a_bad_file_is_named_with_line_column_and_value(
    tmp_path: Path, text: str, message: str, clean: str
) -> None:
    path = write(tmp_path / "GPU_UTIL.csv", text)
    with pytest.raises(TraceError, match=message):
        open_telemetry(path, format="acme-wide", clean=clean).table()


@settings(max_examples=60, deadline=None)
@given(st.binary(max_size=60) | st.text('0123456789,."\r\n', max_size=40).map(str.encode))
def test_any_bytes_are_read_or_refused_in_one_message(
    tmp_path_factory: pytest.TempPathFactory, noise: bytes
) -> None:
    path = tmp_path_factory.mktemp("noise") / "GPU_UTIL.csv"
    path.write_bytes(b"Time,a-0\n0,1\n" + noise)
    for clean in ("published", "raw"):
        telemetry = open_telemetry(path, format="acme-wide", clean=clean)
        try:
            telemetry.table()
        except WindtunnelError:
            continue
        assert telemetry.rows_read == telemetry.samples + sum(telemetry.dropped.values())


def test_no_file_and_an_empty_folder(tmp_path: Path) -> None:
    with pytest.raises(TraceError, match="a file that exists"):
        open_telemetry(tmp_path / "none.csv")
    with pytest.raises(TraceError, match="It has none"):
        open_telemetry(tmp_path, format="acme-wide")
    with pytest.raises(SpecError, match="name it with format="):
        open_telemetry(tmp_path)
    with pytest.raises(SpecError, match="options of acme-wide"):
        open_telemetry(write(tmp_path / "GPU_UTIL.csv", GOOD), cleaned="raw")


def test_an_infinite_value_is_no_measurement(tmp_path: Path) -> None:
    path = write(tmp_path / "GPU_UTIL.csv", "Time,a-0,a-1,a-2\n0,inf,-inf,1\n")
    telemetry = open_telemetry(path)
    assert telemetry.table()["value"].to_pylist() == [1.0]
    assert telemetry.dropped == {"an infinite value": 2}
