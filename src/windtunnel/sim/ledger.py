"""`Ledger`: the state of a reference run and the only code that changes it.

Jobs are known by their arrival number (see `windtunnel.sim.problem`). Progress rule: a job that
starts at ``t`` with ``remaining`` seconds of work ends at ``t + overhead + remaining``, where the
overhead (save + restore) is owed once it has been preempted. Preempted at ``u``, it keeps
``min(remaining, end - u)``: nothing is gained during the overhead. With a model of slow-downs the
end moves as neighbours come and go (`windtunnel.sim.rates`).
"""

from __future__ import annotations

import heapq
import math
from itertools import chain
from typing import TYPE_CHECKING, Any

import numpy as np

from windtunnel.sim.flight import FINISHED, NOT_SUBMITTED, REJECTED, RUNNING, WAITING, Flight
from windtunnel.sim.places import places

if TYPE_CHECKING:
    from collections.abc import Sequence

    from windtunnel.cluster.free import FreeState, Where
    from windtunnel.sim.contract import Placement
    from windtunnel.sim.problem import Problem
    from windtunnel.sim.rates import Rates


class Stay:
    """One uninterrupted stay of a job on its GPUs (a segment of the flight).

    Attributes:
        job: arrival number.
        start: s.
        end: s; NaN until it ends.
        where: nodes and GPUs.
    """

    __slots__ = ("end", "job", "start", "where")

    def __init__(self, job: int, start: float, where: Where) -> None:
        self.job = job
        self.start = start
        self.end = math.nan
        self.where = where


