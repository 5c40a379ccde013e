"""Wrong input: one message that says where and what, exit code 2, nothing printed or written."""

from __future__ import annotations

import gzip
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


HEADER = "job_id,submit_time,duration,num_gpus\n"

#: Case -> (content of jobs.csv, words that the message must hold).
FILES = {
    "truncated": (HEADER + "a,0,30,1\nb,0,10", ["jobs.csv", "line 3"]),
    "wrong dialect": (HEADER.replace(",", ";") + "a;0;30;1\n", ["jobs.csv", "';'"]),
    "missing column": (
        "job_id,submit_time,durations,num_gpus\na,0,30,1\n",
        ["jobs.csv", "'duration'", "Did you mean 'durations'?"],
    ),
    "negative duration": (
        HEADER + "a,0,30,1\nb,0,-10,1\n",
        ["jobs.csv", "'duration'", "line 3", "-10"],
    ),
    "NaN duration": (HEADER + "a,0,nan,1\n", ["jobs.csv", "'duration'", "line 2", "nan"]),
    "not a number": (HEADER + "a,0,soon,1\n", ["jobs.csv", "'duration'", "line 2", "'soon'"]),
    "end before start": (
        "job_id,submit_time,start_time,end_time,num_gpus\na,0,30,20,1\n",
        ["jobs.csv", "'end_time'", "line 2", "20"],
    ),
    "duplicate id": (HEADER + "a,0,30,1\na,1,30,1\n", ["jobs.csv", "'job_id'", "line 3", "'a'"]),
    "unknown status": (
        "job_id,submit_time,duration,num_gpus,status\na,0,30,1,done\n",
        ["jobs.csv", "'status'", "line 2", "'done'"],
    ),
    "larger than the cluster": (
        HEADER + "a,0,30,1\nhuge,0,30,3\n",
        ["jobs.csv", "'num_gpus'", "huge", "--oversize reject"],
    ),
    "without a duration": (
        HEADER + "a,0,,1\nb,0,9,1\n",
        ["jobs.csv", "'duration'", "--incomplete reject"],
    ),
    "milliseconds": (
        HEADER + "a,1677628800000,30,1\n",
        ["jobs.csv", "'submit_time'", "job 'a'", "milliseconds are no seconds"],
    ),
    "out of all proportion": (
        HEADER + "a,0,1e300,1\nb,0,30,1e300\n",
        ["jobs.csv", "'duration'", "job 'a'", "'num_gpus'", "job 'b'"],
    ),
    "more GPU time than can be counted": (
        HEADER + "a,0,30,1\nb,0,1e10,1e6\n",
        ["jobs.csv", "'num_gpus'", "job 'b'", "1e+16"],
    ),
    "empty": ("", ["jobs.csv", "empty"]),
    "no rows": (HEADER, ["jobs.csv"]),
}


@pytest.mark.parametrize("case", FILES)
def test_a_wrong_file_is_refused_with_its_place(
    refused: Callable[..., str], tmp_path: Path, case: str
) -> None:
    content, words = FILES[case]
    jobs, out = tmp_path / "jobs.csv", tmp_path / "out.csv"
    jobs.write_text(content, encoding="utf-8")
    for more in ([], ["--json"]):
        message = refused("simulate", jobs, "--cluster", "2x1", "--out", out, *more)
        for word in words:
            assert word in message
    page = tmp_path / "page.html"
    refused("compare", jobs, "--cluster", "2x1", "--policies", "fifo,sjf", "--out", page)
    assert [path.name for path in tmp_path.iterdir()] == ["jobs.csv"]


def test_a_gz_that_is_not_gzip_is_refused(refused: Callable[..., str], tmp_path: Path) -> None:
    path = tmp_path / "jobs.csv.gz"
    path.write_text(HEADER + "a,0,30,1\n", encoding="utf-8")
    assert "gzip" in refused("describe", path)
    path.write_bytes(gzip.compress(HEADER.encode() * 100)[:-20])
    assert "cut" in refused("simulate", path, "--cluster", "pool:1")


#: Words behind ``simulate FILE --cluster pool:2`` -> what the message must hold.
OPTIONS = {
    ("--policy", "fifoo"): ["policy", "'fifoo'", "Did you mean 'fifo'?"],
    ("--policy", "nowhere:policy"): ["'nowhere:policy'"],
    ("--placement", "bestfit"): ["placement", "Did you mean 'best_fit'?"],
    ("--queueing", "skp"): ["queueing", "Did you mean 'skip'?"],
    ("--engine", "compild"): ["engine", "Did you mean 'compiled'?"],
    ("--cluster", "kallos"): ["cluster", "'kallos'", "Did you mean 'kalos'?"],
    ("--cluster", "0x8"): ["node_types", "at least 1 node"],
    ("--cluster", "missing.toml"): ["missing.toml"],
    ("--until", "soon"): ["--until", "'soon'", "seconds"],
    ("--until", "-1"): ["--until", "'-1'", "seconds"],
    ("--until", "nan"): ["--until", "'nan'", "seconds"],
    ("--disruptions", "mtbf:30d"): ["disruptions", "both mtbf: and mttr:"],
    ("--disruptions", "mtbf:30d/mtr:1h"): ["disruptions", "Did you mean 'mttr'?"],
    ("--disruptions", "mtbf:x/mttr:1h"): ["mtbf", "'x'", "30d"],
    ("--disruptions", "missing.toml"): ["missing.toml"],
    ("--save-time", "inf"): ["--save-time", "'inf'"],
    ("--save-time", "1=7/30"): ["--save-time", "'1=7/30'", "1=7/2=30/9=60"],
    ("--restore-time", "bert=soon"): ["--restore-time", "'soon'"],
    ("--decide-every", "0"): ["decide_every", "> 0"],
    ("--preemption", "feasable"): ["--preemption", "Did you mean 'feasible'?"],
    ("--preemption", "quota_walk", "--policy", "srtf", "--queueing", "easy"): ["quota walk"],
    ("--seed", "-1"): ["--seed", "-1"],
    ("--oversize", "rejct"): ["--oversize", "Did you mean 'reject'?"],
    ("--format", "natve"): ["format", "Did you mean 'native'?"],
    ("--polcy", "fifo"): ["--polcy", "--policy"],
    ("--out", "result.txt"): ["result.txt", "'.txt'", ".csv or .parquet"],
    ("--out", "no/such/folder/run.csv"): ["no/such/folder"],
}


