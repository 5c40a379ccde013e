"""Failures and maintenance where nodes have devices: nothing twice, and nobody on a closed node."""

from __future__ import annotations

import math

from flight_cases import Case, device_cases
from hypothesis import given, settings
from hypothesis import strategies as st
from test_devices import check_instant

import windtunnel as wt


@settings(max_examples=100)
@given(device_cases(), st.integers(0, 3), st.integers(0, 8), st.integers(1, 9), st.integers(0, 1))
def test_a_node_that_is_down_runs_nothing(
    case: Case, node: int, down: int, long: int, windows: int
) -> None:
    node %= case.cluster.num_nodes
    plan: dict[str, object] = {
        "node_failures": [{"time": float(down), "node": node, "until": float(down + long)}],
        "checkpoint": {"interval": 2.0},
    }
    other = (node + 1) % case.cluster.num_nodes
    window = {"start": float(down + 3), "end": float(down + 6), "nodes": [other]}
    plan["maintenance"] = [window] * windows
    out = wt.simulate(
        case.jobs,
        case.cluster,
        case.policy,
        queueing=case.queueing,
        placement=case.placement,
        sharing=case.sharing,
        resources=case.resources,
        save_time=case.save_time,
        until=case.until,
        oversize="reject",
        incomplete="reject",
        disruptions=plan,
    )
    stays = out.segments.to_pylist()
    horizon = math.inf if case.until is None else case.until
    ends = [horizon if stay["end"] is None else stay["end"] for stay in stays]
    for instant in {stay["start"] for stay in stays}:
        there = zip(stays, ends, strict=True)
        check_instant(case, [s for s, end in there if s["start"] <= instant < end])
    for stay, end in zip(stays, ends, strict=True):
        if node in stay["nodes"]:
            assert end <= down or stay["start"] >= down + long
