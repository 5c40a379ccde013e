"""Policy ``kueue`` flown by the simulator: the recorded runs once more, failures, nodes."""

from __future__ import annotations

import json
import math
from typing import TYPE_CHECKING, Any

import cases
import msgspec
import pyarrow as pa
import pytest

import windtunnel as wt
from windtunnel.policies.kueue import objects
from windtunnel.policies.kueue.gates import Gates
from windtunnel.policies.kueue.manifests import STRATEGIES, Manifests
from windtunnel.policies.kueue.policy import Kueue
from windtunnel.schema import conform

if TYPE_CHECKING:
    from pathlib import Path

GPU = "nvidia.com/gpu"


def manifests_of(case: cases.Case) -> Manifests:
    return Manifests(
        queues=cases.converted(case["cluster_queues"], tuple[objects.ClusterQueue, ...]),
        cohorts=cases.converted(case.get("cohorts", []), tuple[objects.Cohort, ...]),
        flavors=cases.converted(case["flavors"], tuple[objects.Flavor, ...]),
        topologies=cases.converted(case.get("topologies", []), tuple[objects.Topology, ...]),
        nodes=cases.converted(case.get("nodes", []), tuple[objects.Node, ...]),
        fair=STRATEGIES if case.get("fair_sharing") else (),
    )


def jobs_of(case: cases.Case) -> pa.Table:
    jobs = case["jobs"]
    columns: dict[str, list[Any]] = {
        "job_id": [job["name"] for job in jobs],
        "submit_time": [float(job["at"]) for job in jobs],
        "duration": [float(job["duration"]) for job in jobs],
        "num_gpus": [float(job["count"] * job["requests"][GPU]) for job in jobs],
        "num_tasks": [job["count"] for job in jobs],
        "priority": [float(job["priority"]) for job in jobs],
        "vc": [job["cluster_queue"] for job in jobs],
        "topology": [words_of(job.get("topology")) for job in jobs],
    }
    return conform(pa.table(columns))


def words_of(topology: dict[str, Any] | None) -> str:
    if not topology:
        return ""
    name, value = next(iter(topology.items()))
    return "unconstrained" if name == "unconstrained" else f"{name}:{value}"


def same_until(case: cases.Case) -> float:
    """When a preempted job could first end: here it goes on, in the recording it begins anew."""
    duration = {job["name"]: job["duration"] for job in case["jobs"]}
    since: dict[str, float] = {}
    done: dict[str, float] = {}
    first = math.inf
    for time, what, name, *_ in case["expect"]["events"]:
        if what == "admit":
            since[name] = time
            if name in done:
                first = min(first, time + duration[name] - done[name])
        elif what == "preempt":
            done[name] = done.get(name, 0.0) + time - since[name]
    return first


def recorded(case: cases.Case, until: float) -> dict[str, dict[str, float]]:
    """First starts, and ends, of each job before a time."""
    found: dict[str, dict[str, float]] = {"start_time": {}, "end_time": {}}
    for time, what, name, *_ in case["expect"]["events"]:
        if time < until and what == "admit":
            found["start_time"].setdefault(name, time)
        elif time < until and what == "end":
            found["end_time"][name] = time
    return found


@pytest.mark.parametrize(
    "suite", ["flight_classic", "flight_fair", "flight_classic_topology", "flight_fair_topology"]
)
def test_recorded_runs_come_out_of_the_simulator(data_dir: Path, suite: str) -> None:
    lines = (data_dir / "kueue_cases" / f"{suite}.jsonl").read_text().splitlines()
    events = 0
    for case in map(json.loads, lines[:8]):
        until = same_until(case)
        sizes = [node["capacity"][GPU] for node in case.get("nodes", [])]
        asked = max(job["count"] * job["requests"][GPU] for job in case["jobs"])
        if sizes and asked > sum(sizes):
            continue  # such a job is refused before anybody flies
        cluster = ",".join(f"1x{size}" for size in sizes) if sizes else "pool:1000"
        outcome = wt.simulate(jobs_of(case), cluster, policy=Kueue(manifests_of(case)))
        found = outcome.table.to_pydict()
        expected = recorded(case, until)
        for column, times in expected.items():
            flown = dict(zip(found["job_id"], found[column], strict=True))
            got = {n: t for n, t in flown.items() if t is not None and t < until}
            assert got == times, case["id"]
            events += len(times)
    assert events > 60


