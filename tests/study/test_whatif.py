"""What would change: hand-worked runs, paired intervals, and the search for the fewest nodes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from windtunnel.characterize.cost import Prices
from windtunnel.cluster import ClusterSpec
from windtunnel.errors import SpecError
from windtunnel.schema import as_jobs
from windtunnel.study.changes import (
    with_idle_killed,
    with_limits,
    with_nodes,
    with_shared_gpus,
)
from windtunnel.study.fewest_nodes import FewestNodes, fewest_nodes
from windtunnel.study.recording import Recording
from windtunnel.study.resolving import conditions_of, resolved
from windtunnel.study.simulate import simulate
from windtunnel.study.whatif import WhatIf

WEEK = 7 * 86400.0


def pairs(weeks: int = 4, **more: Any) -> Any:
    """Each week two jobs of an hour at once on one GPU's worth of room."""
    submit = [week * WEEK for week in range(weeks) for _ in range(2)]
    return as_jobs(
        {
            "submit_time": submit,
            "duration": [3600.0] * len(submit),
            "num_gpus": [1.0] * len(submit),
            "user": ["u", "v"] * weeks,
            **more,
        }
    )


def fewest(jobs: Any, cluster: ClusterSpec, limit: float, **more: Any) -> FewestNodes:
    return fewest_nodes(Recording.of(jobs), resolved(conditions_of(cluster)), limit, **more)[0]


def what_if(jobs: Any, one: str, other: str, **more: Any) -> WhatIf:
    runs = [simulate(jobs, cluster) for cluster in (one, other)]
    return WhatIf(
        runs[0], runs[1], ("more",), more.pop("blocks", "weeks"), more.pop("prices", None)
    )


def test_one_gpu_more_ends_all_waiting() -> None:
    found = what_if(pairs(), "pool:1", "pool:2", prices=Prices(default=2.0))
    rows = {row["measure"]: row for row in found.table()}
    assert (rows["avg_wait"]["before"], rows["avg_wait"]["after"]) == (1800.0, 0.0)
    # Every week is like the others: the change is the same whatever is drawn.
    assert (rows["avg_wait"]["low"], rows["avg_wait"]["high"]) == (-1800.0, -1800.0)
    assert rows["avg_jct"]["change"] == -1800.0
    span = 3 * WEEK + 7200
    assert rows["utilization"]["before"] == pytest.approx(8 * 3600 / span)
    assert rows["utilization"]["after"] == pytest.approx(8 * 3600 / 2 / (span - 3600))
    assert rows["utilization"]["low"] <= rows["utilization"]["high"] < 0
    assert (rows["cost"]["before"], rows["cost"]["change"]) == (3 * 168 * 2, 3 * 168 * 2)
    assert rows["cost_per_gpu_hour"]["before"] == pytest.approx(2 * span / (8 * 3600))
    assert found.by_size() == [
        {
            "size": "1",
            "n": 8,
            "before_avg_wait": 1800.0,
            "before_p90_wait": 3600.0,
            "after_avg_wait": 0.0,
            "after_p90_wait": 0.0,
        }
    ]


def test_one_block_has_no_interval() -> None:
    found = what_if(pairs(weeks=1), "pool:1", "pool:2")
    assert found.num_blocks == 1
    assert all(row["low"] is None for row in found.table())


def test_users_can_be_what_is_drawn() -> None:
    found = what_if(pairs(), "pool:1", "pool:2", blocks="users")
    row = found.table()[0]
    assert found.num_blocks == 2
    # Of the two users one waits an hour each time, the other never.
    assert (row["low"], row["high"]) == (-3600.0, 0.0)


@pytest.mark.parametrize("blocks", ["weeks", "users"])
def test_use_and_its_interval_are_of_gpus_that_are_up(blocks: str) -> None:
    """Three of the six nodes are away: each week looks like the others, and so do both users."""
    away = {"maintenance": [{"nodes": [3, 4, 5], "start": 0, "end": 9 * WEEK}]}
    before, after = (simulate(pairs(8), "6x1", disruptions=gone) for gone in (None, away))
    found = WhatIf(before, after, ("away",), blocks, Prices(default=2.0))
    for name in ("utilization", "cost_per_gpu_hour"):
        row = next(row for row in found.table() if row["measure"] == name)
        assert row["after"] == pytest.approx(row["before"] * (2 if name == "utilization" else 0.5))
        assert row["low"] == pytest.approx(row["change"], rel=0.2)
        assert row["high"] == pytest.approx(row["change"], rel=0.2)


