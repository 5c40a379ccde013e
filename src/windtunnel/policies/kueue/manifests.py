"""Kueue's own manifests, read: what an operator applies with ``kubectl`` is what is flown.

Read are ClusterQueue, Cohort, ResourceFlavor, LocalQueue, Topology, WorkloadPriorityClass, Node and
Configuration; other kinds are counted.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

import msgspec

from windtunnel.errors import SpecError, quote
from windtunnel.policies.kueue import manifest_kinds as kinds
from windtunnel.policies.kueue import objects
from windtunnel.policies.kueue.converting import converted, named
from windtunnel.policies.kueue.gates import Gates
from windtunnel.policies.kueue.pods_ready import PodsReady, pods_ready_of
from windtunnel.policies.kueue.quantities import amount, go_duration
from windtunnel.policies.kueue.quota_tree import QuotaTree
from windtunnel.policies.kueue.yaml_files import Document, documents

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from windtunnel.policies.kueue.objects import FlavorResource, Quota

    _Groups = tuple[objects.ResourceGroup, ...]

#: What fair sharing goes by unless the configuration says otherwise.
STRATEGIES = ("LessThanOrEqualToFinalShare", "LessThanInitialShare")


#: The API groups of what is read; some objects are written without.
_GROUPS = ("", "kueue.x-k8s.io", "config.kueue.x-k8s.io")


class Manifests(msgspec.Struct, frozen=True):
    """What manifests say.

    Attributes:
        queues, cohorts, flavors, local_queues, topologies, nodes: the objects, in file order.
        priorities: the value of each WorkloadPriorityClass.
        fair: the strategies of fair sharing; empty = by priority.
        half_life, sampling: of usage-based sharing, s.
        resource_weights: what the use of a resource counts there.
        pods_ready: what becomes of who is admitted and has no nodes; None = it waits for them.
        gates: the feature gates.
        other: how many objects of each kind were not read.
    """

    queues: tuple[objects.ClusterQueue, ...] = ()
    cohorts: tuple[objects.Cohort, ...] = ()
    flavors: tuple[objects.Flavor, ...] = ()
    local_queues: tuple[objects.LocalQueue, ...] = ()
    topologies: tuple[objects.Topology, ...] = ()
    nodes: tuple[objects.Node, ...] = ()
    priorities: dict[str, int] = {}
    fair: tuple[str, ...] = ()
    half_life: float = 0.0
    sampling: float = 300.0
    resource_weights: dict[str, float] = {}
    pods_ready: PodsReady | None = None
    gates: Gates = Gates()
    other: dict[str, int] = {}

    def tree(self) -> QuotaTree:
        """Return the quota tree.

        Raises:
            SpecError: a cycle of cohorts.
        """
        return QuotaTree(self.queues, self.cohorts)


def changed_quotas(groups: _Groups, changed: Callable[[FlavorResource, Quota], Quota]) -> _Groups:
    """Return resource groups whose quotas are changed, each by its flavor and resource."""
    replace = msgspec.structs.replace

    def of_flavor(of: objects.FlavorQuotas) -> objects.FlavorQuotas:
        quotas = {r: changed((of.flavor, r), quota) for r, quota in of.quotas.items()}
        return replace(of, quotas=quotas)

    return tuple(replace(group, flavors=tuple(map(of_flavor, group.flavors))) for group in groups)


def read_manifests(path: str | Path, *, queues: bool = True) -> Manifests:
    """Return what the manifests of a file or a folder say.

    Args:
        path: a YAML file of one or many documents, or a folder of them.
        queues: there must be a ClusterQueue.

    Raises:
        SpecError: a file cannot be read; a field is not known or has a wrong value (file, document,
            path); a name stands twice; a queue names a flavor or a topology that there is not; the
            cohorts form a cycle; there is no ClusterQueue.
    """
    found: dict[str, dict[str, Any]] = {kind: {} for kind in _MADE}
    settings: dict[str, Any] = {}
    other: Counter[str] = Counter()
    for document in documents(path):
        if not isinstance(document.data, dict) or not isinstance(document.data.get("kind"), str):
            raise SpecError(
                document.where, "expected an object with apiVersion, kind and metadata."
            )
        kind = document.data["kind"]
        ours = _is_ours(document.data)
        if kind == "Configuration" and ours:
            if settings:
                raise SpecError(document.where, "found a second Configuration; Kueue has one.")
            settings = _settings(document, other)
        elif kind == "WorkloadPriorityClass" and ours:
            _put(found[kind], document, _priority(document))
        elif kind in _MADE and ours:
            converted(document.data, kinds.Object, document, "$")
            _put(found[kind], document, _MADE[kind](document, _spec(document)))
        else:
            other[kind] += 1
    made = Manifests(
        queues=tuple(found["ClusterQueue"].values()),
        cohorts=tuple(found["Cohort"].values()),
        flavors=tuple(found["ResourceFlavor"].values()),
        local_queues=tuple(found["LocalQueue"].values()),
        topologies=tuple(found["Topology"].values()),
        nodes=tuple(found["Node"].values()),
        priorities=found["WorkloadPriorityClass"],
        other=dict(other),
        **settings,
    )
    if queues and not made.queues:
        raise SpecError(str(path), "has no ClusterQueue; expected Kueue's manifests.")
    _check(made, str(path))
    return made


def _is_ours(data: dict[str, Any]) -> bool:
    """Return whether an object is Kueue's, or a node: other systems have queues, too."""
    version = str(data.get("apiVersion", ""))
    return data["kind"] == "Node" or version.rpartition("/")[0] in _GROUPS


