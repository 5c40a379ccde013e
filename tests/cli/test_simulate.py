"""`windtunnel simulate`: the lecture's numbers, and what is printed and written."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import pyarrow.csv as pcsv
import pyarrow.parquet as pq
import pytest

import windtunnel as wt

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


#: Policy -> (mean completion time, makespan), worked out by hand in the lecture.
EXPECTED = {
    "fifo": (35.0, 70.0),
    "sjf": (35.0, 70.0),
    "sjf-preemptive": (34.0, 66.0),
    "srtf": (34.0, 66.0),
    "priority-preemptive": (43.5, 53.0),
}


@pytest.mark.parametrize("engine", ["compiled", "reference"])
@pytest.mark.parametrize("policy", EXPECTED)
def test_the_lectures_four_jobs_on_one_pool_of_two(
    run: Callable[..., Any], lecture: Path, policy: str, engine: str
) -> None:
    ran = run(
        *("simulate", lecture, "--cluster", "pool:2", "--policy", policy),
        *("--engine", engine, "--json"),
    )
    assert (ran.code, ran.err) == (0, "")
    assert (ran.json["avg_jct"], ran.json["makespan"]) == EXPECTED[policy]
    assert ran.json["settings"]["engine"] == engine


def test_json_is_one_flat_object_with_the_documented_keys(
    run: Callable[..., Any], lecture: Path
) -> None:
    data = run("simulate", lecture, "--cluster", "2x1", "--policy", "sjf", "--json").json
    metrics = wt.simulate(wt.open_trace(lecture).jobs, "2x1", policy="sjf").metrics()
    assert {key: data[key] for key in metrics} == metrics
    rest = {"settings", "trace", "cluster", "by_size", "by_vc", "notes", "command", "out"}
    rest |= {"fairness", "starvation"}
    assert set(data) == set(metrics) | rest
    assert data["trace"] | {"num_jobs": 4, "name": "lecture", "dropped": {}} == data["trace"]
    assert data["cluster"]["num_gpus"] == 2
    assert data["settings"]["seed"] == 0
    assert [row["size"] for row in data["by_size"]] == ["1"]
    # a 0-30, b 0-10, d 10-50, c 30-55 by shortest first, or c before d: see the starvation rows.
    assert data["fairness"]["num_rho"] == 4
    assert [row["size"] for row in data["starvation"]] == ["1"]
    assert data["out"] is None


def test_what_is_unknown_is_null(run: Callable[..., Any], lecture: Path) -> None:
    data = run("simulate", lecture, "--cluster", "pool:2", "--until", "5", "--json").json
    assert data["num_finished"] == 0
    assert data["avg_jct"] is None
    assert data["settings"]["until"] == 5.0


@pytest.mark.parametrize(("text", "seconds"), [("90m", 5400.0), ("2h", 7200.0), ("1.5d", 129600.0)])
def test_times_have_units(
    run: Callable[..., Any], lecture: Path, text: str, seconds: float
) -> None:
    data = run("simulate", lecture, "--cluster", "pool:2", "--until", text, "--json").json
    assert data["settings"]["until"] == seconds


def test_the_printed_command_gives_the_same_run_again(
    run: Callable[..., Any], lecture: Path
) -> None:
    words = ["simulate", lecture, "--cluster", "2x1", "--policy", "srtf", "--queueing", "strict"]
    words += ["--save-time", "1.5", "--restore-time", "2", "--json"]
    first = run(*words).json
    again = run(*first["command"].split()[1:], "--json").json
    assert again == first


def test_the_terminal_shows_the_run_its_sizes_and_its_settings(
    run: Callable[..., Any], lecture: Path
) -> None:
    ran = run("simulate", lecture, "--cluster", "2x1", "--policy", "srtf")
    assert (ran.code, ran.err) == (0, "")
    for text in ("lecture on 2 GPUs", "Completion time, mean", "GPUs of the job", "queueing"):
        assert text in ran.out


def test_parquet_output_is_the_outcome_table(
    run: Callable[..., Any], lecture: Path, tmp_path: Path
) -> None:
    out = tmp_path / "run.parquet"
    assert run("simulate", lecture, "--cluster", "2x1", "--out", out, "--json").json["out"] == str(
        out
    )
    expected = wt.simulate(wt.open_trace(lecture).jobs, "2x1").table
    assert pq.read_table(out).equals(expected)
    assert [path.name for path in tmp_path.iterdir() if path.name.startswith(".")] == []


def test_csv_output_writes_nodes_as_text(run: Callable[..., Any], tmp_path: Path) -> None:
    jobs = tmp_path / "jobs.csv"
    jobs.write_text("job_id,submit_time,duration,num_gpus\nwide,0,10,4\nnarrow,0,5,1\n")
    out = tmp_path / "run.csv"
    assert run("simulate", jobs, "--cluster", "2x2", "--out", out).code == 0
    rows = pcsv.read_csv(out).to_pylist()
    assert rows[0]["nodes"] == "0 1"
    assert rows[1] | {"start_time": 10, "end_time": 15, "wait": 10} == rows[1]
    first = out.read_bytes()
    run("simulate", jobs, "--cluster", "2x2", "--out", out)
    assert out.read_bytes() == first


def test_synthetic_traces_take_their_options_and_know_their_cluster(
    run: Callable[..., Any],
) -> None:
    words = ("simulate", "synthetic:kalos", "--jobs", 200, "--load", "0.5", "--seed", 3, "--json")
    data = run(*words).json
    assert data["trace"]["num_jobs"] == 200
    assert data["trace"]["settings"] == {"jobs": 200, "load": 0.5, "seed": 3, "cpu_jobs": False}
    assert data["cluster"]["name"] == "kalos"
    assert any("comes with the trace" in note for note in data["notes"])
    assert "--jobs 200 --load 0.5" in data["command"]
    assert run(*words).json == data


def test_a_dash_is_standard_input(run: Callable[..., Any], lecture: Path) -> None:
    piped = run(
        *("simulate", "-", "--cluster", "pool:2", "--json"), stdin=lecture.read_text("utf-8")
    )
    assert piped.json["avg_jct"] == 35
    assert piped.json["trace"]["name"] == "stdin"


def test_names_from_a_trace_cannot_drive_the_terminal(
    run: Callable[..., Any], tmp_path: Path
) -> None:
    jobs = tmp_path / "\x1b[31mred.csv"
    jobs.write_text(
        "job_id,submit_time,duration,num_gpus,vc\na,0,10,1,\x1b]0;owned\x07[bold]vc\u202e\n",
        encoding="utf-8",
    )
    for words in (
        ("simulate", jobs, "--cluster", "pool:1"),
        ("describe", jobs),
        ("compare", jobs, "--cluster", "pool:1", "--policies", "fifo,sjf"),
        ("simulate", jobs, "--cluster", "pool:1", "--json"),
    ):
        ran = run(*words)
        assert ran.code == 0, ran
        assert not {"\x1b", "\x07", "\u202e"} & set(ran.out)
    assert "[bold]vc" in run("describe", jobs).out


def test_philly_on_704_gpus(run: Callable[..., Any], data_dir: Path) -> None:
    data = run("simulate", "philly", "--cluster", "88x8", "--policy", "srtf", "--json").json
    assert data["num_finished"] == 82247
    assert math.isclose(sum(row["num_jobs"] for row in data["by_size"]), 82247)
