"""Flavors with a topology on nodes that come and go, sleep, or lack power."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

import windtunnel as wt
from windtunnel.cluster.spec import ClusterSpec, NodeType
from windtunnel.policies.kueue import objects
from windtunnel.policies.kueue.gates import Gates
from windtunnel.policies.kueue.manifests import Manifests
from windtunnel.policies.kueue.pods_ready import PodsReady
from windtunnel.policies.kueue.policy import Kueue

if TYPE_CHECKING:
    from pathlib import Path

GPU = "nvidia.com/gpu"
DRAWS: dict[str, Any] = {"gpus": {"default": {"idle_w": 0, "active_w": 100}}}


def flown(jobs: dict[str, list[Any]], nodes: int, **options: Any) -> wt.Outcome:
    """One queue whose quota is all there is, on nodes of four GPUs; the same on both engines."""
    quotas = (objects.FlavorQuotas("gpu", {GPU: objects.Quota(4 * nodes)}),)
    manifests = Manifests(
        queues=(objects.ClusterQueue("q", resource_groups=(objects.ResourceGroup(quotas),)),),
        flavors=(objects.Flavor("gpu", topology="hosts"),),
        topologies=(objects.Topology("hosts", ("kubernetes.io/hostname",)),),
    )
    count = len(jobs["submit_time"])
    jobs = {"num_gpus": [4] * count, "num_tasks": [1] * count, "vc": ["q"] * count, **jobs}
    found = [
        wt.simulate(jobs, f"{nodes}x4", Kueue(manifests), engine=engine, **options)
        for engine in ("compiled", "reference")
    ]
    assert found[0].segments.equals(found[1].segments)
    return found[0]


def starts(out: wt.Outcome) -> list[list[float]]:
    """The starts of each job."""
    found: list[list[float]] = [[] for _ in out.table["job_id"]]
    rows = zip(out.segments["row"].to_pylist(), out.segments["start"].to_pylist(), strict=True)
    for row, start in rows:
        found[row].append(start)
    return found


def test_who_waits_for_nodes_starts_as_one_is_repaired() -> None:
    jobs = {"submit_time": [5, 12], "duration": [100, 10]}
    down = {"node_failures": [{"node": 1, "time": 10, "until": 20}]}
    # The first holds node 0. Nothing ends at 20: the node alone is back.
    assert starts(flown(jobs, 2, disruptions=down)) == [[5], [20]]


def test_one_node_fails_as_another_of_its_size_is_back() -> None:
    jobs = {"submit_time": [5, 12, 25], "duration": [100, 10, 10]}
    down = [{"node": 1, "time": 10, "until": 20}, {"node": 2, "time": 20, "until": 40}]
    # As many GPUs are out at 20 as before. The second loses node 2 then, and goes on node 1.
    out = flown(jobs, 3, disruptions={"node_failures": down})
    assert starts(out) == [[5], [12, 20], [30]]
    assert out.table["num_failures"].to_pylist() == [0, 1, 0]


def test_who_waits_for_nodes_starts_as_a_hold_ends() -> None:
    jobs = {"submit_time": [5, 12], "duration": [100, 10]}
    hold = {"maintenance": [{"nodes": [1], "start": 10, "end": 60}]}
    assert starts(flown(jobs, 2, disruptions=hold)) == [[5], [60]]


def test_who_waits_for_nodes_starts_as_one_wakes() -> None:
    jobs = {"submit_time": [0, 4000], "duration": [30, 30]}
    rule = "earth,wake_time=10s,buffer=0,step=60s"
    out = flown(jobs, 4, power=DRAWS, node_sleep=rule)
    assert starts(out) == [[0], [4010]]


@pytest.mark.parametrize("until", [None, 100])
def test_who_is_admitted_waits_for_power(until: float | None) -> None:
    """The second has node 1 of Kueue at once, and power for four GPUs once the first is over."""
    jobs = {"submit_time": [0, 0, 1], "duration": [30, 20, 20]}
    options: dict[str, Any] = {"power": DRAWS, "power_cap": 400}
    if until is None:
        assert starts(flown(jobs, 2, **options)) == [[0], [30], [50]]
        return
    # Its node fails before: it is admitted anew, and is before the third, which came later.
    down = {"node_failures": [{"node": 1, "time": 10, "until": until}]}
    out = flown(jobs, 2, disruptions=down, **options)
    assert starts(out) == [[0], [30], [50]]
    assert out.table["nodes"].to_pylist() == [[0], [0], [0]]
    assert out.table["num_failures"].to_pylist() == [0, 0, 0]


def test_power_that_comes_back_starts_who_is_admitted(tmp_path: Path) -> None:
    cap = tmp_path / "cap.csv"
    cap.write_text("time,value\n0,400\n12,800\n40,400\n")
    jobs = {"submit_time": [0, 0], "duration": [30, 20]}
    out = flown(jobs, 2, power=DRAWS, power_cap=str(cap))
    assert starts(out) == [[0], [12]]


@pytest.mark.parametrize("engine", ["compiled", "reference"])
def test_nodes_are_called_of_the_flavor_that_has_quota(engine: Any) -> None:
    """A T4 is asleep, and an A100 that the job would fit on is awake: its queue has none of it."""
    quotas = tuple(
        objects.FlavorQuotas(name, {GPU: objects.Quota(gpus)})
        for name, gpus in (("A100", 4), ("T4", 4))
    )
    manifests = Manifests(
        queues=tuple(
            objects.ClusterQueue(kind, resource_groups=(objects.ResourceGroup((quota,)),))
            for kind, quota in zip(("a", "t"), quotas, strict=True)
        ),
        flavors=(objects.Flavor("A100"), objects.Flavor("T4")),
    )
    jobs = {"submit_time": [0, 4000], "duration": [9000, 30], "num_gpus": [2, 2]}
    out = wt.simulate(
        jobs | {"vc": ["a", "t"]}, "1x4:A100,1x4:T4", Kueue(manifests), engine=engine,
        power=DRAWS, node_sleep="earth,wake_time=10s,buffer=0,step=60s",
    )  # fmt: skip
    assert out.table["start_time"].to_pylist() == [0, 4010]


@pytest.mark.parametrize("engine", ["compiled", "reference"])
def test_nodes_are_called_for_a_gang_that_is_larger_than_those_of_its_flavor(engine: Any) -> None:
    """Four GPUs are one node of A100, or both of T4: of these has its queue the quota."""
    quotas = (objects.FlavorQuotas("T4", {GPU: objects.Quota(4)}),)
    manifests = Manifests(
        queues=(objects.ClusterQueue("t", resource_groups=(objects.ResourceGroup(quotas),)),),
        flavors=(objects.Flavor("A100"), objects.Flavor("T4")),
    )
    jobs = {"submit_time": [0, 4000], "duration": [30, 30], "num_gpus": [4, 4], "num_tasks": [4, 4]}
    out = wt.simulate(
        jobs | {"vc": ["t", "t"]}, "1x4:A100,2x2:T4", Kueue(manifests), engine=engine,
        power=DRAWS, node_sleep="earth,wake_time=10s,buffer=0,step=60s",
    )  # fmt: skip
    assert out.table["start_time"].to_pylist() == [0, 4010]


@pytest.mark.parametrize("engine", ["compiled", "reference"])
def test_nodes_are_called_of_one_flavor_of_several_with_quota(engine: Any) -> None:
    """The A100s have the quota for four GPUs and are two: the T4s are called, not some of each."""
    kinds = ("A100", "T4")
    quotas = tuple(objects.FlavorQuotas(kind, {GPU: objects.Quota(4)}) for kind in kinds)
    manifests = Manifests(
        queues=(objects.ClusterQueue("q", resource_groups=(objects.ResourceGroup(quotas),)),),
        flavors=tuple(objects.Flavor(kind, topology="hosts") for kind in kinds),
        topologies=(objects.Topology("hosts", ("kubernetes.io/hostname",)),),
    )
    jobs = {"submit_time": [0, 8000], "duration": [3000, 100], "num_gpus": [1, 4]}
    out = wt.simulate(
        jobs | {"num_tasks": [1, 4], "vc": ["q", "q"]}, "1x2:A100,2x2:T4", Kueue(manifests),
        engine=engine, power=DRAWS, node_sleep="earth,wake_time=10s,buffer=0,step=60s", until=9000,
    )  # fmt: skip
    assert out.table["start_time"].to_pylist() == [0, 8010]


@pytest.mark.parametrize("engine", ["compiled", "reference"])
def test_who_has_lost_its_nodes_is_tried_on_the_first_flavor_again(engine: Any) -> None:
    """The second holds node 1 without power, and nobody else may come in; node 1 fails.

    It is the next head, but of a search begun anew: node 2 is an A100 like node 1, node 3 a T4.
    """
    kinds = {"A100": 12, "T4": 4}
    quotas = tuple(
        objects.FlavorQuotas(kind, {GPU: objects.Quota(of)}) for kind, of in kinds.items()
    )
    manifests = Manifests(
        queues=(objects.ClusterQueue("q", resource_groups=(objects.ResourceGroup(quotas),)),),
        flavors=tuple(objects.Flavor(kind, topology="hosts") for kind in kinds),
        topologies=(objects.Topology("hosts", ("kubernetes.io/hostname",)),),
        pods_ready=PodsReady(timeout=1000.0, block=True),
    )
    jobs = {"submit_time": [0, 1], "duration": [30, 10], "num_gpus": [4, 4], "num_tasks": [1, 1]}
    out = wt.simulate(
        jobs | {"vc": ["q", "q"]}, "3x4:A100,1x4:T4", Kueue(manifests), engine=engine,
        power=DRAWS, power_cap=400,
        disruptions={"node_failures": [{"node": 1, "time": 10, "until": 100}]},
    )  # fmt: skip
    assert out.table["start_time"].to_pylist() == [0, 30]
    assert out.table["nodes"].to_pylist() == [[0], [2]]


@pytest.mark.parametrize("engine", ["compiled", "reference"])
@pytest.mark.parametrize(("tasks", "levels_count"), [(2, True), (3, False)])
def test_nodes_are_called_of_one_domain_of_the_level_required(
    tasks: int, levels_count: Any, engine: Any
) -> None:
    """The first keeps node 0 awake: two nodes of one rack are 2 and 3, not 1 and 2.

    Three nodes are of two racks, where Kueue does not look at levels.
    """
    quotas = (objects.FlavorQuotas("gpu", {GPU: objects.Quota(16)}),)
    manifests = Manifests(
        queues=(objects.ClusterQueue("q", resource_groups=(objects.ResourceGroup(quotas),)),),
        flavors=(objects.Flavor("gpu", topology="racks"),),
        topologies=(objects.Topology("racks", ("rack", "kubernetes.io/hostname")),),
        gates=Gates(topology_aware_scheduling=levels_count),
    )
    jobs = {"submit_time": [0, 4000], "duration": [9000, 30], "num_gpus": [1, 4 * tasks]}
    asked = {"num_tasks": [1, tasks], "vc": ["q", "q"], "topology": ["", "required:rack"]}
    out = wt.simulate(
        jobs | asked, "4x4", Kueue(manifests), engine=engine, topology="rack=2",
        power=DRAWS, node_sleep="earth,wake_time=10s,buffer=0,step=60s",
    )  # fmt: skip
    assert out.table["start_time"].to_pylist() == [0, 4010]
    assert out.table["nodes"].to_pylist() == [[0], [1, 2, 3][-tasks:]]


@pytest.mark.parametrize("engine", ["compiled", "reference"])
def test_nodes_are_called_for_jobs_without_gpus(engine: Any) -> None:
    """The first keeps the only node awake on which it runs, and all of its cores."""
    quotas = tuple(objects.FlavorQuotas(kind, {GPU: objects.Quota(4)}) for kind in ("A100", "T4"))
    manifests = Manifests(
        queues=(objects.ClusterQueue("q", resource_groups=(objects.ResourceGroup(quotas),)),),
        flavors=tuple(objects.Flavor(kind) for kind in ("A100", "T4")),
    )
    cluster = ClusterSpec((NodeType(1, 4, "A100", 8), NodeType(1, 4, "T4", 8)))
    jobs = {"submit_time": [0, 4000], "duration": [9000, 30], "num_gpus": [4, 0]}
    out = wt.simulate(
        jobs | {"num_cpus": [8, 8], "vc": ["q", "q"]}, cluster, Kueue(manifests), engine=engine,
        power=DRAWS, node_sleep="earth,wake_time=10s,buffer=0,step=60s",
    )  # fmt: skip
    assert out.table["start_time"].to_pylist() == [0, 4010]


@pytest.mark.parametrize(("cohort", "start"), [("", None), ("all", 10)])
def test_what_ends_wakes_its_own_tree_of_cohorts_alone(cohort: str, start: float | None) -> None:
    """The queues have quota of their own and share one node. So does Kueue: see its manager."""
    quotas = (objects.FlavorQuotas("gpu", {GPU: objects.Quota(4, None, 0 if cohort else None)}),)
    group = (objects.ResourceGroup(quotas),)
    manifests = Manifests(
        queues=tuple(objects.ClusterQueue(name, cohort, resource_groups=group) for name in "ab"),
        flavors=(objects.Flavor("gpu", topology="hosts"),),
        topologies=(objects.Topology("hosts", ("kubernetes.io/hostname",)),),
    )
    jobs = {"submit_time": [0, 1], "duration": [10, 10], "num_gpus": [4, 4], "vc": ["a", "b"]}
    out = wt.simulate(jobs, "1x4", Kueue(manifests))
    assert out.table["start_time"].to_pylist() == [0, start]
    assert any("waits for ever" in note for note in out.notes) == (start is None)


@pytest.mark.parametrize("engine", ["compiled", "reference"])
def test_nodes_are_called_of_the_flavor_that_would_be_chosen(engine: Any) -> None:
    """The A100 comes first, on quota of the other queue; Kueue goes on to the T4 that is owned."""

    def group(a100: int, t4: int) -> tuple[objects.ResourceGroup, ...]:
        owned = (("A100", a100), ("T4", t4))
        quotas = (objects.FlavorQuotas(kind, {GPU: objects.Quota(of)}) for kind, of in owned)
        return (objects.ResourceGroup(tuple(quotas)),)

    rule = objects.Fungibility(when_can_borrow="TryNextFlavor")
    manifests = Manifests(
        queues=(
            objects.ClusterQueue("q", "all", resource_groups=group(0, 4), fungibility=rule),
            objects.ClusterQueue("other", "all", resource_groups=group(4, 0)),
        ),
        flavors=tuple(objects.Flavor(kind, topology="hosts") for kind in ("A100", "T4")),
        topologies=(objects.Topology("hosts", ("kubernetes.io/hostname",)),),
    )
    jobs = {"submit_time": [0, 4000], "duration": [30, 30], "num_gpus": [4, 4]}
    out = wt.simulate(
        jobs | {"vc": ["other", "q"]}, "1x4:A100,1x4:T4", Kueue(manifests), engine=engine,
        power=DRAWS, node_sleep="earth,wake_time=10s,buffer=0,step=60s",
    )  # fmt: skip
    assert out.table["start_time"].to_pylist() == [0, 4010]
    assert out.table["nodes"].to_pylist() == [[0], [1]]
