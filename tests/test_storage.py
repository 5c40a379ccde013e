"""What stays on disk: whole results, nothing of killed runs, and words that name the file."""

from __future__ import annotations

import ast
import errno
import os
import signal
import stat
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import pytest

import windtunnel
from windtunnel import storage

#: A process that begins a file or a folder, says so, and then waits.
BEGUN = """
import sys, time
from windtunnel import storage
kind, place = sys.argv[1:]
if kind == "scratch":
    (storage.scratch_folder() / "spilt").write_text("x")
    print("begun", flush=True)
    for _ in range(600):  # a signal on the way to a long sleep may not end it
        time.sleep(0.1)
with getattr(storage, kind)(place) as part:
    (part / "half" if part.is_dir() else part).write_text("half")
    print("begun", flush=True)
    for _ in range(600):  # a signal on the way to a long sleep may not end it
        time.sleep(0.1)
"""


@pytest.fixture
def scratch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder for temporary files, and a process that has swept none yet."""
    folder = tmp_path / "scratch"
    folder.mkdir()
    monkeypatch.setenv("TMPDIR", str(folder))
    monkeypatch.setattr(tempfile, "tempdir", None)
    storage._sweep.cache_clear()
    return folder


def begun(kind: str, place: Path) -> subprocess.Popen[str]:
    process = subprocess.Popen(  # noqa: S603 - our own
        [sys.executable, "-c", BEGUN, kind, str(place)], stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "begun\n"
    return process


def end(process: subprocess.Popen[str], how: signal.Signals) -> None:
    process.send_signal(how)
    process.wait(30)
    assert process.stdout is not None
    process.stdout.close()


@pytest.mark.parametrize("kind", ["replacing", "replacing_folder", "scratch"])
def test_what_a_killed_run_left_is_swept_by_the_next_and_nothing_else(
    kind: str, tmp_path: Path, scratch: Path
) -> None:
    here = scratch if kind == "scratch" else tmp_path
    keep = [here / ".mine.part", here / ".windtunnel-notes.part", here / "windtunnel-log"]
    for path in keep:
        path.write_text("mine")
    before = set(here.iterdir())
    killed, alive = begun(kind, tmp_path / "a"), begun(kind, tmp_path / "b")
    try:
        end(killed, signal.SIGKILL)
        assert len(set(here.iterdir()) - before) == 2
        storage._sweep.cache_clear()
        if kind == "scratch":
            storage.drop_scratch(storage.scratch_folder())
        else:
            with storage.replacing(tmp_path / "c") as part:
                part.write_text("whole")
            assert (tmp_path / "c").read_text() == "whole"
            (tmp_path / "c").unlink()
        (left,) = set(here.iterdir()) - before  # what another process is writing
        assert left.name.startswith((".windtunnel-", "windtunnel-"))
    finally:
        end(alive, signal.SIGKILL)


@pytest.mark.usefixtures("interruptible")
def test_a_run_that_is_interrupted_leaves_nothing(tmp_path: Path, scratch: Path) -> None:
    end(begun("replacing", tmp_path / "a"), signal.SIGINT)
    end(begun("scratch", tmp_path / "a"), signal.SIGINT)
    assert set(tmp_path.iterdir()) == {scratch}
    assert not list(scratch.iterdir())


def test_another_users_or_a_linked_name_is_left_alone(tmp_path: Path, scratch: Path) -> None:
    target = tmp_path / "precious"
    target.mkdir()
    (target / "file").write_text("x")
    (scratch / f"windtunnel-{'0' * 16}").symlink_to(target)
    storage.drop_scratch(storage.scratch_folder())
    assert (target / "file").exists()


def test_a_file_keeps_its_permissions_and_a_new_one_gets_the_usual(tmp_path: Path) -> None:
    mask = os.umask(0o027)
    try:
        with storage.replacing(tmp_path / "new") as part:
            part.write_text("x")
        secret = tmp_path / "secret"
        secret.touch(0o600)
        with storage.replacing(secret, durable=True) as part:
            part.write_text("y")
    finally:
        os.umask(mask)
    modes = [stat.S_IMODE((tmp_path / name).stat().st_mode) for name in ("new", "secret")]
    assert modes == [0o640, 0o600]
    assert secret.read_text() == "y"


def test_a_folder_takes_its_place_whole_or_file_by_file(tmp_path: Path) -> None:
    out = tmp_path / "deep" / "out"
    out.parent.mkdir()
    for text in ("1", "2"):
        with storage.replacing_folder(out) as part:
            (part / text).write_text(text)
    assert sorted(path.name for path in (tmp_path / "deep" / "out").iterdir()) == ["1", "2"]
    assert [path.name for path in (tmp_path / "deep").iterdir()] == ["out"]


@pytest.mark.parametrize("lend", [storage.replacing, storage.replacing_folder])
def test_errors_name_the_file_that_the_user_knows(tmp_path: Path, lend: Any) -> None:
    target = tmp_path / "page.html"
    with pytest.raises(OSError, match="No space left") as caught, lend(target):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
    assert caught.value.filename == str(target)
    with pytest.raises(FileNotFoundError) as other, lend(target):
        (tmp_path / "another").read_text()
    assert other.value.filename == str(tmp_path / "another")
    assert not list(tmp_path.iterdir())


TRACE = "synthetic:kalos"
#: What writes long enough to be killed on the way, by the option that names the file.
WRITERS = {
    "simulate": (("simulate", f"{TRACE}:jobs=20000", "--timeline"), "t.json"),
    "convert": (("convert", f"{TRACE}:jobs=200000"), "jobs.csv"),
    "compare": (("compare", f"{TRACE}:jobs=2000", "--policies", "fifo,sjf", "--out"), "c.html"),
}


@pytest.mark.slow
@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT])
@pytest.mark.parametrize("command", WRITERS)
def test_the_next_run_sweeps(
    command: str, how: signal.Signals, tmp_path: Path, scratch: Path
) -> None:
    words, name = WRITERS[command]
    process = subprocess.Popen(  # noqa: S603 - our own
        [sys.executable, "-m", "windtunnel", *words, str(tmp_path / name)],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    deadline = time.monotonic() + 120
    while not list(tmp_path.glob(".*.part")) and process.poll() is None:
        assert time.monotonic() < deadline
        time.sleep(0.001)
    process.send_signal(how)
    process.wait(60)
    with storage.replacing(tmp_path / "next") as part:
        part.touch()
    assert not list(tmp_path.glob(".*.part"))
    assert not list(scratch.iterdir())


def test_nobody_else_makes_temporary_files_or_knows_the_cache() -> None:
    """What others made there, no run would sweep."""
    sources = Path(windtunnel.__file__).parent
    names = {"tempfile", "platformdirs"}
    texts = ((path, path.read_text("utf-8")) for path in sources.rglob("*.py"))
    paths = [path for path, text in texts if any(name in text for name in names)]
    found = {
        (str(path.relative_to(sources)), name) for path in paths for name in imported(path) & names
    }
    assert found == {("storage.py", "tempfile"), ("storage.py", "platformdirs")}


def imported(path: Path) -> set[str]:
    """Return the packages that a file imports, wherever in it."""
    nodes = list(ast.walk(ast.parse(path.read_text("utf-8"))))
    names = [alias.name for node in nodes if isinstance(node, ast.Import) for alias in node.names]
    names += [str(node.module) for node in nodes if isinstance(node, ast.ImportFrom)]
    return {name.partition(".")[0] for name in names}
