"""From which nominal quota on a job is admitted."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

from windtunnel.policies.kueue.manifests import changed_quotas
from windtunnel.policies.kueue.one_job import ruling

if TYPE_CHECKING:
    from windtunnel.policies.kueue.manifests import Manifests
    from windtunnel.policies.kueue.objects import FlavorResource, Quota
    from windtunnel.policies.kueue.snapshots import Snapshot
    from windtunnel.policies.kueue.written_jobs import WrittenJob


class LeastQuota(NamedTuple):
    """From which nominal quota on a job is admitted.

    Attributes:
        flavor, resource: whose quota.
        now: what its queue owns now.
        least: from which on it is admitted, if it may preempt as its queue allows.
        unharmed: from which on it is admitted and nobody goes; None = not by this quota.
    """

    flavor: str
    resource: str
    now: int
    least: int
    unharmed: int | None


def least_quotas(manifests: Manifests, snapshot: Snapshot, job: WrittenJob) -> list[LeastQuota]:
    """Return the least nominal quotas of a job's queue at which it is admitted.

    Of each flavor by itself: the quotas of its resources that the job asks for, each the least
    while the others are large enough; the quotas of other flavors, and of other queues, stay. Each
    is found by halving: one less, and the job waits. Of a job that is admitted now, the flavors
    that it got; of one that waits, the quotas that are too small.

    Args:
        manifests: queues, flavors, topologies, nodes.
        snapshot: who is admitted, and who waits.
        job: the job.

    Returns:
        A row for each flavor and resource; none of a flavor whose quota alone lets it in nowhere.
    """
    search = _QuotaSearch(manifests, snapshot, job)
    now = ruling(manifests, snapshot, job)
    if not now.queue:
        return []
    got = {flavor for of in now.stands for flavor in of.flavors.values()}
    queue = next(of for of in manifests.queues if of.name == now.queue)
    wanted = {quota.resource for quota in now.quotas}
    found: list[LeastQuota] = []
    for group in queue.resource_groups:
        for of in group.flavors:
            whats = [(of.flavor, resource) for resource in of.quotas if resource in wanted]
            if whats and (not got or of.flavor in got):
                found += search.of(whats, admitted_now=now.admitted)
    return found


class _QuotaSearch:
    """The search for the least quotas of a job's queue."""

    def __init__(self, manifests: Manifests, snapshot: Snapshot, job: WrittenJob) -> None:
        self.manifests, self.snapshot, self.job = manifests, snapshot, job
        self.enough = _all_asked(snapshot, job)

    def of(self, whats: list[tuple[str, str]], *, admitted_now: bool) -> list[LeastQuota]:
        """Return the least quotas of one flavor's resources."""
        queue = next(of for of in self.manifests.queues if of.name == self.job.cluster_queue)
        owned = _nominal(queue.resource_groups)
        ample = {what: max(owned.get(what, 0), self.enough.get(what[1], 0)) for what in whats}
        if not self._admits(ample, harmless=False):
            return []
        harmless = self._admits(ample, harmless=True)
        return [
            LeastQuota(
                *what,
                owned.get(what, 0),
                self._least(what, ample, harmless=False),
                self._least(what, ample, harmless=True) if harmless else None,
            )
            for what in whats
            if admitted_now
            or not self._admits({**ample, what: owned.get(what, 0)}, harmless=harmless)
        ]

    def _least(
        self, what: tuple[str, str], ample: dict[tuple[str, str], int], *, harmless: bool
    ) -> int:
        """Return the least of one quota, the others being ample."""
        low, high = -1, ample[what]
        while high - low > 1:
            middle = (low + high) // 2
            if self._admits({**ample, what: middle}, harmless=harmless):
                high = middle
            else:
                low = middle
        return high

    def _admits(self, nominal: dict[tuple[str, str], int], *, harmless: bool) -> bool:
        """Return whether the job is admitted under such quotas (and nobody goes for it)."""
        manifests = with_quotas(self.manifests, self.job.cluster_queue, nominal)
        found = ruling(manifests, self.snapshot, self.job)
        return found.admitted and not (harmless and found.preempted)


def _all_asked(snapshot: Snapshot, job: WrittenJob) -> dict[str, int]:
    """Return what all workloads together hold or ask for, by resource: more is never needed."""
    total: dict[str, int] = {}
    for (_, resource), amount in (item for of in snapshot.held for item in of.usage.items()):
        total[resource] = total.get(resource, 0) + amount
    for waits in (job, *snapshot.waiting):
        for pod_set in waits.workload.pod_sets:
            for resource, amount in (*pod_set.requests.items(), ("pods", 1)):
                total[resource] = total.get(resource, 0) + amount * pod_set.count
    return total


def _nominal(groups: Any) -> dict[tuple[str, str], int]:
    """Return nominal quotas by flavor and resource."""
    return {
        (of.flavor, resource): quota.nominal
        for group in groups
        for of in group.flavors
        for resource, quota in of.quotas.items()
    }


def with_quotas(manifests: Manifests, name: str, nominal: dict[FlavorResource, int]) -> Manifests:
    """Return manifests with other nominal quotas of one queue."""
    replace = msgspec.structs.replace

    def changed(what: FlavorResource, quota: Quota) -> Quota:
        return replace(quota, nominal=nominal.get(what, quota.nominal))

    queues = tuple(
        replace(of, resource_groups=changed_quotas(of.resource_groups, changed))
        if of.name == name
        else of
        for of in manifests.queues
    )
    return replace(manifests, queues=queues)
