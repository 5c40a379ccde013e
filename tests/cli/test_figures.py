"""`windtunnel figures`: what it writes, what it tells, what it refuses."""

from __future__ import annotations

import csv
import json
import shlex
from typing import TYPE_CHECKING, Any

import pytest
from click.testing import CliRunner

from windtunnel.cli.group import LazyGroup

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

JOBS = """\
job_id,submit_time,start_time,end_time,duration,num_gpus,workload,status,user
a,0,10,40,30,1,train,completed,u1
b,60,60,70,10,2,eval,failed,u2
c,3600,3700,7300,3600,8,train,cancelled,u1
"""


@pytest.fixture
def run() -> Callable[..., Any]:
    """Run the command in this process, as `windtunnel figures ...`."""
    group = LazyGroup("windtunnel", homes={"figures": "windtunnel.cli.figures"})

    def call(*words: object, stdin: str | None = None) -> Any:
        arguments = ["figures", *(str(word) for word in words)]
        result = CliRunner().invoke(group, arguments, input=stdin, prog_name="windtunnel")
        assert result.exception is None or isinstance(result.exception, SystemExit), result
        return result

    return call


@pytest.fixture
def refused(run: Callable[..., Any]) -> Callable[..., str]:
    """Run the command, check that it refuses in the agreed way, and return its message."""

    def call(*words: object, stdin: str | None = None) -> str:
        result = run(*words, stdin=stdin)
        assert result.exit_code == 2, result.output
        assert result.stdout == ""
        assert result.stderr.startswith("Error: ")
        assert "Traceback" not in result.stderr
        return str(result.stderr)

    return call


@pytest.fixture
def jobs(tmp_path: Path) -> Path:
    path = tmp_path / "three.csv"
    path.write_text(JOBS, encoding="utf-8")
    return path


