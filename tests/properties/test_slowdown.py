"""What holds of every run with slow-downs, found from where its jobs were, by a second method."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from flight_cases import Case, cases, device_cases
from hypothesis import given, settings
from hypothesis import strategies as st
from slowed_cases import fitting, models, with_racks

import windtunnel as wt
from windtunnel.sim.factor_tables import ShareFactor, SpreadFactor
from windtunnel.testing import PER_JOB, PER_NODE, PER_SEGMENT

#: All of it at 1: tables and defaults.
ONES = wt.Slowdown(
    spread_by=(SpreadFactor("a", 2.0, 1.0),), share_by=(ShareFactor("a", "b", 1.0, 1.0),)
)


@settings(max_examples=150)
@given(st.one_of(cases(), device_cases()))
def test_where_all_factors_are_one_the_flight_is_the_same(case: Case) -> None:
    plain = case.fly("reference")
    model = ONES if case.sharing == "devices" else wt.Slowdown()
    if case.cluster.is_pool or case.placement == "pool":
        model = wt.Slowdown()
    again = wt.simulate(
        case.jobs, case.cluster, case.policy, queueing=case.queueing, placement=case.placement,
        sharing=case.sharing, resources=case.resources, save_time=case.save_time,
        restore_time=case.restore_time, until=case.until, oversize="reject", incomplete="reject",
        slowdown=model,
    )  # fmt: skip
    for name in (*PER_JOB, *PER_SEGMENT, *PER_NODE):
        left, right = getattr(plain.flight, name), getattr(again.flight, name)
        assert left.tobytes() == right.tobytes(), name
    assert again.flight.slowdown_time is not None
    assert not again.flight.slowdown_time.any()


class Oracle:
    """Rates from the outcome's segments alone, instant by instant."""

    def __init__(self, out: wt.Outcome, model: wt.Slowdown) -> None:
        self.model = model
        self.racks = out.cluster.racks
        self.cpus = [k.cpus for k in out.cluster.node_types for _ in range(k.count)]
        self.gpus = [k.gpus for k in out.cluster.node_types for _ in range(k.count)]
        self.jobs = out.jobs.to_pylist()
        until = out.settings["until"]
        self.segments = [
            {**s, "end": until if s["end"] is None else s["end"]} for s in out.segments.to_pylist()
        ]
        self.least = {
            s["row"]: self.fewest(out, s["row"]) for s in self.segments if len(s["nodes"]) > 1
        }

    def fewest(self, out: wt.Outcome, row: int) -> tuple[int, int]:
        """Nodes and racks of the tightest layout, from runs of the job alone."""
        alone = out.jobs.slice(row, 1)
        sizes = []
        for index, kind in enumerate(self.kinds(out)):
            sizes.append((self.most_tasks(alone, kind, out), self.racks[index]))
        tasks = out.jobs["num_tasks"][row].as_py()
        gpus = out.jobs["num_gpus"][row].as_py()
        tasks = tasks or (int(gpus) if gpus > 1 else 1)
        racks: dict[int, int] = {}
        for size, rack in sizes:
            racks[rack] = racks.get(rack, 0) + size
        return count_of([size for size, _ in sizes], tasks), count_of(list(racks.values()), tasks)

    @staticmethod
    def kinds(out: wt.Outcome) -> list[wt.NodeType]:
        return [
            wt.NodeType(1, k.gpus, k.gpu_type, k.cpus, k.mem_gib)
            for k in out.cluster.node_types
            for _ in range(k.count)
        ]

    @staticmethod
    def most_tasks(alone: Any, kind: wt.NodeType, out: wt.Outcome) -> int:
        """Count how many of the job's tasks fit one such node, adding them one by one."""
        row = alone.to_pylist()[0]
        tasks = row["num_tasks"] or (int(row["num_gpus"]) if row["num_gpus"] > 1 else 1)
        accepted = {part.strip() for part in (row["gpu_type"] or "").split("|")} - {""}
        binds = accepted and out.cluster.gpu_types and row["num_gpus"]
        if binds and kind.gpu_type not in accepted:
            return 0
        each = {name: (row[name] or 0) / tasks for name in ("num_gpus", "num_cpus", "mem_gib")}
        share = round(each["num_gpus"] * 1000)
        devices = [1000] * kind.gpus
        cpus = math.inf if kind.cpus is None else round(kind.cpus * 1000)
        mem = math.inf if kind.mem_gib is None else round(kind.mem_gib * 1024)
        if out.settings["resources"] == "gpus":
            cpus = mem = math.inf
        fitted = 0
        while fitted < tasks:
            cpus -= round(each["num_cpus"] * 1000)
            mem -= round(each["mem_gib"] * 1024)
            wanted = [1000] * (share // 1000) if share >= 1000 else [share] * bool(share)
            for want in wanted:
                device = next((i for i, free in enumerate(devices) if free >= want), None)
                if device is None:
                    return fitted
                devices[device] -= want
            if cpus < 0 or mem < 0:
                return fitted
            fitted += 1
        return fitted

    def rate(self, segment: dict[str, Any], now: float) -> float:
        """The rate of a stay just after ``now``."""
        model, row = self.model, segment["row"]
        job = self.jobs[row]
        rate = 1.0
        nodes = segment["nodes"]
        if len(nodes) > 1:
            fewest_nodes, fewest_racks = self.least[row]
            if len(nodes) > fewest_nodes:
                table = {(f.job_type, f.num_gpus): f.factor for f in model.spread_by}
                rate *= table.get((job["workload"], job["num_gpus"]), model.spread)
            if len({self.racks[node] for node in nodes}) > fewest_racks:
                rate *= model.rack
        beside = [
            s for s in self.segments if s is not segment and s["start"] <= now < s["end"]
        ]  # fmt: skip
        paces = [1.0] if not nodes else []
        for at, node in enumerate(nodes):
            pace = 1.0
            if self.cpus[node]:
                held = sum(self.cores(s, node) for s in beside) / self.cpus[node]
                pace -= model.cpu * min(held, 1.0)
            costs = [0.0]
            for device in segment["devices"][at]:
                others = [
                    s["row"]
                    for s in beside
                    for other, held_devices in zip(s["nodes"], s["devices"], strict=True)
                    if other == node and device in held_devices
                ]
                costs.append(sum(1 / self.pair(row, other) - 1 for other in others))
            paces.append(pace / (1 + max(costs)))
        return rate * min(paces)

    def cores(self, segment: dict[str, Any], node: int) -> float:
        job = self.jobs[segment["row"]]
        tasks = sum(segment["node_tasks"])
        own = sum(
            t for n, t in zip(segment["nodes"], segment["node_tasks"], strict=True) if n == node
        )
        if not tasks:
            return 0.0
        return round((job["num_cpus"] or 0.0) * 1000 * own / tasks) / 1000  # what a node counts in

    def pair(self, row: int, other: int) -> float:
        names = (self.jobs[row]["workload"], self.jobs[other]["workload"])
        for f in self.model.share_by:
            if names == (f.job_type, f.other):
                return f.factor
            if names == (f.other, f.job_type):
                return f.other_factor
        return self.model.share


def count_of(sizes: list[int], wanted: int) -> int:
    """How many of the largest add up to what is wanted."""
    sums = np.cumsum(sorted(sizes, reverse=True))
    return int(np.searchsorted(sums, wanted)) + 1


@settings(max_examples=200)
@given(device_cases(), models(), st.integers(1, 3))
def test_work_done_is_the_integral_of_the_rate(
    drawn: Case, model: wt.Slowdown, per_rack: int
) -> None:
    case = with_racks(replace(drawn, sharing="devices"), per_rack)
    model = fitting(model, case)
    out = wt.simulate(
        case.jobs, case.cluster, case.policy, queueing=case.queueing, placement=case.placement,
        sharing="devices", resources=case.resources, save_time=case.save_time,
        restore_time=case.restore_time, until=case.until, oversize="reject", incomplete="reject",
        slowdown=model,
    )  # fmt: skip
    oracle = Oracle(out, model)
    times = sorted({t for s in oracle.segments for t in (s["start"], s["end"])})
    overhead = case.save_time + case.restore_time
    work = [0.0] * len(out.jobs)
    worked = [0.0] * len(out.jobs)
    seen: set[int] = set()
    for segment in oracle.segments:
        row = segment["row"]
        begin = segment["start"] + (overhead if row in seen else 0.0)
        seen.add(row)
        cuts = [t for t in times if begin < t < segment["end"]]
        for low, high in zip([begin, *cuts], [*cuts, segment["end"]], strict=True):
            if high > low:
                work[row] += (high - low) * oracle.rate(segment, low)
                worked[row] += high - low
    table = out.table.to_pylist()
    for row, job in enumerate(table):
        duration = case.jobs["duration"][row]
        if job["status"] == "finished":
            assert work[row] == pytest.approx(duration, abs=1e-7)
        elif job["status"] != "rejected":
            assert work[row] <= duration + 1e-7
        assert job["slowdown_time"] == pytest.approx(worked[row] - work[row], abs=1e-7)
    metrics = out.metrics()
    lost = sum(
        (j["num_gpus"] or 0) * (w - d) for j, w, d in zip(oracle.jobs, worked, work, strict=True)
    )
    assert metrics["lost_to_slowdown"] == pytest.approx(lost, abs=1e-6)
