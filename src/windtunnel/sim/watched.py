"""A ledger that tells the policy who started and who stopped, for policies that keep accounts."""

from __future__ import annotations

from typing import TYPE_CHECKING

from windtunnel.sim.jobs import JobView
from windtunnel.sim.ledger import Ledger

if TYPE_CHECKING:
    from windtunnel.cluster.free import Where
    from windtunnel.sim.contract import Placement, Policy
    from windtunnel.sim.problem import Problem
    from windtunnel.sim.rates import Rates


class WatchedLedger(Ledger):
    """A `Ledger` that calls ``policy.started`` and ``policy.stopped`` after each change.

    Args:
        problem: jobs and cluster.
        placement: where jobs go.
        overhead: seconds a preempted job pays when it resumes.
        policy: who is told.
        rates: how fast jobs get on; None = all at rate 1.
    """

    def __init__(
        self,
        problem: Problem,
        placement: Placement,
        overhead: float,
        policy: Policy,
        rates: Rates | None = None,
    ) -> None:
        super().__init__(problem, placement, overhead, rates)
        self.watched_by(policy)

    def watched_by(self, policy: Policy) -> None:
        """Tell a policy from now on; nothing runs yet."""
        self._policy = policy
        self._rows: list[int] = self.problem.rows.tolist()
        self._views: dict[int, JobView] = {}

    def start(self, job: int, now: float, where: Where) -> None:
        """Put a waiting job on the given nodes, and tell."""
        super().start(job, now, where)
        view = self._views.get(job)
        if view is None:
            view = self._views[job] = JobView(self.problem.jobs, self._rows[job])
            view.number = job
        view.running = True
        self._policy.started(view, now)

    def preempt(self, job: int, now: float) -> None:
        """Take a running job off its GPUs, and tell."""
        super().preempt(job, now)
        view = self._views[job]
        view.running = False
        view.run_time, view.remaining = self.attained(job, now)
        self._policy.stopped(view, now)

    def finish_next(self, now: float) -> int:
        """Complete the first job in ``ends``, and tell; return it."""
        job = super().finish_next(now)
        self._gone(job, now)
        return job

    def finish(self, job: int, now: float) -> None:
        """Complete a running job out of turn, and tell."""
        super().finish(job, now)
        self._gone(job, now)

    def _gone(self, job: int, now: float) -> None:
        view = self._views.pop(job)
        view.running = False
        view.remaining = 0.0
        self._policy.stopped(view, now)
