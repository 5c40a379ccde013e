"""The flight recorder: what it adds to the CPU time of a whole command of a million jobs."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from windtunnel import schema

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    import numpy as np

    from conftest import Figures

JOBS = 1_000_000
RUNS = 3


def _cpu(words: list[str]) -> float:
    """Return the CPU s of a command that must succeed."""
    command = [sys.executable, "-m", "windtunnel", *words]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL)  # noqa: S603 - our own command
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    assert process.returncode == 0
    return usage.ru_utime + usage.ru_stime


@pytest.mark.parametrize("queueing", ["strict", "skip", "easy"])
def test_recording_a_million_jobs(
    figures: Figures,
    workload_of: Callable[[int], dict[str, np.ndarray]],
    queueing: str,
    tmp_path: Path,
) -> None:
    trace, place = tmp_path / "jobs.parquet", tmp_path / "run.parquet"
    workload = workload_of(JOBS)
    workload["estimate"] = 2 * workload["duration"]
    pq.write_table(pa.table(schema.as_jobs(workload)), trace)
    words = ["simulate", str(trace), "--cluster", "812x8", "--policy", "fifo"]
    words += ["--queueing", queueing, "--allow-large"]
    plain = min(_cpu(words) for _ in range(RUNS))
    recorded = min(_cpu([*words, "--record", str(place)]) for _ in range(RUNS))
    assert place.stat().st_size > 0
    what = f"1 M jobs, fifo {queueing}: recording, part of the command's CPU"
    figures.amount(what, (recorded - plain) / plain, "", 0.2)
