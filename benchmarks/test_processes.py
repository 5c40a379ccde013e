"""Whole processes: start-up, memory, and the trace-to-page path, in the system's own accounting."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from windtunnel.traces.registry import locate

sys.path.insert(0, str(Path(__file__).parent))  # benchmarks are not a package

from processes import measured

if TYPE_CHECKING:
    from conftest import Figures

_FLIGHT = """
import sys
sys.path.insert(0, {here!r})
from conftest import golden_workload
import windtunnel as wt
cluster = wt.ClusterSpec.uniform(nodes=812, gpus_per_node=8)
print(wt.simulate(golden_workload({count}), cluster, policy={policy!r}).metrics()["avg_jct"])
"""


def test_help(figures: Figures) -> None:
    cpu = sorted(measured([sys.executable, "-m", "windtunnel", "--help"]).cpu for _ in range(5))[2]
    figures.amount("windtunnel --help", cpu, "CPU s", 0.2)


@pytest.mark.parametrize("policy", ["fifo", "srtf"])
def test_memory_of_a_million_jobs(figures: Figures, policy: str) -> None:
    code = _FLIGHT.format(here=str(Path(__file__).parent), count=1_000_000, policy=policy)
    took = measured([sys.executable, "-c", code])
    figures.amount(f"1 M jobs, {policy}, whole process: peak memory", took.memory, "GiB", 1.5)
    figures.amount(f"1 M jobs, {policy}, whole process: CPU", took.cpu, "CPU s", 10)


def test_memory_of_ten_million_jobs(figures: Figures) -> None:
    code = _FLIGHT.format(here=str(Path(__file__).parent), count=10_000_000, policy="fifo")
    took = measured([sys.executable, "-c", code])
    figures.amount("10 M jobs, fifo, whole process: peak memory", took.memory, "GiB", 2.66)


@pytest.mark.parametrize("policy", ["fifo", "srtf", "quota", "las"])
def test_a_first_flight(figures: Figures, policy: str) -> None:
    trace = "synthetic:kalos:jobs=1000"
    words = ["simulate", trace, "--cluster", "300x8", "--policy", policy, "--json"]
    took = measured([sys.executable, "-m", "windtunnel", *words])
    figures.amount(f"a first flight of 1,000 jobs, {policy}: CPU", took.cpu, "CPU s", 1)


def test_philly_to_page(figures: Figures, tmp_path: Path) -> None:
    if locate("philly") is None:
        pytest.skip("Philly is neither cached nor mirrored: run 'windtunnel fetch philly'")
    page = tmp_path / "report.html"
    policies = "fifo,sjf,srtf,priority"
    command = ["compare", "philly", "--cluster", "64x8", "--policies", policies, "--out", str(page)]
    took = measured([sys.executable, "-m", "windtunnel", *command])
    assert page.stat().st_size > 0
    figures.amount("Philly, 4 policies, page: wall", took.wall, "s", 20)
    figures.amount("Philly, 4 policies, page: CPU", took.cpu, "CPU s", 20)
