"""What holds of every run on nodes with devices, cores and memory."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import replace
from typing import Any

import pytest
from flight_cases import Case, device_cases, job_lists, node_clusters
from hypothesis import given, settings
from hypothesis import strategies as st

import windtunnel as wt
from windtunnel.policies.quotas import Quotas
from windtunnel.sim.disruptions import Disruptions, Maintenance


def nodes_of(cluster: wt.ClusterSpec) -> list[wt.NodeType]:
    return [kind for kind in cluster.node_types for _ in range(kind.count)]


def asked_by_a_task(case: Case, row: int, name: str, unit: int) -> int:
    total = case.jobs[name][row] or 0.0
    gpus = case.jobs["num_gpus"][row]
    tasks = case.jobs["num_tasks"][row] or (gpus if gpus > 1 and gpus == int(gpus) else 1)
    return round(total / tasks * unit)


def check_instant(case: Case, segments: list[dict[str, Any]]) -> None:
    """Check that what runs together fits: devices, GPUs, cores and memory of every node."""
    nodes = nodes_of(case.cluster)
    devices: Counter[tuple[int, int]] = Counter()
    gpus: Counter[int] = Counter()
    cores: Counter[int] = Counter()
    mem: Counter[int] = Counter()
    for segment in segments:
        row = segment["row"]
        tasks = segment.get("node_tasks") or []
        for at, node in enumerate(segment["nodes"]):
            gpus[node] += round(segment["node_gpus"][at] * 1000)
            cores[node] += tasks[at] * asked_by_a_task(case, row, "num_cpus", 1000)
            mem[node] += tasks[at] * asked_by_a_task(case, row, "mem_gib", 1024)
            held = segment["devices"][at] if "devices" in segment else []
            share = asked_by_a_task(case, row, "num_gpus", 1000)
            for device in held:
                assert 0 <= device < nodes[node].gpus
                # Two tasks of one job may share a device: then what it lends is known in sum only.
                devices[node, device] += min(share, 1000)
    for node, kind in enumerate(nodes):
        assert gpus[node] <= kind.gpus * 1000
        if case.resources == "all":
            assert kind.cpus is None or cores[node] <= round(kind.cpus * 1000)
            assert kind.mem_gib is None or mem[node] <= round(kind.mem_gib * 1024)
    assert all(milli <= 1000 for milli in devices.values())


@settings(max_examples=200)
@given(device_cases())
def test_nothing_is_given_out_twice(case: Case) -> None:
    out = case.fly("auto")
    segments = out.segments.to_pylist()
    for segment in segments:
        wanted = round(case.jobs["num_gpus"][segment["row"]] * 1000)
        tasks = sum(segment.get("node_tasks") or [0])
        assert abs(round(sum(segment["node_gpus"]) * 1000) - wanted) <= tasks  # rounded a task
    for instant in {segment["start"] for segment in segments}:
        running = [
            s for s in segments
            if s["start"] <= instant < (math.inf if s["end"] is None else s["end"])
        ]  # fmt: skip
        check_instant(case, running)
    assert len(out.table) == len(case.jobs["submit_time"])


def test_the_head_leaves_a_job_the_device_that_it_can_do_without() -> None:
    """At 2 device 0 is free. The head is promised two GPUs at 10, of 0, 1 and 2: 1 and 2 will do.

    Three GPUs are free then, and the last job takes one of them, for long. A hold much later, and
    quotas that suffice, change nothing.
    """
    names = ("submit_time", "duration", "num_gpus")
    rows = [(0, 1, 1), (0, 10, 2), (0, 30, 1), (2, 20, 2), (2, 50, 1)]
    jobs = dict(zip(names, map(list, zip(*rows, strict=True)), strict=True))
    jobs["estimate"] = jobs["duration"]
    jobs["vc"] = ["a"] * 5
    hold = Disruptions(maintenance=(Maintenance(nodes=(0,), start=1000, end=1001),))
    quotas = Quotas.from_mapping({"a": 4})
    for options in ({}, {"disruptions": hold}, {"quotas": quotas}):
        assert starts_of(jobs, "1x4", **options) == [0, 0, 0, 10, 2]


def test_the_head_leaves_it_also_where_the_placement_would_move_the_head() -> None:
    """Two GPUs of each node are in use until 10, and the head is promised three of node 0 then.

    The last job gets device 2 of node 0. With it there, `spread` would send the head to node 1; but
    it was promised node 0, of which it can have the other three.
    """
    jobs = {
        "submit_time": [0] * 5,
        "duration": [10, 10, 10, 1, 20],
        "estimate": [10, 10, 10, 1, 20],
        "num_gpus": [1, 2, 1, 3, 1],
    }
    assert starts_of(jobs, "2x4", placement="spread") == [0, 0, 0, 10, 0]


@pytest.mark.parametrize("engine", ["compiled", "reference"])
@pytest.mark.parametrize(
    "asked",
    [
        {"num_gpus": [0.5, 0.8], "num_tasks": [1, 2]},
        {"num_gpus": [1, 0], "num_tasks": [1, 2], "mem_gib": [10, 10]},
        {"num_gpus": [1, 0], "num_tasks": [1, 2], "num_cpus": [5, 6]},
    ],
)
def test_a_promise_of_several_tasks_needs_room_for_all(asked: dict[str, Any], engine: Any) -> None:
    """The second job is promised 1, when the first is expected to end; that one runs until 3.

    So long there is room for one of the second job's two tasks, and not for both.
    """
    jobs = {"submit_time": [0, 0], "duration": [3, 2], "estimate": [1, 2], **asked}
    cluster = wt.ClusterSpec((wt.NodeType(1, 1, cpus=8, mem_gib=16),))
    out = wt.simulate(jobs, cluster, "conservative", engine=engine)
    assert out.table["start_time"].to_pylist() == [0, 3]


def starts_of(jobs: dict[str, list[Any]], cluster: str, **options: Any) -> list[float]:
    """Return when jobs start under EASY: the same with devices and without, on either engine."""
    found = [
        wt.simulate(jobs, cluster, "fifo", queueing=rule, sharing=sharing, engine=engine, **options)
        .table["start_time"].to_pylist()
        for rule in ("easy", "easy_sjbf")
        for sharing in (None, "devices")
        for engine in ("compiled", "reference")
    ]  # fmt: skip
    assert all(starts == found[0] for starts in found)
    return found[0]


@settings(max_examples=200)
@given(
    job_lists(),
    node_clusters(),
    st.sampled_from(("fifo", "sjf", "srtf", "easy")),
    st.sampled_from(("best_fit", "spread")),
)
def test_whole_gpus_go_where_they_go_without_devices(
    jobs: dict[str, list[Any]], cluster: wt.ClusterSpec, policy: str, placement: str
) -> None:
    """Not under `conservative`, whose promises are of devices then."""
    case = Case(jobs, cluster, policy, None, placement, 0.0, 0.0, None)
    plain, modelled = case.fly("auto"), replace(case, sharing="devices").fly("auto")
    assert plain.table["nodes"].equals(modelled.table["nodes"])
    for name in ("start_time", "end_time", "status", "num_preemptions"):
        assert plain.table[name].equals(modelled.table[name])
