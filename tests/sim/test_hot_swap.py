"""Hot swap, worked by hand: a gang that loses one node goes on with another in its place."""

from __future__ import annotations

from typing import Any

import pyarrow.compute as pc
import pytest

import windtunnel as wt
from windtunnel.errors import SpecError

ENGINES = ("reference", "compiled")
FAILS: dict[str, Any] = {
    "on_failure": "swap",
    "node_failures": [{"time": 30, "node": 0, "until": 90}],
    "checkpoint": {"interval": 20, "restart_cost": 5},
}


def stays(out: wt.Outcome, row: int = 0) -> list[tuple[float, float | None, list[int]]]:
    found = out.segments.to_pylist()
    return [(s["start"], s["end"], s["nodes"]) for s in found if s["row"] == row]


def fly(jobs: dict[str, list[Any]], engine: str, cluster: Any = "4x4", **more: Any) -> wt.Outcome:
    options = {"policy": "fifo", "disruptions": FAILS, **more}
    jobs = {"submit_time": [0.0] * len(jobs["num_gpus"]), **jobs}
    return wt.simulate(jobs, cluster, engine=engine, **options)


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("policy", ["fifo", "srtf", "fair-share", "conservative"])
def test_one_node_is_replaced_and_the_other_kept(engine: str, policy: str) -> None:
    """Node 3 is free: 20 of 30 s are saved, 5 s of restart, then 80 s; node 2 has another job."""
    jobs = {"duration": [100, 40], "num_gpus": [8, 4], "estimate": [100, 40], "user": ["a", "b"]}
    if policy == "srtf":
        jobs["duration"] = jobs["estimate"] = [100, 140]
    out = fly(jobs, engine, policy=policy)
    assert stays(out) == [(0, 30, [0, 1]), (30, 115, [3, 1])]
    found = out.flight.interruptions
    assert found is not None
    assert (found.lost_time[0], found.overhead_time[0]) == (10, 5)
    assert (found.failures[0], found.restarts[0]) == (1, 1)
    assert stays(out, 1)[0][2] == [2]


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("begins", [0, 10, 30])
def test_a_node_that_drains_is_kept(engine: str, begins: int) -> None:
    """Node 1 is for nobody else from some time on; who runs there runs on, also after a swap."""
    drained = {"nodes": [1], "start": 30, "end": 900, "drain_before": 30 - begins}
    jobs = {"duration": [100], "num_gpus": [8]}
    out = fly(jobs, engine, disruptions={**FAILS, "maintenance": [drained]})
    assert stays(out) == (
        [(0, 30, [0, 1]), (30, 115, [2, 1])] if begins else [(0, 30, [0, 2]), (30, 115, [3, 2])]
    )


@pytest.mark.parametrize("engine", ENGINES)
def test_nodes_that_fail_at_one_instant_fail_together(engine: str) -> None:
    """Told one by one, too: the gang lost both of its nodes, once, and is launched anew."""
    both = [{"time": 30, "node": node, "until": 90} for node in (0, 1)]
    jobs = {"duration": [100], "num_gpus": [8]}
    out = fly(jobs, engine, disruptions={**FAILS, "node_failures": both})
    assert stays(out) == [(0, 30, [0, 1]), (30, 115, [2, 3])]
    assert out.table["num_failures"].to_pylist() == [1]


