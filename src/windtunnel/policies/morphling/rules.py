"""`Rules`: what the parts of Morphling's decision ask of the policy."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from windtunnel.policies.morphling.ladder import Ladder
from windtunnel.sim.contract import Policy

if TYPE_CHECKING:
    from windtunnel.sim.jobs import JobView


class Rules(Policy):
    """Which sizes jobs may have, and which jobs may be changed.

    Attributes:
        freedom: one of `windtunnel.policies.morphling.ladder.FREEDOMS`.
        margin: seconds that a change must save beyond its penalty.
        ageing: seconds after which a waiting job goes before all others.
        most: changes after which a job gives way no longer; it may grow up to as many times more.
        quotas: GPUs of each ``vc``.
    """

    freedom: ClassVar[str] = "both"
    margin: float
    ageing: float
    most: int
    quotas: dict[Any, float]

    def begin(self, problem: Any) -> None:  # noqa: ARG002 - for those who look at it
        """Forget the jobs of other runs."""
        self._ladders: dict[Any, Ladder] = {}
        self._ladder_of: dict[int, Ladder] = {}
        self._changes: dict[int, int] = {}

    def ladder(self, cluster: Any, job: JobView) -> Ladder:
        """Return the sizes at which a job may run."""
        found = self._ladder_of.get(job.number)
        if found is None:
            work = cluster.work(job)
            kind = (id(work.options), id(work.requested), work.guaranteed)
            found = self._ladders.get(kind) or Ladder.of(work, self.freedom)
            self._ladders[kind] = self._ladder_of[job.number] = found
        return found

    def may_give_way(self, job: JobView) -> bool:
        """Return whether a job was changed less often than it may be for others' sake."""
        return self._changes.get(job.number, 0) < self.most

    def may_grow(self, job: JobView) -> bool:
        """Return whether a job was changed less often than it may be at all."""
        return self._changes.get(job.number, 0) < 2 * self.most

    def is_aged(self, job: JobView, now: float) -> bool:
        """Return whether a job is so old that it goes before all others."""
        return now >= job.submit_time + self.ageing  # as the instant asked to wake at is made

    def note_change(self, number: int) -> None:
        """Count that a running job was changed or stopped."""
        self._changes[number] = self._changes.get(number, 0) + 1
