"""`windtunnel convert`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from windtunnel.traces import open_trace

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
    assert bool(data["not_carried"]) == ("swf" in name)
    (job,) = open_trace(out).jobs.to_pylist()
    assert (job["job_id"], job["duration"], job["num_gpus"]) == ("7", 120.0, 2.0)
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted(["log.txt", name])


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
        (SACCT, "o.csv", ["--to", "xml"], "csv or parquet or swf"),
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
