"""`windtunnel compare`: table, JSON and page."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


def test_json_has_every_run_with_its_metrics(run: Callable[..., Any], lecture: Path) -> None:
    words = ("compare", lecture, "--cluster", "pool:2", "--policies", "fifo, srtf", "--json")
    ran = run(*words)
    assert (ran.code, ran.err) == (0, "")
    data = ran.json
    keys = ("trace", "cluster", "settings", "baseline", "runs", "headline", "notes", "command")
    assert set(data) == {*keys, "page"}
    assert data["baseline"] == "fifo"
    assert data["page"] is None
    assert [(r["policy"], r["avg_jct"], r["makespan"]) for r in data["runs"]] == [
        ("fifo", 35.0, 70.0),
        ("srtf", 34.0, 66.0),
    ]
    assert [r["settings"]["queueing"] for r in data["runs"]] == ["strict", "skip"]
    assert "queueing" not in data["settings"]
    assert data["settings"]["seed"] == 0
    assert all(r["by_size"] and r["by_vc"] for r in data["runs"])


def test_the_page_is_written_with_the_command_that_gives_it_again(
    run: Callable[..., Any], lecture: Path, tmp_path: Path
) -> None:
    page = tmp_path / "it's a page.html"
    words = ("compare", lecture, "--cluster", "2x1", "--policies", "fifo,sjf", "--seed", 7)
    ran = run(*words, "--out", page, "--json")
    assert ran.json["page"] == str(page)
    html = page.read_text("utf-8")
    command = ran.json["command"]
    assert shlex.split(command)[-2:] == ["--out", str(page)]
    assert "--seed 7" in command
    assert "--seed 7" in html
    page.unlink()
    again = run(*shlex.split(command)[1:])
    assert again.code == 0
    assert page.read_text("utf-8") == html


def test_the_terminal_shows_runs_side_by_side_and_the_finding(
    run: Callable[..., Any], lecture: Path, tmp_path: Path
) -> None:
    page = tmp_path / "page.html"
    ran = run("compare", lecture, "--cluster", "pool:2", "--out", page)
    assert (ran.code, ran.err) == (0, "")
    for text in ("fifo", "sjf", "srtf", "Completion time, mean", "The page is", "again with"):
        assert text in ran.out


@pytest.mark.slow
def test_an_interactive_page_carries_its_script_and_loads_nothing(
    run: Callable[..., Any], lecture: Path, tmp_path: Path
) -> None:
    plain, page = tmp_path / "plain.html", tmp_path / "page.html"
    words = ("compare", lecture, "--cluster", "1x2", "--policies", "fifo,srtf", "--json")
    run(*words, "--out", plain)
    assert "<script" not in plain.read_text("utf-8")
    assert "Who ran where: srtf" in plain.read_text("utf-8")
    command = run(*words, "--interactive", "--out", page).json["command"]
    assert "--interactive" in shlex.split(command)
    html = page.read_text("utf-8")
    assert html.count('type="application/json" data-chart=') == 2
    assert len(html) > 500_000
