"""Runs under orders by usage, from a problem to the kernels and back."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from windtunnel.sim.compiled.loading import load_kernels

if TYPE_CHECKING:
    from windtunnel.sim.problem import Problem
    from windtunnel.sim.usage_order import UsageOrder

#: Modules of these runs, loaded when one is flown.
KERNELS = ("room", "usage_keys", "usage_kernel", "usage_easy_kernel")


def fly(
    problem: Problem,
    order: UsageOrder,
    tables: tuple[np.ndarray, np.ndarray, np.ndarray],
    *,
    placement: int,
    queueing: str,
    class_start: np.ndarray,
    estimated: tuple[np.ndarray, np.ndarray],
    until: float,
) -> Any:
    """Fly the jobs of a problem; the result is that of `windtunnel.sim.compiled.queue_kernel.fly`.

    Args:
        problem: jobs and cluster.
        order: who goes first.
        tables: free state and demands, see `windtunnel.sim.compiled.room.tables`.
        placement: its code.
        queueing: ``strict``, ``skip``, ``easy`` or ``easy_sjbf``.
        class_start: where each demand class's jobs begin, shape (classes + 1,).
        estimated: the jobs by (estimate, arrival), and each job's place among them; of
            ``easy_sjbf`` only.
        until: horizon, s.
    """
    kernels = load_kernels(KERNELS)
    room, keys = kernels["room"], kernels["usage_keys"]
    usage = (
        keys.fresh_books(order), order.shares, keys.factors(order), keys.terms(order, problem),
        order.group_of[problem.rows],
    )  # fmt: skip
    if queueing in ("easy", "easy_sjbf"):
        by_estimate, place = estimated
        return kernels["usage_easy_kernel"].fly(
            problem.duration, problem.estimate, place, by_estimate, problem.demand_of, *tables,
            placement, queueing == "easy_sjbf", room.places(problem), room.most_entries(problem),
            room.kept_rows(tables, placement), *usage, until,
        )  # fmt: skip
    strict = queueing == "strict"
    queues = np.array([0, len(problem.rows)], dtype=np.int64) if strict else class_start
    return kernels["usage_kernel"].fly(
        problem.duration, problem.demand_of, queues, *tables, placement, strict,
        room.places(problem), *usage, until,
    )  # fmt: skip
