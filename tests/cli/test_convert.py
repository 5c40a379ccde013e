"""`windtunnel convert`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from windtunnel.traces import open_trace
from windtunnel.traces.batsim import read_batsim
from windtunnel.traces.opendc import read_opendc

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

SACCT = (
    "JobID|JobName|State|Submit|Start|End|ElapsedRaw|AllocTRES\n"
    "7|train|TIMEOUT|2025-07-01T00:00:00|2025-07-01T00:01:00|2025-07-01T00:03:00|120|gres/gpu=2\n"
    "7.batch|batch|FAILED|2025-07-01T00:00:00|2025-07-01T00:01:00|2025-07-01T00:03:00|120|cpu=2\n"
)


@pytest.fixture
def log(tmp_path: Path) -> Path:
    path = tmp_path / "log.txt"
    path.write_text(SACCT, encoding="utf-8")
    return path


@pytest.mark.parametrize("name", ["o.csv", "o.csv.gz", "o.parquet", "o.swf", "o.swf.gz"])
def test_an_sacct_log_becomes_any_format(
    run: Callable[..., Any], log: Path, tmp_path: Path, name: str
) -> None:
    out = tmp_path / name
    data = run("convert", log, out, "--zone", "Europe/Berlin", "--json").json
    assert (data["rows_in"], data["rows_out"]) == (2, 1)
    assert data["dropped"] == {"row of a job step": 1}
    assert data["to"] == name.removesuffix(".gz").partition(".")[2]
    no_epoch = (
        "Time 0 is 2025-06-30T22:00:00+00:00 in Europe/Berlin: only the seconds since then are "
        "written."
    )
    if "swf" in name:  # has a header for it
        assert data["not_carried"]
        assert no_epoch not in data["not_carried"]
    else:
        assert data["not_carried"] == [no_epoch]
    (job,) = open_trace(out).jobs.to_pylist()
    assert (job["job_id"], job["duration"], job["num_gpus"]) == ("7", 120.0, 2.0)
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted(["log.txt", name])


def test_tables_beside_the_jobs_are_not_lost_in_silence(
    run: Callable[..., Any], tmp_path: Path
) -> None:
    log = tmp_path / "cluster_job_log"
    log.write_text(
        '[{"jobid": "a", "submitted_time": "2017-10-09 07:00:00", "status": "Pass", "attempts": '
        '[{"start_time": "2017-10-09 07:01:00", "end_time": "2017-10-09 07:02:00", "detail": '
        '[{"ip": "m1", "gpus": ["gpu0"]}]}]}]'
    )
    for name in ("o.parquet", "o.csv", "o.swf", "o.sacct"):
        data = run("convert", log, tmp_path / name, "--json").json
        assert "Tables beside the jobs: which job held which GPU when." in data["not_carried"], name
    batsim = run("convert", log, tmp_path / "jobs.csv", "--to", "batsim", "--json").json
    assert any("which GPU" in text for text in batsim["not_carried"])
    again = run("convert", tmp_path / "jobs.csv", tmp_path / "b.csv", "--to", "batsim", "--json")
    assert not any("which GPU" in text for text in again.json["not_carried"])  # has its column


def test_a_trace_becomes_a_batsim_result(
    run: Callable[..., Any], log: Path, tmp_path: Path
) -> None:
    out = tmp_path / "jobs.csv"
    data = run("convert", log, out, "--to", "batsim", "--json").json
    assert (data["to"], data["rows_in"], data["rows_out"]) == ("batsim", 2, 1)
    assert any("numbered here" in text for text in data["not_carried"])
    trace = read_batsim(out)
    (job,) = trace.jobs.to_pylist()
    assert (job["start_time"], job["end_time"], job["status"]) == (60.0, 180.0, "timeout")
    assert job["allocated_resources"] == "0-1"
    assert trace.holdings is not None
    assert sorted(path.name for path in tmp_path.iterdir()) == ["jobs.csv", "log.txt"]


def test_a_trace_becomes_an_opendc_workload(
    run: Callable[..., Any], refused: Callable[..., str], log: Path, tmp_path: Path
) -> None:
    out = tmp_path / "workload"
    ran = run("convert", log, out, "--to", "opendc", "--zone", "Europe/Berlin")
    assert (ran.code, ran.err) == (0, "")
    assert "Not carried into opendc" in ran.out
    trace = read_opendc(out)
    (job,) = trace.jobs.to_pylist()
    assert (job["job_id"], job["duration"], job["num_gpus"]) == ("7", 120.0, 2.0)
    assert trace.metadata.epoch == "2025-06-30T22:00:00+00:00"
    assert sorted(path.name for path in out.iterdir()) == ["fragments.parquet", "tasks.parquet"]
    tasks = out / "tasks.parquet"
    assert "the trace itself" in refused("convert", tasks, out, "--to", "opendc")
    back = run("convert", tasks, tmp_path / "o.csv", "--format", "opendc", "--json").json
    assert (back["rows_in"], back["rows_out"]) == (1, 1)


def test_jobs_that_opendc_cannot_hold_are_no_rows_out(
    run: Callable[..., Any], tmp_path: Path
) -> None:
    path = tmp_path / "t.csv"
    path.write_text("job_id,submit_time,duration,num_gpus\n1,0,5,1\n2,1,,1\n", encoding="utf-8")
    data = run("convert", path, tmp_path / "w", "--to", "opendc", "--json").json
    assert (data["rows_in"], data["rows_out"]) == (2, 1)
    assert any("left out: 1." in text for text in data["not_carried"])


def test_the_epoch_goes_along_into_swf(run: Callable[..., Any], log: Path, tmp_path: Path) -> None:
    out = tmp_path / "log.out"
    ran = run("convert", log, out, "--to", "swf", "--zone", "Europe/Berlin")
    assert (ran.code, ran.err) == (0, "")
    for text in ("rows in", "dropped", "1: row of a job step", "rows out", "Not carried into swf"):
        assert text in ran.out
    trace = open_trace(out, format="swf")
    assert trace.metadata.epoch == "2025-06-30T22:00:00+00:00"


def test_standard_input_and_a_named_format(run: Callable[..., Any], tmp_path: Path) -> None:
    out = tmp_path / "o.csv"
    ran = run("convert", "-", out, "--format", "sacct", "--json", stdin=SACCT)
    assert ran.json["source"] == "standard input"
    assert any("read as UTC" in note for note in ran.json["notes"])


@pytest.mark.parametrize(
    ("content", "out", "more", "word"),
    [
        (SACCT[:-30], "o.csv", [], "seems to be cut"),
        ("", "o.csv", ["--format", "sacct"], "empty"),
        (SACCT, "o.txt", [], "--to"),
        (SACCT, "o.parquet.gz", [], "take the .gz off"),
        (SACCT, "nowhere/o.csv", [], "folder that exists"),
        (SACCT, "log.txt", ["--to", "csv"], "the trace itself"),
        (SACCT, "o.csv", ["--to", "xml"], "unknown name 'xml'"),
        (SACCT, "log.txt", ["--to", "opendc"], "expected a folder in a folder that exists"),
        (SACCT, "nowhere/o", ["--to", "opendc"], "expected a folder in a folder that exists"),
        (SACCT, "o.opendc", [], "--to"),
        ("submit_time,job_id,duration,num_gpus\n0,a,1,0.5\n", "o.csv",
         ["--format", "native", "--to", "batsim"], "Batsim counts resources"),
        ("submit_time,job_id,duration,num_gpus\n,a,1,0.5\n", "o",
         ["--format", "native", "--to", "opendc"], "OpenDC needs both"),
        (SACCT, "o.csv", ["--zone", "Atlantis/Capital"], "unknown time zone"),
        (SACCT, "o.csv", ["--format", "swf", "--zone", "UTC"], "zone"),
        (SACCT, "o.csv", ["--format", "sact"], "Did you mean 'sacct'?"),
        ("submit_time,job_id,duration,num_gpus\n0,a,1,0.5\n", "o.swf", ["--format", "native"],
         "SWF counts processors"),
    ],
)  # fmt: skip
def test_bad_input_writes_nothing(
    refused: Callable[..., str], tmp_path: Path, content: str, out: str, more: list[str], word: str
) -> None:
    path = tmp_path / "log.txt"
    path.write_text(content, encoding="utf-8")
    assert word in refused("convert", path, tmp_path / out, *more)
    assert [file.name for file in tmp_path.iterdir()] == ["log.txt"]
    assert path.read_text(encoding="utf-8") == content


def test_an_old_result_outlives_a_refusal(
    refused: Callable[..., str], log: Path, tmp_path: Path
) -> None:
    out = tmp_path / "o.csv"
    out.write_text("old", encoding="utf-8")
    log.write_text(SACCT.replace("|120|", "|soon|"), encoding="utf-8")
    assert "'soon'" in refused("convert", log, out, "--json")
    assert out.read_text(encoding="utf-8") == "old"
