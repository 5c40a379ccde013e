"""`Ledger`: the state of a reference run and the only code that changes it.

Jobs are known by their arrival number (see `windtunnel.sim.problem`). Progress rule: a job that
starts at ``t`` with ``remaining`` seconds of work ends at ``t + overhead + remaining``, where the
overhead (save + restore) is owed once for each time it was preempted before. Preempted at ``u``, it
keeps ``min(remaining, end - u)``: nothing is gained during the overhead.
"""

from __future__ import annotations

import heapq
import math
from typing import TYPE_CHECKING

import numpy as np

from windtunnel.sim.flight import FINISHED, NOT_SUBMITTED, REJECTED, RUNNING, WAITING, Flight

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from windtunnel.cluster.free import Demand, Where
    from windtunnel.sim.contract import Placement
    from windtunnel.sim.problem import Problem


class Ledger:
    """Who runs where since when; starts, preemptions and completions.

    Args:
        problem: jobs and cluster.
        placement: where jobs go.
        overhead: seconds a preempted job pays when it resumes (save + restore).
    """

    def __init__(self, problem: Problem, placement: Placement, overhead: float) -> None:
        count = len(problem.rows)
        self.problem = problem
        self.placement = placement
        self.overhead = overhead
        self.free = problem.free_state()
        self.demand: list[Demand] = [problem.demands[c] for c in problem.demand_of.tolist()]
        self.gpus: list[int] = problem.gpus.tolist()
        self.remaining: list[float] = problem.duration.tolist()
        self.projected_end = [math.nan] * count
        self.first_start = [math.nan] * count
        self.end = [math.nan] * count
        self.run_time = [0.0] * count
        self.preemptions = [0] * count
        self.segment_of = [-1] * count
        self.running: dict[int, None] = {}
        self.segment_job: list[int] = []
        self.segment_start: list[float] = []
        self.segment_end: list[float] = []
        self.segment_where: list[Where] = []
        self._ends: list[tuple[float, int, int]] = []

    def fit(self, job: int) -> Where | None:
        """Return where the placement would put the job now, or None."""
        return self.placement.place(self.free, self.demand[job])

    def start(self, job: int, now: float, where: Where) -> None:
        """Put a waiting job on the given nodes."""
        self.free.take(where, self.demand[job])
        if self.preemptions[job]:
            end = now + self.overhead + self.remaining[job]
        else:
            end = now + self.remaining[job]
            self.first_start[job] = now
        segment = len(self.segment_job)
        self.segment_job.append(job)
        self.segment_start.append(now)
        self.segment_end.append(math.nan)
        self.segment_where.append(where)
        self.segment_of[job] = segment
        self.projected_end[job] = end
        self.running[job] = None
        heapq.heappush(self._ends, (end, segment, job))

    def preempt(self, job: int, now: float) -> None:
        """Take a running job off its GPUs."""
        self.remaining[job] = min(self.remaining[job], self.projected_end[job] - now)
        self.preemptions[job] += 1
        self._stop(job, now)

    def next_end(self) -> float:
        """Return the next completion's time, inf if nothing runs."""
        ends = self._ends
        while ends and self.segment_of[ends[0][2]] != ends[0][1]:
            heapq.heappop(ends)  # the job was preempted since
        return ends[0][0] if ends else math.inf

    def finish_all(self, now: float) -> Iterator[int]:
        """Complete every job that ends at ``now``; yield each."""
        while self.next_end() == now:
            job = heapq.heappop(self._ends)[2]
            self.end[job] = now
            self.remaining[job] = 0.0
            self._stop(job, now)
            yield job

    def _stop(self, job: int, now: float) -> None:
        segment = self.segment_of[job]
        self.segment_end[segment] = now
        self.run_time[job] += now - self.segment_start[segment]
        self.free.give(self.segment_where[segment], self.demand[job])
        self.segment_of[job] = -1
        del self.running[job]

    def close(self, horizon: float, points: int) -> Flight:
        """Return the run as arrays in jobs-table order.

        Args:
            horizon: where the run was cut, s; inf if it ran to its end.
            points: number of scheduling points.
        """
        problem = self.problem
        rows, total = problem.rows, len(problem.jobs)
        for job in self.running:
            self.run_time[job] += horizon - self.segment_start[self.segment_of[job]]
        status = np.full(total, REJECTED, dtype=np.int8)
        status[rows] = np.where(problem.submit > horizon, NOT_SUBMITTED, WAITING)
        status[rows[list(self.running)]] = RUNNING
        status[rows[~np.isnan(np.array(self.end, dtype=np.float64))]] = FINISHED
        wheres = [] if problem.is_pool else self.segment_where
        sizes = [len(where) for where in wheres] or [0] * len(self.segment_job)
        return Flight(
            start=_by_row(rows, total, self.first_start, math.nan),
            end=_by_row(rows, total, self.end, math.nan),
            run_time=_by_row(rows, total, self.run_time, 0.0),
            preemptions=_by_row(rows, total, self.preemptions, 0),
            status=status,
            segment_job=rows[np.array(self.segment_job, dtype=np.int64)],
            segment_start=np.array(self.segment_start, dtype=np.float64),
            segment_end=np.array(self.segment_end, dtype=np.float64),
            node_offset=np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64),
            nodes=np.array([node for where in wheres for node, _ in where], dtype=np.int32),
            node_gpus=np.array([gpus for where in wheres for _, gpus in where], dtype=np.int32),
            scheduling_points=points,
        )


def _by_row(rows: np.ndarray, total: int, values: Sequence[float], missing: float) -> np.ndarray:
    result = np.full(total, missing)
    result[rows] = values
    return result