@pytest.mark.parametrize("words", OPTIONS, ids=" ".join)
def test_a_wrong_option_is_refused_and_the_nearest_is_suggested(
    refused: Callable[..., str], lecture: Path, words: tuple[str, ...]
) -> None:
    message = refused("simulate", lecture, "--cluster", "pool:2", *words)
    for word in OPTIONS[words]:
        assert word in message


def test_a_run_whose_result_cannot_be_written_is_refused_before_it(
    refused: Callable[..., str], lecture: Path, tmp_path: Path
) -> None:
    folder = tmp_path / "folder.csv"
    folder.mkdir()
    start = ("simulate", lecture, "--cluster", "pool:2")
    assert "folder" in refused(*start, "--out", folder)
    assert "the trace itself" in refused(*start, "--out", lecture)
    assert "expected a folder" in refused(*start, "--out", lecture / "run.csv")
    assert ".html" in refused(
        *("compare", lecture, "--cluster", "pool:2", "--out", tmp_path / "page.doc")
    )
    assert "cannot be made" in refused("demo", "--out", lecture / "demo")


def test_a_trace_without_a_cluster_says_how_to_give_one(
    refused: Callable[..., str], lecture: Path
) -> None:
    message = refused("simulate", lecture)
    assert "--cluster 64x8:A100" in message
    assert "pool:512" in message


def test_unknown_names_of_traces_and_commands_suggest_the_nearest(
    refused: Callable[..., str],
) -> None:
    assert "Did you mean 'philly'?" in refused("describe", "phily")
    assert "Did you mean 'philly'?" in refused("fetch", "phily")
    assert "Did you mean 'kalos'?" in refused("describe", "synthetic:kalso")
    assert "Did you mean 'simulate'?" in refused("simulat", "x")
    assert "nothing to fetch" in refused("fetch", "synthetic:kalos")
    assert "exists" in refused("describe", "no/such/file.csv")
    assert "empty" in refused("describe", "-", stdin=b"")


def test_a_comparison_needs_policies_each_once(refused: Callable[..., str], lecture: Path) -> None:
    start = ("compare", lecture, "--cluster", "pool:2", "--policies")
    assert "twice" in refused(*start, "fifo,fcfs")
    assert "at least one" in refused(*start, " , ")
    assert "Did you mean 'srtf'?" in refused(*start, "fifo,strf")


@pytest.mark.parametrize(
    ("words", "option", "name"),
    [
        (("simulate", "kalos", "--jobs", 200), "--jobs", "synthetic:kalos:jobs=2000"),
        (("report", "queue", "kalos", "--load=0.9"), "--load", "synthetic:kalos:load=0.9"),
        (("describe", "kalos", "--seed", 1), "--seed", "synthetic:kalos:seed=1"),
        (("describe", "kalos", "--tasks"), "--tasks", "synthetic:pai:tasks=yes"),
        (("compare", "kalos", "--cpu-jobs"), "--cpu-jobs", "synthetic:kalos:cpu_jobs=yes"),
    ],
)
def test_an_option_of_earlier_versions_is_answered_with_where_it_stands_now(
    refused: Callable[..., str], words: tuple[object, ...], option: str, name: str
) -> None:
    message = refused(*words).splitlines()[0]
    assert message == f"Error: {option}: stands in the trace's name now: {name}."


def test_an_option_that_is_there_again_or_never_was_is_no_earlier_one(
    run: Callable[..., Any], refused: Callable[..., str], lecture: Path
) -> None:
    assert run("simulate", lecture, "--cluster", "pool:2", "--seed", 1).code == 0
    assert "No such option '--jobs'" in refused("study", "show", "x", "--jobs", 3)
    assert "No such option '--jbos'" in refused("simulate", lecture, "--jbos", 3)


def test_a_seed_is_refused_where_nothing_uses_it(
    refused: Callable[..., str], lecture: Path
) -> None:
    assert "--seed" in refused("describe", lecture, "--seed", 1)


def test_a_message_cannot_drive_the_terminal(refused: Callable[..., str]) -> None:
    assert "\\x1b[31m" in refused("describe", "no/\x1b[31mred.csv")


@pytest.mark.parametrize("place", ["before", "behind"])
def test_debug_shows_the_traceback_before_or_behind_the_command(
    run: Callable[..., Any], lecture: Path, place: str
) -> None:
    words = ["simulate", lecture, "--cluster", "pool:2", "--policy", "fifoo"]
    ran = run("--debug", *words) if place == "before" else run(*words, "--debug")
    assert ran.code == 2
    assert "Traceback" in ran.err
    assert ran.out == ""
