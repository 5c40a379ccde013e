"""The rival: FIFO with backfilling, each job on the GPUs and the plan that its user asked for."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from windtunnel.sim.contract import Policy, Start

if TYPE_CHECKING:
    from collections.abc import Iterable

    from windtunnel.sim.contract import Decision


class FixedPlan(Policy):
    """Guaranteed jobs, then best-effort ones, by arrival; what does not fit is gone past.

    Nothing running is ever touched.
    """

    name = "fixed-plan"
    elastic = True

    def decide(self, now: float, queue: Any, cluster: Any) -> Iterable[Decision]:  # noqa: ARG002 - the contract's
        """Start every waiting job that fits as it was asked for."""
        for job in sorted(queue, key=lambda job: not cluster.work(job).guaranteed):
            where = cluster.fit(job)
            if where is not None:
                yield Start(job, where)
