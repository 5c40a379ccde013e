"""Fragmentation along a run: devices replayed, cores counted, and the published empty cluster."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import pytest
from device_cases import cases
from hypothesis import assume, given, settings

import windtunnel as wt
from windtunnel.cluster.free_devices import FreeDevices
from windtunnel.errors import SpecError
from windtunnel.placements.scored_catalogue import resolve_scored
from windtunnel.sim.flight import WAITING, Flight
from windtunnel.sim.fragmentation import CAUSES, Shape, fragmentation, target_workload
from windtunnel.sim.observe.fragments import along, own_workload
from windtunnel.sim.observe.holdings import Holdings
from windtunnel.sim.observe.node_states import node_states
from windtunnel.traces.openb import read_nodes, read_openb

if TYPE_CHECKING:
    from pathlib import Path

    from device_cases import Case


@pytest.mark.slow
@settings(max_examples=150)
@given(case=cases())
def test_devices_replayed_are_the_state_that_was(case: Case) -> None:
    assume(any(node.gpus for node in case.nodes))
    spec = wt.ClusterSpec(
        tuple(
            wt.NodeType(1, n.gpus, n.gpu_type, None if n.cores is None else n.cores / 1000)
            for n in case.nodes
        )
    )
    free, placement = FreeDevices(case.nodes), resolve_scored("openb_best_fit")
    running: list[tuple[int, list[tuple[int, int]], int]] = []
    entries: list[tuple[int, int, int, int, int]] = []
    start: list[float] = []
    end: list[float] = []
    expected = []
    for step, event in enumerate(case.events):
        now = float(step // 2)  # two events at every instant
        if event < 0 and running:
            stay, where, kind = running.pop(-1 - event if -1 - event < len(running) else 0)
            free.give(where, case.demands[kind])
            end[stay] = now
        elif event >= 0:
            demand = case.demands[event]
            where = placement.place(free, demand)
            if where is not None:
                free.take(where, demand)
                running.append((len(start), where, event))
                for node, grant in where:
                    tasks = demand.tasks(grant, pooled=False)
                    held = tasks * demand.amount
                    entries.append((len(start), node, held, tasks * demand.cores, grant))
                start.append(now)
                end.append(math.nan)
        expected.append((now, fragmentation(free, case.workload)))
    table = np.array(entries, dtype=np.int64).reshape(-1, 5).T
    for batch in (4_000_000, 3):
        states = node_states(
            spec, Holdings(*table), np.array(start), np.array(end), cores=True, batch=batch
        )
        time, idle, causes = along(spec, states, case.workload, -1.0)
        for now, measured in dict(expected).items():
            at = int(np.searchsorted(time, now, side="right")) - 1
            assert idle[at] == measured.idle
            assert tuple(causes[at] / case.workload.total) == measured.causes
        empty = fragmentation(FreeDevices(case.nodes), case.workload)
        assert tuple(causes[0] / case.workload.total) == empty.causes


@pytest.mark.data
def test_the_published_empty_cluster(data_dir: Path) -> None:
    pods = read_openb(data_dir / "openb" / "openb_pod_list_default.csv").jobs
    _, cluster = read_nodes(data_dir / "openb" / "openb_node_list_gpu_node.csv")
    count = pods.num_rows
    none, nothing = np.empty(0), np.empty(0, dtype=np.int64)
    never = Flight(
        start=np.full(count, np.nan),
        end=np.full(count, np.nan),
        run_time=np.zeros(count),
        preemptions=np.zeros(count, dtype=np.int64),
        status=np.full(count, WAITING, dtype=np.int8),
        segment_job=nothing,
        segment_start=none,
        segment_end=none,
        node_offset=np.zeros(1, dtype=np.int64),
        nodes=nothing,
        node_gpus=nothing,
        scheduling_points=0,
    )
    out = wt.Outcome(pods, cluster, never, {"sharing": "devices", "resources": "all"})
    workload = own_workload(out)
    assert len(workload.shapes) == 35
    assert workload.total / count == pytest.approx(0.9527, abs=1e-4)
    found = out.fragmentation()
    assert found.num_rows == 1
    (row,) = found.to_pylist()
    assert row["frag_ratio"] == pytest.approx(0.139445034, abs=1e-9)
    assert row["frag_gpus"] == pytest.approx(866.232552, abs=1e-6)
    assert row["idle_gpus"] == 6212
    # Where cores do not count, the CPU-only share is left.
    (row,) = out.fragmentation(cores=False).to_pylist()
    assert row["frag_ratio"] == pytest.approx(0.135977, abs=1e-6)
    assert row["xl"] == pytest.approx(row["frag_gpus"], rel=1e-12)


def test_a_run_by_hand() -> None:
    # Two nodes of 4 GPUs. Job 0 holds 3 of node 0 from 0 to 10, job 1 all of node 1 from 2 to 5.
    # Three of four tasks to come want one GPU, and one wants two.
    jobs = {"submit_time": [0, 2], "duration": [10, 3], "num_gpus": [3, 4], "num_cpus": [3, 8]}
    jobs["num_tasks"] = [1, 1]
    workload = target_workload([(Shape(0, 1000, 1), 3), (Shape(2000, 1000, 2), 1)], popular=100)
    cluster = wt.ClusterSpec.uniform(2, 4, cpus_per_node=8)
    out = wt.simulate(jobs, cluster, "fifo")
    found = out.fragmentation(workload, cores=False)
    assert found["time"].to_pylist() == [0, 2, 5, 10]
    assert found["idle_gpus"].to_pylist() == [5, 1, 5, 8]
    # One GPU free on node 0 does not serve two.
    assert found["frag_gpus"].to_pylist() == [0.25, 0.25, 0.25, 0]
    assert found["frag_ratio"].to_pylist() == [0.05, 0.25, 0.05, 0]
    assert found["frag_amount"].to_pylist() == [0.25 / 8] * 3 + [0]
    assert found["q2"].to_pylist() == [0.25, 0.25, 0.25, 0]
    # Without cores on the nodes that are left, nothing of two GPUs serves.
    small = wt.ClusterSpec.uniform(2, 4, cpus_per_node=3.5)
    counted = replace(out, cluster=small).fragmentation(workload, cores=True)
    assert counted["q1"].to_pylist() == [0.25, 0.25, 0.25, 0]
    assert counted["q4"].to_pylist() == [0, 0, 0, 0]


def test_a_flight_on_devices() -> None:
    # One node of two GPUs and four cores; two tasks of 0.3 on device 1, each with half a core, and
    # later half of device 0.
    jobs = {
        "submit_time": [0, 5],
        "duration": [10, 10],
        "num_gpus": [0.6, 0.5],
        "num_tasks": [2, 1],
        "num_cpus": [1, 3],
    }
    flown = wt.simulate(jobs, "pool:2", "fifo")
    flight = replace(
        flown.flight,
        node_offset=np.array([0, 2, 3]),
        nodes=np.zeros(3, dtype=np.int32),
        node_gpus=np.array([0.3, 0.3, 0.5]),
        node_tasks=np.ones(3, dtype=np.int32),
        devices=np.array([0b10, 0b10, 0b01]),
    )
    cluster = wt.ClusterSpec.uniform(1, 2, cpus_per_node=4)
    settings_ = {"policy": "fifo", "sharing": "devices", "resources": "all"}
    out = wt.Outcome(flown.jobs, cluster, flight, settings_)
    workload = target_workload([(Shape(1000, 500, 1), 1)])
    found = out.fragmentation(workload)
    assert found["time"].to_pylist() == [0, 5, 10, 15]
    assert found["idle_gpus"].to_pylist() == [1.4, 0.9, 1.5, 2.0]
    # From 5 on no core is left, until 10, when one is.
    assert found["q4"].to_pylist() == [0, 0.9, 0, 0]
    assert found["q2"].to_pylist() == [0.4, 0, 0, 0]
    assert found["q3"].to_pylist() == [1.0, 0, 1.5, 2.0]
    free = out.fragmentation(workload, cores=False)
    assert free["q2"].to_pylist() == [0.4, 0.4, 0, 0]
    both = own_workload(out)
    assert dict(zip(both.shapes, both.counts, strict=True)) == {
        Shape(500, 300, 1): 2,
        Shape(3000, 500, 1): 1,
    }
    pooled = replace(out, settings={**settings_, "sharing": "pooled"})
    with pytest.raises(SpecError, match="only devices fragment"):
        pooled.fragmentation()


def test_its_own_jobs_are_what_is_expected() -> None:
    jobs = {"submit_time": [0, 0, 1], "duration": [9, 9, 9], "num_gpus": [1, 2, 64]}
    out = wt.simulate({**jobs, "num_tasks": [1, 1, 1]}, "2x2", "fifo", oversize="reject")
    found = out.fragmentation().to_pylist()
    # One of two tasks wants a whole node; from 0 on one GPU is free beside the first job.
    assert [(row["time"], row["frag_gpus"]) for row in found] == [(0, 0.5), (9, 0)]
    assert all(math.isclose(sum(row[c] for c in CAUSES), row["idle_gpus"]) for row in found)


def test_what_jobs_of_unknown_tasks_ask_of_nodes() -> None:
    jobs = {
        "submit_time": [0.0] * 6,
        "duration": [1.0] * 6,
        "num_gpus": [1, 4, 20, 20, 6, 0],
        "num_tasks": [None, None, None, 5, None, 2],
        "num_cpus": [None, 8, 40, 40, 6, 4],
        "gpu_type": [None, None, "A", None, "B", None],
    }
    cluster = wt.ClusterSpec((wt.NodeType(4, 8, "A"), wt.NodeType(4, 4, "B")))
    workload = own_workload(wt.simulate(jobs, cluster, "fifo"))
    found = dict(zip(workload.shapes, workload.counts, strict=True))
    assert found == {
        Shape(8000, 1000, 4): 6,  # the second job, and the fourth's five tasks
        Shape(16000, 1000, 8, "A"): 2,
        Shape(8000, 1000, 4, "A"): 1,
        Shape(4000, 1000, 4, "B"): 1,
        Shape(2000, 1000, 2, "B"): 1,
        Shape(2000, 0, 0): 2,
        Shape(0, 1000, 1): 1,
    }


def test_gpu_time_weighs_gangs_by_what_they_ask_for() -> None:
    # 99 small jobs of 10 s, one of 8 GPUs and 1000 s: 990 of 8990 GPU s.
    jobs = {
        "submit_time": [0.0] * 100,
        "duration": [10.0] * 99 + [1000.0],
        "num_gpus": [1.0] * 99 + [8.0],
    }
    out = wt.simulate(jobs, "2x8", "fifo", queueing="skip")
    assert own_workload(out).shapes == (Shape(0, 1000, 1),)
    weighed = own_workload(out, "gpu_time")
    assert weighed.shapes == (Shape(0, 1000, 8), Shape(0, 1000, 1))
    assert weighed.counts == (round(8000 / 8990 * 1e6), round(990 / 8990 * 1e6))
    assert set(out.fragmentation()["frag_gpus"].to_pylist()) == {0}
    assert max(out.fragmentation(weigh="gpu_time")["frag_gpus"].to_pylist()) > 0
    with pytest.raises(SpecError, match="Did you mean 'tasks'"):
        out.fragmentation(weigh="task")


def test_pools_and_runs_of_nothing_are_refused() -> None:
    jobs = {"submit_time": [0], "duration": [1], "num_gpus": [1]}
    for run in (
        wt.simulate(jobs, "pool:2", "fifo"),
        wt.simulate(jobs, "1x2", "fifo", placement="pool"),
    ):
        with pytest.raises(SpecError, match="on a pool"):
            run.fragmentation()
    nothing = wt.simulate({"submit_time": [], "duration": [], "num_gpus": []}, "1x2", "fifo")
    with pytest.raises(SpecError, match="0 tasks"):
        nothing.fragmentation()
