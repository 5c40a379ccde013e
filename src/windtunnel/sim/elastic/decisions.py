"""Tier-3 policies of elastic runs: what they see besides, and how jobs are resized."""

from __future__ import annotations

import bisect
from typing import TYPE_CHECKING, Any

from windtunnel.errors import SpecError
from windtunnel.sim.contract import Move, Resize
from windtunnel.sim.decisions import ClusterView, Decider
from windtunnel.sim.jobs import JobView

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from windtunnel.cluster.free import Where
    from windtunnel.sim.contract import Policy
    from windtunnel.sim.elastic.ledger import ElasticLedger
    from windtunnel.sim.elastic.nodes import FreeShares
    from windtunnel.sim.elastic.work import Option, Work


class ElasticView(ClusterView):
    """The cluster at this instant, with the jobs' options."""

    def __init__(self, decider: ElasticDecider) -> None:
        super().__init__(decider)
        self._elastic = decider.elastic
        self._numbers = decider

    def work(self, job: JobView) -> Work:
        """Return what the job is: iterations, what was asked for, penalty, whether guaranteed."""
        return self._elastic.works[self._numbers.number(job)]

    def options(self, job: JobView) -> tuple[Option, ...]:
        """Return every way in which the job can run on this cluster, fewest GPUs first."""
        return self.work(job).options

    def option(self, job: JobView) -> Option | None:
        """Return how the job runs, or None if it waits."""
        return self._elastic.option_of(self._numbers.number(job))

    def iterations_left(self, job: JobView) -> float:
        """Return the iterations that the job has left, as a fraction within one."""
        return self._elastic.iterations_left(self._numbers.number(job), self._numbers.now)

    def time_left(self, job: JobView, option: Option | None = None) -> float:
        """Return the seconds until a job completes.

        Args:
            job: an active job.
            option: as if it were launched in this option now; None = as a running job goes on.
        """
        number = self._numbers.number(job)
        if option is None:
            return self._elastic.projected_end[number] - self._numbers.now
        work = self._elastic.works[number]
        left = self._elastic.iterations_left(number, self._numbers.now)
        return work.penalty + left * option.iteration_time

    def place(self, job: JobView, option: Option, without: Sequence[JobView] = ()) -> Where | None:
        """Return where an option of a job would go, or None.

        Args:
            job: an active job; what it holds counts as free.
            option: one of its options.
            without: running jobs whose places count as free, too.
        """
        number = self._numbers.number(job)
        mine = [job] if number in self._elastic.running else []
        return self._elastic.place(number, option, self._free_without([*mine, *without]))

    def fit(
        self,
        job: JobView | float,
        gpu_types: Iterable[str | None] | None = None,
        without: Sequence[JobView] = (),
    ) -> Where | None:
        """Return where a job would go as its user asked, or so many GPUs of any node; or None.

        Args:
            job: an active job, or a number of GPUs.
            gpu_types: of a number of GPUs only; None = wherever it fits.
            without: running jobs whose places count as free.

        Raises:
            SpecError: GPU types for a job, whose options are of those that it accepts anyway.
        """
        if not isinstance(job, JobView):
            return super().fit(job, gpu_types, without)
        if gpu_types is not None:
            raise SpecError("gpu_types", "an elastic job's options are of the types it accepts.")
        return self.place(job, self.work(job).requested, without)

    def _free_without(self, jobs: Sequence[JobView]) -> FreeShares:
        if not jobs:
            return self._elastic.free
        free = self._elastic.free.copy()
        for number in dict.fromkeys(self._numbers.number(job) for job in jobs):
            option = self._elastic.option_of(number)
            if option is not None:
                free.give(self._elastic.running[number].where, option)
        return free

    def place_in(self, free: FreeShares, job: JobView, option: Option) -> Where | None:
        """Return where an option of a job would go with so much free, or None."""
        return self._elastic.place(self._numbers.number(job), option, free)

    def fits(self, job: JobView, option: Option, where: Where) -> bool:
        """Return whether a place is free for an option, what the job holds counting as free."""
        return self._elastic.has(self._numbers.number(job), option, where)

    @property
    def free_state(self) -> FreeShares:
        """A copy of what is free on each node, to plan with."""
        return self._elastic.free.copy()


class ElasticDecider(Decider):
    """Asks a tier-3 policy of an elastic run and applies what it yields.

    Raises (from `decide`):
        PolicyError: a decision that is impossible; names the instant and the job.
    """

    def __init__(self, ledger: ElasticLedger, policy: Policy) -> None:
        super().__init__(ledger, policy)
        self.elastic = ledger
        self._cluster = ElasticView(self)

    @property
    def now(self) -> float:
        """The instant of the decision, s."""
        return self._now

    def _apply(self, decision: Any) -> None:
        if isinstance(decision, Resize):
            self._resize(decision.job, decision.option, decision.where)
        elif isinstance(decision, Move):
            option = self.elastic.option_of(self.number(decision.job))
            if option is None:
                raise self._impossible("moves a job that does not run", decision.job)
            self._resize(decision.job, option, decision.where)
        else:
            super()._apply(decision)

    def _resize(self, view: JobView, option: Option, where: Where | None) -> None:
        job, ledger = self.number(view), self.elastic
        if all(option is not known and option != known for known in ledger.works[job].options):
            raise self._impossible(f"runs a job in {option!r}, which is none of its options", view)
        if where is None:
            where = self._elastic_view.place(view, option)
        elif not ledger.has(job, option, where):
            where = None
        if where is None:
            raise self._impossible("runs a job where it does not fit", view)
        self.offered = None
        if view.running:
            ledger.resize(job, self._now, where, option)
            return
        del self.waiting[bisect.bisect_left(self.waiting, job)]
        ledger.launch(job, self._now, where, option)
        view.running = True

    @property
    def _elastic_view(self) -> ElasticView:
        assert isinstance(self._cluster, ElasticView)  # noqa: S101 - made so above
        return self._cluster

    def _fits(self, where: Where, job: int) -> bool:
        return self.elastic.has(job, self.elastic.works[job].requested, where)
