"""Tier-3 policies on the reference engine: what they see, and how decisions are carried out."""

from __future__ import annotations

import bisect
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from windtunnel.errors import PolicyError
from windtunnel.sim.contract import Preempt, Start
from windtunnel.sim.jobs import JobView

if TYPE_CHECKING:
    from collections.abc import Iterator

    import numpy as np

    from windtunnel.cluster.free import Where
    from windtunnel.sim.contract import Policy
    from windtunnel.sim.ledger import Ledger


class QueueView:
    """The waiting jobs in order of arrival.

    Iterating walks a snapshot, so that jobs may be started on the way. Any column of the jobs table
    is an attribute: an array of shape (len(queue),) in the same order.
    """

    def __init__(self, decider: Decider) -> None:
        self._decider = decider

    def __len__(self) -> int:
        return len(self._decider.waiting)

    def __iter__(self) -> Iterator[JobView]:
        views = self._decider.views
        return iter([views[job] for job in self._decider.waiting])

    def __getitem__(self, index: int) -> JobView:
        return self._decider.views[self._decider.waiting[index]]

    def __getattr__(self, name: str) -> np.ndarray:
        if name.startswith("_"):
            raise AttributeError(name)
        problem = self._decider.ledger.problem
        column: np.ndarray = getattr(problem.jobs, name)
        waiting: np.ndarray = column[problem.rows[self._decider.waiting]]
        return waiting


class ClusterView:
    """The cluster at this instant."""

    def __init__(self, decider: Decider) -> None:
        self._decider = decider
        problem = decider.ledger.problem
        self._units = problem.units
        #: GPUs of the whole cluster.
        self.num_gpus = problem.quota / problem.units

    @property
    def free_gpus(self) -> float:
        """GPUs nobody holds."""
        return self._decider.ledger.free.total / self._units

    @property
    def running(self) -> list[JobView]:
        """Running jobs in order of start, with ``remaining`` and ``run_time`` of this instant."""
        return [self._decider.refreshed(job) for job in self._decider.ledger.running]

    def fit(self, job: JobView | float) -> Where | None:
        """Return where a job (or so many GPUs, of any type) would go now, or None."""
        decider = self._decider
        if isinstance(job, JobView):
            decider.offered = decider.ledger.fit(decider.number(job))
            return decider.offered
        demand = decider.ledger.problem.plain_demand(job)
        return decider.ledger.placement.place(decider.ledger.free, demand)


class Decider:
    """Asks a tier-3 policy and applies what it yields, one decision at a time.

    Raises (from `decide`):
        PolicyError: a decision that is impossible; names the instant and the job.
    """

    def __init__(self, ledger: Ledger, policy: Policy) -> None:
        self.ledger = ledger
        self.policy = policy
        self.waiting: list[int] = []
        self.views: dict[int, JobView] = {}
        #: What `ClusterView.fit` said last; nothing has changed since, so it still fits.
        self.offered: Where | None = None
        self._now = 0.0
        self._rows: list[int] = ledger.problem.rows.tolist()
        self._queue = QueueView(self)
        self._cluster = ClusterView(self)

    def add(self, job: int, now: float) -> None:  # noqa: ARG002 - one contract with the queues
        """Queue a job that arrives, or comes back."""
        bisect.insort(self.waiting, job)
        view = JobView(self.ledger.problem.jobs, self._rows[job])
        view.number = job
        self.views[job] = view

    def finished(self, job: int) -> None:
        """Forget a job that completed."""
        view = self.views.pop(job)
        view.running = False
        view.remaining = 0.0

    def interrupted(self, job: int, now: float) -> None:
        """Queue a running job again that an outage stopped."""
        self._now = now
        self.refreshed(job).running = False
        bisect.insort(self.waiting, job)

    def rekey(self, now: float) -> None:
        """Do nothing: a tier-3 policy keeps no keys here."""

    def __len__(self) -> int:
        return len(self.waiting)

    def refreshed(self, job: int) -> JobView:
        """Return an active job's view, brought up to this instant."""
        view = self.views[job]
        view.run_time, view.remaining = self.ledger.attained(job, self._now)
        return view

    def number(self, view: JobView) -> int:
        """Return the arrival number of a job the policy names.

        Raises:
            PolicyError: the job is not active.
        """
        number = getattr(view, "number", -1)
        if self.views.get(number) is not view:
            raise self._impossible("names a job that is neither waiting nor running", view)
        return number

    def decide(self, now: float) -> None:
        """Ask the policy and apply its decisions."""
        self._now = now
        self.offered = None
        decisions: Any = self.policy.decide(now, self._queue, self._cluster)
        if not isinstance(decisions, Iterable):
            message = f"decide returned {decisions!r}; expected to yield Start and Preempt"
            raise self._impossible(message, None)
        for decision in decisions:
            if isinstance(decision, Start):
                self._start(decision)
            elif isinstance(decision, Preempt):
                self._preempt(decision)
            else:
                raise self._impossible(f"yielded {decision!r}; expected Start or Preempt", None)

    def _start(self, decision: Start) -> None:
        view, ledger = decision.job, self.ledger
        job = self.number(view)
        if view.running:
            raise self._impossible("starts a job that already runs", view)
        where = decision.where
        if where is None:
            where = ledger.fit(job)
        elif where is not self.offered and not self._fits(where, job):
            where = None
        if where is None:
            raise self._impossible("starts a job where it does not fit", view)
        self.offered = None
        del self.waiting[bisect.bisect_left(self.waiting, job)]
        ledger.start(job, self._now, where)
        view.running = True

    def _fits(self, where: Where, job: int) -> bool:
        ledger = self.ledger
        if not where:
            return ledger.gpus[job] == 0 and ledger.demand[job].cpus == 0
        return ledger.free.fits(where, ledger.demand[job])

    def _preempt(self, decision: Preempt) -> None:
        job = self.number(decision.job)
        if not decision.job.running:
            raise self._impossible("preempts a job that does not run", decision.job)
        self.offered = None
        self.ledger.preempt(job, self._now)
        self.refreshed(job).running = False
        bisect.insort(self.waiting, job)

    def _impossible(self, message: str, view: JobView | None) -> PolicyError:
        job = getattr(view, "job_id", None)
        return PolicyError(self.policy.label, message, time=self._now, job=job)
