"""`WatchedDisruptedLedger`: failures and drains reach the policies that keep accounts."""

from __future__ import annotations

from typing import TYPE_CHECKING

from windtunnel.sim.disruptions.ledger import DisruptedLedger
from windtunnel.sim.watched import WatchedLedger

if TYPE_CHECKING:
    from windtunnel.sim.contract import Placement, Policy
    from windtunnel.sim.disruptions.plan import Plan
    from windtunnel.sim.problem import Problem


class WatchedDisruptedLedger(WatchedLedger, DisruptedLedger):
    """A `DisruptedLedger` that tells the policy who started and who stopped, whatever stopped it.

    Args:
        problem: jobs and cluster.
        placement: where jobs go.
        overhead: seconds a preempted job pays when it resumes.
        plan: what will happen.
        plans: jobs are not started where a planned hold would come before their expected end.
        policy: who is told.
    """

    def __init__(
        self,
        problem: Problem,
        placement: Placement,
        overhead: float,
        plan: Plan,
        *,
        plans: bool,
        policy: Policy,
    ) -> None:
        DisruptedLedger.__init__(self, problem, placement, overhead, plan, plans=plans)
        self.watched_by(policy)

    def interrupt(self, job: int, now: float, *, saves: bool = False, ends: bool = False) -> None:
        """Take a running job off its GPUs because of an outage, and tell."""
        super().interrupt(job, now, saves=saves, ends=ends)
        self._failed(job, now, is_over=ends)

    def fail_at_end(self, job: int, now: float) -> None:
        """Let a job fail that has just completed, and tell."""
        super().fail_at_end(job, now)
        self._failed(job, now, is_over=self.plan.ends)

    def _gone(self, job: int, now: float) -> None:
        if job not in self.failed_at_end:  # what it loses is known, and told, in `fail_at_end`
            super()._gone(job, now)

    def _failed(self, job: int, now: float, *, is_over: bool) -> None:
        view = self._views.pop(job) if is_over else self._views[job]
        view.running = False
        view.run_time, view.remaining = self.attained(job, now)
        self._policy.stopped(view, now)
