"""Manifests as the quotas of the simple policy ``quota``, where it says all that they say."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from windtunnel.errors import SpecError, quote
from windtunnel.policies.kueue.workloads import gpu_resource
from windtunnel.policies.quotas import QueueQuota, Quotas

if TYPE_CHECKING:
    from collections.abc import Iterator

    from windtunnel.policies.kueue.manifests import Manifests
    from windtunnel.policies.kueue.objects import ClusterQueue


def quotas_of(manifests: Manifests, gpu: str | None = None) -> Quotas:
    """Return manifests as quotas: a ClusterQueue is the virtual cluster of its LocalQueues' name.

    Of a queue with one LocalQueue the virtual cluster is that; else the ClusterQueue itself.

    Args:
        manifests: the manifests.
        gpu: the resource that GPUs are; None = the one with "gpu" in its name.

    Raises:
        SpecError: they say what policy ``quota`` cannot; names each thing.
        PolicyError: it is not known which resource the GPUs are.
    """
    gpu = gpu or gpu_resource(manifests)
    beyond = list(dict.fromkeys(_beyond(manifests, gpu)))
    if beyond:
        unknown = "; ".join(beyond[:5])
        raise SpecError("kueue", f"policy quota does not know {unknown}. Fly policy kueue.")
    return Quotas(tuple(_queue(manifests, queue, gpu) for queue in manifests.queues))


def _beyond(manifests: Manifests, gpu: str) -> Iterator[str]:
    """Yield what the simple policy does not know."""
    if manifests.topologies:
        yield "topologies"
    for cohort in manifests.cohorts:
        if cohort.parent or cohort.resource_groups:
            yield f"cohort {quote(cohort.name)}, which has a parent or quotas of its own"
    for queue in manifests.queues:
        name = f"queue {quote(queue.name)}"
        resources = {r for group in queue.resource_groups for r in group.covered}
        if resources != {gpu}:
            yield f"{name}, whose quotas are not of {gpu} alone"
        elif len(queue.resource_groups[0].flavors) > 1:
            yield f"{name}, which has several flavors"
        rules = queue.preemption
        if rules.borrow_within_cohort.policy != "Never":
            yield f"{name}, which preempts while it borrows"
        if rules.within_cluster_queue == "LowerOrNewerEqualPriority":
            yield f"{name}, where newer workloads of equal priority give way"
        if queue.admission_scope or queue.stop_policy != "None":
            yield f"{name}, which goes by past use or is stopped"


def _queue(manifests: Manifests, queue: ClusterQueue, gpu: str) -> QueueQuota:
    """Return one queue's quota."""
    doors = [local.name for local in manifests.local_queues if local.cluster_queue == queue.name]
    quota = queue.resource_groups[0].flavors[0].quotas[gpu]
    within: Any = queue.preemption.within_cluster_queue
    return QueueQuota(
        vc=doors[0] if len(doors) == 1 else queue.name,
        nominal_quota=float(quota.nominal),
        borrowing_limit=None if quota.borrowing_limit is None else float(quota.borrowing_limit),
        lending_limit=None if quota.lending_limit is None else float(quota.lending_limit),
        cohort=queue.cohort or None,
        queueing_strategy=queue.strategy,
        reclaim_within_cohort=queue.preemption.reclaim_within_cohort,
        within_cluster_queue=within,
        weight=queue.weight,
    )
