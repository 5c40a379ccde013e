"""What the command's tests share: running it, and the lecture's four jobs."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pytest
from click.testing import CliRunner

from windtunnel.cli.root import windtunnel

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

LECTURE = """\
job_id,submit_time,duration,num_gpus,priority
a,0,30,1,3
b,0,10,1,1
c,1,25,1,2
d,4,40,1,4
"""


@dataclass(frozen=True)
class Ran:
    """What a run of the command gave.

    Attributes:
        code: its exit code.
        out: stdout.
        err: stderr.
    """

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        """Its stdout, which must be one JSON value and nothing else."""
        return json.loads(self.out)


@pytest.fixture(scope="session")
def run() -> Callable[..., Ran]:
    """Run the command in this process: ``run("simulate", path, "--json")``."""

    def call(*words: object, stdin: str | bytes | None = None) -> Ran:
        result = CliRunner().invoke(windtunnel, [str(word) for word in words], input=stdin)
        assert result.exception is None or isinstance(result.exception, SystemExit)
        return Ran(result.exit_code, result.stdout, result.stderr)

    return call


@pytest.fixture
def refused(run: Callable[..., Ran]) -> Callable[..., str]:
    """Run the command, check that it refuses in the agreed way, and return its message."""

    def call(*words: object, stdin: str | bytes | None = None) -> str:
        ran = run(*words, stdin=stdin)
        assert ran.code == 2, ran
        assert ran.out == ""
        assert "Traceback" not in ran.err
        assert ran.err.startswith("Error: ")
        assert ran.err.count("Error: ") == 1
        return ran.err

    return call


@pytest.fixture
def lecture(tmp_path: Path) -> Path:
    """A file of four jobs, of which every policy makes something else."""
    path = tmp_path / "lecture.csv"
    path.write_text(LECTURE, encoding="utf-8")
    return path
