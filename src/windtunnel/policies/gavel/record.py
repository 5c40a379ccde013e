"""What a mechanism with a loop of its own leaves behind: stays of jobs, and their `Flight`."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from windtunnel.sim.flight import FINISHED, NOT_SUBMITTED, REJECTED, RUNNING, WAITING, Flight

if TYPE_CHECKING:
    from windtunnel.policies.gavel.work import Work


class Spot(NamedTuple):
    """Where a job is.

    Attributes:
        kind: GPU type's index.
        nodes: node indices in the cluster, in placement order; empty where nodes do not matter.
        gpus: GPUs on each of them.
    """

    kind: int
    nodes: tuple[int, ...] = ()
    gpus: tuple[int, ...] = ()


@dataclass
class RoundLog:
    """The stays of a run, and what each job came to.

    Attributes:
        work: what is run.
        end: when each job was done, s, NaN = not; shape (jobs,).
        gpu_time: GPU-seconds held by each job, half of those it shares; shape (jobs,).
        type_time: seconds each job spent on each GPU type; shape (jobs, types).
        rounds: decisions about who runs.
        solves: decisions on shares.
        stopped_at: when the run stopped, s.
    """

    work: Work
    end: np.ndarray = field(init=False)
    gpu_time: np.ndarray = field(init=False)
    type_time: np.ndarray = field(init=False)
    rounds: int = 0
    solves: int = 0
    stopped_at: float = 0.0
    spots: dict[int, Spot] = field(default_factory=dict)
    _since: dict[int, int] = field(default_factory=dict)
    _job: list[int] = field(default_factory=list)
    _start: list[float] = field(default_factory=list)
    _end: list[float] = field(default_factory=list)
    _spot: list[Spot] = field(default_factory=list)

    def __post_init__(self) -> None:
        count = self.work.num_jobs
        self.end = np.full(count, math.nan)
        self.gpu_time = np.zeros(count)
        self.type_time = np.zeros((count, self.work.num_types))

    def start(self, job: int, now: float, spot: Spot) -> None:
        """Note that a job begins a stay, s."""
        self.spots[job] = spot
        self._since[job] = len(self._job)
        self._job.append(job)
        self._start.append(now)
        self._end.append(math.nan)
        self._spot.append(spot)

    def stop(self, job: int, now: float) -> None:
        """Note that a job leaves its GPUs, s."""
        del self.spots[job]
        self._end[self._since[job]] = now

    def finish(self, job: int, now: float) -> None:
        """Note that a job is done and leaves its GPUs, s."""
        self.stop(job, now)
        self.end[job] = now

    def flight(self, rows: np.ndarray, total: int, until: float, *, with_nodes: bool) -> Flight:
        """Return the run as arrays in jobs-table order.

        Args:
            rows: row in the jobs table of each job of the work; shape (jobs,).
            total: rows of the jobs table.
            until: where the run was cut, s.
            with_nodes: whether nodes are recorded.
        """
        job = np.array(self._job, dtype=np.int64)
        begin, stop = np.array(self._start, float), np.array(self._end, float)
        cut = until if math.isfinite(until) else self.stopped_at
        count = self.work.num_jobs
        held = np.bincount(job, np.where(np.isnan(stop), cut, stop) - begin, minlength=count)
        first = np.full(count, math.nan)
        first[job[::-1]] = begin[::-1]  # the first stay is written last
        done = ~np.isnan(self.end)
        status = np.where(self.work.submit > cut, NOT_SUBMITTED, WAITING)
        status[list(self.spots)] = RUNNING
        status[done] = FINISHED
        ended = np.bincount(job[~np.isnan(stop)], minlength=count)
        spots = self._spot if with_nodes else []
        sizes = np.array([len(spot.nodes) for spot in spots] or np.zeros(len(job)), dtype=np.int64)

        def by_row(values: np.ndarray, missing: float) -> np.ndarray:
            result = np.full(total, missing)
            result[rows] = values
            return result

        return Flight(
            start=by_row(first, math.nan),
            end=by_row(self.end, math.nan),
            run_time=by_row(held, 0.0),
            preemptions=by_row(ended - done, 0).astype(np.int64),
            status=by_row(status, REJECTED).astype(np.int8),
            segment_job=rows[job],
            segment_start=begin,
            segment_end=stop,
            node_offset=np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64),
            nodes=np.array([n for spot in spots for n in spot.nodes], dtype=np.int32),
            node_gpus=np.array([g for spot in spots for g in spot.gpus], dtype=np.int32),
            scheduling_points=self.rounds,
            gpu_time=by_row(self.gpu_time, 0.0),
        )
