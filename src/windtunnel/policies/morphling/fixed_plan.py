"""Plain baselines: jobs by arrival, by length or by area, launched where they fit, never changed.

*Area* is GPUs times seconds. Lengths and areas are those that the run expects
(``estimates``; by default it knows them), a launch included.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from windtunnel.sim.contract import Policy, Resize, Start

if TYPE_CHECKING:
    from collections.abc import Iterable

    from windtunnel.sim.contract import Decision
    from windtunnel.sim.elastic.work import Option
    from windtunnel.sim.jobs import JobView


class FixedPlan(Policy):
    """Guaranteed jobs, then best-effort ones, by arrival; what does not fit is gone past.

    Nothing running is ever touched.
    """

    name = "fixed-plan"
    elastic = True
    resizes = False

    def decide(self, now: float, queue: Any, cluster: Any) -> Iterable[Decision]:  # noqa: ARG002 - the contract's
        """Start every waiting job that fits as it was asked for."""
        for job in sorted(queue, key=lambda job: self.place_in_line(job, cluster)):
            where = cluster.fit(job)
            if where is not None:
                yield Start(job, where)

    def place_in_line(self, job: JobView, cluster: Any) -> float:
        """Return what jobs are sorted by, the least first."""
        return 0.0 if cluster.work(job).guaranteed else 1.0


class ShortestFirst(FixedPlan):
    """Jobs as asked for, the shortest first, guaranteed or not; what does not fit is gone past."""

    name = "shortest-first"

    def place_in_line(self, job: JobView, cluster: Any) -> float:
        """Return a job's length as asked for, s."""
        return float(cluster.time_left(job, cluster.work(job).requested))


class LeastAreaFirst(Policy):
    """Each job in its option of least area, the least area first; what does not fit is gone past.

    A guaranteed job has only the options that keep its promise.
    """

    name = "least-area-first"
    elastic = True
    keeps_promises = True

    def decide(self, now: float, queue: Any, cluster: Any) -> Iterable[Decision]:  # noqa: ARG002 - the contract's
        """Launch every waiting job whose option of least area fits."""

        def area(job: JobView, option: Option) -> float:
            return float(option.num_gpus * cluster.time_left(job, option))

        least = {
            job.number: min((area(job, option), at) for at, option in _kept(cluster.work(job)))
            for job in queue
        }
        for job in sorted(queue, key=lambda job: least[job.number][0]):
            option = cluster.work(job).options[least[job.number][1]]
            where = cluster.place(job, option)
            if where is not None:
                yield Resize(job, option, where)


def _kept(work: Any) -> Iterable[tuple[int, Option]]:
    """Yield the options that a job may run in, with their numbers."""
    slowest = work.requested.iteration_time
    for at, option in enumerate(work.options):
        if not work.guaranteed or option.iteration_time <= slowest:
            yield at, option
