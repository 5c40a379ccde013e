"""`ElasticLedger`: the state of an elastic run and the only code that changes it.

Progress rule: a job launched at ``t`` in an option with iteration time ``T``, with ``k`` iterations
left and a penalty ``c``, ends at ``t + c + k T``. Stopped at ``u``, it has ``k - max(0, u - t - c)
/ T`` left: part of an iteration counts. Launches and changes all cost the penalty, the first too.
"""

from __future__ import annotations

import heapq
import math
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from windtunnel.cluster.free import EVERY_NODE
from windtunnel.sim.elastic.nodes import FreeShares
from windtunnel.sim.elastic.stretches import Stretches
from windtunnel.sim.elastic.work import plan_name
from windtunnel.sim.ledger import Ledger, Stay

if TYPE_CHECKING:
    from collections.abc import Sequence

    from windtunnel.cluster.free import Where
    from windtunnel.sim.contract import Placement
    from windtunnel.sim.elastic.work import Option, Work
    from windtunnel.sim.flight import Flight
    from windtunnel.sim.problem import Problem


class ElasticStay(Stay):
    """A stay in one option.

    Attributes:
        option: how the job runs.
        left: iterations left when it began.
    """

    __slots__ = ("left", "option")

    def __init__(self, job: int, start: float, where: Where, option: Option, left: float) -> None:
        super().__init__(job, start, where)
        self.option = option
        self.left = left