class Ledger:
    """Who runs where since when; starts, preemptions and completions.

    Args:
        problem: jobs and cluster.
        placement: where jobs go.
        overhead: seconds a preempted job pays when it resumes (save + restore).
        rates: how fast jobs get on; None = all at rate 1.
    """

    #: How often room was taken out or came back; None = it never does.
    room_changes: int | None = None

    def __init__(
        self,
        problem: Problem,
        placement: Placement,
        overhead: float,
        rates: Rates | None = None,
    ) -> None:
        count = len(problem.rows)
        self.problem = problem
        self.placement = placement
        self.overhead = overhead
        self.rates = rates
        self.free: FreeState = problem.free_state()
        #: Jobs of one class are interchangeable to the placement; and the number of classes.
        self.class_of: list[int] = problem.demand_of.tolist()
        self.num_classes = len(problem.demands)
        self.demand: list[Any] = [problem.demands[c] for c in problem.demand_of.tolist()]
        self.gpus: list[int] = problem.gpus.tolist()
        self.remaining: list[float] = problem.duration.tolist()
        #: When each job ends as things are; the last entry is the sentinel's of `ends`.
        self.projected_end = [*[math.nan] * count, math.inf]
        #: Seconds on GPUs in stays that were cut short.
        self.run_before = [0.0] * count
        self.preemptions = [0] * count
        #: Running jobs in order of start, each with its stay.
        self.running: dict[int, Stay] = {}
        self.stays: list[Stay] = []
        #: Heap of (completion time, number, stay); its first entry is always a stay that goes on,
        #: or the sentinel at infinity.
        self.ends: list[tuple[float, int, Stay]] = [(math.inf, -1, Stay(-1, math.inf, []))]
        self._stale = 0
        self._moved = 0

    def fit(self, job: int) -> Where | None:
        """Return where the placement would put the job now, or None."""
        return self.placement.place(self.free, self.demand[job])

    def put(self, free: Any, job: int, demand: Any) -> Where | None:  # noqa: ARG002 - runs without reservations
        """Return where a demand of a job, its whole one or a narrower one, would go, or None."""
        return self.placement.place(free, demand)

    def affords(self, job: int, where: Where, without: Sequence[int] = ()) -> bool:  # noqa: ARG002 - runs without a power cap
        """Return whether a job may start there, with the other jobs gone, but for room."""
        return True

    def opened(self, free: Any, job: int) -> Any:  # noqa: ARG002 - runs without reservations
        """Return a free state with what is kept for the job open to it."""
        return free

    def quota(self) -> tuple[int, dict[int, int]]:
        """Return the GPU units of all, and of each reservation besides."""
        return self.problem.quota, {}

    def beyond_reserved(self, job: int, reserved: dict[int, int]) -> int:  # noqa: ARG002 - as above
        """Return the GPU units that a job needs besides what its reservations have left."""
        return self.gpus[job]

    def draw(self, job: int, reserved: dict[int, int]) -> None:
        """Let a chosen job use up what its reservations have left."""

    def resume_cost(self, job: int) -> float:
        """Return the seconds a waiting job pays when it is started."""
        return self.overhead if self.preemptions[job] else 0.0

    def end_of(self, job: int, now: float) -> float:
        """Return when a job that is started at ``now`` (s) completes, if nothing comes between."""
        if self.preemptions[job]:
            return now + self.overhead + self.remaining[job]
        return now + self.remaining[job]

    def start(self, job: int, now: float, where: Where) -> None:
        """Put a waiting job on the given nodes."""
        self.free.take(where, self.demand[job])
        end = self.projected_end[job] = self.end_of(job, now)
        stay = Stay(job, now, where)
        self.running[job] = stay
        heapq.heappush(self.ends, (end, len(self.stays), stay))
        self.stays.append(stay)
        if self.rates is not None:
            self.rates.started(job, now, self.overhead if self.preemptions[job] else 0.0, stay)

    def move_end(self, job: int, end: float) -> None:
        """Let a running job end at another time than it was to."""
        if end == self.projected_end[job]:
            return
        self.projected_end[job] = end
        self._moved += 1
        # No other entry has the number: equal ends never come to comparing stays.
        heapq.heappush(self.ends, (end, -1 - self._moved, self.running[job]))
        self._stale += 1
        self._drop_stale()

    def preempt(self, job: int, now: float) -> None:
        """Take a running job off its GPUs."""
        stay = self.running.pop(job)
        stay.end = now
        self.free.give(stay.where, self.demand[job])
        self.run_before[job] += now - stay.start
        self.remaining[job] = self._work_left(job, now)
        self.preemptions[job] += 1
        if self.rates is not None:
            self.rates.stopped(job, now)
        self._stale += 1
        self._drop_stale()

    def finish_next(self, now: float) -> int:
        """Complete the first job in ``ends``; return it."""
        stay = heapq.heappop(self.ends)[2]
        job = stay.job
        stay.end = now
        if self._stale:
            self._drop_stale()
        del self.running[job]
        self.free.give(stay.where, self.demand[job])
        if self.rates is not None:
            self.rates.stopped(job, now)
        return job

    def finish(self, job: int, now: float) -> None:
        """Complete a running job out of turn; ``now`` is when it ends."""
        stay = self.running.pop(job)
        stay.end = now
        self.free.give(stay.where, self.demand[job])
        if self.rates is not None:
            self.rates.stopped(job, now)
        self._stale += 1
        self._drop_stale()

    def _drop_stale(self) -> None:
        """Drop leading completions of stays that were cut short, or that end at another time."""
        ends = self.ends
        while not math.isnan(ends[0][2].end) or ends[0][0] != self.projected_end[ends[0][2].job]:
            heapq.heappop(ends)
            self._stale -= 1

    def attained(self, job: int, now: float) -> tuple[float, float]:
        """Return (seconds on GPUs so far, seconds of work left) of an active job."""
        stay = self.running.get(job)
        if stay is None:
            return self.run_before[job], self.remaining[job]
        return self.run_before[job] + now - stay.start, self._work_left(job, now)

    def time_left(self, job: int, now: float) -> float:
        """Return a running job's work left with what it owes for resuming, s at full speed."""
        if self.rates is None:
            return self.projected_end[job] - now
        return self.rates.time_left(self, job, now)

    def _work_left(self, job: int, now: float) -> float:
        if self.rates is None:
            return min(self.remaining[job], self.projected_end[job] - now)
        return self.rates.work_left(self, job, now)

    def completed(self, ended: np.ndarray) -> np.ndarray:
        """Return which jobs finished, shape (m,), by the number of stays of each that ended."""
        # A job's stays all ended by preemption, but for one that finished it.
        return ended > np.array(self.preemptions, dtype=np.int64)

    def close(self, horizon: float, points: int) -> Flight:
        """Return the run as arrays in jobs-table order.

        Args:
            horizon: where the run was cut, s; inf if it ran to its end.
            points: number of scheduling points.
        """
        problem, stays = self.problem, self.stays
        count, total = len(problem.rows), len(problem.jobs)
        job = np.array([stay.job for stay in stays], dtype=np.int64)
        begin = np.array([stay.start for stay in stays], dtype=np.float64)
        end = np.array([stay.end for stay in stays], dtype=np.float64)
        held = np.where(np.isnan(end), horizon, end) - begin
        first_start, last_end = np.full(count, math.nan), np.full(count, math.nan)
        first_start[job[::-1]] = begin[::-1]  # the first stay is written last
        last_end[job] = end
        finished = self.completed(np.bincount(job[~np.isnan(end)], minlength=count))
        last_end[~finished] = math.nan
        status = np.where(problem.submit > horizon, NOT_SUBMITTED, WAITING)
        status[list(self.running)] = RUNNING
        status[finished] = FINISHED
        sizes = [len(stay.where) for stay in stays]
        pairs = np.array(list(chain.from_iterable(stay.where for stay in stays)), dtype=np.int64)
        offsets = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)

        def by_row(values: Sequence[float] | np.ndarray, missing: float) -> np.ndarray:
            result = np.full(total, missing)
            result[problem.rows] = values
            return result

        return Flight(
            start=by_row(first_start, math.nan),
            end=by_row(last_end, math.nan),
            run_time=by_row(np.bincount(job, weights=held, minlength=count), 0.0),
            preemptions=by_row(self.preemptions, 0),
            status=by_row(status, REJECTED).astype(np.int8),
            segment_job=problem.rows[job],
            segment_start=begin,
            segment_end=end,
            **vars(places(problem, job, offsets, tuple(pairs.reshape(-1, 2).T))),
            scheduling_points=points,
            slowdown_time=None
            if self.rates is None
            else by_row(self.rates.lost(self, horizon), 0.0),
        )
