"""Philly: the derived table and the original log."""

from __future__ import annotations

import gzip
import json
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow.compute as pc
import pytest

from windtunnel.errors import SchemaError, SpecError, TraceError
from windtunnel.traces import open_trace
from windtunnel.traces.philly import read_philly
from windtunnel.traces.philly_raw import read_philly_raw
from windtunnel.traces.wallclock import second_pass, to_utc

if TYPE_CHECKING:
    from pathlib import Path

    from windtunnel.traces.trace import Trace

HEADER = "timestamp,duration,num_gpus,gpu_time,cluster\n"


def derived(tmp_path: Path, rows: str) -> Trace:
    path = tmp_path / "p.csv"
    path.write_text(HEADER + rows)
    return open_trace(path)


def test_rows_are_sorted_and_numbered_by_the_file(tmp_path: Path) -> None:
    trace = derived(
        tmp_path,
        "2017-10-09 07:00:10,66.0,1,66.0,b\n"
        "2017-10-09 07:00:00,5.0,8,40.0,a\n"
        "2017-10-09 07:00:10,7.0,2,14.0,a\n\n",
    )
    assert trace.jobs["job_id"].to_pylist() == ["philly-2", "philly-1", "philly-3"]
    assert trace.jobs["submit_time"].to_pylist() == [0.0, 10.0, 10.0]
    assert trace.jobs["vc"].to_pylist() == ["a", "b", "a"]
    assert trace.jobs["num_gpus"].to_pylist() == [8.0, 1.0, 2.0]
    assert trace.metadata.epoch == "2017-10-09T14:00:00+00:00"
    assert trace.metadata.zone == "America/Los_Angeles"
    assert trace.metadata.rows_read == 3


def test_the_clock_change_is_an_hour_longer(tmp_path: Path) -> None:
    """From 00:30 summer time to 02:30 standard time three hours pass, not two."""
    trace = derived(
        tmp_path,
        "2017-11-05 00:30:00,1,1,1,a\n2017-11-05 01:30:00,1,1,1,a\n2017-11-05 02:30:00,1,1,1,a\n",
    )
    assert trace.jobs["submit_time"].to_pylist() == [0.0, 3600.0, 3 * 3600.0]
    assert any(note.startswith("1 wall-clock times") for note in trace.metadata.notes)


def test_repeated_and_skipped_hours() -> None:
    def local(text: str) -> np.ndarray:
        return np.array([np.datetime64(text, "s").astype(np.int64)], np.float64)

    first, ambiguous = to_utc(local("2017-11-05T01:30"), "America/Los_Angeles")
    assert ambiguous.tolist() == [True]
    assert second_pass(local("2017-11-05T01:30"), "America/Los_Angeles") - first == 3600
    skipped, ambiguous = to_utc(local("2017-03-12T02:30"), "America/Los_Angeles")
    assert ambiguous.tolist() == [False]
    assert skipped == local("2017-03-12T10:30")
    unknown, ambiguous = to_utc(np.array([np.nan]), "UTC")
    assert np.isnan(unknown).all()
    assert not ambiguous.any()


def test_an_unknown_zone(tmp_path: Path) -> None:
    path = tmp_path / "p.csv"
    path.write_text(HEADER + "2017-10-09 07:00:10,66.0,1,66.0,b\n")
    with pytest.raises(SpecError, match=r"unknown time zone 'Pacific'"):
        open_trace(path, zone="Pacific")


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ("2017-10-09 07:01,66.0,one,66.0,b\n", "line 2, column 'num_gpus': found 'one'"),
        ("09/10/2017 07:01,66.0,1,66.0,b\n", "line 2, column 'timestamp'.*YYYY-MM-DD"),
        ("2017-10-09 07:01:00,66.0,1,66.0\n", "line 2: expected 5 fields, found 4"),
        ("", "no rows"),
    ],
)
def test_bad_rows_of_the_derived_table(tmp_path: Path, rows: str, message: str) -> None:
    with pytest.raises(TraceError, match=message):
        derived(tmp_path, rows)


