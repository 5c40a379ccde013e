"""A package of a stranger's with a plug-in of every kind, installed with its entry points."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import windtunnel

if TYPE_CHECKING:
    from collections.abc import Callable

PROJECT = """\
[build-system]
requires = ["setuptools"]
build-backend = "setuptools.build_meta"

[project]
name = "their-cluster"
version = "1.0"

[tool.setuptools]
py-modules = ["their_cluster"]

[project.entry-points."windtunnel.policies"]
ssf = "their_cluster:smallest_service"

[project.entry-points."windtunnel.placements"]
from-behind = "their_cluster:from_behind"

[project.entry-points."windtunnel.predictors"]
hour = "their_cluster:Hour"

[project.entry-points."windtunnel.readers"]
their-log = "their_cluster:read"

[project.entry-points."windtunnel.writers"]
their-log = "their_cluster:write"

[project.entry-points."windtunnel.sites"]
theirs = "their_cluster:site"

[project.entry-points."windtunnel.metrics"]
third = "their_cluster:third_wait"

[project.entry-points."windtunnel.throughputs"]
tiny = "their_cluster:tiny"
"""
MODULE = '''\
import windtunnel as wt
from windtunnel.throughput import Plan, TrainingModel
from windtunnel.throughput.tables import MeasuredTable, Measurement
from windtunnel.traces import writer


def smallest_service(jobs):
    """Smallest num_gpus x duration first."""
    return jobs.num_gpus * jobs.duration


def from_behind(node, request):
    """The last node that has room."""
    return node.index


class Hour:
    """Every job takes an hour."""

    def fit(self, jobs, durations):
        pass

    def predict(self, jobs):
        return [3600.0] * len(jobs)


@wt.reader("their-log", extensions=(".theirs",))
def read(path):
    """Read lines of submission, duration and GPUs."""
    with open(path, encoding="utf-8") as file:
        rows = [[float(word) for word in line.split()] for line in file]
    return dict(zip(("submit_time", "duration", "num_gpus"), zip(*rows), strict=True))


@writer("their-log", extensions=(".theirs",))
def write(trace, path):
    """Write lines of submission, duration and GPUs."""
    columns = [trace.jobs[name].to_pylist() for name in ("submit_time", "duration", "num_gpus")]
    path.write_text("".join(" ".join(map(str, row)) + "\\n" for row in zip(*columns, strict=True)))
    return ["All but submission, duration and GPUs."]


def site():
    """Two nodes of four GPUs."""
    return wt.ClusterSpec.uniform(nodes=2, gpus_per_node=4)


def third_wait(outcome):
    """The wait of the third job, and the second's."""
    waits = outcome.table["wait"].to_pylist()
    return {"s": waits[2], "before": waits[1]}


def tiny():
    """A model that was measured on one GPU and on two."""
    times = {"1": 1.0, "2": 0.6}
    rows = [Measurement(Plan.parse("zero-dp"), shape, time) for shape, time in times.items()]
    return TrainingModel("tiny", "tiny", 8, MeasuredTable(tuple(rows)))
'''


@pytest.fixture(scope="session")
def site_packages(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder that the package was installed into."""
    source = tmp_path_factory.mktemp("their-cluster")
    target = tmp_path_factory.mktemp("site-packages")
    (source / "pyproject.toml").write_text(PROJECT)
    (source / "their_cluster.py").write_text(MODULE)
    words = ["install", "--quiet", "--no-index", "--no-deps", "--no-build-isolation"]
    words += ["--disable-pip-version-check", "--target", str(target), str(source)]
    found = subprocess.run(  # noqa: S603 - our own interpreter
        [sys.executable, "-m", "pip", *words], capture_output=True, text=True, check=False
    )
    assert found.returncode == 0, found.stderr
    return target


@pytest.fixture
def shell(site_packages: Path, tmp_path: Path) -> Callable[..., subprocess.CompletedProcess[str]]:
    """Run the command where the package is installed, in an empty folder."""
    ours = Path(windtunnel.__file__).parents[1]
    path = os.pathsep.join([str(site_packages), str(ours)])

    def call(*words: object) -> subprocess.CompletedProcess[str]:
        return subprocess.run(  # noqa: S603 - our own interpreter
            [sys.executable, "-m", "windtunnel", *map(str, words)],
            capture_output=True,
            text=True,
            check=False,
            cwd=tmp_path,
            env={**os.environ, "PYTHONPATH": path, "COLUMNS": "100"},
        )

    return call
