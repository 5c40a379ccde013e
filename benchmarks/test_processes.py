"""Whole processes: start-up, memory, and the trace-to-page path, in the system's own accounting."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from typing import TYPE_CHECKING

import pytest

from windtunnel.traces.registry import locate

if TYPE_CHECKING:
    from pathlib import Path

    from conftest import Figures

_MILLION = """
import sys
sys.path.insert(0, {here!r})
from conftest import golden_workload
import windtunnel as wt
cluster = wt.ClusterSpec.uniform(nodes=812, gpus_per_node=8)
print(wt.simulate(golden_workload(1_000_000), cluster, policy={policy!r}).metrics()["avg_jct"])
"""


def _run(command: list[str]) -> tuple[float, float, float]:
    """Return (CPU s, wall s, peak memory GiB) of a process that must succeed."""
    begin = time.monotonic()
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL)  # noqa: S603 - our own command
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    assert process.returncode == 0
    cpu = usage.ru_utime + usage.ru_stime
    return cpu, time.monotonic() - begin, usage.ru_maxrss / 2**20


def test_help(figures: Figures) -> None:
    cpu = sorted(_run([sys.executable, "-m", "windtunnel", "--help"])[0] for _ in range(5))[2]
    figures.amount("windtunnel --help", cpu, "CPU s", 0.2)


@pytest.mark.parametrize("policy", ["fifo", "srtf"])
def test_memory_of_a_million_jobs(figures: Figures, policy: str, request: object) -> None:
    here = str(request.path.parent)
    code = _MILLION.format(here=here, policy=policy)
    cpu, _, memory = _run([sys.executable, "-c", code])
    figures.amount(f"1 M jobs, {policy}, whole process: peak memory", memory, "GiB", 1.5)
    figures.amount(f"1 M jobs, {policy}, whole process: CPU", cpu, "CPU s", 10)


@pytest.mark.parametrize("policy", ["fifo", "srtf", "quota", "las"])
def test_a_first_flight(figures: Figures, policy: str) -> None:
    trace = "synthetic:kalos:jobs=1000"
    words = ["simulate", trace, "--cluster", "300x8", "--policy", policy, "--json"]
    cpu, _, _ = _run([sys.executable, "-m", "windtunnel", *words])
    figures.amount(f"a first flight of 1,000 jobs, {policy}: CPU", cpu, "CPU s", 1)


def test_philly_to_page(figures: Figures, tmp_path: Path) -> None:
    if locate("philly") is None:
        pytest.skip("Philly is neither cached nor mirrored: run 'windtunnel fetch philly'")
    page = tmp_path / "report.html"
    policies = "fifo,sjf,srtf,priority"
    command = ["compare", "philly", "--cluster", "64x8", "--policies", policies, "--out", str(page)]
    cpu, wall, _ = _run([sys.executable, "-m", "windtunnel", *command])
    assert page.stat().st_size > 0
    figures.amount("Philly, 4 policies, page: wall", wall, "s", 20)
    figures.amount("Philly, 4 policies, page: CPU", cpu, "CPU s", 20)
