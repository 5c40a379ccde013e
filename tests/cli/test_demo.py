"""`windtunnel demo`: which trace, which cluster, and the page."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from windtunnel.cli import demo as module
from windtunnel.cli.opening import TraceRequest
from windtunnel.traces.open import open_trace

if TYPE_CHECKING:
    from collections.abc import Callable


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """No Philly on this machine, and the synthetic trace with 300 jobs only."""
    monkeypatch.delenv("WINDTUNNEL_DATA", raising=False)
    monkeypatch.setenv("WINDTUNNEL_CACHE", str(tmp_path / "cache"))
    full = TraceRequest.options

    def fewer(self: TraceRequest, **more: bool) -> dict[str, Any]:
        return {**full(self, **more), "jobs": 300}

    monkeypatch.setattr(TraceRequest, "options", fewer)


def test_the_pages_name_as_many_policies_as_it_flies() -> None:
    assert len(module.POLICIES) == 4
    root = Path(__file__).resolve().parents[2]
    for name in ("README.md", "Makefile", "docs/index.md", "docs/tutorial.md"):
        text = (root / name).read_text(encoding="utf-8")
        assert "four policies" in text, name
        assert "four schedulers" not in text, name


@pytest.mark.slow
def test_without_philly_it_flies_the_synthetic_trace_and_says_why(
    run: Callable[..., Any], small: None, tmp_path: Path
) -> None:
    out = tmp_path / "new" / "demo"
    ran = run("demo", "--out", out)
    assert (ran.code, ran.err) == (0, "")
    assert "Philly is not on this machine" in ran.out
    assert "keeps" in ran.out
    assert str(out / "report.html") in ran.out.replace("\n", "")
    html = (out / "report.html").read_text("utf-8")
    for text in ("synthetic:kalos", "srtf", "priority", "GPUs busy on average"):
        assert text in html


@pytest.mark.slow
def test_the_command_on_the_page_gives_the_page_again(
    run: Callable[..., Any], small: None, tmp_path: Path
) -> None:
    data = run("demo", "--out", tmp_path / "demo", "--seed", 5, "--json").json
    assert [r["policy"] for r in data["runs"]] == ["fifo", "sjf", "srtf", "priority"]
    page = tmp_path / "demo" / "report.html"
    assert data["page"] == str(page)
    html = page.read_text("utf-8")
    assert "--trace synthetic:kalos --seed 5" in html
    again = run(*shlex.split(data["command"])[1:], "--json").json
    assert again["runs"] == data["runs"]
    assert page.read_text("utf-8") == html


def test_big_gangs_are_favoured_where_a_trace_records_no_priority(tmp_path: Path) -> None:
    path = tmp_path / "jobs.csv"
    path.write_text("job_id,submit_time,duration,num_gpus\na,0,9,8\nb,9,9,7\n", encoding="utf-8")
    trace, notes = module.prepare(open_trace(path), "Asked for.")
    assert trace.jobs["priority"].to_pylist() == [1.0, 0.0]
    assert "gangs of 8 or more GPUs get priority 1, all others 0" in notes[-1]
    assert trace.metadata.notes[: len(notes) - 1] == notes[1:]


def test_recorded_priorities_are_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "jobs.csv"
    path.write_text(
        "job_id,submit_time,duration,num_gpus,priority\na,0,9,8,\nb,9,9,7,2\n", encoding="utf-8"
    )
    trace, _ = module.prepare(open_trace(path), "Asked for.")
    assert trace.jobs["priority"].to_pylist() == [None, 2.0]


@pytest.mark.slow
def test_philly_is_taken_where_it_is_and_queues_on_the_chosen_cluster(
    run: Callable[..., Any], data_dir: Path, tmp_path: Path
) -> None:
    data = run("demo", "--out", tmp_path, "--json").json
    assert data["trace"]["name"] == "philly"
    fifo, sjf, srtf, priority = data["runs"]
    assert fifo["avg_wait"] > 3600  # there is contention
    assert srtf["avg_jct"] < sjf["avg_jct"] < fifo["avg_jct"] < priority["avg_jct"]
    gangs = {run["policy"]: {row["size"]: row for row in run["by_size"]} for run in data["runs"]}
    assert gangs["priority"]["5-8"]["avg_wait"] < gangs["fifo"]["5-8"]["avg_wait"]
    assert len([note for note in data["notes"] if "priority 1" in note]) == 1
