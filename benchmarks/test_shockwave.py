"""CPU of the published rounds: Shockwave's whole table, a plan of its market, a Pollux workload."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow.compute as pc
import pytest

import windtunnel as wt
from windtunnel.policies.shockwave.in_rounds import ALLOCATIONS
from windtunnel.policies.shockwave.market import Market

if TYPE_CHECKING:
    from collections.abc import Callable

    from conftest import Figures


@pytest.fixture
def data() -> Path:
    """Where the reference data are."""
    if not os.environ.get("WINDTUNNEL_DATA"):
        pytest.skip("WINDTUNNEL_DATA is not set: no reference data")
    return Path(os.environ["WINDTUNNEL_DATA"])


def test_the_whole_table_of_shockwave(
    data: Path, figures: Figures, cpu_seconds: Callable[..., float], monkeypatch: pytest.MonkeyPatch
) -> None:
    jobs = wt.open_trace(data / "shockwave/120_jobs.trace").jobs
    plans: list[float] = []
    make = Market._make_plan  # noqa: SLF001 - what is timed

    def timed(market: Any) -> None:
        plans.append(cpu_seconds(lambda: make(market), rounds=1))

    def table() -> None:
        for name in ALLOCATIONS:
            wt.simulate(jobs, "v100:32", f"shockwave:{name}:cut=1", compat="shockwave")

    monkeypatch.setattr(Market, "_make_plan", timed)
    figures.amount("Shockwave, all policies", cpu_seconds(table, rounds=1), "CPU s", 300.0)
    figures.amount("market, a plan of 120 jobs", sum(plans) / len(plans), "CPU s", 0.2)


def test_the_market_on_a_crowded_cluster(
    figures: Figures, cpu_seconds: Callable[..., float]
) -> None:
    jobs = wt.open_trace("synthetic:philly:jobs=1000").jobs
    seconds = cpu_seconds(lambda: wt.simulate(jobs, "16x8", "shockwave:market"), rounds=1)
    figures.amount("shockwave:market, 1,000 jobs, crowded, our rounds", seconds, "CPU s", 40.0)


def test_a_workload_of_pollux(
    data: Path, figures: Figures, cpu_seconds: Callable[..., float]
) -> None:
    root = data / "elastic/pollux"
    trace = wt.open_trace(root / "workloads/load-1.0.csv").jobs
    jobs = trace.filter(pc.equal(trace["vc"], "3"))
    options: dict[str, Any] = {"compat": "pollux", "throughputs": str(root / "profiles")}
    seconds = cpu_seconds(lambda: wt.simulate(jobs, "16x4", "pollux:pollux", **options), rounds=1)
    figures.amount("Pollux, 160 jobs on 64 GPUs", seconds, "CPU s", 60.0)