def plain(**more: Any) -> Manifests:
    quota = objects.ResourceGroup(
        (objects.FlavorQuotas("any", {GPU: objects.Quota(8, 4, 2)}),), (GPU,)
    )
    rules = objects.Preemption("LowerPriority", "Any")
    queues = tuple(
        objects.ClusterQueue(name, "all", resource_groups=(quota,), preemption=rules)
        for name in ("a", "b")
    )
    doors = (objects.LocalQueue("team", "a"),)
    given: dict[str, Any] = {"queues": queues, "local_queues": doors, **more}
    return Manifests(flavors=(objects.Flavor("any"),), **given)


@pytest.mark.parametrize("vc", ["team", "default/team", "a"])
def test_local_queues_that_no_job_names_are_noted(vc: str) -> None:
    doors = (objects.LocalQueue("team", "a"), objects.LocalQueue("teem", "b"))
    jobs = {"submit_time": [0.0], "duration": [9.0], "num_gpus": [1.0], "vc": [vc]}
    notes = wt.simulate(jobs, "pool:8", Kueue(plain(local_queues=doors))).notes
    (note,) = [note for note in notes if "LocalQueue" in note]
    assert note.startswith("The manifests have LocalQueue 'teem'")
    assert note.endswith(f"the trace has {vc!r}.")
    few = wt.simulate(jobs, "pool:8", Kueue(plain())).notes
    assert not any("LocalQueue" in note for note in few)


def test_manifests_as_simple_quotas() -> None:
    found = Kueue(plain()).to_quotas().queues
    assert [queue.vc for queue in found] == ["team", "b"]
    first = found[0]
    assert (first.nominal_quota, first.borrowing_limit, first.lending_limit) == (8, 4, 2)
    assert (first.cohort, first.reclaim_within_cohort) == ("all", "Any")


def test_what_simple_quotas_do_not_know_is_named() -> None:
    topology = (objects.Topology("dc", ("rack",)),)
    cohorts = (objects.Cohort("all", parent="top"),)
    with pytest.raises(wt.SpecError, match="topologies; cohort 'all'"):
        Kueue(plain(topologies=topology, cohorts=cohorts)).to_quotas()


def test_gates_of_a_configuration_count_and_are_noted() -> None:
    """Six pods of one GPU in a rack of nodes of four: four and two, or three each."""
    tree = objects.Topology("t", ("rack", "kubernetes.io/hostname"))
    quotas = (objects.FlavorQuotas("f", {GPU: objects.Quota(32)}),)
    plain = Manifests(
        queues=(objects.ClusterQueue("q", resource_groups=(objects.ResourceGroup(quotas),)),),
        flavors=(objects.Flavor("f", topology="t"),),
        topologies=(tree,),
    )
    jobs = {"submit_time": [0.0], "duration": [9.0], "num_gpus": [6.0], "num_tasks": [6]}
    jobs |= {"vc": ["q"], "topology": ["preferred:rack"]}

    def flown(gates: Gates, balanced: str = "no") -> tuple[list[int], str]:
        policy = Kueue(msgspec.structs.replace(plain, gates=gates), balanced=balanced)
        out = wt.simulate(jobs, "8x4", topology="rack=4", policy=policy)
        (gpus,) = out.segments["node_gpus"].to_pylist()
        return gpus, " ".join(out.notes)

    spread, note = flown(Gates())
    assert spread == [4, 2]
    assert "gates were as in v0.20;" in note
    spread, note = flown(Gates(tas_balanced_placement=True))
    assert spread == [3, 3]
    assert "but for TASBalancedPlacement=true" in note
    assert flown(Gates(), "yes") == (spread, note)
    ignored = Gates(tas_balanced_placement=True, topology_aware_scheduling=False)
    assert "TopologyAwareScheduling=false" in flown(ignored)[1]


@pytest.mark.parametrize("engine", ["compiled", "reference"])
@pytest.mark.parametrize("fair", [(), STRATEGIES])
def test_of_equal_heads_the_first_of_the_input_goes(engine: Any, fair: tuple[str, ...]) -> None:
    """Both come at 1 and wait for the GPUs of the first; what frees there wakes queue a first."""
    quotas = (objects.FlavorQuotas("gpu", {GPU: objects.Quota(2)}),)
    group = (objects.ResourceGroup(quotas),)
    manifests = Manifests(
        queues=tuple(objects.ClusterQueue(name, "all", resource_groups=group) for name in "ab"),
        flavors=(objects.Flavor("gpu"),),
        fair=fair,
    )
    jobs = {"submit_time": [0, 1, 1], "duration": [10, 5, 5], "num_gpus": [4, 4, 4]}
    out = wt.simulate(jobs | {"vc": ["a", "b", "a"]}, "1x4", Kueue(manifests), engine=engine)
    assert out.table["start_time"].to_pylist() == [0, 10, 15]
