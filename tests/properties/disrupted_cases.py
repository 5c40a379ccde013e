"""What the tests of disrupted runs draw for both engines: every hold, under every placement."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from flight_cases import Jobs, quarters
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
ON_START = st.sampled_from(["wait", "kill", "checkpoint"])
PLACEMENTS = ("best_fit", "spread", "pool", "pool:16", "devices", "fgd", "pooled")


@dataclass(frozen=True)
class Disrupted:
    """One run that goes wrong."""

    jobs: Jobs
    policy: Any
    queueing: str | None
    placement: str
    disruptions: Disruptions
    until: float | None

    def fly(self, engine: str) -> wt.Outcome:
        """Run it on an engine."""
        on_nodes = self.placement != "pool:16"
        options = {
            "best_fit": {"placement": "best_fit"},
            "spread": {"placement": "spread"},
            "pool": {"placement": "pool"},
            "pool:16": {},
            "devices": {"sharing": "devices"},
            "fgd": {"placement": "fgd"},
            "pooled": {"sharing": "pooled", "placement": "random"},
        }[self.placement]
        return wt.simulate(
            self.jobs,
            f"{NODES}x4" if on_nodes else self.placement,
            self.policy,
            queueing=self.queueing,
            disruptions=self.disruptions,
            save_time=0.25,
            until=self.until,
            seed=3,
            engine=engine,
            **options,
        )


def some(values: st.SearchStrategy[Any], most: int = 3) -> st.SearchStrategy[tuple[Any, ...]]:
    """A few of them."""
    return st.lists(values, max_size=most).map(tuple)


@st.composite
def jobs(draw: st.DrawFn, *, shares: bool = False) -> Jobs:
    """Some jobs with many ties; their estimates may be wrong both ways."""
    count = draw(st.integers(1, 12))

    def column(values: st.SearchStrategy[Any]) -> list[Any]:
        return draw(st.lists(values, min_size=count, max_size=count))

    gpus = st.one_of(st.integers(0, 4), st.integers(0, 16)).map(float)
    if shares:
        gpus = st.one_of(gpus, st.sampled_from((0.25, 0.5, 0.7)))
    return {
        "submit_time": column(st.one_of(st.integers(0, 3).map(float), quarters(0, 10))),
        "duration": column(st.one_of(st.integers(0, 6).map(float), quarters(0, 12))),
        "estimate": column(st.integers(0, 12).map(float)),
        "num_gpus": column(gpus),
        "user": column(st.sampled_from(USERS)),
        "priority": column(st.integers(0, 2)),
        "status": column(st.sampled_from(("completed", "failed", "node_fail"))),
        "end_time": column(quarters(4, 20)),
    }


def _sets() -> st.SearchStrategy[tuple[int, ...]]:
    return st.sets(st.integers(0, NODES - 1), min_size=1, max_size=2).map(
        lambda nodes: tuple(sorted(nodes))
    )


def _holds(*, of_pool: bool, reservations: bool) -> dict[str, st.SearchStrategy[Any]]:
    """Strategies of the parts that name nodes, or GPUs of a pool."""

    def where(gpus: int, nodes: tuple[int, ...]) -> dict[str, Any]:
        return {"gpus": gpus} if of_pool else {"nodes": nodes}

    gpus = st.integers(1, 8)
    parts: dict[str, st.SearchStrategy[Any]] = {
        "node_failures": st.builds(
            lambda count, node, time, length: NodeFailure(
                time=time,
                until=None if length is None else time + length,
                **({"gpus": count} if of_pool else {"node": node}),
            ),
            *(gpus, st.integers(0, NODES - 1), quarters(0, 20), st.none() | quarters(1, 8)),
        ),
        "maintenance": st.builds(
            lambda count, nodes, start, length, drain, how: Maintenance(
                start=start,
                end=start + length,
                drain_before=drain,
                on_start=how,
                **where(count, nodes),
            ),
            *(gpus, _sets(), quarters(0, 20), quarters(1, 8), quarters(0, 3), ON_START),
        ),
        "capacity_changes": st.builds(
            lambda count, nodes, time, joins, how: CapacityChange(
                time=time,
                on_start=how,
                **(
                    {"add_gpus" if joins else "remove_gpus": count}
                    if of_pool
                    else {"add" if joins else "remove": nodes}
                ),
            ),
            *(gpus, _sets(), quarters(0, 20), st.booleans(), ON_START),
        ),
    }
    if reservations:
        parts["reservations"] = st.builds(
            lambda nodes, start, length, users, how: Reservation(
                nodes=nodes,
                start=start,
                end=start + length,
                users=tuple(sorted(users)),
                on_start=how,
            ),
            *(_sets(), quarters(0, 20), quarters(1, 8)),
            *(st.sets(st.sampled_from(USERS), max_size=2), ON_START),
        )
    return parts


@st.composite
def disruptions(draw: st.DrawFn, placement: str) -> Disruptions:
    """Everything that may go wrong under a placement."""
    on_nodes = placement in ("best_fit", "spread")
    parts = {
        name: draw(some(values, 2))
        for name, values in _holds(of_pool=placement == "pool:16", reservations=on_nodes).items()
    }
    model = st.builds(
        FailureModel,
        mtbf=st.sampled_from((6.0, 15.0)),
        mttr=quarters(1, 4),
        repair=st.sampled_from(("fixed", "exponential")),
    )
    if placement != "pool:16":
        parts["failure_models"] = draw(some(model, 1))
    return Disruptions(
        checkpoint=draw(
            st.builds(
                Checkpointing,
                interval=st.none() | quarters(1, 4),
                cost=st.sampled_from((0.0, 0.5)),
                restart_cost=st.sampled_from((0.0, 0.25)),
            )
        ),
        on_failure=draw(
            st.sampled_from(("restart", "restart" if placement[:4] == "pool" else "swap", "end"))
        ),
        job_failures=JobFailures(
            rate=draw(st.sampled_from((0.0, 60.0, 600.0))),
            statuses=draw(st.sampled_from(((), ("failed",)))),
        ),
        **parts,
    )


@st.composite
def disrupted_cases(
    draw: st.DrawFn, policies: tuple[str, ...], rules: tuple[str | None, ...]
) -> Disrupted:
    """Runs with everything that may go wrong, under some policies and rules."""
    placement = draw(st.sampled_from(PLACEMENTS))
    return Disrupted(
        jobs=draw(jobs(shares=placement in PLACEMENTS[4:])),
        policy=draw(st.sampled_from(policies)),
        queueing=draw(st.sampled_from(rules)),
        placement=placement,
        disruptions=draw(disruptions(placement)),
        until=draw(st.sampled_from((15.0, 60.0, 400.0))),
    )


def assert_same_interruptions(a: wt.Outcome, b: wt.Outcome) -> None:
    """Assert that two outcomes mean the same, what disruptions did to them included."""
    assert_outcomes_equal(a, b)
    one, other = a.flight.interruptions, b.flight.interruptions
    assert (one is None) == (other is None)
    if one is None or other is None:
        return
    for name, left in vars(one).items():
        right = getattr(other, name)
        assert left.dtype == right.dtype, name
        np.testing.assert_array_equal(left, right, err_msg=name, strict=True)