def _put(there: dict[str, Any], document: Document, made: Any) -> None:
    """Keep an object under its name, of local queues with the namespace."""
    meta = _meta(document)
    name = f"{meta.namespace}/{meta.name}" if isinstance(made, objects.LocalQueue) else meta.name
    if not meta.name:
        raise SpecError(f"{document.where}, $.metadata.name", "expected a name.")
    if name in there:
        kind = document.data["kind"]
        raise SpecError(document.where, f"found {kind} {quote(name)} twice; name each once.")
    there[name] = made


def _meta(document: Document) -> kinds.Metadata:
    """Return an object's name and labels."""
    given = document.data.get("metadata")
    found: kinds.Metadata = converted(
        {} if given is None else given, kinds.Metadata, document, "$.metadata"
    )
    return found


def _spec(document: Document) -> Any:
    """Return an object's spec as its kind has it."""
    kind = kinds.SPECS[document.data["kind"]]
    given = document.data.get("spec")
    return converted({} if given is None else given, kind, document, "$.spec")


def _groups(groups: list[kinds.Group], where: str) -> tuple[objects.ResourceGroup, ...]:
    """Return resource groups with their quotas as whole numbers."""
    made = []
    at = f"{where}, $.spec.resourceGroups"
    _once([of.name for group in groups for of in group.flavors], f"{at}: flavors")
    _once([name for group in groups for name in group.covered_resources], f"{at}: resources")
    for g, group in enumerate(groups):
        flavors = []
        for f, flavor in enumerate(group.flavors):
            path = f"{at}[{g}].flavors[{f}].resources"
            named = [of.name for of in flavor.resources]
            _once(named, path)
            if sorted(named) != sorted(group.covered_resources):
                covered = ", ".join(map(quote, group.covered_resources)) or "none"
                found = ", ".join(map(quote, named)) or "none"
                message = f"found {found}; expected all its coveredResources: {covered}."
                raise SpecError(path, message)
            quotas = {of.name: _quota(of, f"{path}[{r}]") for r, of in enumerate(flavor.resources)}
            flavors.append(objects.FlavorQuotas(flavor.name, quotas))
        made.append(objects.ResourceGroup(tuple(flavors), tuple(group.covered_resources)))
    return tuple(made)


def _once(names: list[str], where: str) -> None:
    """Raise SpecError if a name stands twice."""
    for name, count in Counter(names).items():
        if count > 1:
            raise SpecError(where, f"found {quote(name)} twice; name each once.")


