"""The site's nodes as Kueue sees them: labels, flavors' nodes, topology trees.

With Node manifests the k-th node of the manifests is the k-th of the site. Without, a topology's
lowest level is the node itself, and those above are the site's own levels; of a site without levels
each is one domain.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from windtunnel.cluster.topology.tree import HOST, TopologyTree
from windtunnel.errors import PolicyError, quote
from windtunnel.policies.kueue import objects

if TYPE_CHECKING:
    from collections.abc import Sequence

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
            msgspec.structs.replace(node, capacity={**node.capacity, gpu: size})
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
    manifests: Manifests,
    nodes: list[objects.Node],
    types: dict[str, tuple[str, ...] | None],
    problem: Problem | None = None,
) -> dict[str, TopologyTree]:
    """Return the topology tree of each flavor that has one.

    Args:
        manifests: the manifests.
        nodes: the site's, or the manifests' own.
        types: the GPU types of each flavor's nodes, None = any.
        problem: the run, for the site's levels where there are no Node manifests.

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
            paths = _paths(problem, named, flavor.topology)
            given = [
                _labelled(of, paths[at], named, flavor.node_labels)
                for at, of in enumerate(nodes)
                if kinds is None or of.labels["type"] in kinds
            ]
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


def _paths(
    problem: Problem | None, named: tuple[str, ...], topology: str
) -> Sequence[tuple[str, ...]]:
    """Return each node's domains of a topology's levels above the nodes.

    Raises:
        PolicyError: the site has other levels than the topology.
    """
    above = named[:-1]
    if problem is None or problem.cluster is None:
        return []
    levels, paths = problem.cluster.level_paths
    if not levels:
        return [("all",) * len(above)] * len(paths)
    if len(levels) == len(above):
        return paths
    places = [
        next((k for k, level in enumerate(levels) if _is_called(label, level)), None)
        for label in above
    ]
    if None in places:
        found, there = ", ".join(map(quote, above)), ", ".join(map(quote, levels))
        message = (
            f"topology {quote(topology)} has the levels {found or 'none'} above the node and the "
            f"cluster has {there}; give the cluster as many (--topology), or Node manifests."
        )
        raise PolicyError("kueue", message)
    return [tuple(path[k] for k in places if k is not None) for path in paths]


def _is_called(label: str, level: str) -> bool:
    """Return whether a node label names a level: ``example.com/topology-rack`` is ``rack``."""
    last = label.rpartition("/")[2].lower()
    return last == level.lower() or last.endswith(f"-{level.lower()}")


def _labelled(
    node: objects.Node, path: tuple[str, ...], levels: tuple[str, ...], more: dict[str, str]
) -> objects.Node:
    """Return a node of a site without labels with those of a topology's levels."""
    values = [*path, node.name]
    labels = {**more, HOST: node.name, **dict(zip(levels, values, strict=True))}
    return objects.Node(node.name, labels, node.capacity)
