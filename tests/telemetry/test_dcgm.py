"""Scrapes of the DCGM exporter and answers of Prometheus, against hand-worked readings."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from windtunnel.errors import SpecError, TraceError, WindtunnelError
from windtunnel.telemetry import open_telemetry
from windtunnel.telemetry.exposition import labels_of, place_of, reading_of, without_blanks

if TYPE_CHECKING:
    from pathlib import Path

UTIL, ENERGY = "DCGM_FI_DEV_GPU_UTIL", "DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION"


@pytest.mark.data
def test_the_sample_scrape(data_dir: Path) -> None:
    telemetry = open_telemetry(data_dir / "formats" / "dcgm_metrics.prom", time=1_759_752_300)
    assert telemetry.format == "dcgm"
    rows = telemetry.table().to_pylist()
    assert telemetry.rows_read == 14
    assert telemetry.dropped == {"no value (blank, NaN or offline)": 2}  # 2^47 and NaN
    assert {row["time"] for row in rows} == {1_759_752_300.0}
    assert {row["node"] for row in rows} == {"gpu001"}
    of = {(row["metric"], row["gpu"]): row for row in rows}
    assert of[UTIL, "0"]["job_id"] == "team-nlp/pretrain-7b-worker-0"
    assert of[UTIL, "1"]["job_id"] is None
    assert of[UTIL, "2"]["job_id"] == "1001"
    assert of["DCGM_FI_PROF_GR_ENGINE_ACTIVE", "3/1"]["job_id"] is None
    assert of["DCGM_FI_PROF_GR_ENGINE_ACTIVE", "3/2"]["job_id"] == "team-vision/serve-small-7c9"
    assert of["DCGM_FI_DEV_POWER_USAGE", "0"]["value"] == 371.526
    assert ("DCGM_FI_DEV_POWER_USAGE", "2") not in of
    assert of[ENERGY, "0"]["value"] == 4_335_301_032.0
    assert len(telemetry.metrics) == 8


@pytest.mark.data
def test_the_sample_answer_of_a_range_query(data_dir: Path) -> None:
    path = data_dir / "formats" / "prometheus_query_range.json"
    telemetry = open_telemetry(path, epoch=1_759_752_300)
    assert telemetry.format == "prometheus-json"
    rows = telemetry.table().to_pylist()
    assert [(r["time"], r["value"]) for r in rows if r["gpu"] == "0"] == [
        (0.0, 0.0), (60.0, 97.0), (120.0, 98.0), (300.0, 96.0),
    ]  # fmt: skip
    assert sum(r["value"] for r in rows if r["gpu"] == "1") == 0.0
    assert (telemetry.rows_read, telemetry.samples) == (11, 10)


def test_a_folder_of_prometheus_answers_is_read_by_name(tmp_path: Path) -> None:
    series = '{"metric":{"__name__":"DCGM_FI_DEV_GPU_UTIL","gpu":"0","Hostname":"n"},"values":%s}'
    for name, values in (("b.json", '[[120,"7"]]'), ("a.json", '[[0,"5"],[60,"6"]]')):
        whole = '{"status":"success","data":{"resultType":"matrix","result":[%s]}}'
        (tmp_path / name).write_text(whole % (series % values))
    telemetry = open_telemetry(tmp_path, metric="DCGM_FI_DEV_GPU_UTIL")
    assert telemetry.table()["value"].to_pylist() == [5.0, 6.0, 7.0]
    (tmp_path / "c.json").write_text('{"status":"error","errorType":"timeout","error":"late"}')
    with pytest.raises(TraceError, match=r"c\.json.*timeout"):
        open_telemetry(tmp_path).table()


def scrape(tmp_path: Path, text: str, **options: Any) -> Any:
    path = tmp_path / "scrape.prom"
    path.write_text(text)
    return open_telemetry(path, format="dcgm", **options)


def test_a_scrape_without_times_has_none_until_it_is_given(tmp_path: Path) -> None:
    text = f'{UTIL}{{gpu="0",Hostname="n"}} 5\n'
    telemetry = scrape(tmp_path, text)
    assert telemetry.table()["time"].to_pylist() == [None]
    assert any("time=" in note for note in telemetry.notes)
    timed = scrape(tmp_path, text, time="2025-10-06T12:05:00Z").table()
    assert timed["time"].to_pylist() == [1_759_752_300.0]


def test_scrapes_behind_one_another(tmp_path: Path) -> None:
    one = f'# TYPE {UTIL} gauge\n{UTIL}{{gpu="0"}} 5\n{UTIL}{{gpu="1"}} 6\n'
    found = scrape(tmp_path, one * 3, time=100, interval=15).table()
    assert found["time"].to_pylist() == [100.0, 100.0, 115.0, 115.0, 130.0, 130.0]
    with pytest.raises(TraceError, match=r"line 5.*interval="):
        scrape(tmp_path, one * 3, time=100).table()
    with pytest.raises(SpecError, match="above 0"):
        scrape(tmp_path, one, interval=-1)
    timed = f'{UTIL}{{gpu="0"}} 5 1759752300000\n{UTIL}{{gpu="0"}} 6 1759752300.5\n'
    assert scrape(tmp_path, timed).table()["time"].to_pylist() == [1759752300.0, 1759752300.5]


def test_metrics_of_others_are_counted_not_mixed_in(tmp_path: Path) -> None:
    text = f'node_load1 3\n{UTIL}{{gpu="0"}} 5\nDCGM_FI_DEV_SM_CLOCK{{gpu="0"}} 1400\n'
    telemetry = scrape(tmp_path, text)
    assert telemetry.table().num_rows == 2
    assert telemetry.dropped == {"no DCGM metric": 1}
    telemetry = scrape(tmp_path, text, metric="node_load1")
    assert telemetry.table()["value"].to_pylist() == [3.0]
    assert telemetry.rows_read == 3


def test_power_is_the_slope_of_the_energy_counter(tmp_path: Path) -> None:
    """1 kJ in 10 s are 100 W; the counter begins anew at 30 s; GPU 1 has its own."""
    readings = [
        ("0", 0, 5_000_000), ("1", 0, 0), ("0", 10, 6_000_000), ("0", 30, 100), ("0", 40, 500_100),
        ("0", 40, 500_100), ("0", 35, 400_000), ("1", 40, 4_000_000),
    ]  # fmt: skip
    text = "".join(f'{ENERGY}{{gpu="{g}"}} {mj} {s}.0\n' for g, s, mj in readings)
    telemetry = scrape(tmp_path, text + f'{UTIL}{{gpu="0"}} 7 0.0\n', energy="power")
    rows = telemetry.table().to_pylist()
    assert [(r["metric"], r["gpu"], r["time"], r["value"]) for r in rows] == [
        ("POWER_FROM_ENERGY", "0", 10.0, 100.0),
        ("POWER_FROM_ENERGY", "0", 40.0, 50.0),
        ("POWER_FROM_ENERGY", "0", 40.0, 50.0),  # the same reading, under another job's name
        ("POWER_FROM_ENERGY", "1", 40.0, 100.0),
        (UTIL, "0", 0.0, 7.0),
    ]
    assert telemetry.rows_read == 9 == telemetry.samples + sum(telemetry.dropped.values())
    assert sorted(telemetry.dropped.values()) == [1, 1, 2]
    with pytest.raises(SpecError, match="energy"):
        scrape(tmp_path, text, energy="joule")


@given(st.lists(st.tuples(st.integers(1, 50), st.integers(0, 10**6)), min_size=1, max_size=30))
def test_power_times_its_interval_adds_up_to_the_energy(
    tmp_path_factory: pytest.TempPathFactory, steps: list[tuple[int, int]]
) -> None:
    times = np.cumsum([s for s, _ in steps])
    energy = np.cumsum([e for _, e in steps])
    text = "".join(f'{ENERGY}{{gpu="0"}} {e} {t}.0\n' for t, e in zip(times, energy, strict=True))
    telemetry = scrape(tmp_path_factory.mktemp("energy"), text, energy="power")
    power = telemetry.table()["value"].to_numpy()
    assert len(power) == len(steps) - 1
    assert (power * np.diff(times)).sum() == pytest.approx((energy[-1] - energy[0]) / 1000)


def test_labels_and_escapes() -> None:
    assert labels_of(r'a="x\\y\n\"z" , b="{}=,"', "f", 1) == {"a": 'x\\y\n"z', "b": "{}=,"}
    reading = reading_of('up{a="}"} +Inf # {trace="x"} 1', "f", 1)
    assert reading is not None
    assert (reading.name, reading.labels, reading.value) == ("up", 'a="}"', np.inf)
    assert reading_of("# HELP up whether", "f", 1) is None


@pytest.mark.parametrize(
    "line",
    ["up", "up{a=1} 2", 'up{a="1" 2', "up{} x", "up 1_0", 'up{a="1",a="2"} 3', "1up 3", "up 1 2 3"],
)
def test_lines_that_are_no_readings(tmp_path: Path, line: str) -> None:
    text = f"{UTIL} 1\n{line.replace('up', UTIL)}\n"
    with pytest.raises(TraceError, match="line 2"):
        scrape(tmp_path, text).table()


@pytest.mark.slow
@settings(max_examples=100)
@given(
    st.dictionaries(
        st.from_regex(r"[a-zA-Z_][a-zA-Z0-9_]{0,5}", fullmatch=True),
        st.text(st.characters(exclude_characters="\r\n", exclude_categories=["Cs"]), max_size=8),
        max_size=4,
    ),
    st.floats(allow_nan=False, allow_infinity=False),
)
def test_what_is_written_comes_back(labels: dict[str, str], value: float) -> None:
    escaped = {k: v.replace("\\", r"\\").replace('"', r"\"") for k, v in labels.items()}
    inner = ",".join(f'{k}="{v}"' for k, v in escaped.items())
    reading = reading_of(f"m{{{inner}}} {value!r} 17", "f", 1)
    assert reading is not None
    assert (reading.value, reading.time) == (value, 17.0)
    assert labels_of(reading.labels, "f", 1) == labels


def test_a_second_parser_reads_the_same() -> None:
    parser = pytest.importorskip("prometheus_client.parser")
    text = 'a_metric{x="1",y="a\\"b\\\\c"} 1.5 1000\nplain 2\nneg{z=""} -3e5\n'
    theirs = [s for family in parser.text_string_to_metric_families(text) for s in family.samples]
    lines = text.splitlines()
    for sample, line in zip(theirs, lines, strict=True):
        ours = reading_of(line, "f", 1)
        assert ours is not None
        assert (ours.name, ours.value) == (sample.name, sample.value)
        assert labels_of(ours.labels, "f", 1) == sample.labels


def test_constants_for_no_value_are_blank_and_their_neighbours_are_not() -> None:
    int32, int64, real = 0x7FFFFFF0, 0x7FFFFFFFFFFFFFF0, 2.0**47
    blanks = [real, real + 15, float(int32), float(int32 + 3), float(int64), float(int64 + 3)]
    fine = [real - 1, real + 16, float(int32 - 1), float(int32 + 16), 0.0, -1.0]
    found = without_blanks("DCGM_FI_DEV_POWER_USAGE", np.array(blanks + fine))
    assert np.isnan(found).tolist() == [True] * 6 + [False] * 6
    assert not np.isnan(without_blanks(ENERGY, np.array([float(int32)]))).any()
    assert np.isnan(without_blanks(ENERGY, np.array([real]))).all()


def test_places() -> None:
    exported = {"pod": "exporter-x", "namespace": "monitor", "exported_pod": "p", "gpu": "1"}
    assert place_of(exported | {"exported_namespace": "n"}).job_id == "n/p"
    assert place_of({"hpc_job": "7", "pod": "p"}).job_id == "7"
    assert place_of({"pod": "p", "namespace": ""}).job_id == "p"
    assert place_of({"device": "nvidia5", "instance": "n1:9400"}) == ("n1", "5", None)
    assert place_of({"Hostname": "h", "instance": "n1:9400"}).node == "h"
    assert place_of({"GPU_I_ID": "1"}).gpu is None


def answer(tmp_path: Path, result: Any, kind: str = "matrix", **options: Any) -> Any:
    path = tmp_path / "answer.json"
    data = {"status": "success", "data": {"resultType": kind, "result": result}}
    path.write_text(json.dumps(data))
    return open_telemetry(path, **options)


def test_a_vector_and_a_computed_series(tmp_path: Path) -> None:
    vector = [{"metric": {"__name__": "up", "instance": "n1:9100"}, "value": [5.5, "1"]}]
    (row,) = answer(tmp_path, vector, "vector").table().to_pylist()
    assert (row["time"], row["node"], row["metric"], row["value"]) == (5.5, "n1", "up", 1.0)
    computed = [{"metric": {"gpu": "1"}, "values": [[0, "+Inf"], [1, "2"]]}]
    named = answer(tmp_path, computed, metric="rate")
    assert named.table()["metric"].to_pylist() == ["rate"]
    assert (named.rows_read, named.samples) == (2, 1)
    with pytest.raises(TraceError, match="name it with metric="):
        answer(tmp_path, computed).table()
    assert answer(tmp_path, []).table().num_rows == 0


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            '{"status":"error","errorType":"bad_data","error":"parse error"}',
            "bad_data.*parse error",
        ),
        ('{"status":"success","data":{"resultType":"scalar","result":[1,"2"]}}', "matrix"),
        ('{"status":"success","data":{"resultType":"matrix","result":[{"metric":1}]}}', "metric"),
        ('{"status":"success","data":{"resultType":"matrix","result":[', "valid JSON"),
        (
            (
                '{"status":"success","data":{"resultType":"vector","result":[{"metric":{"__name__":"x"},'
                '"value":[0,"much"]}]}}'
            ),
            "'much'; expected a number",
        ),
        ('{"traceEvents":[]}', "an answer of Prometheus"),
    ],
)
def test_answers_that_are_none(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "answer.json"
    path.write_text(text)
    with pytest.raises(TraceError, match=message):
        open_telemetry(path).table()


@settings(max_examples=60, deadline=None)
@given(st.text(max_size=60))
def test_any_text_is_read_or_refused_in_one_message(
    tmp_path_factory: pytest.TempPathFactory, noise: str
) -> None:
    path = tmp_path_factory.mktemp("noise") / "x.prom"
    path.write_bytes(f"{UTIL} 1\n{UTIL}".encode() + noise.encode(errors="replace"))
    telemetry = open_telemetry(path, format="dcgm")
    try:
        telemetry.table()
    except WindtunnelError:
        return
    assert telemetry.rows_read == telemetry.samples + sum(telemetry.dropped.values())