def _quota(of: kinds.ResourceQuota, path: str) -> objects.Quota:
    """Return a quota as whole numbers."""
    return objects.Quota(
        amount(of.name, of.nominal_quota, f"{path}.nominalQuota"),
        _limit(of.name, of.borrowing_limit, f"{path}.borrowingLimit"),
        _limit(of.name, of.lending_limit, f"{path}.lendingLimit"),
    )


def _limit(resource: str, given: kinds.Quantity | None, path: str) -> int | None:
    """Return a limit, None if there is none."""
    return None if given is None else amount(resource, given, path)


def _weight(sharing: kinds.FairSharing | None, where: str) -> float:
    """Return a weight, 1 by default."""
    if sharing is None or sharing.weight is None:
        return 1.0
    thousandths = amount("cpu", sharing.weight, f"{where}, $.spec.fairSharing.weight")
    return thousandths / 1000


def _queue(document: Document, spec: kinds.ClusterQueueSpec) -> objects.ClusterQueue:
    """Return a cluster queue."""
    where = f"{document.where} ({named(document)})"
    rules = spec.preemption or kinds.PreemptionRules()
    borrow = rules.borrow_within_cohort or kinds.BorrowWithin()
    flavors = spec.flavor_fungibility or kinds.FungibilityRules()
    return objects.ClusterQueue(
        name=_meta(document).name,
        cohort=spec.cohort_name or spec.cohort,
        strategy=spec.queueing_strategy,
        weight=_weight(spec.fair_sharing, where),
        resource_groups=_groups(spec.resource_groups, where),
        preemption=objects.Preemption(
            rules.within_cluster_queue,
            rules.reclaim_within_cohort,
            objects.BorrowWithinCohort(borrow.policy, borrow.max_priority_threshold),
        ),
        fungibility=objects.Fungibility(
            flavors.when_can_borrow, flavors.when_can_preempt, flavors.preference
        ),
        stop_policy=spec.stop_policy or "None",
        admission_scope=spec.admission_scope.admission_mode if spec.admission_scope else "",
    )


def _cohort(document: Document, spec: kinds.CohortSpec) -> objects.Cohort:
    """Return a cohort."""
    where = f"{document.where} ({named(document)})"
    return objects.Cohort(
        _meta(document).name,
        spec.parent_name or spec.parent,
        _weight(spec.fair_sharing, where),
        _groups(spec.resource_groups, where),
    )


def _flavor(document: Document, spec: kinds.FlavorSpec) -> objects.Flavor:
    """Return a flavor."""
    return objects.Flavor(
        _meta(document).name,
        spec.node_labels,
        spec.topology_name,
        tuple(spec.node_taints),
        tuple(spec.tolerations),
    )


def _local_queue(document: Document, spec: kinds.LocalQueueSpec) -> objects.LocalQueue:
    """Return a local queue."""
    meta = _meta(document)
    weight = _weight(spec.fair_sharing, f"{document.where} ({named(document)})")
    stop = spec.stop_policy or "None"
    return objects.LocalQueue(meta.name, spec.cluster_queue, meta.namespace, weight, stop)


def _topology(document: Document, spec: kinds.TopologySpec) -> objects.Topology:
    """Return a topology."""
    where = f"{document.where} ({named(document)}), $.spec.levels"
    levels = [of.node_label for of in spec.levels]
    if not levels:
        raise SpecError(where, "has no level; expected node labels, from the top.")
    _once(levels, where)
    return objects.Topology(_meta(document).name, tuple(levels))


def _node(document: Document, spec: kinds.NodeSpec) -> objects.Node:
    """Return a node: ready unless a condition says otherwise."""
    meta = _meta(document)
    given = document.data.get("status") or {}
    status = converted(given, kinds.NodeStatus, document, "$.status")
    held = status.allocatable or status.capacity
    where = f"{document.where} ({named(document)}), $.status"
    ready = all(of.status == "True" for of in status.conditions if of.type == "Ready")
    return objects.Node(
        meta.name,
        {"kubernetes.io/hostname": meta.name, **meta.labels},
        {resource: amount(resource, of, f"{where}.{resource}") for resource, of in held.items()},
        ready,
        spec.unschedulable,
        tuple(spec.taints),
    )


