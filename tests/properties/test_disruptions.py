"""Whatever goes wrong in a run: nobody is on a node that is down, and every second is counted.

The bookkeeping is done again here from the description alone and the segments of the run.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from disruption_cases import (
    CHECKPOINTS,
    POLICIES,
    Disrupted,
    cases,
    check_nodes,
    check_time,
    closed,
    jobs,
)
from flight_cases import quarters
from hypothesis import given, settings
from hypothesis import strategies as st

import windtunnel as wt
from windtunnel.sim.disruptions import (
    CapacityChange,
    Checkpointing,
    Disruptions,
    Maintenance,
    NodeFailure,
    Reservation,
)
from windtunnel.testing import assert_outcomes_equal


@settings(max_examples=150)
@given(cases())
def test_nobody_is_where_nobody_may_be_and_time_adds_up(case: Disrupted) -> None:
    out = case.fly()
    check_nodes(case, out)
    check_time(case, out)


@settings(max_examples=150)
@given(cases(random=False))
def test_without_chance_every_run_comes_to_an_end(case: Disrupted) -> None:
    out = case.fly()
    check_nodes(case, out)
    check_time(case, out)
    if case.until is None:
        waiting = np.array(out.table["status"].to_pylist()) == "waiting"
        assert set(out.table["status"].to_pylist()) <= {"finished", "failed", "waiting"}
        assert waiting.any() == any("for ever" in note for note in out.notes)
        lost = [c for c in case.disruptions.capacity_changes if c.remove]
        for_good = [f for f in case.disruptions.node_failures if f.until is None]
        assert not waiting.any() or lost or for_good


@settings(max_examples=150)
@given(cases())
def test_the_same_seed_gives_the_same_run(case: Disrupted) -> None:
    assert_outcomes_equal(case.fly(), case.fly())


@settings(max_examples=150)
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


@settings(max_examples=150)
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


@settings(max_examples=100)
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
