"""The command where little is allowed: nobody's rights, no home, a read-only root, a small disk."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import windtunnel

pytestmark = pytest.mark.slow

#: In a namespace of its own the root becomes read-only but for one folder, and its user is nobody.
#: Who may read everything, as the interpreter may lie in somebody's home, and write nothing else.
CONFINED = """
set -e
mount --make-rprivate /
mount -t tmpfs -o size={size},mode=1777 small "$1"
mount -o bind,remount,ro / 2>/dev/null || mount -o remount,ro /
cd "$1"
shift
exec setpriv --reuid=65534 --regid=65534 --clear-groups \\
  --inh-caps=-all,+dac_read_search --ambient-caps=-all,+dac_read_search env -i PATH=/usr/bin:/bin \\
  PYTHONDONTWRITEBYTECODE=1 PYTHONPATH="$SOURCES" TMPDIR=. "$@"
"""
SMALL = "synthetic:kalos:jobs=500"


def _may_mount() -> str:
    """Return why no read-only root can be had here; empty = it can."""
    if os.geteuid() != 0:
        return "only root may mount"
    if not (shutil.which("unshare") and shutil.which("setpriv")):
        return "unshare and setpriv are not here"
    script = 'mount --make-rprivate / && mount -o bind,remount,ro / && ! touch "$1/x" 2>/dev/null'
    words = ["unshare", "--mount", "/bin/sh", "-c", script, "sh", "/root"]
    ran = subprocess.run(words, capture_output=True, check=False, text=True, timeout=60)  # noqa: S603
    return f"the root cannot be mounted read-only: {ran.stderr.strip()}" if ran.returncode else ""


@pytest.fixture(scope="module", autouse=True)
def _mounting() -> None:
    """Skip, with the reason, where nothing may be mounted."""
    if reason := _may_mount():
        pytest.skip(reason)


def _flown(folder: Path, size: str, *words: str) -> subprocess.CompletedProcess[str]:
    """Run a command as nobody, without a home, on a read-only root; it may write ``size`` bytes."""
    python = [sys.executable, *words]
    script = CONFINED.format(size=size)
    return subprocess.run(  # noqa: S603 - our own
        ["unshare", "--mount", "/bin/sh", "-c", script, "sh", str(folder), *python],  # noqa: S607
        env={**os.environ, "SOURCES": str(Path(windtunnel.__file__).parent.parent)},
        capture_output=True,
        check=False,
        text=True,
        timeout=200,
    )


#: Lists what was written, after the command, as the folder is gone with it.
SHOWN = """
import pathlib, sys
from windtunnel.cli.root import windtunnel
try:
    windtunnel.main(sys.argv[1:], prog_name="windtunnel")
except SystemExit as end:
    left = sorted(str(path) for path in pathlib.Path().rglob("*"))
    print("left", left, "code", end.code)
"""


@pytest.mark.parametrize(
    ("words", "left"),
    [
        (("compare", SMALL, "--policies", "fifo,srtf", "--out", "a.html"), ["a.html"]),
        (("simulate", SMALL, "--timeline", "t.json", "--json"), ["t.json"]),
        (("convert", SMALL, "jobs.parquet"), ["jobs.parquet"]),
        (("fit", SMALL, "--out", "a.twin.json"), ["a.twin.json"]),
        (("describe", SMALL), []),
        (("serving", "simulate", "--policy", "sr", "--gpus", "8"), []),
    ],
)
def test_nobody_without_a_home_on_a_read_only_root(
    tmp_path: Path, words: tuple[str, ...], left: list[str]
) -> None:
    ran = _flown(tmp_path, "64m", "-c", SHOWN, *words)
    assert f"left {left} code 0" in ran.stdout, ran.stdout[-2000:] + ran.stderr


@pytest.mark.parametrize(
    "words",
    [
        ("compare", SMALL, "--policies", "fifo,sjf", "--out", "a.html"),
        ("simulate", SMALL, "--timeline", "t.json"),
        ("convert", "synthetic:kalos:jobs=20000", "jobs.csv"),
        ("fit", "synthetic:kalos:jobs=20000", "--out", "a.twin.json"),
    ],
)
def test_a_full_disk_is_named_and_nothing_is_left(tmp_path: Path, words: tuple[str, ...]) -> None:
    ran = _flown(tmp_path, "8k", "-c", SHOWN, *words)
    assert "left [] code 2" in ran.stdout, ran.stdout[-2000:] + ran.stderr
    assert ran.stderr.startswith(f"Error: {words[-1]}: ")
    assert ran.stderr.endswith("No space left on device.\n")


def test_nowhere_to_write_at_all(tmp_path: Path) -> None:
    ran = _flown(tmp_path, "64m", "-m", "windtunnel", "simulate", SMALL, "--out", "/usr/a.csv")
    assert ran.returncode == 2
    assert "/usr/a.csv" in ran.stderr
    assert "Traceback" not in ran.stderr
