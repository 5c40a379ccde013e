"""Runs under orders by usage, from a problem to the kernels and back."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from windtunnel.sim.compiled.loading import load_kernels
from windtunnel.sim.compiled.offsets import class_starts
from windtunnel.sim.compiled.orders import by_key
from windtunnel.sim.compiled.results import uninterrupted
from windtunnel.sim.contract import BACKFILLING

if TYPE_CHECKING:
    from windtunnel.sim.contract import Placement
    from windtunnel.sim.flight import Flight
    from windtunnel.sim.problem import Problem
    from windtunnel.sim.usage_order import UsageOrder

#: Modules of these runs, loaded when one is flown.
KERNELS = ("room", "usage_keys", "usage_kernel", "usage_easy_kernel")


def fly(
    problem: Problem, order: UsageOrder, placement: Placement, *, queueing: str, until: float
) -> Flight:
    """Fly the jobs of a problem; see `windtunnel.sim.compiled.run`.

    Args:
        problem: jobs and cluster.
        order: who goes first.
        placement: where jobs go.
        queueing: ``strict``, ``skip``, ``easy`` or ``easy_sjbf``.
        until: horizon, s.
    """
    kernels = load_kernels(KERNELS)
    room, keys = kernels["room"], kernels["usage_keys"]
    tables, code = room.tables(problem, placement), room.code(problem, placement)
    usage = (
        keys.fresh_books(order), order.shares, keys.factors(order), keys.terms(order, problem),
        order.group_of[problem.rows],
    )  # fmt: skip
    if queueing in BACKFILLING:
        shortest = queueing == "easy_sjbf"
        arrival = np.arange(len(problem.rows))
        by_estimate, place = by_key(problem.estimate) if shortest else (arrival, arrival)
        started = kernels["usage_easy_kernel"].fly(
            problem.duration, problem.estimate, place, by_estimate, problem.demand_of, *tables,
            code, shortest, room.places(problem), room.most_entries(problem),
            room.kept_rows(tables, code), *usage, until,
        )  # fmt: skip
    else:
        strict = queueing == "strict"
        queues = np.array([0, len(problem.rows)], np.int64) if strict else class_starts(problem)
        started = kernels["usage_kernel"].fly(
            problem.duration, problem.demand_of, queues, *tables, code, strict,
            room.places(problem), *usage, until,
        )  # fmt: skip
    return uninterrupted(problem, started, until)
