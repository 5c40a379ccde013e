"""Refusals that the matrix of the tests does not fly: of docs/reference/semantics.md, of costs."""

from __future__ import annotations

from typing import Any

import pytest

import windtunnel as wt
from windtunnel.errors import SpecError

JOBS = {"submit_time": [0, 1], "duration": [10, 10], "num_gpus": [1, 1], "priority": [0, 1]}
HOSTS = {"gpus": {"default": {"idle_w": 50, "active_w": 300}}, "host_w": 100}
NO_NODES = "a pool has no nodes"


@pytest.mark.parametrize(
    ("cluster", "policy", "options", "why"),
    [
        ("pool:8", "fifo", {"disruptions": "mtbf:10m/mttr:1m"}, NO_NODES),
        (
            "pool:8",
            "fifo",
            {"disruptions": {"maintenance": [{"nodes": [0], "start": 1.0, "end": 9.0}]}},
            NO_NODES,
        ),
        ("pool:8", "fifo", {"power": HOSTS, "power_cap": 5000}, NO_NODES),
        ("2x4", "gavel:fifo", {}, "take it as a weight"),
        ("2x4", "gavel:fifo:mechanism=ideal", {"engine": "compiled"}, "engine"),
        ("2x4", "gavel:fifo", {"compat": "gavel", "engine": "compiled"}, "engine"),
    ],
)
def test_the_table_says_so(cluster: str, policy: str, options: dict[str, Any], why: str) -> None:
    with pytest.raises(SpecError, match=why):
        wt.simulate(JOBS, cluster, policy, **options)


@pytest.mark.parametrize(
    ("costs", "why"),
    [
        ([1.0], r"shape \(1,\); expected \(2,\)"),
        ([1.0, -1.0], "returned -1 for job '1'"),
        ([float("nan"), 1.0], "returned nan for job '0'"),
    ],
)
def test_costs_of_a_function_are_seconds(costs: list[float], why: str) -> None:
    with pytest.raises(SpecError, match=why):
        wt.simulate(JOBS, "2x4", "srtf", save_time=lambda jobs: costs)
