"""`windtunnel describe`: on the terminal, as JSON, as a page, and what it refuses."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from windtunnel.characterize.headline_tables import CLAIMS
from windtunnel.characterize.summary import COLUMNS

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

#: Two jobs of Kalos; the first is printed in AcmeTrace's README. Its own run times hold the wait.
KALOS = """\
job_id,user,node_num,gpu_num,cpu_num,mem_per_pod_GB,shared_mem_per_pod,type,state,submit_time,\
start_time,end_time,fail_time,stop_time,duration,queue,gpu_time
dlctk696s0jbvitv,uf794,8,64,960,1000,100.0,Other,FAILED,2023-05-17 11:00:58+00:00,\
2023-05-17 11:01:08+00:00,2023-05-17 11:01:16+00:00,2023-05-17 11:01:16+00:00,,18,10.0,1152.0
dlcb,uf795,1,8,120,1000,100.0,Other,COMPLETED,2023-05-17 12:00:00+00:00,\
2023-05-17 12:00:12+00:00,2023-05-17 12:01:22+00:00,,,82,12.0,656.0
"""
ATTEMPTS = [
    ("job-a", "ann", "12:00:00", "12:02:00", ["gpu0", "gpu1"]),
    ("job-b", "bob", "12:02:00", "12:04:00", ["gpu0"]),
]
MINUTES = """\
time,machineId,gpu0_util,gpu1_util,
2017-10-03 12:00:00 PDT,m1,10,20,
2017-10-03 12:01:00 PDT,m1,30,40,
2017-10-03 12:02:00 PDT,m1,80,0,
2017-10-03 12:03:00 PDT,m1,100,NA,
"""


@pytest.fixture
def kalos(tmp_path: Path) -> Path:
    path = tmp_path / "trace_kalos.csv"
    path.write_text(KALOS, encoding="utf-8")
    return path


@pytest.fixture
def philly(tmp_path: Path) -> tuple[Path, Path]:
    """A log of two jobs, and the minutes of the machine that they ran on."""
    log, minutes = tmp_path / "cluster_job_log", tmp_path / "cluster_gpu_util"
    jobs = [
        {
            "status": "Pass",
            "vc": "v",
            "jobid": name,
            "user": user,
            "submitted_time": "2017-10-03 11:59:00",
            "attempts": [
                {
                    "start_time": f"2017-10-03 {start}",
                    "end_time": f"2017-10-03 {end}",
                    "detail": [{"ip": "m1", "gpus": gpus}],
                }
            ],
        }
        for name, user, start, end, gpus in ATTEMPTS
    ]
    log.write_text(json.dumps(jobs), encoding="utf-8")
    minutes.write_text(MINUTES, encoding="utf-8")
    return log, minutes


def test_json_has_the_row_in_the_order_of_the_file_and_every_claim(
    run: Callable[..., Any], lecture: Path
) -> None:
    data = run("describe", lecture, "--json").json
    assert list(data["cluster_summary"]) == list(COLUMNS)
    assert data["cluster_summary"]["avg_run_time_gpu"] == (30 + 10 + 25 + 40) / 4
    nulls = {name for name, value in data["cluster_summary"].items() if value is None}
    assert nulls == set(data["cluster_summary_why"])
    assert data["cluster_summary_why"]["avg_que_time_gpu"] == "None of 4 GPU jobs has a wait."
    assert data["cluster_summary_n"]["avg_run_time_gpu"] == 4
    assert data["cluster_summary_left_out"]["avg_que_time_gpu"] == 4
    assert (data["cluster_summary_times"], data["cluster_summary_other"]) == ("recorded", None)
    assert [one["key"] for one in data["headlines"]] == [claim.key for claim in CLAIMS]
    assert {*data["headlines"][0]} == {
        *("key", "claim", "value", "unit", "n", "left_out", "published", "why_not", "source")
    }
    assert all((one["value"] is None) == bool(one["why_not"]) for one in data["headlines"])
    listed = {label for one in data["cannot_be_had"] for label in one["numbers"]}
    assert len(listed) == len(nulls) + sum(one["value"] is None for one in data["headlines"])
    assert (data["telemetry"], data["page"]) == ([], None)


def test_published_counts_of_kalos(run: Callable[..., Any]) -> None:
    row = run("describe", "synthetic:kalos:cpu-jobs=yes", "--json").json["cluster_summary"]
    counts = (row["job_num"], row["cpu_job_num"], row["gpu_job_num"], row["max_gpu"])
    assert counts == (62_413, 42_506, 19_907, 1024)


def test_the_terminal_shows_numbers_and_what_cannot_be_had(
    run: Callable[..., Any], lecture: Path
) -> None:
    printed = run("describe", lecture)
    assert (printed.code, printed.err) == (0, "")
    for text in (
        "Cluster summary of the GPU jobs, by recorded times",
        "Headline numbers; beside them what was published of the PAI trace",
        "1,200,000",
        "Cannot be had, and why",
        "The trace has no tasks table: 11 numbers",
        "--all leaves nothing out",
    ):
        assert text in printed.out, text
    assert len(printed.out.splitlines()) < 90
    whole = run("describe", lecture, "--all").out
    assert "avg_run_time_gpu" in whole
    assert "slow-down by co-location" in whole
    assert "--all leaves" not in whole


@pytest.mark.sample(1)
@pytest.mark.parametrize("columns", ["80", "120"])
def test_a_large_trace_is_no_wall_of_text(
    run: Callable[..., Any], monkeypatch: pytest.MonkeyPatch, columns: str
) -> None:
    monkeypatch.setenv("COLUMNS", columns)
    lines = run("describe", "synthetic:seren:jobs=5000").out.splitlines()
    assert len(lines) <= 118
    assert max(map(len, lines)) <= int(columns)


@pytest.mark.slow
def test_the_sources_own_times_are_used_on_request(run: Callable[..., Any], kalos: Path) -> None:
    recorded = run("describe", kalos, "--json").json
    own = run("describe", kalos, "--source-times", "--json").json
    # Recorded: 8 s and 70 s; the source says 18 s and 82 s, and GPU time of those.
    assert recorded["cluster_summary"]["avg_run_time_gpu"] == 39.0
    assert own["cluster_summary"]["avg_run_time_gpu"] == 50.0
    assert recorded["cluster_summary"]["fail_gpu_time"] == 8 * 64
    assert own["cluster_summary"]["fail_gpu_time"] == 1152.0
    assert own["cluster_summary_times"] == "source"
    assert own["cluster_summary_other"] == recorded["cluster_summary"]
    assert recorded["cluster_summary_other"] == own["cluster_summary"]
    (note,) = [note for note in recorded["notes"] if "--source-times" in note]
    assert "avg_run_time_gpu 50 s instead of 39 s" in note


@pytest.mark.slow
def test_telemetry_is_reported_by_user(run: Callable[..., Any], philly: tuple[Path, Path]) -> None:
    log, minutes = philly
    data = run("describe", log, "--telemetry", minutes, "--json").json
    (use,) = data["telemetry"]
    users = {row["user"]: row["mean"] for row in use["jobs"]["gpu_util"]["by"]["user"]}
    assert users == {"ann": 25.0, "bob": 90.0, "(not held)": 0.0}
    printed = run("describe", log, "--telemetry", minutes).out
    for text in ("Telemetry: ", "gpu_util", "Samples by user", "90.0", "1 measurement dropped"):
        assert text in printed


@pytest.mark.slow
def test_the_page_is_written_whole(run: Callable[..., Any], lecture: Path, tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    data = run("describe", lecture, "--html", page, "--json").json
    assert data["page"] == str(page)
    html = page.read_text(encoding="utf-8")
    assert html.startswith("<!doctype html>")
    assert f"windtunnel describe {lecture} --html {page}" in html
    assert sorted(path.name for path in tmp_path.iterdir()) == ["lecture.csv", "page.html"]


def test_a_page_that_cannot_be_written_is_refused_before_reading(
    refused: Callable[..., str], tmp_path: Path, lecture: Path
) -> None:
    assert "--html" in refused("describe", "no/such.csv", "--html", tmp_path / "page.pdf")
    assert ".html or .htm" in refused("describe", lecture, "--html", tmp_path / "page.pdf")
    assert "folder" in refused("describe", lecture, "--html", tmp_path / "no" / "page.html")
    same = tmp_path / "same.html"
    same.write_text(lecture.read_text())
    assert "is the trace itself" in refused("describe", same, "--html", same)


def test_bad_telemetry_is_refused(
    refused: Callable[..., str], tmp_path: Path, lecture: Path
) -> None:
    assert "exists" in refused("describe", lecture, "--telemetry", tmp_path / "nowhere")
    other = tmp_path / "other.csv"
    other.write_text("a,b\n1,2\n")
    assert "cannot tell the format" in refused("describe", lecture, "--telemetry", other)
