"""`Rules`: what parts of Morphling's decision ask of the policy."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from windtunnel.policies.morphling.ladder import Ladder
    from windtunnel.sim.jobs import JobView


class Rules(Protocol):
    """A policy; `windtunnel.policies.morphling.scheduler.Priced` is one.

    Attributes:
        margin: seconds that a change must save beyond its penalty.
        quotas: GPUs of each ``vc``.
    """

    margin: float
    quotas: dict[Any, float]

    def ladder(self, cluster: Any, job: JobView) -> Ladder:
        """Return the sizes at which a job may run."""

    def may_give_way(self, job: JobView) -> bool:
        """Return whether a job may be changed for others' sake."""

    def may_grow(self, job: JobView) -> bool:
        """Return whether a job may be changed at all."""

    def is_aged(self, job: JobView, now: float) -> bool:
        """Return whether a job is so old that it goes before all others."""
