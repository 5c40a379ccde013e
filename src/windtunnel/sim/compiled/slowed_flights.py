"""Runs with slow-downs, from a problem to the kernels made for them and back."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from windtunnel.sim.compiled.loading import load_kernels
from windtunnel.sim.compiled.orders import by_key, static_order
from windtunnel.sim.compiled.results import as_flight
from windtunnel.sim.contract import BACKFILLING

if TYPE_CHECKING:
    from windtunnel.sim.contract import Placement, Policy
    from windtunnel.sim.flight import Flight
    from windtunnel.sim.problem import Problem
    from windtunnel.sim.rates import Rates


def fly(
    problem: Problem,
    policy: Policy,
    placement: Placement,
    rates: Rates,
    *,
    queueing: str,
    overhead: float,
    until: float,
) -> Flight:
    """Fly the jobs at rates that change, with the kernels made for that."""
    room = load_kernels()["room"]
    kernels = load_kernels(("run",), f"{__package__}.slowed")["run"]
    neighbours: Any = rates.neighbours
    tables, code = room.tables(problem, placement), room.code(problem, placement)
    by_service = policy.levels is not None or (policy.by_remaining and policy.by_service)
    order, position = (None, None) if by_service else static_order(problem, policy)
    if policy.preemptive:
        parts, lost = kernels.fly_quota(
            problem, neighbours, tables, position, levels=policy.levels,
            by_remaining=policy.by_remaining, by_service=policy.by_service,
            every=float(policy.every or 0.0), placement=code, strict=queueing == "strict",
            overhead=overhead, until=until,
        )  # fmt: skip
    elif queueing == "conservative":
        parts, lost = kernels.fly_conservative(
            problem, neighbours, tables, order, position, until=until,
            placement=room.own_code(problem, placement), kept=room.kept_rows(tables, code),
        )  # fmt: skip
    elif queueing in BACKFILLING:
        shortest = queueing == "easy_sjbf"
        estimated, by_estimate = by_key(problem.estimate) if shortest else (order, position)
        parts, lost = kernels.fly_easy(
            problem, neighbours, tables, order, position, estimated, by_estimate, placement=code,
            shortest_first=shortest, until=until,
        )  # fmt: skip
    else:
        parts, lost = kernels.fly_queue(
            problem, neighbours, tables, order, position, placement=code,
            strict=queueing == "strict", until=until,
        )  # fmt: skip
    return as_flight(problem, parts, until, lost)
