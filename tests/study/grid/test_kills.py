"""A study of 200 runs, killed at random and resumed, is the uninterrupted one byte for byte."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from studies import digests, write_trace

from windtunnel.study.grid import Study, open_results, run_study

TOML = """\
name = "kills"
policies = ["fifo", "sjf"]
queueing = ["skip"]
clusters = ["2x8", "1x8"]
loads = [0.7, 0.9, 1.1, 1.3, "recorded"]
seeds = 10
[[traces]]
trace = "jobs.csv"
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    write_trace(tmp_path / "jobs.csv", jobs=200)
    path = tmp_path / "STUDY.toml"
    path.write_text(TOML, encoding="utf-8")
    return path


def _start(file: Path, out: Path, workers: int) -> subprocess.Popen[bytes]:
    words = ["study", "run", str(file), "--out", str(out), "--workers", str(workers), "--json"]
    return subprocess.Popen(  # noqa: S603 - our own command
        [sys.executable, "-m", "windtunnel", *words],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )


def _finished(out: Path) -> dict[str, tuple[int, int]]:
    """Return the finished runs: file -> when it was written and which file it is."""
    stats = {path.name: path.stat() for path in (out / "runs").glob("*.parquet")}
    return {name: (stat.st_mtime_ns, stat.st_ino) for name, stat in stats.items()}


def _children(pid: int) -> list[int]:
    """Return the child processes that any thread of a process has started."""
    lists = list(Path(f"/proc/{pid}/task").glob("*/children"))
    if not lists:
        pytest.skip("no list of child processes on this system")
    return [int(word) for path in lists for word in path.read_text(encoding="ascii").split()]


@pytest.mark.slow
def test_a_study_killed_three_times_is_the_uninterrupted_one(file: Path, tmp_path: Path) -> None:
    whole, killed = tmp_path / "whole", tmp_path / "killed"
    run_study(Study.from_toml(file), whole, workers=2)
    assert open_results(whole).num_runs == 200
    draw = random.Random(20)  # noqa: S311 - no secret
    before: dict[str, tuple[int, int]] = {}
    for _ in range(3):
        process = _start(file, killed, workers=2)
        goal = len(before) + draw.randrange(5, 55)
        while len(_finished(killed)) < goal and process.poll() is None:
            time.sleep(0.001)
        children = _children(process.pid)
        assert children
        process.kill()
        process.communicate()
        deadline = time.monotonic() + 20
        while any(_alive(child) for child in children):  # workers die with their parent
            assert time.monotonic() < deadline
            time.sleep(0.02)
        after = _finished(killed)
        assert goal <= len(after) < 200
        assert before.items() <= after.items()  # nothing lost, nothing flown twice
        before = after
    process = _start(file, killed, workers=1)
    out, err = process.communicate(timeout=240)
    assert (process.returncode, err) == (0, b"")
    assert json.loads(out)["num_finished"] == 200
    assert before.items() <= _finished(killed).items()
    assert digests(killed) == digests(whole)
    assert not list(killed.rglob("*.part"))
    flown = [
        json.loads(line)["run_id"]
        for line in (killed / "timings.jsonl").read_text("utf-8").splitlines()
    ]
    assert len(flown) == len(set(flown))


def _alive(pid: int) -> bool:
    try:
        stat = Path(f"/proc/{pid}/stat").read_text(encoding="ascii")
    except OSError:
        return False
    return stat.rsplit(")", 1)[1].split()[0] != "Z"


@pytest.mark.slow
@pytest.mark.usefixtures("interruptible")
def test_an_interrupt_ends_at_once_and_loses_nothing(file: Path, tmp_path: Path) -> None:
    file.write_text(TOML.replace("seeds = 10", "seeds = 3"), encoding="utf-8")
    out = tmp_path / "out"
    process = _start(file, out, workers=2)
    while len(_finished(out)) < 5 and process.poll() is None:
        time.sleep(0.001)
    workers = _workers(process.pid)
    process.send_signal(signal.SIGINT)
    told, err = process.communicate(timeout=60)
    assert (process.returncode, told, err.split()) == (130, b"", [b"Interrupted."])
    assert not any(_alive(worker) for worker in workers)
    there = _finished(out)
    assert 5 <= len(there) < 60
    assert open_results(out).table.num_rows == len(there)
    process = _start(file, out, workers=2)
    process.communicate(timeout=240)
    assert there.items() <= _finished(out).items()
    assert open_results(out).table.num_rows == 60


@pytest.mark.slow
def test_a_worker_that_is_killed_costs_no_run(file: Path, tmp_path: Path) -> None:
    whole, hurt = tmp_path / "whole", tmp_path / "hurt"
    file.write_text(TOML.replace("seeds = 10", "seeds = 3"), encoding="utf-8")
    process = _start(file, hurt, workers=2)
    while len(_finished(hurt)) < 10 and process.poll() is None:
        time.sleep(0.001)
    for child in _workers(process.pid)[:1]:
        os.kill(child, signal.SIGKILL)
    out, err = process.communicate(timeout=240)
    assert (process.returncode, err) == (0, b"")
    assert json.loads(out)["num_failed"] == 0
    run_study(Study.from_toml(file), whole, workers=2)
    assert digests(hurt) == digests(whole)


def _workers(pid: int) -> list[int]:
    """Return the processes that fly; another child of ours tracks shared resources."""
    found = [
        child
        for child in _children(pid)
        if "spawn_main" in Path(f"/proc/{child}/cmdline").read_text(encoding="utf-8")
    ]
    assert found
    return found