def test_another_table_is_not_philly(tmp_path: Path) -> None:
    path = tmp_path / "p.csv"
    path.write_text("time,duration,num_gpus,cluster\n1,2,3,4\n")
    with pytest.raises(TraceError, match=r"a column 'timestamp'"):
        open_trace(path, format="philly")


def attempt(start: str | None, end: str | None, *gpus: int) -> dict[str, Any]:
    nodes = [
        {"ip": f"m{n}", "gpus": [f"gpu{g}" for g in range(count)]} for n, count in enumerate(gpus)
    ]
    return {"start_time": start, "end_time": end, "detail": nodes}


def job(
    name: str, submitted: str | None, *attempts: dict[str, Any], **other: Any
) -> dict[str, Any]:
    return {
        "status": "Pass",
        "vc": "v",
        "jobid": name,
        "user": "u",
        "submitted_time": submitted,
        "attempts": list(attempts),
    } | other


def raw(tmp_path: Path, *jobs: dict[str, Any]) -> Trace:
    path = tmp_path / "log.json"
    path.write_text(json.dumps(list(jobs)))
    return open_trace(path)


def test_the_first_attempt_sizes_and_starts_the_last_one_ends(tmp_path: Path) -> None:
    trace = raw(
        tmp_path,
        job(
            "a",
            "2017-10-09 07:00:00",
            attempt("2017-10-09 07:01:00", "2017-10-09 08:00:00", 8, 4),
            attempt("2017-10-09 08:30:00", "2017-10-09 09:01:00", 2),
            status="Killed",
        ),
    )
    found = {k: v for k, v in trace.jobs.to_pylist()[0].items() if v is not None}
    assert found == {
        "job_id": "a",
        "submit_time": 0.0,
        "start_time": 60.0,
        "end_time": 7260.0,
        "duration": 7200.0,
        "num_gpus": 12.0,
        "user": "u",
        "vc": "v",
        "status": "cancelled",
        "num_attempts": 2,
        "num_nodes": 2,
    }
    assert trace.metadata.epoch == "2017-10-09T14:00:00+00:00"


def test_what_is_missing_stays_unknown(tmp_path: Path) -> None:
    trace = raw(
        tmp_path,
        job("late", "2017-10-09 08:00:00", attempt("2017-10-09 08:00:00", "None", 1), user="None"),
        job("never", "2017-10-09 07:00:00", status="Failed", vc=""),
        job("odd", "2017-10-09 09:00:00", attempt(None, "2017-10-09 10:00:00", 1), status="None"),
        job("lost", "None", attempt("", "2017-10-09 10:00:00", 1)),
    )
    jobs = trace.jobs.to_pydict()
    assert jobs["job_id"] == ["never", "late", "odd", "lost"]
    assert jobs["status"] == ["failed", "running", None, "completed"]
    assert jobs["num_gpus"] == [None, 1.0, 1.0, 1.0]
    assert jobs["duration"] == [None, None, None, None]
    assert jobs["num_attempts"] == [0, 1, 1, 1]
    assert jobs["num_nodes"] == [None, 1, 1, 1]
    assert jobs["user"] == ["u", None, "u", "u"]
    assert jobs["vc"] == [None, "v", "v", "v"]
    notes = " ".join(trace.metadata.notes)
    assert "1 jobs have no attempt" in notes
    assert "1 jobs have no submission time" in notes
    assert trace.metadata.rows_read == 4


def test_the_repeated_hour_does_not_run_backwards(tmp_path: Path) -> None:
    """Started 01:50 summer time, ended 01:10 standard time: 20 minutes, not minus 40."""
    trace = raw(
        tmp_path,
        job("a", "2017-11-05 01:40:00", attempt("2017-11-05 01:50:00", "2017-11-05 01:10:00", 1)),
    )
    assert trace.jobs["duration"].to_pylist() == [1200.0]
    assert trace.jobs["start_time"].to_pylist() == [600.0]


