"""Speed on nodes with devices, cores, memory and GPU types: PAI's twin on PAI's 1,897 nodes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest

import windtunnel as wt

if TYPE_CHECKING:
    from collections.abc import Callable

    from conftest import Figures


@pytest.fixture(scope="module")
def pai_jobs() -> pa.Table:
    """Return the twin's jobs whose duration is known."""
    jobs = wt.open_trace("synthetic:pai").jobs
    return jobs.filter(pc.is_valid(jobs["duration"]))


@pytest.mark.parametrize("policy", ["fifo", "sjf"])
@pytest.mark.parametrize("part", ["single tasks", "all"])
def test_skip_on_pai_nodes(
    pai_jobs: pa.Table,
    figures: Figures,
    cpu_seconds: Callable[..., float],
    policy: str,
    part: str,
) -> None:
    single = pc.equal(pai_jobs["num_tasks"], 1)
    jobs = pai_jobs.filter(single) if part == "single tasks" else pai_jobs
    options: dict[str, Any] = {"queueing": "skip", "oversize": "reject"}
    out = wt.simulate(jobs, "pai", policy, **options)
    assert (out.settings["engine"], out.settings["sharing"]) == ("compiled", "devices")
    seconds = cpu_seconds(lambda: wt.simulate(jobs, "pai", policy, **options), rounds=3)
    figures.rate(f"1,897 nodes with devices, {policy} skip, {part}: jobs", len(jobs), seconds, 3e5)
