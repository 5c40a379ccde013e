"""What is windtunnel's own is found, too: a file in its folder is all that a new one takes."""

from __future__ import annotations

import importlib
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow.parquet as pq
import pytest

import windtunnel
from windtunnel.plugins import declared_in

if TYPE_CHECKING:
    from collections.abc import Callable

READER = '''\
"""Lists of jobs of a cluster of one's own."""

from windtunnel.traces.layout import Layout, Rows, number, seconds, text

_THEIRS = Layout(
    "their-list",
    columns={
        "job_id": text("job"),
        "submit_time": seconds("asked"),
        "duration": seconds("ran"),
        "num_gpus": number("cards", "GPUs"),
    },
    extensions=(".theirs",),
)


@_THEIRS.reader
def read_theirs(rows: Rows) -> None:
    """Read a list of jobs."""
    rows.note("The list says nothing of users.")
'''
WRITER = '''\
"""Lists of jobs, written."""

from windtunnel.traces.writers import writer

_NAMES = ("job_id", "submit_time", "duration", "num_gpus")


@writer("their-list", extensions=(".theirs",))
def write_theirs(trace, path):
    """Write jobs, submissions, durations and GPUs."""
    columns = [trace.jobs[name].to_pylist() for name in _NAMES]
    lines = [",".join(map(str, row)) for row in zip(*columns, strict=True)]
    path.write_text("\\n".join(["job,asked,ran,cards", *lines, ""]))
    return ["Users."]
'''
POLICY = '''\
"""Smallest service first."""

from windtunnel.sim.contract import Policy


class SmallestService(Policy):
    """Smallest num_gpus x duration first."""

    name = "smallest-service"

    def rank(self, jobs):
        return jobs.num_gpus * jobs.duration
'''
PLACEMENT = '''\
"""From behind."""

from windtunnel.placements.asked import AskedPlacement


class FromBehind(AskedPlacement):
    """The last node where it fits."""

    name = "from-behind"

    @staticmethod
    def function(node, request):
        return node.index
'''
LOG = "job,asked,ran,cards\na,0,100,8\nb,1,50,2\nc,2,30,3\nd,3,10,1\n"


@pytest.fixture(scope="module")
def copied(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with windtunnel and, in a file each, four things that it does not have."""
    folder = tmp_path_factory.mktemp("copied")
    home = folder / "windtunnel"
    shutil.copytree(Path(windtunnel.__file__).parent, home, copy_function=os.symlink)
    (home / "traces" / "theirs.py").write_text(READER)
    (home / "traces" / "theirs_writer.py").write_text(WRITER)
    (home / "policies" / "smallest.py").write_text(POLICY)
    (home / "placements" / "from_behind.py").write_text(PLACEMENT)
    return folder


@pytest.fixture
def output_of(copied: Path, tmp_path: Path) -> Callable[..., Any]:
    """Run a command of the copy in an empty folder; what it gives as JSON."""

    def call(*words: str) -> Any:
        found = subprocess.run(  # noqa: S603 - our own interpreter
            [sys.executable, "-m", "windtunnel", *words, "--json"],
            capture_output=True,
            text=True,
            check=False,
            cwd=tmp_path,
            env={**os.environ, "PYTHONPATH": str(copied)},
        )
        assert found.returncode == 0, found.stderr
        return json.loads(found.stdout)

    return call


def test_a_reader_a_policy_and_a_placement_are_a_file_each(
    output_of: Callable[..., Any], tmp_path: Path
) -> None:
    (tmp_path / "log.theirs").write_text(LOG)
    words = ("--policy", "smallest-service", "--placement", "from-behind", "--cluster", "2x4")
    found = output_of("simulate", "log.theirs", *words, "--out", "jobs.parquet")
    assert found["settings"]["policy"] == "smallest-service"
    assert found["settings"]["engine"] == "compiled"
    flown = pq.read_table(tmp_path / "jobs.parquet")
    # The first holds both nodes to 100. Then d (10 GPU seconds) and c (90) fill the last node, and
    # b (100) has to take the first.
    assert flown["start_time"].to_pylist() == [0, 100, 100, 100]
    assert flown["nodes"].to_pylist() == [[0, 1], [0], [1], [1]]


def test_a_writer_is_a_file(output_of: Callable[..., Any], tmp_path: Path) -> None:
    (tmp_path / "log.theirs").write_text(LOG)
    found = output_of("convert", "log.theirs", "again.theirs")
    assert found["not_carried"] == ["Users."]
    assert "The list says nothing of users." in found["notes"]
    assert (tmp_path / "again.theirs").read_text().splitlines()[1] == "a,0.0,100.0,8.0"


def test_a_class_declares_itself_by_a_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    head = "from their_animals import Animal\n\n"
    package = tmp_path / "their_animals"
    (package / "birds").mkdir(parents=True)
    for place, text in {
        "__init__": "class Animal:\n    name = ''\n",
        "zoo": "class Cat(Animal):\n    name = 'cat'\n\nclass Tom(Cat): ...\n",
        "known": "class Bear(Animal):\n    name = 'bear'\n\nclass Table:\n    name = 'table'\n",
        "needy": "class Dog(Animal):\n    name = 'dog'\n    def __init__(self, owner): ...\n",
        "birds/__init__": "from their_animals.birds.small import Wren\n",
        "birds/small": "class Wren(Animal):\n    name = 'wren'\n\n"
        "class Egg(Animal):\n    name = 'egg'\n",
    }.items():
        (package / f"{place}.py").write_text(text if "__init__" in place else head + text)
    monkeypatch.syspath_prepend(tmp_path)
    try:
        kind = importlib.import_module("their_animals").Animal
        assert list(declared_in("their_animals", kind)) == ["bear", "cat", "wren"]
    finally:
        for name in [name for name in sys.modules if name.startswith("their_animals")]:
            del sys.modules[name]
