"""Usage-based admission fair sharing: local queues by what they used, older use counting less.

Source: Kueue's AdmissionFairSharing (Apache-2.0), restated.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from windtunnel.policies.kueue.objects import LocalQueue, Workload
    from windtunnel.policies.kueue.quota_tree import QuotaNode

#: A queue's admission scope under which the use of local queues counts.
SCOPE = "UsageBasedAdmissionFairSharing"
#: What a unit of a resource counts: CPU is held in thousandths.
_UNIT = {"cpu": 1e-3}


class UsageBook:
    """What local queues used.

    Args:
        queues: the local queues.
        half_life: after so long use counts half, s; 0 = nothing is forgotten but what runs counts.
        sampling: how often use is sampled, s; an admission counts at once what one sample adds.
        weights: what a resource's use counts; those not named count 1.
    """

    def __init__(
        self,
        queues: Iterable[LocalQueue],
        half_life: float,
        sampling: float = 300.0,
        weights: Mapping[str, float] | None = None,
    ) -> None:
        self.half_life = half_life
        self.sampling = sampling
        self.weights = dict(weights or {})
        self.queue_weight = {f"{queue.namespace}/{queue.name}": queue.weight for queue in queues}
        self.used: dict[str, dict[str, float]] = {}
        self._running: dict[str, dict[str, float]] = {}
        self._since: dict[str, float] = {}

    def share_of_new(self, elapsed: float) -> float:
        """Return how much of what runs enters the use after ``elapsed`` seconds."""
        if self.half_life <= 0:
            return 1.0 if elapsed > 0 else 0.0
        return 1.0 - math.exp2(-elapsed / self.half_life)

    def load(self, queue: str) -> float:
        """Return a local queue's weighed use over its weight; without weight infinite."""
        used = self.used.get(queue, {})
        total = math.fsum(self.weights.get(r, 1.0) * amount for r, amount in used.items())
        weight = self.queue_weight.get(queue, 1.0)
        return total / weight if weight > 0 else math.inf

    def admit(self, workload: Workload, now: float) -> None:
        """Count an admission: what runs grows, and one sample of it counts at once."""
        self._settle(local_queue(workload), now)
        self._run(workload, 1, self.share_of_new(self.sampling))

    def leave(self, workload: Workload, now: float) -> None:
        """Count that a workload runs no more."""
        self._settle(local_queue(workload), now)
        self._run(workload, -1, 0.0)

    def _run(self, workload: Workload, sign: int, at_once: float) -> None:
        """Add what a workload requests to what runs, and a part of it to the use."""
        running = self._running.setdefault(local_queue(workload), {})
        used = self.used.setdefault(local_queue(workload), {})
        for pod_set in workload.pod_sets:
            for resource, amount in pod_set.requests.items():
                value = amount * pod_set.count * _UNIT.get(resource, 1.0)
                running[resource] = running.get(resource, 0.0) + sign * value
                used[resource] = used.get(resource, 0.0) + at_once * value

    def _settle(self, queue: str, now: float) -> None:
        """Bring a local queue's use up to ``now``: the old fades, what runs enters."""
        new = self.share_of_new(now - self._since.setdefault(queue, now))
        self._since[queue] = now
        used, running = self.used.setdefault(queue, {}), self._running.get(queue, {})
        for resource in {**used, **running}:
            old = used.get(resource, 0.0)
            used[resource] = old * (1 - new) + running.get(resource, 0.0) * new


def goes_by_usage(node: QuotaNode) -> bool:
    """Return whether a queue's workloads go by the use of their local queues."""
    return node.queue is not None and node.queue.admission_scope == SCOPE


def local_queue(workload: Workload) -> str:
    """Return the key of a workload's local queue."""
    return f"{workload.namespace or 'default'}/{workload.queue}"