@pytest.mark.slow
@given(gains=st.lists(st.integers(-50, 50), min_size=2, max_size=8))
def test_an_interval_holds_the_mean_of_its_blocks(gains: list[int]) -> None:
    """The interval of a mean lies between the least and the greatest block's mean change."""
    rows = [(week * WEEK, 100.0 + gain * k) for week, gain in enumerate(gains) for k in range(2)]
    jobs = as_jobs(
        {
            "submit_time": [row[0] for row in rows],
            "duration": [row[1] for row in rows],
            "num_gpus": [1.0] * len(rows),
        }
    )
    runs = [simulate(jobs, "pool:1", policy=policy) for policy in ("fifo", "sjf")]
    found = WhatIf(runs[0], runs[1], (), "weeks", None)
    row = found.table()[0]
    # Shortest first saves where the second of two jobs is the shorter one.
    each = [min(gain, 0) / 2 for gain in gains]
    assert row["change"] == pytest.approx(np.mean(each))
    assert min(each) - 1e-9 <= row["low"] <= row["high"] <= max(each) + 1e-9


def test_the_fewest_nodes_are_those_of_a_full_search() -> None:
    rng = np.random.default_rng(3)
    jobs = as_jobs(
        {
            "submit_time": np.cumsum(rng.integers(0, 300, 300)).astype(float),
            "duration": rng.integers(60, 7200, 300).astype(float),
            "num_gpus": rng.choice([1.0, 4.0, 8.0, 16.0], 300),
        }
    )
    cluster = ClusterSpec.uniform(nodes=20, gpus_per_node=8)
    limit = 600.0
    found = fewest(jobs, cluster, limit)
    waits = {}
    for nodes in range(2, 61):  # the largest job needs two
        run = simulate(jobs, ClusterSpec.uniform(nodes=nodes, gpus_per_node=8))
        waits[nodes] = run.metrics()["p90_wait"]
    assert found.p90_wait == waits[found.num_nodes] <= limit
    assert waits[found.num_nodes - 1] > limit
    assert found.num_nodes == min(nodes for nodes, wait in waits.items() if wait <= limit)
    assert found.cluster.num_nodes == found.num_nodes
    big = fewest(jobs, ClusterSpec.uniform(nodes=2, gpus_per_node=8), limit)
    assert big.num_nodes == found.num_nodes
    with pytest.raises(SpecError, match="not even"):
        fewest(jobs, ClusterSpec.uniform(nodes=2, gpus_per_node=8), 0.0, most=3)


def test_no_fewer_nodes_than_the_largest_job_needs() -> None:
    jobs = as_jobs({"submit_time": [0], "duration": [10], "num_gpus": [32]})
    found = fewest(jobs, ClusterSpec.uniform(nodes=64, gpus_per_node=8), 100.0)
    assert found.num_nodes == 4
    assert found.tried[2] == float("inf")


def test_nodes_more_and_fewer() -> None:
    mixed = ClusterSpec.from_mapping(
        {"node_types": [{"count": 2, "gpus": 8, "gpu_type": "A100"},
                        {"count": 3, "gpus": 4, "gpu_type": "T4"}]}
    )  # fmt: skip
    assert with_nodes(mixed, 2).num_gpus == 16 + 20
    assert with_nodes(mixed, -1, "A100").num_gpus == 8 + 12
    assert with_nodes(ClusterSpec.pool(4), 3).num_gpus == 7
    with pytest.raises(SpecError, match="one must stay"):
        with_nodes(mixed, -2, "A100")
    with pytest.raises(SpecError, match="Did you mean 'A100'"):
        with_nodes(mixed, 1, "A10")


def test_other_jobs() -> None:
    jobs = pairs(weeks=1, estimate=[7200.0, None])
    shared, number = with_shared_gpus(jobs, 0.5)
    assert (shared["num_gpus"].to_pylist(), number) == ([0.5, 0.5], 2)
    killed, number = with_idle_killed(jobs, np.array([3000.0, 600.0]), 600.0)
    assert (killed["duration"].to_pylist(), number) == ([1200.0, 3600.0], 1)
    assert with_limits(jobs, 1.5)["estimate"].to_pylist() == [5400.0, 5400.0]
    for call, value in ((with_shared_gpus, 1.0), (with_limits, 0.5)):
        with pytest.raises(SpecError):
            call(jobs, value)


def test_half_a_gpu_each_halves_the_waiting() -> None:
    jobs = pairs()
    shared, _ = with_shared_gpus(jobs, 0.5)
    found = WhatIf(simulate(jobs, "pool:1"), simulate(shared, "pool:1"), (), "weeks", None)
    assert found.table()[0]["after"] == 0.0


@pytest.mark.parametrize("blocks", ["weeks", "users"])
def test_a_run_that_can_hold_nobody_has_no_change(blocks: str) -> None:
    """Submit times are dates: the run without jobs must not count weeks from 1970 on."""
    jobs = {"submit_time": [1.7e9, 1.7e9 + 900_000], "duration": [100, 100], "num_gpus": [8, 8]}
    jobs |= {"user": ["a", "b"]}
    before, after = (
        simulate(as_jobs(jobs), f"pool:{gpus}", "fifo", oversize="reject") for gpus in (8, 7)
    )
    found = WhatIf(before, after, ("less",), blocks, None)
    rows = {row["measure"]: row for row in found.table()}
    assert rows["utilization"]["low"] is None
    assert found.num_unpaired == (2, 0)
