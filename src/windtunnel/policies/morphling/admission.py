"""Tenants' quotas: how many guaranteed GPUs may be promised at a time."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from windtunnel.policies.morphling.draft import Draft
    from windtunnel.policies.morphling.rules import Rules
    from windtunnel.sim.jobs import JobView


class QuotaBook:
    """What the floors of each tenant's guaranteed jobs come to, as drafted.

    A guaranteed job is admitted while its tenant's quota covers its floor besides those of the
    tenant's guaranteed jobs that run. Best-effort jobs count nowhere.

    Args:
        policy: its quotas count.
        draft: who runs.
    """

    def __init__(self, policy: Rules, draft: Draft) -> None:
        self.policy = policy
        self.draft = draft
        self.used: dict[str | None, int] = {}
        if policy.quotas:
            for held in draft.held.values():
                self.note(held.job)

    def admits(self, job: JobView) -> bool:
        """Return whether a job may be launched as far as quotas go."""
        quota = self.policy.quotas.get(job.vc)
        if quota is None or not self.draft.cluster.work(job).guaranteed:
            return True
        return self.used.get(job.vc, 0) + self._floor(job) <= quota

    def note(self, job: JobView) -> None:
        """Count a job that runs."""
        if self.policy.quotas and self.draft.cluster.work(job).guaranteed:
            self.used[job.vc] = self.used.get(job.vc, 0) + self._floor(job)

    def _floor(self, job: JobView) -> int:
        return self.policy.ladder(self.draft.cluster, job).floor.num_gpus
