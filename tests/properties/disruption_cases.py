"""Random disruptions, jobs under them, and what holds of their runs, found from outcomes alone."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from flight_cases import quarters
from hypothesis import strategies as st

import windtunnel as wt
from windtunnel.sim.disruptions import (
    CapacityChange,
    Checkpointing,
    Disruptions,
    FailureModel,
    JobFailures,
    Maintenance,
    NodeFailure,
    Reservation,
)

NODES = 4
USERS = ("ann", "bob", "eve")
POLICIES = (
    "fifo",
    "sjf",
    "srtf",
    "priority-preemptive",
    "las",
    "easy",
    "easy-sjbf",
    "conservative",
)


@dataclass(frozen=True)
class Disrupted:
    """One run."""

    jobs: dict[str, list[Any]]
    policy: str
    queueing: str | None
    placement: str
    disruptions: Disruptions
    until: float | None

    def fly(self, disruptions: Disruptions | None = None) -> wt.Outcome:
        """Run it."""
        return wt.simulate(
            *(self.jobs, f"{NODES}x4", self.policy),
            queueing=self.queueing,
            placement=self.placement,
            disruptions=disruptions or self.disruptions,
            save_time=0.25,
            until=self.until,
            seed=3,
        )


@st.composite
def jobs(draw: Any) -> dict[str, list[Any]]:
    """Some jobs that a whole cluster can hold, with true estimates and above."""
    count = draw(st.integers(1, 8))
    duration = draw(st.lists(quarters(0, 12), min_size=count, max_size=count))
    more = draw(st.lists(quarters(0, 3), min_size=count, max_size=count))
    return {
        "submit_time": draw(st.lists(quarters(0, 8), min_size=count, max_size=count)),
        "duration": duration,
        "estimate": [d + m for d, m in zip(duration, more, strict=True)],
        "num_gpus": draw(st.lists(st.integers(0, 16), min_size=count, max_size=count)),
        "user": draw(st.lists(st.sampled_from(USERS), min_size=count, max_size=count)),
        "priority": draw(st.lists(st.integers(0, 2), min_size=count, max_size=count)),
    }


def some(values: st.SearchStrategy[Any], most: int = 2) -> st.SearchStrategy[tuple[Any, ...]]:
    """A few of them."""
    return st.lists(values, max_size=most).map(tuple)


SETS = st.sets(st.integers(0, NODES - 1), min_size=1, max_size=2).map(lambda s: tuple(sorted(s)))
ON_START = st.sampled_from(["wait", "kill", "checkpoint"])
FAILURES = st.builds(
    lambda node, time, length: NodeFailure(
        node=node, time=time, until=None if length is None else time + length
    ),
    st.integers(0, NODES - 1),
    quarters(0, 20),
    st.none() | quarters(1, 8),
)
WINDOWS = st.builds(
    lambda nodes, start, length, drain, on_start: Maintenance(
        nodes=nodes, start=start, end=start + length, drain_before=drain, on_start=on_start
    ),
    *(SETS, quarters(0, 20), quarters(1, 8), quarters(0, 3), ON_START),
)
CHANGES = st.builds(
    lambda time, nodes, joins, on_start: CapacityChange(
        time=time,
        add=nodes if joins else (),
        remove=() if joins else nodes,
        on_start=on_start,
    ),
    *(quarters(0, 20), SETS, st.booleans(), ON_START),
)
RESERVED = st.builds(
    lambda nodes, start, length, users, on_start: Reservation(
        nodes=nodes, start=start, end=start + length, users=tuple(sorted(users)), on_start=on_start
    ),
    *(SETS, quarters(0, 20), quarters(1, 8), st.sets(st.sampled_from(USERS), max_size=2), ON_START),
)
MODELS = st.builds(FailureModel, mtbf=st.just(15.0), mttr=quarters(1, 4))
CHECKPOINTS = st.builds(
    Checkpointing,
    interval=st.none() | quarters(1, 4),
    cost=st.sampled_from([0.0, 0.5]),
    restart_cost=st.sampled_from([0.0, 0.25]),
)


@st.composite
def cases(draw: Any, *, random: bool = True) -> Disrupted:
    """Runs with everything that may go wrong."""
    policy = draw(st.sampled_from(POLICIES))
    orders = [None] if policy in POLICIES[5:] else [None, "strict", "skip"]
    chance = {"failure_models": draw(some(MODELS, 1))} if random else {}
    if random:
        chance["job_failures"] = JobFailures(rate=draw(st.sampled_from([0.0, 60.0])))
    given_parts = Disruptions(
        checkpoint=draw(CHECKPOINTS),
        on_failure=draw(st.sampled_from(["restart", "end"])),
        node_failures=draw(some(FAILURES)),
        maintenance=draw(some(WINDOWS)),
        capacity_changes=draw(some(CHANGES)),
        reservations=draw(some(RESERVED)),
        **chance,
    )
    return Disrupted(
        jobs=draw(jobs()),
        policy=policy,
        queueing=draw(st.sampled_from(orders)),
        placement=draw(st.sampled_from(["best_fit", "spread"])),
        disruptions=given_parts,
        until=draw(st.none() | st.just(30.0)) if not random else 400.0,
    )


def closed(case: Disrupted, user: str) -> list[tuple[int, float, float, float, str]]:
    """Node, closed from, dealt with at, open again, how; for the jobs of a user."""
    given_parts = case.disruptions
    found: list[tuple[int, float, float, float, str]] = []
    for failure in given_parts.node_failures:
        until = math.inf if failure.until is None else float(failure.until)
        found.append((int(failure.node or 0), float(failure.time), float(failure.time), until,
                      "kill"))  # fmt: skip
    for window in given_parts.maintenance:
        start, drain = float(window.start), float(window.drain_before)
        end = float(window.end)
        found += [(node, start - drain, start, end, window.on_start) for node in window.nodes]
    for change in given_parts.capacity_changes:
        time = float(change.time)
        found += [(node, -math.inf, -math.inf, time, "kill") for node in change.add]
        found += [(node, time, time, math.inf, change.on_start) for node in change.remove]
    for held in given_parts.reservations:
        start, end = float(held.start), float(held.end)
        if user not in held.users:
            found += [(node, start, start, end, held.on_start) for node in held.nodes]
    return found


def check_nodes(case: Disrupted, out: wt.Outcome) -> None:
    """Nobody starts where it is closed or stays where nobody may; no GPU is held twice."""
    held: list[list[tuple[float, int]]] = [[] for _ in range(NODES)]
    for stay in out.segments.to_pylist():
        user = case.jobs["user"][stay["row"]]
        end = math.inf if stay["end"] is None else stay["end"]
        for node, gpus in zip(stay["nodes"], stay["node_gpus"], strict=True):
            held[node] += [(stay["start"], gpus), (end, -gpus)]
            for where, begin, strike, reopened, how in closed(case, user):
                if where != node:
                    continue
                assert not begin <= stay["start"] < reopened
                if how != "wait" and stay["start"] < strike:
                    assert end <= strike
    for changes in held:
        assert np.cumsum([gpus for _, gpus in sorted(changes)]).max(initial=0) <= 4


def check_time(case: Disrupted, out: wt.Outcome) -> None:
    """Seconds held = useful + overhead + lost; who finished did all of the work."""
    found = out.flight.interruptions
    if found is None:
        assert case.disruptions.is_empty
        return
    parts = found.useful_time + found.overhead_time + found.lost_time
    assert parts == pytest.approx(out.flight.run_time, abs=1e-6)
    assert min(found.useful_time.min(), found.overhead_time.min(), found.lost_time.min()) > -1e-9
    duration = np.array(case.jobs["duration"])
    finished = np.array(out.table["status"].to_pylist()) == "finished"
    assert found.useful_time[finished] == pytest.approx(duration[finished], abs=1e-6)
    assert (found.useful_time <= duration + 1e-6).all()
    restarted = found.restarts > 0
    stays = np.bincount(out.flight.segment_job, minlength=len(duration))
    assert (stays[restarted] > 1).all()
    metrics = out.metrics()
    names = ("finished", "running", "waiting", "not_submitted", "rejected", "failed")
    assert sum(metrics[f"num_{name}"] for name in names) == len(duration)
    assert metrics["utilization"] is None or metrics["utilization"] <= 1 + 1e-9
    assert max(out.utilization()["utilization"].to_pylist(), default=0) <= 1 + 1e-9
