"""Refusals of docs/reference/semantics.md that the matrix of the tests does not fly."""

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
    ],
)
def test_the_table_says_so(cluster: str, policy: str, options: dict[str, Any], why: str) -> None:
    with pytest.raises(SpecError, match=why):
        wt.simulate(JOBS, cluster, policy, **options)
