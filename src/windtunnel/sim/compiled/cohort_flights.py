"""Runs under quotas with borrowing, from a problem to the kernel and back."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from windtunnel.sim.compiled.loading import load_kernels
from windtunnel.sim.compiled.offsets import offsets_of
from windtunnel.sim.compiled.orders import by_key
from windtunnel.sim.compiled.results import uninterrupted

if TYPE_CHECKING:
    from windtunnel.sim.cohort_order import CohortOrder
    from windtunnel.sim.contract import Placement
    from windtunnel.sim.flight import Flight
    from windtunnel.sim.problem import Problem

#: Modules of these runs, loaded when one is flown.
KERNELS = ("room", "cohort_kernel")


def fly(problem: Problem, order: CohortOrder, placement: Placement, until: float) -> Flight:
    """Fly the jobs of a problem; see `windtunnel.sim.compiled.run`.

    Args:
        problem: jobs and cluster.
        order: the quotas, and what jobs ask of them.
        placement: where jobs go.
        until: horizon, s.
    """
    kernels = load_kernels(KERNELS)
    room = kernels["room"]
    tables = room.tables(replace(problem, demands=order.demands), placement)
    heap_of, heap_start, queue_start = _heaps(order)
    places, position = by_key(-order.priority)
    jobs = np.stack([position, places, order.line_of, order.amount, heap_of])
    started = kernels["cohort_kernel"].fly(
        problem.submit, problem.duration, jobs.astype(np.int64), *tables,
        room.code(problem, placement), room.places(problem), heap_start, queue_start,
        order.flavors, order.fits, _quota(order), _queues(order), order.weight, order.fair, until,
    )  # fmt: skip
    return uninterrupted(problem, started, until)


def _heaps(order: CohortOrder) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return each job's heap (m,), where each heap's jobs begin, and each queue's heaps.

    A strict queue has one heap, another one has one a line; heaps are in the order of queues.
    """
    strict = order.strict[order.queue_of]
    keys = np.stack([order.queue_of, np.where(strict, 0, np.arange(len(strict)))])
    kinds, heap_of_line = np.unique(keys, axis=1, return_inverse=True)
    heap_of = heap_of_line.reshape(-1)[order.line_of]
    sizes = np.bincount(heap_of, minlength=kinds.shape[1])
    per_queue = np.bincount(kinds[0], minlength=len(order.strict))
    return heap_of, offsets_of(sizes), offsets_of(per_queue)


def _quota(order: CohortOrder) -> np.ndarray:
    """Return the kernel's ``quota`` with nothing in use."""
    quota = np.zeros((5, *order.nominal.shape), dtype=np.int64)
    quota[0], quota[1], quota[2] = order.nominal, order.kept, order.limit
    inside = order.cohort >= 0
    np.add.at(quota[4], order.cohort[inside], (order.nominal - order.kept)[inside])
    return quota


def _queues(order: CohortOrder) -> np.ndarray:
    """Return each queue's cohort, and the quota that the cohort's queues lend, shape (A, 2)."""
    inside = order.cohort >= 0
    lendable = np.zeros(len(order.cohort), dtype=np.int64)
    np.add.at(lendable, order.cohort[inside], (order.nominal - order.kept).sum(axis=1)[inside])
    theirs = np.where(inside, lendable[order.cohort], 0)
    return np.stack([order.cohort, theirs], axis=1).astype(np.int64)
