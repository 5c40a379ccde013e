"""A pipe under a name is refused before a byte of it is taken, and without waiting for one."""

from __future__ import annotations

import gzip
import io
import os
import sys
import threading
import time
from typing import TYPE_CHECKING

import pytest

from windtunnel.errors import TraceError, WindtunnelError
from windtunnel.telemetry.open import TELEMETRY_FORMATS, open_telemetry
from windtunnel.traces import open_trace
from windtunnel.traces.readers import READERS

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

#: A pipe that nobody writes to would be waited for without end.
_PATIENCE_S = 60
#: Lines of 64 bytes: what is left of the log behind a look at its first bytes begins a line.
SWF = "".join(f"{f'{i} {i} 5 60 4 -1 -1 4 9 -1 1 2 1 -1 1 1 -1 -1':<63}\n" for i in range(9999))


def refusal(call: Callable[[], object]) -> WindtunnelError:
    """Return the error of a call, made where it cannot keep the test waiting."""
    found: list[object] = []

    def run() -> None:
        try:
            found.append(call())
        except WindtunnelError as error:
            found.append(error)

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    thread.join(_PATIENCE_S)
    assert found, "still waiting for the pipe"
    assert isinstance(found[0], WindtunnelError)
    return found[0]


@pytest.fixture
def pipe(tmp_path: Path) -> Path:
    path = tmp_path / "log.swf"
    os.mkfifo(path)
    return path


@pytest.mark.parametrize("name", sorted(READERS))
def test_every_reader_refuses_a_pipe_that_nobody_writes_to(pipe: Path, name: str) -> None:
    if name == "pai":  # reads a folder
        return
    error = refusal(lambda: open_trace(pipe, format=name))
    assert str(pipe) in str(error)
    assert isinstance(error, TraceError)
    assert "standard input (-)" in error.hint


@pytest.mark.parametrize("name", TELEMETRY_FORMATS)
def test_every_format_of_telemetry_refuses_a_pipe(pipe: Path, name: str) -> None:
    error = refusal(lambda: open_telemetry(pipe, format=name).table())
    assert str(pipe) in str(error)


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (os.mkfifo, "standard input (-)"),
        (os.mkdir, "It is a folder"),
        (lambda path: path.symlink_to("nowhere"), "expected a file that"),
    ],
    ids=["pipe", "folder", "broken link"],
)
@pytest.mark.parametrize("table", ["pai_task_table", "pai_job_table", "pai_instance_table"])
def test_a_table_of_pai_that_is_no_file_is_refused(
    tmp_path: Path, table: str, make: Callable[[Path], None], says: str
) -> None:
    if table != "pai_task_table":
        (tmp_path / "pai_task_table.csv").write_text("j,t,1,Terminated,1,2,600,29,50,T4\n")
    path = tmp_path / f"{table}.csv"
    make(path)
    error = refusal(lambda: open_trace(tmp_path))
    assert str(path) in str(error)
    assert says in str(error)


def test_a_pipe_in_a_folder_of_telemetry_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "a.csv")
    assert "format" in str(refusal(lambda: open_telemetry(tmp_path)))


def test_the_first_jobs_of_a_log_in_a_pipe_are_not_lost(pipe: Path) -> None:
    """A look at the first bytes takes thousands of them, and jobs with them."""

    def write() -> None:
        with pipe.open("wb") as stream:
            stream.write(SWF.encode())

    threading.Thread(target=write, daemon=True).start()
    refusal(lambda: open_trace(pipe))


SACCT = "JobID|State|Submit|Start|End|AllocTRES\n" + "".join(
    f"{i}|COMPLETED|{1000 + i}|{1001 + i}|{1009 + i}|gres/gpu=2\n" for i in range(50)
)


@pytest.mark.parametrize("text", [SACCT, SWF[:6400], f"; Version: 2.2\n{SWF[:6400]}"])
@pytest.mark.parametrize("pack", [bytes, gzip.compress])
@pytest.mark.parametrize("step", [1, 7, 10**6])
def test_standard_input_that_comes_in_pieces(
    monkeypatch: pytest.MonkeyPatch, text: str, pack: Callable[[bytes], bytes], step: int
) -> None:
    """The format is found by the first bytes, not by those that happened to come first."""
    data = pack(text.encode())
    reading, writing = os.pipe()

    def write() -> None:
        with os.fdopen(writing, "wb", buffering=0) as stream:
            for start in range(0, len(data), step):
                stream.write(data[start : start + step])
                if start < 100:
                    time.sleep(0.001)

    thread = threading.Thread(target=write, daemon=True)
    thread.start()
    with os.fdopen(reading, "rb") as raw:
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(raw))
        assert open_trace("-").jobs.num_rows == text.count("\n") - text.count("; ") - (
            text == SACCT
        )
    thread.join()


def test_a_parquet_file_that_is_a_pipe_is_not_waited_for(tmp_path: Path) -> None:
    path = tmp_path / "jobs.parquet"
    os.mkfifo(path)
    assert "standard input (-)" in str(refusal(lambda: open_trace(path)))