def _priority(document: Document) -> int:
    """Return the value of a priority class."""
    found: kinds.PriorityClass = converted(document.data, kinds.PriorityClass, document, "$")
    return found.value


def _settings(document: Document, other: Counter[str]) -> dict[str, Any]:
    """Return what a configuration says of sharing, gates and pods that are not ready.

    Args:
        document: the configuration.
        other: what is not read is counted here.
    """
    given: kinds.Settings = converted(document.data, kinds.Settings, document, "$")
    known = {of.encode_name for of in msgspec.structs.fields(Gates)}
    gates = {name: on for name, on in given.feature_gates.items() if name in known}
    other.update(f"feature gate {name}" for name in given.feature_gates.keys() - known)
    if given.resources is not None:
        other["Configuration.resources"] += 1
    found: dict[str, Any] = {"gates": msgspec.convert(gates, Gates)}
    if given.wait_for_pods_ready is not None:
        found["pods_ready"] = pods_ready_of(given.wait_for_pods_ready, document)
    if given.fair_sharing is not None:
        found |= _fair(given.fair_sharing, document)
    if given.admission_fair_sharing is not None:
        found |= _by_usage(given.admission_fair_sharing, document)
    return found


def _fair(given: Any, document: Document) -> dict[str, Any]:
    """Return the strategies of fair sharing."""
    where = "$.fairSharing"
    fair: kinds.FairSettings = converted(given, kinds.FairSettings, document, where)
    strategies = tuple(fair.preemption_strategies or STRATEGIES)
    for strategy in strategies:
        if strategy not in STRATEGIES:
            at = f"{document.where}, {where}.preemptionStrategies"
            raise SpecError.unknown(at, strategy, STRATEGIES)
    return {"fair": strategies} if fair.enable else {}


def _by_usage(given: Any, document: Document) -> dict[str, Any]:
    """Return what usage-based sharing goes by."""
    where = "$.admissionFairSharing"
    usage: kinds.UsageSettings = converted(given, kinds.UsageSettings, document, where)
    found: dict[str, Any] = {"resource_weights": usage.resource_weights}
    for name, key, time in (
        ("half_life", "usageHalfLifeTime", usage.usage_half_life_time),
        ("sampling", "usageSamplingInterval", usage.usage_sampling_interval),
    ):
        if time is not None:
            found[name] = go_duration(time, f"{document.where}, {where}.{key}")
    return found


_MADE: dict[str, Any] = {
    "ClusterQueue": _queue,
    "Cohort": _cohort,
    "ResourceFlavor": _flavor,
    "LocalQueue": _local_queue,
    "Topology": _topology,
    "Node": _node,
    "WorkloadPriorityClass": _priority,
}


def _check(made: Manifests, source: str) -> None:
    """Raise SpecError where objects name others that there are not, or at a cycle of cohorts."""
    flavors = {flavor.name for flavor in made.flavors}
    topologies = {topology.name for topology in made.topologies}
    for flavor in made.flavors:
        if flavor.topology and flavor.topology not in topologies:
            where = f"{source}: ResourceFlavor {quote(flavor.name)}, $.spec.topologyName"
            raise SpecError.unknown(where, flavor.topology, topologies)
    for queue in made.queues:
        for group in queue.resource_groups:
            for of in group.flavors:
                if of.flavor not in flavors:
                    where = f"{source}: ClusterQueue {quote(queue.name)}, $.spec.resourceGroups"
                    raise SpecError.unknown(where, of.flavor, flavors)
    names = {queue.name for queue in made.queues}
    for local in made.local_queues:
        if local.cluster_queue not in names:
            where = f"{source}: LocalQueue {quote(local.name)}, $.spec.clusterQueue"
            raise SpecError.unknown(where, local.cluster_queue, names)
    try:
        made.tree()
    except SpecError as error:
        raise SpecError(source, error.message) from None
