"""A test that hangs ends the run and says where, also inside compiled code that holds the lock."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

import pytest

PROJECT = Path(__file__).parent.parent / "pyproject.toml"
HANGS = {
    "python": "import time\ndef test_hangs():\n    time.sleep(600)\n",
    # A call through PyDLL keeps Python's lock.
    "compiled": "import ctypes\ndef test_hangs():\n    ctypes.PyDLL(None).sleep(600)\n",
    "exit": (
        "import threading, time\ndef test_hangs():\n"
        "    threading.Thread(target=time.sleep, args=(600,)).start()\n"
    ),
}


@pytest.mark.slow
@pytest.mark.parametrize("workers", [[], ["-n", "2", "--max-worker-restart", "0"]])
@pytest.mark.parametrize("kind", HANGS)
def test_it_ends(kind: str, workers: list[str], tmp_path: Path) -> None:
    (tmp_path / "conftest.py").write_text((PROJECT.parent / "tests/conftest.py").read_text("utf-8"))
    (tmp_path / "test_it.py").write_text(HANGS[kind])
    words = ["-c", str(PROJECT), "--rootdir", str(tmp_path), "-o", "faulthandler_timeout=3"]
    begun = time.monotonic()
    ran = subprocess.run(  # noqa: S603 - our own
        [sys.executable, "-m", "pytest", *words, *workers, str(tmp_path / "test_it.py")],
        capture_output=True,
        check=False,
        text=True,
        timeout=200,
        env={"WINDTUNNEL_EXIT_WITHIN": "3", "PATH": "/usr/bin:/bin"},
    )
    assert time.monotonic() - begun < 120
    if kind != "exit":
        assert ran.returncode != 0
        assert "test_hangs" in ran.stdout + ran.stderr


def test_the_limit_is_one_that_a_watcher_sees() -> None:
    import tomllib

    options = tomllib.loads(PROJECT.read_text("utf-8"))["tool"]["pytest"]["ini_options"]
    assert options["faulthandler_exit_on_timeout"] is True
    assert options["faulthandler_timeout"] <= 300
