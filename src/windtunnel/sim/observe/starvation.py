"""Who starves: jobs that others overtake, and the tails that means hide.

A policy can win every mean and leave a few jobs waiting for ever: shortest-first on nodes lets
small jobs past whole-node gangs again and again. So these tables count a job that still waits at
the horizon with what it has waited so far, and look at each size of jobs by itself.

A job is *overtaken* by every job that was submitted later and started earlier, both strictly: jobs
submitted together, or started together, do not overtake each other. A job that never started was
overtaken by every later one that did. Backfilling overtakes without delaying, so the count is of
opportunities given to others, not of harm done.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from windtunnel.sim.flight import FINISHED
from windtunnel.sim.metrics import bounded_slowdown, distribution, horizon, members_of
from windtunnel.sim.observe.groups import SIZE, job_groups

if TYPE_CHECKING:
    from windtunnel.sim.flown import Flown

_COLUMNS = (
    *("p99_wait", "max_wait", "overtaken_share", "avg_overtaken"),
    *("p99_overtaken", "max_overtaken", "p99_bounded_slowdown", "max_bounded_slowdown"),
)


def waited(outcome: Flown) -> np.ndarray:
    """Return how long each job has waited for its first start, shape (n,), s, jobs-table order.

    Until the horizon where it has not started; NaN where it was not submitted by then, or rejected.
    """
    flight = outcome.flight
    start = np.where(np.isnan(flight.start), horizon(outcome)[1], flight.start)
    so_far = np.maximum(start - outcome.submit_time, 0.0)
    wait: np.ndarray = np.where(outcome.submitted, so_far, np.nan)
    return wait


def overtaken(outcome: Flown) -> np.ndarray:
    """Return by how many jobs each was overtaken, Int array (n,), jobs-table order.

    0 for jobs that were not submitted, or rejected. O(n log n).
    """
    rows = np.flatnonzero(outcome.submitted)
    submit, start = outcome.submit_time[rows], outcome.flight.start[rows]
    start = np.where(np.isnan(start), np.inf, start)
    # Of jobs submitted together the first started comes first, so that it is not overtaken by the
    # others; of jobs started together the first submitted ranks first, for the same reason.
    order = np.lexsort((start, submit))
    rank = np.empty(len(order), dtype=np.int64)
    rank[np.argsort(start[order], kind="stable")] = np.arange(len(order))
    counts = np.zeros(len(outcome.submit_time), dtype=np.int64)
    counts[rows[order]] = smaller_after(rank)
    return counts


def smaller_after(values: np.ndarray) -> np.ndarray:
    """Return how many smaller ones come after each of 0, 1, ... n - 1 in some order.

    Merges sorted blocks of twice the size in every round: as a block is merged, what stands right
    of the middle and is smaller goes before what stands left of it.

    Args:
        values: Int array of shape (n,), a permutation.

    Returns:
        Int array of shape (n,).

    >>> smaller_after(np.array([3, 1, 2, 0])).tolist()
    [3, 1, 1, 0]
    """
    count = len(values)
    width = 1 << max(count - 1, 0).bit_length()
    blocks = np.concatenate([values, np.arange(count, width)])  # what fills up is never smaller
    place = np.empty(width, dtype=np.int64)
    place[blocks] = np.arange(width)
    found = np.zeros(width, dtype=np.int64)  # by value
    half = 1
    while half < width:
        blocks = np.sort(blocks.reshape(-1, 2 * half), axis=1, kind="stable")
        on_right = (place[blocks] & half) > 0
        passed = np.cumsum(on_right, axis=1)
        left = ~on_right
        found[blocks[left]] += passed[left]
        half *= 2
    result: np.ndarray = found[values]
    return result


def starvation(outcome: Flown, by: str = SIZE) -> pa.Table:
    """Return the tails of waiting by group of jobs.

    Args:
        outcome: the run.
        by: ``size``, or a column of text: ``vc``, ``user``, ``workload`` ...

    Returns:
        A row a group that has submitted jobs, in order: the column named as ``by``; ``num_jobs``
        submitted; ``num_unstarted``, of which still wait for their first start; ``p99_wait`` and
        ``max_wait`` (s, over all of them, so far where they still wait); ``overtaken_share`` (0..1,
        of jobs that were overtaken at all) and ``avg_``, ``p99_``, ``max_overtaken`` (by how many
        jobs); ``p99_`` and ``max_bounded_slowdown`` of those that finished (null where none).

    Raises:
        SpecError: there is no such grouping.
    """
    codes, labels = job_groups(outcome, by)
    wait, passed = waited(outcome), overtaken(outcome)
    slowdown = np.full(len(wait), np.nan)
    slowdown[outcome.flight.status == FINISHED] = bounded_slowdown(outcome)
    rows = []
    for label, members in members_of(codes, labels, np.flatnonzero(~np.isnan(wait))):
        found = {
            "overtaken_share": float((passed[members] > 0).mean()),
            **distribution(wait[members], "wait"),
            **distribution(passed[members].astype(np.float64), "overtaken"),
            **distribution(slowdown[members][~np.isnan(slowdown[members])], "bounded_slowdown"),
        }
        row: dict[str, Any] = {by: label, "num_jobs": len(members)}
        row["num_unstarted"] = int(np.isnan(outcome.flight.start[members]).sum())
        rows.append(row | {column: found[column] for column in _COLUMNS})
    counts = [("num_jobs", pa.int64()), ("num_unstarted", pa.int64())]
    fields = [(by, pa.string()), *counts, *((name, pa.float64()) for name in _COLUMNS)]
    return pa.Table.from_pylist(rows, schema=pa.schema(fields))


def oldest_waiting(outcome: Flown) -> pa.Table:
    """Return which job has waited longest for its first start, over time.

    Returns:
        A row a span during which the same job is the oldest that waits, in order of time, spans
        without any left out: ``row`` (in the jobs table), ``from_time`` and ``until_time`` (s),
        ``wait_from`` and ``wait_until`` (s): how long it has waited at both ends of the span.
    """
    rows = np.flatnonzero(outcome.submitted)
    rows = rows[np.argsort(outcome.submit_time[rows], kind="stable")]
    submit = outcome.submit_time[rows]
    start = outcome.flight.start[rows]
    start = np.where(np.isnan(start), horizon(outcome)[1], start)
    # Sorted by submission, the oldest that waits at t is the first that starts after t: a job is
    # it from when all before it have started, if it starts later than they.
    before = np.maximum.accumulate(np.append(-np.inf, start))[:-1]
    begin = np.maximum(before, submit)
    is_oldest = start > begin
    begin, end, since = begin[is_oldest], start[is_oldest], submit[is_oldest]
    return pa.table(
        {
            "row": rows[is_oldest],
            "from_time": begin,
            "until_time": end,
            "wait_from": begin - since,
            "wait_until": end - since,
        }
    )
