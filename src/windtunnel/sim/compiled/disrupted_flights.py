"""Runs with disruptions or another order of events, from a problem to their kernels and back."""

from __future__ import annotations

from typing import TYPE_CHECKING

from windtunnel.sim.compiled.loading import load_kernels
from windtunnel.sim.compiled.orders import static_order
from windtunnel.sim.contract import BACKFILLING, EVENT_ORDERS

if TYPE_CHECKING:
    from windtunnel.sim.contract import Placement, Policy
    from windtunnel.sim.disruptions.plan import Plan
    from windtunnel.sim.flight import Flight
    from windtunnel.sim.problem import Problem


def fly(
    problem: Problem,
    policy: Policy,
    placement: Placement,
    plan: Plan | None,
    *,
    queueing: str,
    overhead: float,
    until: float,
    events: str,
) -> Flight:
    """Fly the jobs with the kernels that know disruptions and other orders of events.

    Args:
        problem: jobs and cluster.
        policy: who runs next.
        placement: where.
        plan: what will happen; None = nothing.
        queueing: the head-of-line rule.
        overhead: seconds that a preempted job pays when it resumes.
        until: horizon, s.
        events: one of `windtunnel.sim.contract.EVENT_ORDERS`.

    Raises:
        PolicyError: the policy's order is unusable (NaN, wrong shape).
        SpecError: disruptions under which a job never gets anywhere.
    """
    room = load_kernels()["room"]
    loaded = load_kernels(("flying", "tables"), f"{__package__}.disrupted")
    order, position = static_order(problem, policy)
    rules = loaded["tables"].Rules(
        placement=room.code(problem, placement),
        strict=queueing == "strict",
        plans=queueing in BACKFILLING and plan is not None,
        shortest=queueing == "easy_sjbf",
        by_remaining=policy.preemptive and policy.by_remaining,
        weighted=policy.by_service,
        events=EVENT_ORDERS.index(events),
        overhead=float(overhead),
        until=until,
    )
    chosen = "preemptive" if policy.preemptive else queueing
    tables = room.tables(problem, placement)
    flight: Flight = loaded["flying"].fly(problem, plan, tables, order, position, rules, chosen)
    return flight
