"""`windtunnel simulate`: the lecture's numbers, and what is printed and written."""

from __future__ import annotations

import csv
import json
import math
import shlex
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


@pytest.mark.parametrize(
    ("option", "text", "setting"),
    [
        ("--preemption", "quota_walk", "quota_walk"),
        ("--decide-every", "2m", 120.0),
        ("--save-time", "1=7/2=30/9=1m", "1=7/2=30/9=60"),
        ("--restore-time", "bert=20s/*=5", "bert=20/*=5"),
        ("--restore-time", "90m", 5400.0),
    ],
)
def test_how_jobs_give_way_is_an_option_and_is_printed_again(
    run: Callable[..., Any], lecture: Path, option: str, text: str, setting: object
) -> None:
    words = ["simulate", lecture, "--cluster", "2x1", "--policy", "srtf", option, text, "--json"]
    first = run(*words).json
    assert first["settings"][option.removeprefix("--").replace("-", "_")] == setting
    again = shlex.split(first["command"])
    assert option in again
    assert run(*again[1:], "--json").json == first
    assert option in run("simulate", "--help").out


def test_what_resuming_costs_may_go_by_size(run: Callable[..., Any], tmp_path: Path) -> None:
    trace = tmp_path / "jobs.csv"
    trace.write_text("job_id,submit_time,duration,num_gpus\na,0,100,2\nb,1,10,1\nc,30,9,2\n")
    words = ["simulate", trace, "--cluster", "pool:2", "--policy", "srtf", "--out"]
    out = tmp_path / "out.csv"
    run(*words, out, "--save-time", "2=3", "--restore-time", "1=1/2=4")
    ends = [float(line["end_time"]) for line in csv.DictReader(out.read_text().splitlines())]
    # The first gives way twice and pays 3 + 4 s each time; the others never pay.
    assert ends == [0 + 100 + 10 + 9 + 2 * 7, 11.0, 39.0]


def test_the_terminal_shows_the_run_its_sizes_and_its_settings(
    run: Callable[..., Any], lecture: Path
) -> None:
    ran = run("simulate", lecture, "--cluster", "2x1", "--policy", "srtf")
    assert (ran.code, ran.err) == (0, "")
    for text in ("lecture on 2 GPUs", "Completion time, mean", "GPUs of the job", "queueing"):
        assert text in ran.out


@pytest.mark.parametrize("command", ["simulate", "compare"])
@pytest.mark.parametrize(
    ("cluster", "shown"),
    [
        (("--cluster", "2x1"), None),
        (("--cluster", "pool:2"), None),
        (("--cluster", "2x1", "--sharing", "pooled"), "pooled"),
    ],
)
def test_sharing_is_shown_where_jobs_share(
    run: Callable[..., Any],
    lecture: Path,
    command: str,
    cluster: tuple[str, ...],
    shown: str | None,
) -> None:
    lines = run(command, lecture, *cluster).out.splitlines()
    found = [line.split()[2:] for line in lines if line.startswith("GPU sharing")]
    assert found == ([[shown]] if shown else [])
    assert not any("None" in line for line in lines)


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
    words = ("simulate", "synthetic:kalos:jobs=200:load=0.5", "--seed", 3, "--json")
    data = run(*words).json
    assert data["trace"]["num_jobs"] == 200
    assert data["trace"]["settings"] == {"jobs": 200, "load": 0.5, "seed": 3, "cpu_jobs": False}
    assert data["cluster"]["name"] == "kalos"
    assert any("comes with the trace" in note for note in data["notes"])
    assert "synthetic:kalos:jobs=200:load=0.5" in data["command"]
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


FILE = """\
[checkpoint]
interval = 20
[[maintenance]]
nodes = [0]
start = 25
end = "1m"
on_start = "kill"
"""


def test_disruptions_from_a_file(run: Callable[..., Any], lecture: Path, tmp_path: Path) -> None:
    file = tmp_path / "down.toml"
    file.write_text(FILE, encoding="utf-8")
    words = ("simulate", lecture, "--cluster", "2x1", "--disruptions", file)
    data = run(*words, "--json").json
    # a 0-25 on node 0; b 0-10 on node 1, then c 10-35, a 35-45 (20 of its 30 are saved), d 45-85.
    assert (data["num_failures"], data["num_restarts"], data["lost_gpu_time"]) == (1, 1, 5)
    assert data["makespan"] == 85
    assert data["utilization"] == (25 + 85) / (2 * 85 - 35)
    assert data["settings"]["disruptions"]["checkpoint"]["interval"] == 20
    again = run(*shlex.split(data["command"])[1:], "--json").json
    assert again == data
    shown = run(*words).out
    assert "GPU time lost" in shown


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("[chekpoint]\n", ["$.chekpoint", "Did you mean 'checkpoint'?"]),
        ("[[maintenance]]\nnode=[0]\n", ["$.maintenance[0].node", "Did you mean 'nodes'?"]),
        ("[[maintenance]]\nnodes=[0]\nstart=5\nend=5\n", ["end", "after start = 5"]),
        ("[[maintenance]]\nnodes=[0]\nstart=5\n", ["end"]),
        ("[[node_failures]]\nnode=9\ntime=5\n", ["node_failures[0]", "nodes 0 to 1"]),
        ("on_failure = 'stop'\n", ["on_failure", "restart"]),
        ("oops", ["cannot be read as TOML"]),
    ],
)
def test_a_wrong_file_is_refused(
    refused: Callable[..., str], lecture: Path, tmp_path: Path, text: str, parts: list[str]
) -> None:
    file = tmp_path / "down.toml"
    file.write_text(text, encoding="utf-8")
    message = refused("simulate", lecture, "--cluster", "2x1", "--disruptions", file)
    assert all(part in message for part in parts), message


