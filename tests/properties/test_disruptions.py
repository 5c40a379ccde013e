"""Whatever goes wrong in a run: nobody is on a node that is down, and every second is counted.

The bookkeeping is done again here from the description alone and the segments of the run.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from flight_cases import MORE, quarters
from hypothesis import given, settings
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
from windtunnel.testing import assert_outcomes_equal

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


@settings(max_examples=150 * MORE)
@given(cases())
def test_nobody_is_where_nobody_may_be_and_time_adds_up(case: Disrupted) -> None:
    out = case.fly()
    check_nodes(case, out)
    check_time(case, out)


@settings(max_examples=150 * MORE)
@given(cases(random=False))
def test_without_chance_every_run_comes_to_an_end(case: Disrupted) -> None:
    out = case.fly()
    check_nodes(case, out)
    check_time(case, out)
    if case.until is None:
        waiting = np.array(out.table["status"].to_pylist()) == "waiting"
        assert set(out.table["status"].to_pylist()) <= {"finished", "failed", "waiting"}
        assert waiting.any() == any("wait for ever" in note for note in out.notes)
        lost = [c for c in case.disruptions.capacity_changes if c.remove]
        for_good = [f for f in case.disruptions.node_failures if f.until is None]
        assert not waiting.any() or lost or for_good


@settings(max_examples=150 * MORE)
@given(cases())
def test_the_same_seed_gives_the_same_run(case: Disrupted) -> None:
    assert_outcomes_equal(case.fly(), case.fly())


@settings(max_examples=150 * MORE)
@given(cases())
def test_what_comes_after_the_end_changes_nothing(case: Disrupted) -> None:
    plain = case.fly(Disruptions())
    far = 1e6
    late = Disruptions(
        node_failures=[NodeFailure(node=0, time=far)],
        maintenance=[Maintenance(nodes=(1,), start=far, end=far + 1, on_start="kill")],
        reservations=[Reservation(nodes=(2,), start=far, end=far + 1, users=("ann",))],
        capacity_changes=[CapacityChange(time=far, remove=(3,))],
    )
    out = case.fly(late)
    assert out.table == plain.table
    assert out.segments == plain.segments
    assert out.metrics() == plain.metrics()


@settings(max_examples=150 * MORE)
@given(cases(random=False), st.sampled_from(["easy", "easy-sjbf", "conservative"]))
def test_who_plans_is_never_stopped_by_what_is_planned(case: Disrupted, policy: str) -> None:
    planned = Disruptions(
        maintenance=case.disruptions.maintenance,
        capacity_changes=case.disruptions.capacity_changes,
        reservations=case.disruptions.reservations,
    )
    chosen = Disrupted(case.jobs, policy, None, case.placement, planned, None)
    out = chosen.fly()
    check_nodes(chosen, out)
    assert out.metrics()["num_failures"] == out.metrics()["num_restarts"] == 0
    for stay in out.segments.to_pylist():  # even those that may stay over the start end before it
        user = case.jobs["user"][stay["row"]]
        for where, begin, _, reopened, _ in closed(chosen, user):
            if where in stay["nodes"]:
                assert stay["end"] <= begin or stay["start"] >= reopened


@settings(max_examples=100 * MORE)
@given(
    jobs(),
    st.sampled_from(POLICIES),
    st.lists(st.tuples(quarters(0, 20), quarters(1, 8), st.integers(1, 4)), max_size=2),
    st.lists(st.tuples(quarters(0, 20), quarters(1, 8), st.integers(1, 4)), max_size=2),
    CHECKPOINTS,
)
def test_a_pool_gives_no_more_than_it_has(
    asked: dict[str, list[Any]],
    policy: str,
    failed: list[tuple[float, float, int]],
    planned: list[tuple[float, float, int]],
    checkpoint: Checkpointing,
) -> None:
    given_parts = Disruptions(
        node_failures=[NodeFailure(gpus=n, time=t, until=t + s) for t, s, n in failed],
        maintenance=[
            Maintenance(gpus=n, start=t, end=t + s, on_start="kill") for t, s, n in planned
        ],
        checkpoint=checkpoint,
    )
    case = Disrupted(asked, policy, None, "pool", given_parts, None)
    out = wt.simulate(asked, "pool:16", policy, disruptions=given_parts, save_time=0.25)
    check_time(case, out)
    assert set(out.table["status"].to_pylist()) == {"finished"}
    changes = [(t, n) for t, s, n in failed + planned] + [
        (t + s, -n) for t, s, n in failed + planned
    ]
    for stay in out.segments.to_pylist():
        changes += [(stay["start"], stay["num_gpus"]), (stay["end"], -stay["num_gpus"])]
    by_time: dict[float, float] = {}
    for time, gpus in changes:
        by_time[time] = by_time.get(time, 0) + gpus
    assert max(np.cumsum([by_time[time] for time in sorted(by_time)])) <= 16