class ElasticLedger(Ledger):
    """Who runs where, how, since when.

    Args:
        problem: jobs and cluster, with nodes and whole GPUs.
        placement: where a plain number of GPUs would go (`ClusterView.fit`).
        works: what each flown job is, in order of arrival.
        cores: thousandths of cores of each node, None = not constrained.
    """

    free: FreeShares

    def __init__(
        self,
        problem: Problem,
        placement: Placement,
        works: Sequence[Work],
        cores: Sequence[int | None],
    ) -> None:
        super().__init__(problem, placement, 0.0)
        self.works = works
        self.free = FreeShares(problem.sizes.tolist(), cores)
        #: Iterations left when each job's stay began, or, where it waits, now.
        self.left = [work.iterations for work in works]
        #: Changes of running jobs, which cut a stay short without making the job wait.
        self.resizes = [0] * len(works)
        self._allowed = [getattr(demand, "allowed", EVERY_NODE) for demand in self.demand]
        for job, work in enumerate(works):
            self.remaining[job] = work.iterations * work.requested.iteration_time

    def fit(self, job: int) -> Where | None:
        """Return where the option that the job's user asked for would go now, or None."""
        return self.place(job, self.works[job].requested)

    def place(self, job: int, option: Option, free: FreeShares | None = None) -> Where | None:
        """Return where an option of a job would go now, or with so much free, or None."""
        return (free or self.free).place(option, self._allowed[job])

    def has(self, job: int, option: Option, where: Where) -> bool:
        """Return whether a policy's own choice of a place is free, besides what the job holds."""
        stay = self.running.get(job)
        free = self.free
        if isinstance(stay, ElasticStay):
            free = free.copy()
            free.give(stay.where, stay.option)
        return free.has(where, option, self._allowed[job])

    def option_of(self, job: int) -> Option | None:
        """Return how a job runs, or None if it waits."""
        stay = self.running.get(job)
        return stay.option if isinstance(stay, ElasticStay) else None

    def start(self, job: int, now: float, where: Where) -> None:
        """Launch a waiting job as its user asked."""
        self.launch(job, now, where, self.works[job].requested)

    def launch(self, job: int, now: float, where: Where, option: Option) -> None:
        """Launch a waiting job in an option."""
        self.free.take(where, option)
        left = self.left[job]
        end = now + self.works[job].penalty + left * option.iteration_time
        self.projected_end[job] = end
        stay = ElasticStay(job, now, where, option, left)
        self.running[job] = stay
        heapq.heappush(self.ends, (end, len(self.stays), stay))
        self.stays.append(stay)

    def resize(self, job: int, now: float, where: Where, option: Option) -> None:
        """Stop a running job and launch it in an option, at one instant."""
        self._stop(job, now)
        self.resizes[job] += 1
        self.launch(job, now, where, option)
        self._drop_stale()

    def preempt(self, job: int, now: float) -> None:
        """Take a running job off its GPUs."""
        self._stop(job, now)
        self.preemptions[job] += 1
        self._drop_stale()

    def finish_next(self, now: float) -> int:
        """Complete the first job in ``ends``; return it."""
        stay = heapq.heappop(self.ends)[2]
        stay.end = now
        if self._stale:
            self._drop_stale()
        self._leave(stay.job)
        self.left[stay.job] = 0.0
        return stay.job

    def iterations_left(self, job: int, now: float) -> float:
        """Return the iterations that an active job has left."""
        stay = self.running.get(job)
        if not isinstance(stay, ElasticStay):
            return self.left[job]
        worked = max(0.0, now - stay.start - self.works[job].penalty)
        return max(0.0, stay.left - worked / stay.option.iteration_time)

    def completed(self, ended: np.ndarray) -> np.ndarray:
        """Return which jobs finished, shape (m,), by the number of stays of each that ended."""
        cut = np.array(self.preemptions, dtype=np.int64) + np.array(self.resizes, dtype=np.int64)
        return ended > cut

    def close(self, horizon: float, points: int) -> Flight:
        """Return the run as arrays in jobs-table order, with what reconfiguring it cost."""
        flight = super().close(horizon, points)
        return replace(flight, stretches=self._stretches(horizon, flight))

    def _stop(self, job: int, now: float) -> None:
        self.left[job] = self.iterations_left(job, now)
        self.remaining[job] = self.left[job] * self.works[job].requested.iteration_time
        stay = self._leave(job)
        stay.end = now
        self.run_before[job] += now - stay.start
        self._stale += 1

    def _leave(self, job: int) -> Stay:
        stay = self.running.pop(job)
        assert isinstance(stay, ElasticStay)  # noqa: S101 - every stay of this ledger is one
        self.free.give(stay.where, stay.option)
        return stay

    def _work_left(self, job: int, now: float) -> float:
        left = self.iterations_left(job, now)
        return left * self.works[job].requested.iteration_time

    def _stretches(self, horizon: float, flight: Flight) -> Stretches:
        problem, total = self.problem, len(self.problem.jobs)
        last = horizon if math.isfinite(horizon) else math.nan
        done = [
            work.iterations - self.iterations_left(job, last) for job, work in enumerate(self.works)
        ]
        stays = [stay for stay in self.stays if isinstance(stay, ElasticStay)]
        held = np.where(np.isnan(flight.segment_end), horizon, flight.segment_end)
        held = held - flight.segment_start
        penalty = np.array([self.works[stay.job].penalty for stay in stays], dtype=np.float64)

        def by_row(values: Sequence[float], missing: float = 0.0) -> np.ndarray:
            result = np.full(total, missing)
            result[problem.rows] = values
            return result

        guaranteed = np.zeros(total, dtype=bool)
        guaranteed[problem.rows] = [work.guaranteed for work in self.works]
        return Stretches(
            gpus=np.array([stay.option.num_gpus for stay in stays], dtype=np.float64),
            cpus=np.array([stay.option.num_cpus for stay in stays], dtype=np.float64),
            plan=np.array([plan_name(stay.option) for stay in stays], dtype=object),
            iteration_time=np.array([s.option.iteration_time for s in stays], dtype=np.float64),
            penalty_time=np.minimum(held, penalty),
            iterations=by_row([work.iterations for work in self.works]),
            iterations_done=by_row(done),
            promise=by_row([1 / w.requested.iteration_time for w in self.works], math.nan),
            guaranteed=guaranteed,
        )
