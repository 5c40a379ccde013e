"""Who is admitted and finds no nodes in time; and topologies on the cluster's own levels."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import pytest
import yaml

import windtunnel as wt
from windtunnel.errors import PolicyError, SpecError
from windtunnel.policies.kueue import objects
from windtunnel.policies.kueue.manifests import Manifests, read_manifests
from windtunnel.policies.kueue.pods_ready import PodsReady
from windtunnel.policies.kueue.policy import Kueue
from windtunnel.schema import as_jobs

if TYPE_CHECKING:
    from pathlib import Path

GPU = "nvidia.com/gpu"
HOST = "kubernetes.io/hostname"


def manifests(quota: int, topology: tuple[str, ...] = (), **more: Any) -> Manifests:
    quotas = objects.FlavorQuotas("any", {GPU: objects.Quota(quota)})
    queue = objects.ClusterQueue("q", resource_groups=(objects.ResourceGroup((quotas,), (GPU,)),))
    return Manifests(
        queues=(queue,),
        flavors=(objects.Flavor("any", {}, "t" if topology else ""),),
        topologies=(objects.Topology("t", topology),) if topology else (),
        **more,
    )


def jobs(**columns: Any) -> Any:
    count = len(columns["duration"])
    usual = {"submit_time": [0.0] * count, "num_gpus": [4.0] * count, "vc": ["q"] * count}
    return as_jobs({**usual, **columns})


def starts(quota: int, rules: PodsReady | None, **columns: Any) -> list[float | None]:
    policy = Kueue(manifests(quota, pods_ready=rules))
    out = wt.simulate(jobs(**columns), "1x4", policy)
    return [None if math.isnan(start) else start for start in out.flight.start.tolist()]


def test_waits_for_nodes_without_rules() -> None:
    assert starts(8, None, duration=[1000.0, 10.0]) == [0, 1000]


def test_backoff_doubles() -> None:
    """Out at 300, in at 360, out at 660, in at 780 (twice 60 later), nodes at 1000."""
    assert starts(8, PodsReady(), duration=[1000.0, 10.0]) == [0, 1000]
    # Nodes at 700, while it is away from 660 to 780.
    assert starts(8, PodsReady(), duration=[700.0, 10.0]) == [0, 780]
    # At most 90 s away: from 660 to 750.
    assert starts(8, PodsReady(most=90.0), duration=[700.0, 10.0]) == [0, 750]
    # No backoff: in again at once.
    assert starts(8, PodsReady(base=0.0), duration=[700.0, 10.0]) == [0, 700]


@pytest.mark.parametrize(("limit", "start"), [(0, None), (1, None), (2, 1000.0)])
def test_comes_back_so_often(limit: int, start: float | None) -> None:
    """Out at 300 and 660; with a limit of 2 in at 780, and nodes at 1000."""
    rules = PodsReady(limit=limit)
    assert starts(8, rules, duration=[1000.0, 10.0]) == [0, start]


def test_waits_as_old_as_its_eviction() -> None:
    """Evicted at 300, the second is behind the third, or before it again if creation counts."""
    columns = {"duration": [400.0, 10.0, 10.0], "submit_time": [0.0, 0.0, 350.0]}
    # Base 10: back at 310 and admitted at once, both ways; its time is out at 610.
    assert starts(8, PodsReady(base=10.0), **columns) == [0, 400, 410]
    # Base 60 and a fourth job that holds the quota until it is back.
    columns = {
        "duration": [650.0, 10.0, 10.0, 10.0],
        "submit_time": [0.0, 0.0, 1.0, 2.0],
    }
    # At 300 the second goes, the third is admitted; at 600 it goes. The second came again at 300,
    # the fourth at 2: the fourth is next, unless creation counts.
    by_eviction = starts(8, PodsReady(), **columns)
    by_creation = starts(8, PodsReady(by_eviction=False), **columns)
    assert by_eviction[3] == 650
    assert by_creation[1] == 650


def test_blocks_admission() -> None:
    """Two GPUs are free, and the third job would fit them; the second's pods are not ready."""
    columns = {"duration": [100.0, 10.0, 10.0], "num_gpus": [2.0, 4.0, 2.0]}
    assert starts(8, PodsReady(), **columns) == [0, 100, 0]
    assert starts(8, PodsReady(block=True), **columns) == [0, 100, 110]


def test_is_read(tmp_path: Path) -> None:
    def read(given: Any) -> PodsReady | None:
        path = tmp_path / "c.yaml"
        path.write_text(yaml.safe_dump({"kind": "Configuration", "waitForPodsReady": given}))
        return read_manifests(path, queues=False).pods_ready

    assert read({"enable": True}) == PodsReady()
    assert read({"enable": False}) is None
    again = {"timestamp": "Creation", "backoffLimitCount": 3, "backoffBaseSeconds": 5}
    given = {"timeout": "10m", "blockAdmission": True, "requeuingStrategy": again}
    assert read(given) == PodsReady(600.0, True, False, 5.0, 3600.0, 3)
    with pytest.raises(SpecError, match="timout"):
        read({"timout": "10m"})
    with pytest.raises(SpecError, match="negative"):
        read({"requeuingStrategy": {"backoffLimitCount": -1}})


LEVELS = ("example.com/block", "example.com/rack", HOST)


def nodes_of(cluster: str, levels: tuple[str, ...], topology: str, **more: Any) -> list[Any]:
    wanted = {"duration": [100.0] * 3, "num_gpus": [2.0, 16.0, 16.0],
              "topology": ["", "required:rack", "required:rack"]}  # fmt: skip
    policy = Kueue(manifests(100, levels, **more))
    out = wt.simulate(jobs(**wanted), cluster, policy, topology=topology)
    flight = out.flight
    return [sorted(flight.nodes[a:b].tolist())
            for a, b in zip(flight.node_offset, flight.node_offset[1:], strict=False)]  # fmt: skip


def test_the_clusters_own_levels_are_the_topologys() -> None:
    """The same as with Node manifests that say the levels."""
    given = tuple(
        objects.Node(
            f"n{k}",
            {HOST: f"n{k}", LEVELS[0]: f"b{k // 4}", LEVELS[1]: f"r{k // 2}"},
            {GPU: 8, "pods": 110},
        )
        for k in range(8)
    )
    found = nodes_of("8x8", LEVELS, "block=4,rack=2")
    assert found == nodes_of("8x8", LEVELS, "block=4,rack=2", nodes=given)
    assert [nodes for nodes in found if len(nodes) == 2] == [[2, 3], [4, 5]]


def test_levels_are_found_by_name_or_refused() -> None:
    only_rack = ("example.com/rack", HOST)
    assert nodes_of("8x8", only_rack, "block=4,rack=2")[1:] == [[2, 3], [4, 5]]
    with pytest.raises(PolicyError, match=r"'block', 'rack'.*--topology"):
        nodes_of("8x8", ("example.com/pod", HOST), "block=4,rack=2")


def test_a_stopped_local_queue_lets_nobody_in() -> None:
    doors = (objects.LocalQueue("open", "q"), objects.LocalQueue("shut", "q", stop_policy="Hold"))
    policy = Kueue(manifests(8, local_queues=doors))
    out = wt.simulate(jobs(duration=[10.0, 10.0], vc=["shut", "open"]), "1x4", policy)
    assert [math.isnan(start) for start in out.flight.start.tolist()] == [True, False]
