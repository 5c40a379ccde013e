"""What the kernels give back, as a flight."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from windtunnel.sim.flight import FINISHED, NOT_SUBMITTED, REJECTED, RUNNING, WAITING, Flight
from windtunnel.sim.places import places

if TYPE_CHECKING:
    from windtunnel.sim.problem import Problem


def uninterrupted(problem: Problem, started: tuple[Any, ...], until: float) -> Flight:
    """Return the flight of jobs that run to their ends once they have started.

    Args:
        problem: the jobs.
        started: what a kernel returns: each job's start (m,); for each segment its job, where its
            entries begin; for each entry its node and GPUs; decisions; what kept the arrays alive.
        until: horizon, s.
    """
    start, segment_job, offsets, where, gpus, points, _ = started
    end = start + problem.duration
    end[end > until] = math.nan
    run_time = np.where(np.isnan(start), 0.0, np.where(np.isnan(end), until, end) - start)
    never = np.zeros(len(start), dtype=np.int64)
    parts = (start, end, run_time, never, segment_job, start[segment_job], end[segment_job],
             offsets, where, gpus, points)  # fmt: skip
    return as_flight(problem, parts, until)


def as_flight(
    problem: Problem, parts: tuple[Any, ...], until: float, lost: np.ndarray | None = None
) -> Flight:
    """Return the kernel's arrays, which are in arrival order, as a flight in table order."""
    (start, end, run_time, preemptions, segment_job, segment_start, segment_end,
     offsets, where, gpus, points) = parts  # fmt: skip
    rows, total = problem.rows, len(problem.jobs)

    in_table_order = len(rows) == total and bool((rows[1:] > rows[:-1]).all())

    def by_row(values: np.ndarray, missing: float) -> np.ndarray:
        if in_table_order:
            return values
        result = np.full(total, missing)
        result[rows] = values
        return result

    running = np.zeros(len(rows), dtype=bool)
    running[segment_job[np.isnan(segment_end)]] = True
    status = np.full(total, REJECTED, dtype=np.int8)
    status[rows] = np.where(
        ~np.isnan(end),
        FINISHED,
        np.where(running, RUNNING, np.where(problem.submit > until, NOT_SUBMITTED, WAITING)),
    )
    return Flight(
        start=by_row(start, math.nan),
        end=by_row(end, math.nan),
        run_time=by_row(run_time, 0.0),
        preemptions=by_row(preemptions, 0),
        status=status,
        segment_job=rows[segment_job],
        segment_start=segment_start,
        segment_end=segment_end,
        **vars(places(problem, segment_job, offsets, (where, gpus))),
        scheduling_points=int(points),
        slowdown_time=None if lost is None else by_row(lost, 0.0),
    )
