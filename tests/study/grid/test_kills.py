"""A study of 200 runs, killed at random and resumed, is the uninterrupted one byte for byte."""

from __future__ import annotations

import contextlib
import json
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from studies import digests, write_trace

from windtunnel.study.grid import Study, open_results, run_study

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

#: Seconds in which anything here is over, or hangs.
LONG = 240
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


@contextlib.contextmanager
def _started(file: Path, out: Path, workers: int) -> Iterator[subprocess.Popen[bytes]]:
    """Start the study in a process of its own, which is gone after the block, whatever happens."""
    words = ["study", "run", str(file), "--out", str(out), "--workers", str(workers), "--json"]
    process = subprocess.Popen(  # noqa: S603 - our own command
        [sys.executable, "-m", "windtunnel", *words],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    try:
        yield process
    finally:
        process.kill()
        process.wait(LONG)
        for pipe in (process.stdout, process.stderr):
            assert pipe is not None
            pipe.close()


def _wait_until(there: Callable[[], object], process: subprocess.Popen[bytes]) -> None:
    """Wait until something is there; fail where the process ends before, or it takes too long."""
    deadline = time.monotonic() + LONG
    while not there():
        assert process.poll() is None, "the study was over before it could be disturbed"
        assert time.monotonic() < deadline
        time.sleep(0.001)


def _finished(out: Path) -> dict[str, tuple[int, int]]:
    """Return the finished runs: file -> when it was written and which file it is."""
    stats = {path.name: path.stat() for path in (out / "runs").glob("*.parquet")}
    return {name: (stat.st_mtime_ns, stat.st_ino) for name, stat in stats.items()}


def _children(pid: int) -> list[int]:
    """Return the child processes that any thread of a process has started."""
    if not Path(f"/proc/self/task/{os.getpid()}/children").exists():
        pytest.skip("no list of child processes on this system")
    found = []
    for path in Path(f"/proc/{pid}/task").glob("*/children"):
        with contextlib.suppress(OSError):  # the thread has ended meanwhile
            found += [int(word) for word in path.read_text(encoding="ascii").split()]
    return found


@pytest.mark.slow
def test_a_study_killed_three_times_is_the_uninterrupted_one(file: Path, tmp_path: Path) -> None:
    whole, killed = tmp_path / "whole", tmp_path / "killed"
    run_study(Study.load(file), whole, workers=2)
    assert open_results(whole).num_runs == 200
    draw = random.Random(20)  # noqa: S311 - no secret
    before: dict[str, tuple[int, int]] = {}
    for _ in range(3):
        goal = len(before) + draw.randrange(5, 40)
        with _started(file, killed, workers=2) as process:
            _wait_until(lambda: len(_finished(killed)) >= goal, process)  # noqa: B023 - called here
            children = _children(process.pid)
            assert children
            process.kill()
        _wait_for_the_end(children)  # workers die with their parent
        after = _finished(killed)
        assert goal <= len(after) < 200
        assert before.items() <= after.items()  # nothing lost, nothing flown twice
        before = after
    with _started(file, killed, workers=1) as process:
        out, err = process.communicate(timeout=LONG)
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


def _wait_for_the_end(pids: list[int]) -> None:
    deadline = time.monotonic() + LONG
    while any(_alive(pid) for pid in pids):
        assert time.monotonic() < deadline
        time.sleep(0.02)


@pytest.mark.slow
@pytest.mark.usefixtures("interruptible")
def test_an_interrupt_ends_at_once_and_loses_nothing(file: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    with _started(file, out, workers=2) as process:
        _wait_until(lambda: _workers(process.pid), process)
        # A terminal sends Ctrl-C to workers, too, which from their birth on leave it to us.
        assert all(_is_deaf_to_ctrl_c(worker) for worker in _workers(process.pid))
        _wait_until(lambda: len(_finished(out)) >= 5, process)
        workers = _workers(process.pid)
        process.send_signal(signal.SIGINT)
        printed, err = process.communicate(timeout=LONG)
    assert (process.returncode, printed, err.split()) == (130, b"", [b"Interrupted."])
    assert workers
    assert not any(_alive(worker) for worker in workers)
    there = _finished(out)
    assert 5 <= len(there) < 200
    assert open_results(out).table.num_rows == len(there)
    with _started(file, out, workers=2) as process:
        process.communicate(timeout=LONG)
    assert there.items() <= _finished(out).items()
    assert open_results(out).table.num_rows == 200


def _is_deaf_to_ctrl_c(pid: int) -> bool:
    """Whether a process blocks or ignores SIGINT; one that has ended is deaf enough."""
    try:
        status = Path(f"/proc/{pid}/status").read_text(encoding="utf-8")
    except OSError:
        return True
    masks = dict(line.split(":\t", 1) for line in status.splitlines() if line.startswith("Sig"))
    return bool((int(masks["SigBlk"], 16) | int(masks["SigIgn"], 16)) >> (signal.SIGINT - 1) & 1)


@pytest.mark.slow
def test_a_worker_that_is_killed_costs_no_run(file: Path, tmp_path: Path) -> None:
    whole, hurt = tmp_path / "whole", tmp_path / "hurt"
    file.write_text(TOML.replace("seeds = 10", "seeds = 6"), encoding="utf-8")
    with _started(file, hurt, workers=2) as process:
        _wait_until(lambda: len(_finished(hurt)) >= 10, process)
        victim = _workers(process.pid)[0]
        os.kill(victim, signal.SIGKILL)
        out, err = process.communicate(timeout=LONG)
    assert (process.returncode, err) == (0, b"")
    assert json.loads(out)["num_failed"] == 0
    run_study(Study.load(file), whole, workers=2)
    assert digests(hurt) == digests(whole)


def _workers(pid: int) -> list[int]:
    """Return the processes that fly; another child of ours tracks shared resources."""
    found = []
    for child in _children(pid):
        with contextlib.suppress(OSError):  # it has ended meanwhile
            if "spawn_main" in Path(f"/proc/{child}/cmdline").read_text(encoding="utf-8"):
                found.append(child)
    return found
