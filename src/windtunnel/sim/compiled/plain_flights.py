"""Plain runs, from a problem to the kernels and back: any static order, turns, backfilling."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from windtunnel.sim.compiled.loading import load_kernels
from windtunnel.sim.compiled.offsets import class_starts
from windtunnel.sim.compiled.orders import by_key, static_order
from windtunnel.sim.compiled.results import as_flight, uninterrupted
from windtunnel.sim.contract import BACKFILLING, Levels

if TYPE_CHECKING:
    from windtunnel.sim.contract import Placement, Policy
    from windtunnel.sim.flight import Flight
    from windtunnel.sim.problem import Problem


def fly(
    problem: Problem, policy: Policy, placement: Placement, *, queueing: str, until: float
) -> Flight:
    """Fly jobs that nobody preempts; see `windtunnel.sim.compiled.run`."""
    kernels = load_kernels()
    room = kernels["room"]
    tables, code = room.tables(problem, placement), room.code(problem, placement)
    devices = room.on_devices(problem)
    order, position = static_order(problem, policy)
    if queueing == "conservative":
        kernel = kernels["conservative_kernel"]
        profile = kernel.empty_profile(tables, devices=bool(problem.devices))
        started = kernel.fly(
            problem.submit, problem.duration, problem.estimate, position, order,
            problem.demand_of, room.slots(problem), *tables, room.own_code(problem, placement),
            room.kept_rows(tables, code), *profile, None, until,
        )  # fmt: skip
    elif queueing in BACKFILLING:
        shortest = queueing == "easy_sjbf"
        estimated, by_estimate = by_key(problem.estimate) if shortest else (order, position)
        started = kernels["easy_kernel"].fly(
            problem.submit, problem.duration, problem.estimate, position, order, by_estimate,
            estimated, problem.demand_of, *tables, code, devices, shortest, room.places(problem),
            room.most_entries(problem), room.kept_rows(tables, code), until,
        )  # fmt: skip
    else:
        started = kernels["queue_kernel"].fly(
            problem.submit, problem.duration, position, order, problem.demand_of,
            class_starts(problem), *tables, code, devices, queueing == "strict",
            room.places(problem), room.groups(problem), until,
        )  # fmt: skip
    return uninterrupted(problem, started, until)


def fly_preemptive(
    problem: Problem,
    policy: Policy,
    placement: Placement,
    *,
    queueing: str,
    overhead: float,
    until: float,
) -> Flight:
    """Fly jobs that may be preempted; see `windtunnel.sim.compiled.run`."""
    kernels = load_kernels()
    room = kernels["room"]
    tables, code = room.tables(problem, placement), room.code(problem, placement)
    given: dict[str, Any] = {
        "placement": code,
        "strict": queueing == "strict",
        "overhead": overhead,
        "until": until,
    }
    if policy.levels is not None or (policy.by_remaining and policy.by_service):
        levels = policy.levels or Levels()
        progress, record, points = kernels["service_kernel"].fly(
            problem, tables, bounds=np.array(levels.bounds, dtype=np.float64),
            values=np.array(levels.keys, dtype=np.float64), attained=policy.levels is not None,
            every=float(policy.every or 0.0), **given,
        )  # fmt: skip
    else:
        _, position = static_order(problem, policy)
        progress, record, points = kernels["quota_kernel"].fly(
            problem, position, class_starts(problem), tables, by_remaining=policy.by_remaining,
            **given,
        )  # fmt: skip
    # Summed in the order of the segments, as the reference engine does.
    stays = np.where(np.isnan(record.end), until, record.end) - record.start
    run_time = np.bincount(record.job, weights=stays, minlength=len(problem.rows)) + 0.0
    parts = (
        progress.start, progress.end, run_time, progress.preemptions, record.job, record.start,
        record.end, record.offsets, record.nodes, record.gpus, points,
    )  # fmt: skip
    return as_flight(problem, parts, until)