def test_times_that_contradict_are_refused(tmp_path: Path) -> None:
    with pytest.raises(SchemaError, match=r"end_time >= start_time \(1 row, first in line 1"):
        raw(
            tmp_path,
            job(
                "a", "2017-10-09 07:00:00", attempt("2017-10-09 08:00:00", "2017-10-09 07:30:00", 1)
            ),
        )


GOOD = job("a", "2017-10-09 07:00:00", attempt("2017-10-09 08:00:00", "2017-10-09 09:30:00", 1))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (json.dumps([GOOD])[:150], "line 1: expected valid JSON.*column.*cut"),
        (json.dumps([GOOD], indent=1)[:-3], r"line \d+: expected valid JSON.*cut"),
        ("[{,}]", "line 1: expected valid JSON.*column 3"),
        (json.dumps([GOOD | {"jobid": 5}]), r"list of \{jobid.*\$\[0\]\.jobid"),
        (json.dumps([{"jobid": "a", "attempts": []}]), "submitted_time"),
        (json.dumps({"attempts": []}), r"list of \{jobid"),
        ("[]", "at least one job"),
        ('[{"x":' + "[" * 100_000, "valid JSON"),
        (json.dumps([GOOD, GOOD | {"status": "Done"}]), "'Done'; expected one of.*record 2"),
        (json.dumps([GOOD | {"submitted_time": "noon"}]), "'noon'; expected a time.*record 1"),
    ],
)
def test_broken_logs(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "log.json"
    path.write_text(text)
    with pytest.raises(TraceError, match=message):
        read_philly_raw(path)


def test_a_latin_byte_in_a_log(tmp_path: Path) -> None:
    path = tmp_path / "log.json"
    path.write_bytes(json.dumps([GOOD | {"user": "@"}]).encode().replace(b"@", b"\xe9"))
    with pytest.raises(TraceError, match=r"UTF-8|valid JSON"):
        read_philly_raw(path)


@pytest.mark.data
def test_published_numbers(data_dir: Path) -> None:
    """Counts of the file of 82,247 jobs: duration in seconds, GPU time in GPU-hours."""
    trace = open_trace("philly")
    jobs = trace.jobs
    assert jobs.num_rows == trace.metadata.rows_read == 82_247
    duration, gpus = (jobs[n].to_numpy() for n in ("duration", "num_gpus"))
    assert round(float((duration * gpus).sum()) / 3600) == 978_078
    quantiles = np.quantile(duration, [0.1, 0.25, 0.5, 0.75, 0.9, 0.99])
    assert quantiles.round().tolist() == [61, 115, 1144, 2932, 11265, 254758]
    assert round(duration.mean()) == 13_136
    assert duration.max() == 4_628_226
    values, counts = np.unique(gpus, return_counts=True)
    assert dict(zip(values.tolist(), counts.tolist(), strict=True)) == {
        1: 76_627, 2: 1_818, 4: 1_870, 8: 1_643, 12: 7, 16: 199, 24: 7, 32: 67, 64: 6, 128: 3,
    }  # fmt: skip
    assert pc.count_distinct(jobs["vc"]).as_py() == 15
    assert trace.metadata.epoch == "2017-09-04T17:30:41+00:00"
    submit = jobs["submit_time"].to_numpy()
    assert submit[0] == 0.0
    assert bool((np.diff(submit) >= 0).all())
    assert trace.cluster is not None


@pytest.mark.data
def test_the_file_by_its_path_is_recognised(data_dir: Path, tmp_path: Path) -> None:
    path = data_dir / "philly" / "philly_sia.csv.gz"
    cut = tmp_path / "half.csv.gz"
    cut.write_bytes(path.read_bytes()[:100_000])
    with pytest.raises(TraceError, match=r"whole packed file.*cut"):
        read_philly(cut)
    plain = tmp_path / "plain.csv"
    plain.write_bytes(gzip.decompress(path.read_bytes()))
    assert open_trace(plain).jobs.equals(open_trace(path).jobs)
