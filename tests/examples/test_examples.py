"""The examples run as they are."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

#: Seconds in which anything here is over, or hangs.
LONG = 600
EXAMPLES = Path(__file__).resolve().parents[2] / "examples"


@pytest.mark.slow
def test_two_queues_runs_and_finds_its_results_again(tmp_path: Path) -> None:
    words = [sys.executable, str(EXAMPLES / "two_queues.py"), str(tmp_path / "out")]
    runs = [
        subprocess.run(words, capture_output=True, text=True, check=True, timeout=LONG)  # noqa: S603 - ours
        for _ in range(2)
    ]
    assert runs[0].stdout == runs[1].stdout
    lines = runs[0].stdout.splitlines()
    assert [line.split(":")[0] for line in lines] == ["avg_wait", "big_p99_wait"]
    assert lines[0].startswith("avg_wait: skip against strict: -")
    assert lines[0].endswith("better")


@pytest.mark.slow
def test_shortest_first_runs_and_compares(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "windtunnel", "study"]
    file, out = str(EXAMPLES / "shortest_first.toml"), str(tmp_path / "out")
    answers = {}
    for words in (
        ("run", file, "--out", out, "--workers", "2", "--json"),
        ("compare", out, "--out", str(tmp_path / "page.html"), "--json"),
    ):
        ran = subprocess.run(  # noqa: S603 - our own command
            [*command, *words], capture_output=True, text=True, check=True, timeout=LONG
        )
        assert ran.stderr == ""
        answers[words[0]] = json.loads(ran.stdout)
    assert answers["run"]["num_runs"] == answers["run"]["num_finished"] == 2 * 4 * 8
    assert answers["run"]["num_failed"] == 0
    assert len(answers["compare"]["contrasts"]) == 2 * 3 * 3
    assert answers["compare"]["claims"]
    assert (tmp_path / "page.html").stat().st_size > 10_000


@pytest.mark.slow
def test_preemption_is_as_the_readme_says(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "windtunnel", "study"]
    shown = ""
    for words in (
        ("run", str(EXAMPLES / "preemption.toml"), "--out", str(tmp_path / "out")),
        ("compare", str(tmp_path / "out")),
    ):
        ran = subprocess.run(  # noqa: S603 - our own command
            [*command, *words], capture_output=True, text=True, check=True, timeout=LONG
        )
        shown = " ".join(ran.stdout.split())
    readme = (EXAMPLES.parent / "README.md").read_text(encoding="utf-8")
    claims = [line.strip("> \\") for line in readme.splitlines() if line.startswith("> s")]
    assert len(claims) == 2
    assert all(claim in shown for claim in claims)
    assert "Queue: stable in all 24 runs." in shown


@pytest.mark.slow
def test_own_policy_runs_and_writes_its_page(tmp_path: Path) -> None:
    page = tmp_path / "new" / "page.html"
    words = [sys.executable, str(EXAMPLES / "own_policy.py"), str(page)]
    ran = subprocess.run(words, capture_output=True, text=True, check=True, timeout=LONG)  # noqa: S603 - ours
    assert ran.stderr == ""
    waits = dict(line.split(": ") for line in ran.stdout.splitlines())
    longest = {name: float(text.split()[-2]) for name, text in waits.items()}
    mean = {name: float(text.split()[2]) for name, text in waits.items()}
    assert mean["sjf"] < mean["patient-sjf"] < mean["fifo"]
    assert longest["patient-sjf"] < longest["sjf"]
    assert page.read_text("utf-8").count("patient-sjf") > 3
