"""Benchmarks: figures in CPU seconds, printed as a table at the end.

Machines are noisy and differ: a benchmark fails only below a third of its target, which is what a
change that breaks the speed looks like. The targets and the measured figures are in
docs/performance.md.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import numpy as np
import pytest

from windtunnel import ClusterSpec, schema
from windtunnel.sim import problem as problems

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    import pyarrow as pa

    from windtunnel.sim.problem import Problem

#: Rows of the closing table: (what, figure, target).
_FIGURES: list[tuple[str, str, str]] = []


class Figures:
    """Collects what the benchmarks measured."""

    def rate(self, what: str, events: int, seconds: float, target: float) -> None:
        """Note events per CPU second; fail below a third of the target."""
        rate = events / seconds
        _FIGURES.append((what, f"{rate / 1e6:.3f} M events/s", f">= {target / 1e6:g} M"))
        assert rate >= target / 3

    def amount(self, what: str, value: float, unit: str, target: float) -> None:
        """Note an amount that should be small; fail above three times the target."""
        _FIGURES.append((what, f"{value:.3f} {unit}", f"< {target:g}"))
        assert value < 3 * target


@pytest.fixture
def figures() -> Figures:
    return Figures()


@pytest.fixture
def workload_of() -> Callable[[int], dict[str, np.ndarray]]:
    """What makes so many jobs of `golden_workload`: modules are not to import this file."""
    return golden_workload


def golden_workload(count: int) -> dict[str, np.ndarray]:
    """Return jobs drawn as the golden million (docs/performance.md), offered load 0.95."""
    rng = np.random.default_rng(0)
    shares = [0.55, 0.15, 0.12, 0.13, 0.03, 0.015, 0.005]
    num_gpus = rng.choice([1, 2, 4, 8, 16, 32, 64], p=shares, size=count)
    duration = np.ceil(rng.lognormal(6.0, 1.8, count))
    span = (num_gpus * duration).sum() / (0.95 * 812 * 8)
    submit = np.sort(rng.uniform(0, span, count))
    return {"submit_time": submit, "duration": duration, "num_gpus": num_gpus.astype(float)}


def _problem(count: int, more: dict[str, list[str]] | None = None) -> Problem:
    cluster = ClusterSpec.uniform(nodes=812, gpus_per_node=8)
    return problems.build(
        schema.as_jobs(golden_workload(count) | (more or {})),
        cluster,
        as_pool=False,
        estimates="perfect",
    )


@pytest.fixture(scope="session")
def million() -> Problem:
    return _problem(1_000_000)


@pytest.fixture(scope="session")
def hundred_thousand() -> Problem:
    return _problem(100_000)


@pytest.fixture(scope="session")
def all_at_once() -> pa.Table:
    """Eight thousand jobs that come at once, with estimates that are 2 to 10 times too long."""
    workload = golden_workload(8_000)
    loose = np.random.default_rng(1).uniform(2, 10, 8_000)
    workload |= {"submit_time": np.zeros(8_000), "estimate": workload["duration"] * loose}
    return schema.as_jobs(workload)


@pytest.fixture(scope="session")
def with_owners() -> Problem:
    """A hundred thousand jobs of 100 users in 15 virtual clusters."""
    users = np.random.default_rng(1).integers(0, 100, 100_000)
    owners = {"user": [f"u{u}" for u in users], "vc": [f"v{u % 15}" for u in users]}
    return _problem(100_000, owners)


@pytest.fixture(scope="session")
def cpu_seconds() -> Callable[[Callable[[], object], int], float]:
    """Return a timer: the median CPU time of some calls."""

    def measure(call: Callable[[], object], rounds: int) -> float:
        times = []
        for _ in range(rounds):
            begin = time.process_time()
            call()
            times.append(time.process_time() - begin)
        return float(np.median(times))

    return measure


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> Iterator[None] | None:
    """Print the table of figures."""
    if _FIGURES:
        terminalreporter.section("figures (median, CPU time unless stated)")
        for what, figure, target in _FIGURES:
            terminalreporter.write_line(f"{what:<58} {figure:>22}   target {target}")
