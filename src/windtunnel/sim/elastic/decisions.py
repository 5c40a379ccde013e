"""Tier-3 policies of elastic runs: what they see besides, and how jobs are resized."""

from __future__ import annotations

import bisect
from typing import TYPE_CHECKING, Any

from windtunnel.sim.contract import Move, Resize
from windtunnel.sim.decisions import ClusterView, Decider

if TYPE_CHECKING:
    from collections.abc import Sequence

    from windtunnel.cluster.free import Where
    from windtunnel.sim.contract import Policy
    from windtunnel.sim.elastic.ledger import ElasticLedger
    from windtunnel.sim.elastic.nodes import FreeShares
    from windtunnel.sim.elastic.work import Option, Work
    from windtunnel.sim.jobs import JobView


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
        gone = [self._numbers.number(other) for other in without]
        held = [n for n in {number, *gone} if n in self._elastic.running]
        free = self._elastic.free
        if held:
            free = free.copy()
            for other in held:
                option_held = self._elastic.option_of(other)
                assert option_held is not None  # noqa: S101 - it runs
                free.give(self._elastic.running[other].where, option_held)
        return self._elastic.place(number, option, free)

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
