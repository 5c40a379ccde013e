"""A job that no GPU type alone can hold has no round in which it could run."""

from __future__ import annotations

import pytest

import windtunnel as wt
from windtunnel.errors import PolicyError


@pytest.mark.parametrize("engine", ["compiled", "reference"])
def test_it_is_refused_or_rejected(engine: str) -> None:
    # Two tasks of six cores fit a node each, and either type has one node.
    jobs = {
        "submit_time": [0.0, 0.0],
        "duration": [100.0, 100.0],
        "num_gpus": [1.0, 2.0],
        "num_tasks": [1, 2],
        "num_cpus": [1.0, 12.0],
    }
    types = (wt.NodeType(1, 4, name, cpus=8.0, mem_gib=64.0) for name in "AB")
    cluster = wt.ClusterSpec(tuple(types))
    policy = "gavel:max_min_fairness:round=10"
    with pytest.raises(PolicyError, match=r"none alone can hold it.*--oversize reject"):
        wt.simulate(jobs, cluster, policy, engine=engine)
    out = wt.simulate(jobs, cluster, policy, engine=engine, oversize="reject")
    assert out.table["status"].to_pylist() == ["finished", "rejected"]
    assert out.table["end_time"].to_pylist() == [100.0, None]
