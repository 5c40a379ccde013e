"""The command as a process: start-up, exit codes, pipes and interrupts."""

from __future__ import annotations

import json
import os
import resource
import signal
import subprocess
import sys
from importlib.metadata import entry_points
from typing import TYPE_CHECKING, Any

import pytest

import windtunnel
from windtunnel import cli

if TYPE_CHECKING:
    from pathlib import Path


#: Seconds in which anything here is over, or hangs.
LONG = 240
COMMAND = [sys.executable, "-m", "windtunnel"]
#: CPU seconds that the help may take; 0.12 on a quiet machine.
HELP_S = 0.4
HEAVY = ("numpy", "pyarrow", "altair", "ibis", "duckdb", "rich", "pooch", "pandas")


def call(*words: object, **options: Any) -> subprocess.CompletedProcess[str]:
    return subprocess.run(  # noqa: S603 - our own command
        [*COMMAND, *map(str, words)],
        capture_output=True,
        text=True,
        timeout=LONG,
        check=False,
        **options,
    )


def test_the_entry_point_is_declared() -> None:
    (found,) = entry_points(group="console_scripts", name="windtunnel")
    assert found.load() is cli.main


def test_help_is_quick_and_imports_nothing_heavy() -> None:
    spent = []
    while not spent or (min(spent) >= HELP_S and len(spent) < 5):  # a busy machine counts more
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        ran = call("--help")
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        spent.append(after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime)
    assert ran.returncode == 0
    for command in ("traces", "fetch", "describe", "simulate", "compare", "demo"):
        assert f"  {command} " in ran.stdout
    assert min(spent) < HELP_S
    code = "import sys; from windtunnel.cli.root import windtunnel as w\n"
    code += "try: w.main(['--help'], prog_name='windtunnel')\nexcept SystemExit: pass\n"
    code += f"sys.exit(str([m for m in {HEAVY!r} if m in sys.modules]))"
    loaded = subprocess.run(  # noqa: S603, PLW1510 - our own interpreter and code
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=LONG
    )
    assert loaded.stderr.strip() == "[]"


def test_a_flight_imports_neither_pandas_nor_what_draws_and_asks(lecture: Path) -> None:
    words = ["windtunnel", "simulate", str(lecture), "--cluster", "pool:2"]
    program = (
        f"import sys; sys.argv = {words!r}; from windtunnel import cli\n"
        "try: cli.main()\n"
        "except SystemExit: pass\n"
        "heavy = {'pandas', 'altair', 'ibis', 'duckdb', 'scipy', 'highspy'} & {*sys.modules}\n"
        "import pyarrow as pa\n"
        "print(sorted(heavy), pa.array([3]).to_pandas().sum())"
    )
    run = subprocess.run(  # noqa: S603 - this Python, a fixed program
        [sys.executable, "-c", program], check=True, capture_output=True, text=True, timeout=LONG
    )
    assert run.stdout.splitlines()[-1] == "[] 3", run.stderr


def test_version() -> None:
    assert call("--version").stdout == f"windtunnel {windtunnel.__version__}\n"


def test_no_command_prints_the_help_and_is_wrong() -> None:
    ran = call()
    assert ran.returncode == 2
    assert "Usage: windtunnel" in ran.stderr


@pytest.mark.slow
def test_json_through_a_pipe_and_from_one(lecture: Path) -> None:
    ran = call(
        *("simulate", "-", "--cluster", "pool:2", "--policy", "srtf", "--json"),
        input=lecture.read_text("utf-8"),
    )
    assert (ran.returncode, ran.stderr) == (0, "")
    assert json.loads(ran.stdout)["avg_jct"] == 34


def test_a_wrong_file_gives_two_and_one_message(lecture: Path, tmp_path: Path) -> None:
    out = tmp_path / "run.csv"
    lecture.write_text(lecture.read_text("utf-8").replace("b,0,10", "b,0,-10"), encoding="utf-8")
    ran = call("simulate", lecture, "--cluster", "pool:2", "--out", out)
    assert (ran.returncode, ran.stdout) == (2, "")
    assert ran.stderr.startswith("Error: ")
    assert "line 3: -10" in ran.stderr
    assert "Traceback" not in ran.stderr
    assert not out.exists()


def test_a_reader_that_goes_away_is_no_noise(lecture: Path) -> None:
    words = ["simulate", str(lecture), "--cluster", "pool:2", "--engine", "reference", "--json"]
    read, write = os.pipe()
    os.close(read)
    with os.fdopen(write, "w") as pipe:
        ran = subprocess.run(  # noqa: S603
            [*COMMAND, *words],
            stdout=pipe,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
            timeout=LONG,
        )
    assert ran.stderr == ""
    assert ran.returncode == 1


@pytest.mark.skipif(os.name == "nt", reason="no SIGINT to send")
@pytest.mark.usefixtures("interruptible")
def test_an_interrupt_ends_with_one_word() -> None:
    words = [*COMMAND, "simulate", "-", "--cluster", "pool:2"]
    with subprocess.Popen(  # noqa: S603
        words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        try:
            assert process.stdin is not None
            # More than a pipe holds: once it is written, the program reads its standard input.
            process.stdin.write("#" * (1 << 20))
            process.stdin.flush()
            process.send_signal(signal.SIGINT)
            out, err = process.communicate(timeout=LONG)
        finally:
            process.kill()
    assert process.returncode == 130
    assert (out, err.split()) == ("", ["Interrupted."])
