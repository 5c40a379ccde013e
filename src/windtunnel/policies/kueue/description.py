"""What manifests say: the tree, who owns, lends and may borrow how much, and what looks wrong."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from windtunnel.errors import quote
from windtunnel.policies.kueue.quantities import shown

if TYPE_CHECKING:
    from collections.abc import Iterator

    from windtunnel.policies.kueue.manifests import Manifests
    from windtunnel.policies.kueue.objects import Flavor
    from windtunnel.policies.kueue.quota_tree import QuotaNode


def described(manifests: Manifests) -> dict[str, Any]:
    """Return what manifests say, as plain data.

    Returns:
        ``nodes``: one row for each cohort and queue and each flavor and resource of it, from the
        roots down: ``depth``, ``name``, ``kind``, ``flavor``, ``resource``, ``owns``, ``may_use``
        (were all else empty), ``may_borrow`` and ``lends`` (at most; CPU in thousandths, memory in
        bytes, anything else in pieces); ``warnings``: sentences;
        ``counts``: objects by kind; ``not_read``: other objects by kind.
    """
    tree = manifests.tree()
    roots = [node for node in tree.nodes() if node.parent is None]
    return {
        "nodes": [row for root in roots for row in _rows(root, 0)],
        "warnings": list(_warnings(manifests)),
        "counts": {
            "ClusterQueue": len(manifests.queues),
            "Cohort": len(tree.cohorts),
            "LocalQueue": len(manifests.local_queues),
            "ResourceFlavor": len(manifests.flavors),
            "Topology": len(manifests.topologies),
            "Node": len(manifests.nodes),
        },
        "not_read": manifests.other,
    }


def _rows(node: QuotaNode, depth: int) -> Iterator[dict[str, Any]]:
    """Yield the rows of a node and of all below it."""
    kind = "cohort" if node.queue is None else "queue"
    for what in sorted(node.subtree) or [("", "")]:
        owns = node.subtree.get(what, 0)
        most = node.potential(what)
        yield {
            "depth": depth,
            "name": node.name,
            "kind": kind,
            "flavor": what[0],
            "resource": what[1],
            "owns": owns,
            "may_use": most,
            "may_borrow": max(0, most - owns),
            "lends": 0 if node.parent is None else owns - node.local.get(what, 0),
        }
    for child in (*node.cohorts, *node.queues):
        yield from _rows(child, depth + 1)


def _warnings(manifests: Manifests) -> Iterator[str]:
    """Yield what looks wrong, one sentence each."""
    yield from _of_flavors(manifests)
    named = {local.cluster_queue for local in manifests.local_queues}
    for queue in manifests.queues:
        name = quote(queue.name)
        if manifests.local_queues and queue.name not in named:
            yield f"ClusterQueue {name} has no LocalQueue: nobody can submit to it."
        if queue.stop_policy != "None":
            yield f"ClusterQueue {name} is stopped ({queue.stop_policy}): it admits nobody."
        for group in queue.resource_groups:
            for flavor in group.flavors:
                for resource, quota in flavor.quotas.items():
                    what = f"ClusterQueue {name}, {flavor.flavor} {resource}"
                    limits = (quota.borrowing_limit, quota.lending_limit)
                    if not queue.cohort and limits != (None, None):
                        yield f"{what}: borrowing and lending limits mean nothing without a cohort."
                    if quota.lending_limit is not None and quota.lending_limit > quota.nominal:
                        most = shown(resource, quota.lending_limit)
                        yield f"{what}: it lends up to {most} and owns less."


def _of_flavors(manifests: Manifests) -> Iterator[str]:
    """Yield what looks wrong with flavors: none of whose nodes there are, or too few."""
    owned: dict[tuple[str, str], int] = {}
    for node in manifests.tree().nodes():
        for what, amount in node.nominal.items():
            owned[what] = owned.get(what, 0) + amount
    used = {flavor for flavor, _ in owned}
    for flavor in manifests.flavors:
        if flavor.name not in used:
            yield f"ResourceFlavor {quote(flavor.name)} is in no queue's quota."
        if not manifests.nodes:
            continue
        held = _capacity(manifests, flavor)
        if held is None:
            yield f"ResourceFlavor {quote(flavor.name)} has no node with its labels."
            continue
        for (name, resource), amount in owned.items():
            if name == flavor.name and amount > held.get(resource, 0):
                yield (
                    f"ResourceFlavor {quote(name)}: quotas of {resource} come to "
                    f"{shown(resource, amount)}, its nodes hold "
                    f"{shown(resource, held.get(resource, 0))}."
                )


def _capacity(manifests: Manifests, flavor: Flavor) -> dict[str, int] | None:
    """Return what the nodes of a flavor hold together, None if it has none."""
    found: dict[str, int] | None = None
    for node in manifests.nodes:
        if flavor.node_labels.items() <= node.labels.items():
            found = found or {}
            for resource, amount in node.capacity.items():
                found[resource] = found.get(resource, 0) + amount
    return found
