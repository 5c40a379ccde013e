"""Commands that are killed at a random moment: a whole result or none, and nothing left over."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.slow

TRACE = "synthetic:kalos:jobs"
STUDY = """\
policies = ["fifo", "sjf"]
clusters = ["302x8"]
seeds = 4
[[traces]]
trace = "synthetic:kalos:jobs=2000"
"""
#: Command -> its words; those in capitals stand for results.
COMMANDS = {
    "simulate": f"simulate {TRACE}=20000 --policy sjf --out OUT.parquet",
    "timeline": f"simulate {TRACE}=5000 --timeline OUT.json",
    "convert": f"convert {TRACE}=50000 OUT.csv",
    "fit": f"fit {TRACE}=20000 --out OUT.twin.json",
    "study": "study run study.toml --out OUT --workers 1",
}


def _started(command: str, place: Path, scratch: Path) -> subprocess.Popen[bytes]:
    words = COMMANDS[command].replace("OUT", "result").split()
    return subprocess.Popen(  # noqa: S603 - our own
        [sys.executable, "-m", "windtunnel", *words],
        cwd=place,
        env={**os.environ, "TMPDIR": str(scratch)},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )


def _results(place: Path) -> dict[str, bytes]:
    """Return what stands there by name, but for what changes from run to run: logs of the study."""
    files = (path for path in sorted(place.rglob("*")) if path.is_file())
    names = {str(path.relative_to(place)): path.read_bytes() for path in files}
    return {name: data for name, data in names.items() if name != "study.toml"}


@pytest.mark.parametrize("command", COMMANDS)
def test_a_killed_command_leaves_a_whole_result_or_none(command: str, tmp_path: Path) -> None:
    draw = random.Random()  # noqa: S311 - the moment is printed where it fails
    places = tmp_path / "whole", tmp_path / "killed"
    scratch = tmp_path / "scratch"
    for folder in (*places, scratch):
        folder.mkdir()
        (folder / "study.toml").write_text(STUDY)
    (scratch / "study.toml").unlink()
    begun = time.monotonic()
    assert _started(command, places[0], scratch).wait(200) == 0
    takes = time.monotonic() - begun
    whole = _results(places[0])
    assert whole
    for _ in range(2):
        after = draw.uniform(0.2, 1.0) * takes
        process = _started(command, places[1], scratch)
        time.sleep(after)
        os.killpg(process.pid, signal.SIGKILL)
        process.wait(30)
        for name, data in _results(places[1]).items():
            if command != "study" and not name.endswith(".part"):
                assert data == whole[name], f"{name} differs after a kill at {after:.3f} s"
    assert _started(command, places[1], scratch).wait(200) == 0
    found = _results(places[1])
    assert found.keys() == whole.keys()
    assert not list(places[1].rglob("*.part"))
    assert not list(scratch.iterdir())
    if command != "study":
        assert found == whole
