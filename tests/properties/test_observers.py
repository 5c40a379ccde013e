"""What must hold of observers of any run, and what they are by plain counting."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np
from flight_cases import Case, cases
from hypothesis import given, settings
from hypothesis import strategies as st

from windtunnel.cluster.devices import device_nodes
from windtunnel.cluster.free_devices import FreeDevices
from windtunnel.sim.fragmentation import CAUSES, Shape, fragmentation, target_workload
from windtunnel.sim.metrics import horizon

if TYPE_CHECKING:
    import windtunnel as wt

USERS = ("ann", "bob", None, "cy")
WORKLOAD = target_workload(
    [(Shape(0, 1000, 1), 5), (Shape(0, 1000, 3, "A|C"), 2), (Shape(0, 0, 0), 1)], popular=100
)


def fly(case: Case) -> wt.Outcome:
    count = len(case.jobs["duration"])
    return case.fly("compiled", jobs={**case.jobs, "user": [USERS[i % 4] for i in range(count)]})


def level(time: np.ndarray, values: np.ndarray, at: float) -> float:
    """Return a step function's value at an instant."""
    index = int(np.searchsorted(time, at, side="right")) - 1
    return float(values[index]) if index >= 0 else 0.0


def parts_at(table: object, key: str, value: str, at: float) -> float:
    rows = table.to_pylist()  # type: ignore[attr-defined]
    total = 0.0
    for name in {row[key] for row in rows}:
        mine = [row for row in rows if row[key] == name]
        times = np.array([row["time"] for row in mine])
        assert (np.diff(times) > 0).all()
        total += level(times, np.array([row[value] for row in mine]), at)
    return total


@settings(max_examples=60)
@given(cases())
def test_groups_add_up_to_the_whole(case: Case) -> None:
    out = fly(case)
    used, queue = out.utilization(), out.queue()
    tables = [
        (used, out.allocation_by_type(), "gpu_type", "gpus"),
        (used, out.allocation("user"), "user", "gpus"),
        (used, out.allocation("size"), "size", "gpus"),
        (queue, out.queue("user"), "user", "jobs"),
        (queue, out.queue("size"), "size", "gpus"),
    ]
    for whole, groups, key, value in tables:
        for at in {*whole["time"].to_pylist(), *groups["time"].to_pylist()}:
            expected = level(whole["time"].to_numpy(), whole[value].to_numpy(), at)
            assert math.isclose(parts_at(groups, key, value, at), expected, abs_tol=1e-9)


@settings(max_examples=150)
@given(cases())
def test_overtaking_is_what_counting_pairs_finds(case: Case) -> None:
    out = fly(case)
    status = np.array(out.table["status"].to_pylist())
    here = ~np.isin(status, ("rejected", "not_submitted"))
    submit = out.submit_time
    start = np.where(np.isnan(out.flight.start), np.inf, out.flight.start)
    expected = [
        sum(here[j] and submit[j] > submit[i] and start[j] < start[i] for j in range(len(start)))
        if here[i]
        else 0
        for i in range(len(start))
    ]
    assert out.overtaken().tolist() == expected
    # The oldest that waits, looked for at every instant.
    end = horizon(out)[1]
    start = np.minimum(start, end)
    spans = out.oldest_waiting().to_pylist()
    for at in np.unique(np.concatenate([submit[here], start[here]])):
        waiting = np.flatnonzero(here & (submit <= at) & (start > at))
        found = [s["row"] for s in spans if s["from_time"] <= at < s["until_time"]]
        oldest = sorted(waiting, key=lambda row: (submit[row], row))[:1]
        assert found == oldest
    assert all(s["wait_until"] > s["wait_from"] >= 0 for s in spans)


@settings(max_examples=150)
@given(cases())
def test_fairness_has_bounds(case: Case) -> None:
    out = fly(case)
    for by in ("user", "size"):
        index = out.jain_index(by)
        groups = [
            r for r in out.shares(by).to_pylist() if r["asked_gpu_time"] and r[by] != "(none)"
        ]
        assert (index is None) == (not any(row["gpu_time"] for row in groups))
        if index is not None:
            assert 1 / len(groups) - 1e-12 <= index <= 1 + 1e-12
        shared = out.shares(by).to_pylist()
        assert all(
            row["satisfaction"] is None or row["satisfaction"] <= 1 + 1e-12 for row in shared
        )
    for over in ("lifetime", "running"):
        _isolated_time_has_bounds(out, over)


def _isolated_time_has_bounds(out: wt.Outcome, over: str) -> None:
    among_jobs, among_users = (
        out.finish_time_fairness(among, over=over).to_pylist() for among in ("jobs", "user")
    )
    duration = out.jobs["duration"].to_pylist()
    for one, other, seconds in zip(among_jobs, among_users, duration, strict=True):
        assert (one["isolated_time"] is None) == (one["jct"] is None)
        if one["jct"] is not None:
            # A larger number of competitors leaves a smaller part.
            assert one["isolated_time"] >= other["isolated_time"] * (1 - 1e-12)
            assert other["isolated_time"] >= seconds * (1 - 1e-12)


@settings(max_examples=60)
@given(cases(), cases(policy=st.just("srtf")))
def test_fragmentation_is_the_measure_at_every_instant(first: Case, second: Case) -> None:
    for case in (first, second):
        if case.cluster.is_pool or case.placement == "pool":
            continue
        out = fly(case)
        found = out.fragmentation(WORKLOAD).to_pylist()
        segments = out.segments.to_pylist()
        nodes = device_nodes(case.cluster)
        instants = [row["time"] for row in found]
        assert instants == sorted(set(instants))
        changes = {s[key] for s in segments if s["nodes"] for key in ("start", "end")} - {None}
        assert changes <= set(instants)
        for row in found:
            free = FreeDevices(nodes)
            for s in segments:
                if s["start"] <= row["time"] and (s["end"] is None or row["time"] < s["end"]):
                    for node, gpus in zip(s["nodes"], s["node_gpus"], strict=True):
                        idle = free.devices[node].count(1000) - gpus
                        size = len(free.devices[node])
                        free.devices[node] = [1000] * idle + [0] * (size - idle)
            expected = fragmentation(free, WORKLOAD)
            assert math.isclose(row["frag_gpus"], expected.milli / 1000, abs_tol=1e-9)
            assert math.isclose(row["frag_amount"], expected.amount, abs_tol=1e-9)
            assert row["idle_gpus"] == expected.idle / 1000
            assert [row[cause] for cause in CAUSES] == [c / 1000 for c in expected.causes]
            assert (row["frag_ratio"] is None) == math.isnan(expected.ratio)
