"""What the kernel has logged, as a `Flight` in the order of the jobs table."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from windtunnel.sim.flight import (
    FAILED,
    FINISHED,
    NOT_SUBMITTED,
    REJECTED,
    RUNNING,
    WAITING,
    Flight,
    Interruptions,
)
from windtunnel.sim.places import places

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from windtunnel.sim.contract import Policy
    from windtunnel.sim.disruptions.source import Outages
    from windtunnel.sim.problem import Problem


#: What a kernel books of each job: s of useful work, overhead, checkpoints, work undone.
_ACCOUNTS = ("useful", "overhead", "writing", "lost")


class ByRow:
    """Brings arrays by arrival number into the order of the jobs table."""

    def __init__(self, problem: Problem) -> None:
        self.rows, self.total = problem.rows, len(problem.jobs)
        self.is_same = len(self.rows) == self.total and bool((np.diff(self.rows) > 0).all())

    def __call__(self, values: np.ndarray, missing: float, kind: Any = None) -> np.ndarray:
        """Return values by row, ``missing`` for the jobs that were not flown."""
        values = np.asarray(values)
        if self.is_same:
            return values if kind is None else values.astype(kind, copy=False)
        result = np.full(self.total, missing, dtype=values.dtype if kind is None else kind)
        result[self.rows] = values
        return result


def as_flight(
    problem: Problem,
    columns: Mapping[str, np.ndarray],
    horizon: float,
    points: int,
    *,
    slowed: bool,
    **more: Any,
) -> Flight:
    """Return the log as a flight.

    ``columns``: the kernel's arrays, by arrival number and by stay; ``horizon``: where the run was
    cut, s, inf = it ran to its end; ``slowed``: jobs ran at other rates than 1.
    """
    by_row = ByRow(problem)
    count = len(problem.rows)
    job, begin, end = (columns[name] for name in ("stay_job", "stay_start", "stay_end"))
    state = columns["status"][:count]
    held = end - begin
    still = np.isnan(end)
    held[still] = horizon - begin[still]
    # In millions of jobs that all ran once and in order, the log is what is asked for.
    over = (state == FINISHED) | (state == FAILED)
    in_order = len(job) == count and bool(over.all() and (job[1:] > job[:-1]).all())
    start, last, run_time = begin, end, held
    if not in_order:
        start, last = np.full(count, math.nan), np.full(count, math.nan)
        start[job[::-1]] = begin[::-1]  # the first start is the one that is written last
        last[job] = end
        last[~over] = math.nan
        run_time = np.bincount(job, weights=held, minlength=count).astype(float)
    status = state.copy()
    status[state > FAILED] = WAITING
    status[problem.submit > horizon] = NOT_SUBMITTED
    status[(state == NOT_SUBMITTED) & (problem.submit <= horizon)] = WAITING
    status[state == RUNNING] = RUNNING
    preemptions = columns["preemptions"]
    if len(preemptions) != count:
        preemptions = np.zeros(count, dtype=np.int64)
    return Flight(
        start=by_row(start, math.nan),
        end=by_row(last, math.nan),
        run_time=by_row(run_time, 0.0),
        preemptions=by_row(preemptions, 0, np.int64),
        status=by_row(status, REJECTED, np.int8),
        segment_job=problem.rows if in_order else problem.rows[job],
        segment_start=begin,
        segment_end=end,
        **places(problem, job, columns["stay_first"], (columns["nodes"], columns["grants"])),
        scheduling_points=points,
        slowdown_time=by_row(columns["slowed"][:count], 0.0) if slowed else None,
        **more,
    )


def losses(
    problem: Problem,
    policy: Policy,
    columns: Mapping[str, np.ndarray],
    outages: Outages | None,
    ups: Sequence[tuple[float, int]],
) -> Interruptions | None:
    """Return what disruptions did to a run, or preemptions that lose work; None = there were none.

    ``outages``: None = nothing happened, and all GPUs were up; ``ups``: when the GPU units that are
    up changed, s, and to what.
    """
    if outages is None and not policy.loses:
        return None
    by_row, count = ByRow(problem), len(problem.rows)
    # The kernel's arrays have a cell at least, also of a run without jobs.
    columns = {name: columns[name][:count] for name in (*_ACCOUNTS, "restarts")}
    if outages is None:
        ups = [(-np.inf, problem.quota)]
    stops = [] if outages is None else outages.stops
    failures = np.zeros(count) if outages is None else outages.failures
    startup_cost = 0.0 if outages is None else outages.plan.startup_cost
    return Interruptions(
        useful_time=by_row(columns["useful"], 0.0),
        overhead_time=by_row(columns["overhead"], 0.0),
        checkpoint_time=by_row(columns["writing"], 0.0),
        lost_time=by_row(columns["lost"], 0.0),
        failures=by_row(failures, 0, np.int64),
        restarts=by_row(columns["restarts"], 0),
        up_time=np.array([time for time, _ in ups]),
        up_gpus=np.array([units for _, units in ups]) / problem.units,
        startup_cost=by_row(np.full(count, startup_cost), 0.0),
        stop_row=problem.rows[np.array([stop.job for stop in stops], dtype=np.int64)],
        stop_time=np.array([stop.time for stop in stops], dtype=np.float64),
        stop_lost=np.array([stop.lost for stop in stops], dtype=np.float64),
        stop_cause=np.array([stop.cause for stop in stops], dtype=np.int64),
        causes=np.array([] if outages is None else outages.causes, dtype=np.str_),
    )
