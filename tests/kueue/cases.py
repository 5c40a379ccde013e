"""A recorded case of Kueue, made windtunnel's objects; what they decide, in the case's words."""

from __future__ import annotations

from typing import Any

import msgspec

from windtunnel.cluster.topology.places import Place, of_pods
from windtunnel.cluster.topology.tree import TopologyTree
from windtunnel.policies.kueue import objects
from windtunnel.policies.kueue.gates import Gates
from windtunnel.policies.kueue.quota_tree import QuotaTree
from windtunnel.policies.kueue.state import Holding, State

Case = dict[str, Any]


def converted(value: Any, kind: type[Any]) -> Any:
    """Return a neutral form as an object of windtunnel's."""
    return msgspec.convert(value, kind, strict=False)


def tree_of(case: Case) -> QuotaTree:
    """Return a case's queues and cohorts."""
    return QuotaTree(
        converted(case["cluster_queues"], list[objects.ClusterQueue]),
        converted(case.get("cohorts", []), list[objects.Cohort]),
    )


def gates_of(case: Case) -> Gates:
    """Return a case's feature gates."""
    return converted(case.get("gates", {}), Gates)


def use(tree: QuotaTree, usage: dict[str, list[list[Any]]]) -> None:
    """Count what queues use."""
    for queue, amounts in usage.items():
        for flavor, resource, amount in amounts:
            tree.queues[queue].use((flavor, resource), amount)


def usage_of(workload: objects.Workload, pod_sets: list[Case]) -> objects.Amounts:
    """Return what an admitted workload holds: as recorded, else its pods' requests."""
    of = {pod_set.name: pod_set for pod_set in workload.pod_sets}
    usage: objects.Amounts = {}
    for admitted in pod_sets:
        pod_set = of[admitted["name"]]
        count = admitted.get("count", pod_set.count)
        amounts = admitted.get("usage") or {
            resource: amount * count for resource, amount in pod_set.requests.items()
        }
        for resource, amount in amounts.items():
            flavor = admitted["flavors"].get(resource)
            if flavor is not None:
                what = (flavor, resource)
                usage[what] = usage.get(what, 0) + amount
    return usage


def place_of(tree: TopologyTree, pod_set: objects.PodSet, assignment: Case) -> Place:
    """Return the place that a recorded assignment names."""
    skipped = len(tree.levels) - len(assignment["levels"])
    by_end = {path[skipped:]: path for path in tree.leaf_index}
    leaves = {
        by_end.get(tuple(values), tuple(values)): pods for values, pods in assignment["domains"]
    }
    return of_pods(pod_set.requests, leaves)


def topology_tree(levels: list[str], nodes: list[Case], labels: dict[str, str]) -> TopologyTree:
    """Return the tree of the nodes that carry a flavor's labels."""
    stand = []
    for node in converted(nodes, list[objects.Node]):
        has = node.labels
        if not node.ready or node.unschedulable or any(level not in has for level in levels):
            continue
        if all(has.get(key) == value for key, value in labels.items()):
            stand.append((tuple(has[level] for level in levels), node.capacity))
    return TopologyTree(tuple(levels), stand)


def state_of(case: Case) -> State:
    """Return a case's quotas, topologies, and whoever is admitted."""
    flavors = converted(case.get("flavors", []), list[objects.Flavor])
    levels = {topology["name"]: topology["levels"] for topology in case.get("topologies", [])}
    topologies = {
        flavor.name: topology_tree(
            levels[flavor.topology], case.get("nodes", []), flavor.node_labels
        )
        for flavor in flavors
        if flavor.topology in levels
    }
    fair = tuple(case["fair_sharing"]["strategies"]) if case.get("fair_sharing") else ()
    state = State(
        tree_of(case), {flavor.name: flavor for flavor in flavors}, topologies, fair, gates_of(case)
    )
    for given in case.get("workloads", []):
        if "admission" in given and not given.get("finished"):
            state.add(holding_of(state, given))
    return state


def workload_of(given: Case) -> objects.Workload:
    """Return a workload of a case."""
    return converted({**given, "evicted": bool(given.get("evicted"))}, objects.Workload)


def holding_of(state: State, given: Case) -> Holding:
    """Return what an admitted workload of a case holds."""
    workload, admission = workload_of(given), given["admission"]
    of = {pod_set.name: pod_set for pod_set in workload.pod_sets}
    places = []
    for admitted in admission["pod_sets"]:
        assignment = admitted.get("topology_assignment")
        if assignment:
            flavor = next(iter(admitted["flavors"].values()))
            tree = state.topologies[flavor]
            places.append((flavor, place_of(tree, of[admitted["name"]], assignment)))
    return Holding(
        workload,
        state.tree.queues[admission["cluster_queue"]],
        usage_of(workload, admission["pod_sets"]),
        tuple(places),
        admission.get("reserved_at") or 0.0,
    )


def assignment_of(tree: TopologyTree, place: Place) -> Case:
    """Return a place as a case writes it: hosts alone, or whole paths."""
    hosts = tree.levels[-1] == "kubernetes.io/hostname"
    levels = tree.levels[-1:] if hosts else tree.levels
    domains = [[list(path[-1:] if hosts else path), pods] for path, pods in place.leaves]
    return {"levels": list(levels), "domains": domains}