def test_figures_are_written_and_listed(
    run: Callable[..., Any], jobs: Path, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    result = run(jobs, "--set", "acme", "--out", out)
    assert result.exit_code == 0, result.output
    names = {path.name for path in out.iterdir()}
    assert {"bar_job_state.svg", "bar_job_state.csv", "index.html"} <= names
    assert "cdf_power.csv" not in names
    for text in ("Cannot be drawn", "cdf_power", "--utilization or --telemetry", "again with"):
        assert text in result.stdout
    assert "7 figures are in" in result.stdout


@pytest.mark.slow
def test_json_tells_every_figure_with_n_and_reasons(
    run: Callable[..., Any], jobs: Path, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    words = (jobs, "synthetic:kalos:jobs=300:seed=3", "--out", out)
    result = run(*words, "--only", "bar_job_state,box_gpu_num,cdf_power", "--json")
    assert (result.exit_code, result.stderr) == (0, "")
    data = json.loads(result.stdout)
    assert set(data) == {"traces", "figures", "notes", "folder", "files", "out", "command"}
    assert [trace["label"] for trace in data["traces"]] == ["three", "synthetic:kalos"]
    by_name = {figure["name"]: figure for figure in data["figures"]}
    assert list(by_name) == ["bar_job_state", "box_gpu_num", "cdf_power"]
    assert by_name["cdf_power"]["drawn"] is False
    assert "--utilization" in by_name["cdf_power"]["reason"]
    parts = by_name["bar_job_state"]["parts"]
    assert [(p["trace"], p["panel"], p["n"]) for p in parts] == [
        ("three", "a", 3),
        ("synthetic:kalos", "a", 300),
        ("three", "b", 3),
        ("synthetic:kalos", "b", 300),
    ]
    assert data["files"] == sorted(path.name for path in out.iterdir())
    again = shlex.split(data["command"])
    assert again[:4] == ["windtunnel", "figures", str(jobs), "synthetic:kalos:jobs=300:seed=3"]
    page = (out / "index.html").read_bytes()
    (out / "index.html").unlink()
    assert run(*again[2:]).exit_code == 0
    assert (out / "index.html").read_bytes() == page


def test_formats_and_width_are_as_asked(
    run: Callable[..., Any], jobs: Path, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    words = ("--only", "bar_job_state", "--format", "pdf, png", "--width", "page")
    assert run(jobs, *words, "--out", out).exit_code == 0
    assert {path.name for path in out.iterdir()} == {
        *("bar_job_state.csv", "bar_job_state.pdf", "bar_job_state.png", "index.html"),
    }


@pytest.mark.slow
def test_use_is_drawn_from_published_files_and_from_telemetry(
    run: Callable[..., Any], jobs: Path, tmp_path: Path, data_dir: Path
) -> None:
    wide = tmp_path / "GPU_UTIL.csv"
    lines = [f"2023-08-01 00:{minute:02d}:00,{minute},{minute}" for minute in range(51)]
    wide.write_text("Time,10.0.0.1-0,10.0.0.1-1\n" + "\n".join(lines) + "\n")
    npz = data_dir / "acme" / "utilization_quantiles.npz"
    words = ("--utilization", npz, "--telemetry", f"mine={wide}", "--json")
    result = run(jobs, "--only", "cdf_job_duration_util,cdf_power", *words, "--out", tmp_path / "o")
    assert result.exit_code == 0, result.output
    first, power = json.loads(result.stdout)["figures"]
    use = [(p["trace"], p["n"]) for p in first["parts"] if p["panel"] == "b"]
    assert sorted(use) == [
        *(("Kalos", None), ("PAI", None), ("Philly", None), ("Seren", None), ("mine", 102)),
    ]
    assert power["drawn"] is True
    with (tmp_path / "o" / "cdf_job_duration_util.csv").open(encoding="utf-8") as file:
        mine = [row for row in csv.DictReader(file) if row["trace"] == "mine"]
    # Minutes 0 to 50, twice each: half of the samples are at most 25.
    assert [(r["value"], r["n"]) for r in mine if r["percent"] == "50"] == [("25", "102")]
    assert mine[0]["p50"] == "25"


def test_standard_input_is_a_trace(run: Callable[..., Any], tmp_path: Path) -> None:
    words = ("-", "--reader", "native", "--only", "bar_job_state", "--out", tmp_path / "o")
    assert run(*words, stdin=JOBS).exit_code == 0


def test_rows_that_were_left_out_of_a_trace_are_noted(
    run: Callable[..., Any], tmp_path: Path
) -> None:
    bad = tmp_path / "bad.csv"
    bad.write_text(JOBS + "d,5,1,9,8,1,eval,failed,u3\n")
    words = ("--only", "bar_job_state", "--bad-rows", "drop", "--out", tmp_path / "o", "--json")
    notes = json.loads(run(bad, *words).stdout)["notes"]
    assert notes == ["bad: 1 of 4 records left out: start_time: expected start_time >= submit_time"]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--only", "bar_job_sate"), "unknown figure 'bar_job_sate'. Did you mean 'bar_job_state'"),
        (("--only", " , "), "--only: expected at least one name"),
        (("--set", "akme"), "--set: unknown name 'akme'. Did you mean 'acme'"),
        (("--set", "acme", "--only", "recurrence"), "is not in the set 'acme'"),
        (("--format", "svg,pgn"), "--format: unknown name 'pgn'. Did you mean 'png'"),
        (("--format", ","), "--format: expected at least one name"),
        (("--width", "colum"), "--width: unknown name 'colum'. Did you mean 'column'"),
        (("--reader", "nativ"), "unknown name 'nativ'"),
        (("--utilization", "missing.npz"), "missing.npz"),
        (("--telemetry", "x=missing"), "missing"),
        (("more.csv",), "more.csv"),
    ],
)
def test_what_cannot_be_done_is_refused_in_one_message(
    refused: Callable[..., str],
    jobs: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    words: tuple[str, ...],
    message: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    out = tmp_path / "out"
    assert message in refused(jobs, *words, "--out", out)
    assert not out.exists()
    assert list(tmp_path.iterdir()) == [jobs]


def test_reading_options_need_a_trace_that_is_read(
    refused: Callable[..., str], tmp_path: Path
) -> None:
    message = refused("synthetic:kalos", "--zone", "UTC", "--out", tmp_path / "o")
    assert "--zone: no trace is read" in message


def test_more_traces_than_colours_are_refused(
    refused: Callable[..., str], jobs: Path, tmp_path: Path
) -> None:
    assert "expected 1 to 8 traces, found 9" in refused(*[jobs] * 9, "--out", tmp_path / "o")
    assert "standard input (-) can be read once" in refused("-", "-", "--out", tmp_path / "o")


def test_a_file_is_no_folder(refused: Callable[..., str], jobs: Path) -> None:
    assert "expected a folder; it is a file" in refused(jobs, "--out", jobs)


def test_out_and_a_trace_must_be_named(run: Callable[..., Any], jobs: Path, tmp_path: Path) -> None:
    for words in ((jobs,), ("--out", tmp_path / "o")):
        result = run(*words)
        assert result.exit_code == 2
        assert "Missing" in result.stderr


def test_a_telemetry_that_measures_nothing_drawn_is_refused(
    refused: Callable[..., str], jobs: Path, tmp_path: Path
) -> None:
    wide = tmp_path / "XID_ERRORS.csv"
    wide.write_text("Time,10.0.0.1-0\n2023-08-01 00:00:00,0\n")
    message = refused(jobs, "--telemetry", wide, "--out", tmp_path / "o")
    assert "measures nothing that a figure draws; it has 'XID_ERRORS'" in message