@pytest.mark.parametrize("engine", ENGINES)
def test_without_a_node_to_take_it_waits(engine: str) -> None:
    """Node 2 has another job until 40, nodes 3 and 4 are of another type; node 0 is back at 90."""
    cluster = wt.ClusterSpec((wt.NodeType(3, 4, "A"), wt.NodeType(2, 4, "B")))
    jobs = {"duration": [100, 40], "num_gpus": [8, 4], "gpu_type": ["A", "A"]}
    assert stays(fly(jobs, engine, cluster)) == [(0, 30, [0, 1]), (40, 125, [1, 2])]
    alone = {"duration": [100], "num_gpus": [4]}
    assert stays(fly(alone, engine, "2x4")) == [(0, 30, [0]), (30, 115, [1])], "any node will do"


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("asked", ["unconstrained", "required:rack"])
def test_the_nearest_that_keeps_to_what_the_job_asks(engine: str, asked: str) -> None:
    """Racks of 3 nodes: node 2 is of the failed node's rack; once it is held, only rack 1 is left.

    A job in a required rack waits for node 0 to come back then.
    """
    jobs = {"duration": [100.0], "num_gpus": [8], "topology": [asked]}
    more = {"placement": "tree", "topology": "rack=3"}
    assert stays(fly(jobs, engine, "6x4", **more))[1] == (30, 115, [2, 1])
    jobs = {"duration": [200, 200], "num_gpus": [8, 4], "topology": [asked, "required:rack"]}
    out = fly(jobs, engine, "6x4", **more)
    assert stays(out, 1)[0][2] == [2]
    if asked == "unconstrained":
        assert stays(out)[1] == (30, 215, [3, 1])
    else:
        assert stays(out)[1][:2] == (30, 215), "the other rack as a whole is free"
        assert stays(out)[1][2] == [3, 4]


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("sharing", [None, "devices", "pooled"])
def test_slices_stay_whole(engine: str, sharing: str | None) -> None:
    """Slices of 2 nodes a rack: a node of another rack would hold half of one."""
    jobs = {"duration": [100.0, 200.0], "num_gpus": [8, 4], "num_tasks": [2, 1],
            "topology": ["slice=rack/2", "required:rack"]}  # fmt: skip
    out = fly(jobs, engine, "5x4", placement="tree", topology="rack=2", sharing=sharing)
    assert stays(out)[0] == (0, 30, [0, 1])
    assert stays(out)[1][2] == [2, 3], "it waited, and begins at once in a whole rack"


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("part", [1.0, 0.5])
def test_any_devices_of_the_other_node_will_do(engine: str, part: float) -> None:
    """The gang had GPU 0 of node 1; of node 2 GPU 1 is free: it goes on there at once.

    Before, the same GPUs had to be free, and it waited for node 1 to come back.
    """
    tasks = [3, 1, 1] if part == 1 else [5, 1, 1]
    jobs = {"duration": [100, 100, 900], "num_gpus": [tasks[0] * part, 1, 0.75], "num_tasks": tasks}
    failure = {"time": 30, "node": 1, "until": 90}
    out = fly(jobs, engine, "3x2", sharing="devices",
              disruptions={**FAILS, "node_failures": [failure]})  # fmt: skip
    assert stays(out) == [(0, 30, [0, 1]), (30, 115, [0, 2])]
    found = out.segments.filter(pc.equal(out.segments["row"], 0))["devices"].to_pylist()
    assert found == [[[0, 1], [0]], [[0, 1], [1]]]


@pytest.mark.parametrize("engine", ENGINES)
def test_kueue_keeps_its_books(engine: str, tmp_path: Any) -> None:
    """Kueue moves the pods of the failed node within the rack that the job requires.

    The GPUs of the failed node are its own again as it is back: the second job gets it.
    """
    (tmp_path / "kueue.yaml").write_text(MANIFESTS)
    jobs = {
        "submit_time": [0.0, 100.0],
        "duration": [200.0, 10.0],
        "num_gpus": [8, 4],
        "vc": ["q", "q"],
        "topology": ["required:rack", "unconstrained"],
    }
    policy = wt.Kueue.from_manifests(tmp_path)
    out = fly(jobs, engine, "3x4", policy=policy, topology="rack=3")
    assert stays(out) == [(0, 30, [0, 1]), (30, 215, [2, 1])]
    assert stays(out, 1) == [(100, 110, [0])]


def test_refused_where_there_are_no_nodes() -> None:
    for cluster, more in (("pool:8", {}), ("2x4", {"placement": "pool"})):
        failures = {"on_failure": "swap"} if more else {"on_failure": "swap", "node_failures": []}
        checkpoint = {"checkpoint": {"interval": 9}}
        with pytest.raises(SpecError, match="a pool has no nodes"):
            fly({"duration": [1.0], "num_gpus": [1]}, "auto", cluster,
                disruptions=failures | checkpoint, **more)  # fmt: skip


MANIFESTS = """
apiVersion: kueue.x-k8s.io/v1beta1
kind: Topology
metadata: {name: t}
spec:
  levels:
  - nodeLabel: example.com/rack
  - nodeLabel: kubernetes.io/hostname
---
apiVersion: kueue.x-k8s.io/v1beta1
kind: ResourceFlavor
metadata: {name: gpus}
spec: {topologyName: t, nodeLabels: {pool: gpu}}
---
apiVersion: kueue.x-k8s.io/v1beta1
kind: ClusterQueue
metadata: {name: q}
spec:
  resourceGroups:
  - coveredResources: [nvidia.com/gpu]
    flavors:
    - name: gpus
      resources: [{name: nvidia.com/gpu, nominalQuota: 12}]
"""
