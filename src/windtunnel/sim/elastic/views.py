"""`ElasticView`: what policies that resize jobs see besides, on every engine."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from windtunnel.errors import SpecError
from windtunnel.sim.disruptions.checkpoints import Checkpoints
from windtunnel.sim.expected_work import expected_left
from windtunnel.sim.jobs import JobView

if TYPE_CHECKING:
    from collections.abc import Iterable

    from windtunnel.cluster.free import Where
    from windtunnel.sim.elastic.nodes import FreeShares
    from windtunnel.sim.elastic.work import Option, Work


class ElasticView:
    """The cluster at this instant, with the jobs' options; goes before an engine's `ClusterView`.

    Attributes:
        driver: a `windtunnel.sim.decisions.Decisions`.
        deciding: what carries out in the engine.
    """

    driver: Any
    deciding: Any

    def work(self, job: JobView) -> Work:
        """Return what the job is: iterations, what was asked for, penalty, whether guaranteed."""
        work: Work = self.driver.works[self.deciding.active(job)]
        return work

    def options(self, job: JobView) -> tuple[Option, ...]:
        """Return every way in which the job can run on this cluster, fewest GPUs first."""
        return self.work(job).options

    def option(self, job: JobView) -> Option | None:
        """Return how the job runs, or None if it waits."""
        number = self.deciding.active(job)
        option: Option | None = self.deciding.option_of(number) if job.running else None
        return option

    def iterations_left(self, job: JobView) -> float:
        """Return the iterations that the job has left, or is expected to have left."""
        work = self.work(job)
        left = max(0.0, job.remaining / work.requested.iteration_time)
        if work.expected is None:
            return left
        return float(expected_left(work.expected, work.iterations, left))

    def time_left(self, job: JobView, option: Option | None = None) -> float:
        """Return the seconds until a job completes: resuming, its work, checkpoints on the way.

        Args:
            job: an active job.
            option: as if it were launched in this option now; None = as a running job goes on.
        """
        number, work = self.deciding.active(job), self.work(job)
        left = self.iterations_left(job)
        # Checkpoints come by work, which is counted in seconds of what was asked for.
        ahead = left * work.requested.iteration_time if work.expected is not None else job.remaining
        if option is None:
            seconds: float = self.driver.state.time_to_end(number)
            if work.expected is None:
                return seconds
            unseen = ahead - max(0.0, job.remaining)
            seconds += self._time_writing(ahead) - self._time_writing(job.remaining)
            return max(0.0, seconds + unseen / float(self.driver.state.rate(number)))
        launch = work.penalty if job.running else self.driver.state.start_cost(number)
        return float(launch + left * option.iteration_time + self._time_writing(ahead))

    def _time_writing(self, work: float) -> float:
        """Return the seconds of the checkpoints that a launched job writes in so much work (s)."""
        plan = self.driver.plan
        if plan is None:
            return 0.0
        return Checkpoints(plan.interval, plan.checkpoint_cost).time_within(work)

    def place(
        self, job: JobView, option: Option, without: Iterable[JobView] | None = None
    ) -> Where | None:
        """Return where an option of a job would go, or None.

        Args:
            job: an active job; what it holds counts as free.
            option: one of its options.
            without: jobs whose places count as free, too; who waits holds none.
        """
        number = self.deciding.active(job)
        gone = [number, *(self.deciding.active(other) for other in self.driver.several(without))]
        where: Where | None
        if self.driver.differs_by_node:
            where = self.driver.place_without(number, option, gone)
        else:
            kind = self.driver.kind_of(number, option)
            where = self.fit_without(number, kind, gone)  # type: ignore[attr-defined] # the engine's
        return where

    def fit(
        self,
        job: JobView | float,
        gpu_types: Iterable[str | None] | None = None,
        without: Iterable[JobView] | None = None,
    ) -> Where | None:
        """Return where a job would go as its user asked, or so many GPUs of any node; or None.

        Args:
            job: an active job, or a number of GPUs.
            gpu_types: of a number of GPUs only; None = wherever it fits.
            without: jobs whose places count as free; who waits holds none.

        Raises:
            SpecError: GPU types for a job, whose options are of those that it accepts anyway.
        """
        if not isinstance(job, JobView):
            where: Where | None = super().fit(job, gpu_types, without)  # type: ignore[misc] # the engine's
            return where
        if gpu_types is not None:
            raise SpecError("gpu_types", "an elastic job's options are of the types it accepts.")
        return self.place(job, self.work(job).requested, without)

    def start(self, job: JobView, where: Where | None = None, rate: float = 1.0) -> bool:
        """Start a waiting job at once, as ``Start`` does; return False if it does not fit."""
        if where is None and self.driver.differs_by_node and not job.running:
            where = self.fit(job)
            if where is None:
                return False
        return bool(super().start(job, where, rate))  # type: ignore[misc] # the engine's

    def place_in(self, free: FreeShares, job: JobView, option: Option) -> Where | None:
        """Return where an option of a job would go with so much free, or None."""
        where: Where | None = self.driver.place_option(free, self.deciding.active(job), option)
        return where

    def fits(self, job: JobView, option: Option, where: Where) -> bool:
        """Return whether a place is free for an option, what the job holds counting as free."""
        number = self.deciding.active(job)
        kind = self.driver.kind_of(number, option)
        return bool(self.deciding.fits_without(number, where, kind))

    @property
    def free_state(self) -> FreeShares:
        """A copy of what is free on each node, to plan with."""
        free: FreeShares = self.driver.free_shares()
        return free