def test_slow_downs_and_racks(run: Callable[..., Any], lecture: Path, tmp_path: Path) -> None:
    cluster = tmp_path / "c.toml"
    cluster.write_text("[[node_types]]\ncount = 2\ngpus = 1\nnodes_per_rack = 1\n")
    words = ("simulate", lecture, "--cluster", cluster, "--json")
    ran = run(*words, "--placement", "best_fit:topology=rack", "--slowdown", "spread,rack=0.8")
    assert (ran.code, ran.err) == (0, "")
    model = wt.Slowdown(spread=0.42, rack=0.8)
    assert ran.json["settings"]["slowdown"] == json.loads(json.dumps(model.to_mapping()))
    assert "--slowdown spread,rack=0.8" in ran.json["command"]
    assert (ran.json["lost_to_slowdown"], ran.json["avg_rate"]) == (0, 1)
    wrong = run(*words, "--slowdown", "spraed=1")
    assert wrong.code == 2
    assert "Did you mean 'spread'?" in wrong.err
    missing = run(*words, "--slowdown", f"spread_table={tmp_path / 'none.csv'}")
    assert missing.code == 2
    assert "a CSV file that can be read" in missing.err


def test_the_time_line_is_written_as_trace_or_page(
    run: Callable[..., Any], lecture: Path, tmp_path: Path
) -> None:
    words = ("simulate", lecture, "--cluster", "1x2", "--policy", "srtf", "--json")
    path = tmp_path / "run.json"
    data = run(*words, "--timeline", path).json
    assert data["timeline"] == str(path)
    assert any("lowest free" in note for note in data["notes"])
    events = json.loads(path.read_text("ascii"))["traceEvents"]
    assert sum(event.get("dur", 0) for event in events) == 105e6  # 30 + 10 + 25 + 40 s
    before = path.read_bytes()
    path.unlink()
    again = run(*shlex.split(data["command"])[1:])
    assert again.code == 0
    assert path.read_bytes() == before
    page = tmp_path / "run.html"
    ran = run(*words[:-1], "--timeline", page, "--timeline-window", "10:1m")
    assert f"The time-line is in {page}" in " ".join(ran.out.split())
    assert "Who ran where" in page.read_text("utf-8")


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--timeline", "x.txt"), "expected .json or .json.gz or .html or .htm"),
        (("--timeline", "no/such/x.json"), "expected a folder that exists"),
        (("--timeline-window", "1:2"), "expected --timeline FILE beside it"),
        (("--timeline", "x.json", "--timeline-window", "2d"), "expected START:END"),
        (("--timeline", "x.json", "--timeline-window", "2d:1d"), "expected a start before its end"),
    ],
)
def test_a_time_line_that_cannot_be_is_refused_before_the_run(
    refused: Callable[..., str], lecture: Path, words: tuple[str, ...], message: str
) -> None:
    assert message in refused("simulate", lecture, "--cluster", "1x2", *words)


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["--record", "jobs.parquet"], "is the trace itself"),
        (["--record", "a.parquet", "--out", "./a.parquet"], "is what --record writes"),
        (["--record", "none/a.parquet"], "expected a folder that exists"),
    ],
)
def test_a_recording_takes_no_other_files_place(
    run: Callable[..., Any],
    lecture: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    words: list[str],
    expected: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    trace = tmp_path / "jobs.parquet"
    pq.write_table(wt.open_trace(lecture).jobs, trace)
    before = trace.read_bytes()
    ran = run("simulate", "jobs.parquet", "--cluster", "pool:2", *words)
    assert (ran.code, expected in ran.err) == (2, True), ran.err
    assert trace.read_bytes() == before


def test_the_recording_is_named(run: Callable[..., Any], lecture: Path, tmp_path: Path) -> None:
    path = tmp_path / "run.parquet"
    words = ("simulate", lecture, "--cluster", "pool:2", "--record", path)
    assert f"The recording is in {path}" in run(*words).out
    assert run(*words, "--json").json["record"] == str(path)
