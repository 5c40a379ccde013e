"""The site's nodes as Kueue sees them: labels, flavors' nodes, topology trees.

With Node manifests the k-th node of the manifests is the k-th of the site. Without, a topology's
lowest level is the node itself, and each level above is one domain.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from windtunnel.cluster.topology.tree import HOST, TopologyTree
from windtunnel.errors import PolicyError, quote
from windtunnel.policies.kueue import objects

if TYPE_CHECKING:
    from windtunnel.policies.kueue.manifests import Manifests
    from windtunnel.sim.problem import Problem


def site_nodes(manifests: Manifests, problem: Problem, gpu: str) -> list[objects.Node]:
    """Return a Kueue node for each node of the site, in its order.

    Args:
        manifests: the manifests.
        problem: the run.
        gpu: the resource that GPUs are.

    Raises:
        PolicyError: the manifests' nodes are not the site's.
    """
    sizes = [int(size) for size in problem.sizes]
    if manifests.nodes:
        given = [node.capacity.get(gpu, 0) * problem.units for node in manifests.nodes]
        if given != sizes:
            message = (
                f"the manifests' {len(given):,} nodes hold {sum(given) / problem.units:g} GPUs "
                f"({gpu}) and the cluster's {len(sizes):,} hold {sum(sizes) / problem.units:g}, or "
                "in another order; give the cluster of the manifests, node by node."
            )
            raise PolicyError("kueue", message)
        return [
            objects.Node(
                node.name,
                node.labels,
                {**node.capacity, gpu: size},
                node.ready,
                node.unschedulable,
                node.taints,
            )
            for node, size in zip(manifests.nodes, sizes, strict=True)
        ]
    made = []
    width = len(str(len(sizes)))
    for index, size in enumerate(sizes):
        name = f"node-{index:0{width}d}"
        labels = {HOST: name, "type": problem.types[index] or ""}
        made.append(objects.Node(name, labels, {gpu: size, "pods": 110}))
    return made


def flavor_types(manifests: Manifests, problem: Problem) -> dict[str, tuple[str, ...] | None]:
    """Return the GPU types of each flavor's nodes, None = any.

    A flavor's type is the one that its name or a label of it says; case does not count.
    """
    types = {kind.lower(): kind for kind in problem.types if kind}
    found: dict[str, tuple[str, ...] | None] = {}
    for flavor in manifests.flavors:
        words = (flavor.name, *flavor.node_labels.values())
        named = [types[word.lower()] for word in words if word.lower() in types]
        found[flavor.name] = (named[0],) if named else None
    return found


def trees(
    manifests: Manifests, nodes: list[objects.Node], types: dict[str, tuple[str, ...] | None]
) -> dict[str, TopologyTree]:
    """Return the topology tree of each flavor that has one.

    Raises:
        PolicyError: no node stands in a flavor's topology.
    """
    levels = {topology.name: topology.levels for topology in manifests.topologies}
    found: dict[str, TopologyTree] = {}
    for flavor in manifests.flavors:
        if not flavor.topology:
            continue
        named = levels[flavor.topology]
        given = nodes
        if not manifests.nodes:
            kinds = types[flavor.name]
            given = [of for of in nodes if kinds is None or of.labels["type"] in kinds]
            given = [_labelled(of, named, flavor.node_labels) for of in given]
        stand = [
            (tuple(of.labels[level] for level in named), of.capacity)
            for of in given
            if of.ready
            and not of.unschedulable
            and all(level in of.labels for level in named)
            and flavor.node_labels.items() <= of.labels.items()
        ]
        if not stand:
            message = f"no node has the labels of flavor {quote(flavor.name)} and its topology"
            raise PolicyError("kueue", message)
        found[flavor.name] = TopologyTree(named, stand)
    return found


def manifest_trees(manifests: Manifests) -> dict[str, TopologyTree]:
    """Return the topology tree of each flavor that has one, of the manifests' own nodes.

    Raises:
        PolicyError: no node stands in a flavor's topology.
    """
    if not manifests.nodes and any(flavor.topology for flavor in manifests.flavors):
        message = "a flavor has a topology; add the nodes' manifests (kubectl get nodes -o yaml)"
        raise PolicyError("kueue", message)
    return trees(manifests, list(manifests.nodes), {})


def _labelled(node: objects.Node, levels: tuple[str, ...], more: dict[str, str]) -> objects.Node:
    """Return a node of a site without labels with those of a topology's levels."""
    values = [*["all"] * (len(levels) - 1), node.name]
    labels = {**more, HOST: node.name, **dict(zip(levels, values, strict=True))}
    return objects.Node(node.name, labels, node.capacity)
