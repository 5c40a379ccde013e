"""A cluster's own tree of nodes, and where gangs of whole GPUs go in it.

A job is pods of one size, each within a node: its tasks, or as few as the largest node allows.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from windtunnel.cluster.free import EVERY_NODE
from windtunnel.cluster.levels import HOSTS
from windtunnel.cluster.topology.asking import asked
from windtunnel.cluster.topology.counts import count
from windtunnel.cluster.topology.fitting import fit
from windtunnel.cluster.topology.request import TopologyRequest
from windtunnel.cluster.topology.tree import HOST, PODS, TopologyTree

if TYPE_CHECKING:
    from windtunnel.cluster.free import Demand, Where
    from windtunnel.cluster.spec import ClusterSpec
    from windtunnel.cluster.topology.asks import Ask

#: The resource that is placed.
GPUS = "gpus"
#: How domains are filled where several would do.
FILLS = ("best-fit", "least-free", "balanced")
_ANYWHERE = TopologyRequest(unconstrained=True)


def fewest_pods(gpus: int, most: int) -> int:
    """Return as few pods of one size as nodes of so many GPUs hold.

    >>> fewest_pods(12, 8), fewest_pods(64, 8), fewest_pods(3, 8)
    (2, 8, 1)
    """
    if gpus <= most or most < 1:
        return 1
    return next(pods for pods in range(-(-gpus // most), gpus + 1) if gpus % pods == 0)


class NodeTree:
    """Places demands of whole GPUs in a cluster's tree.

    Args:
        cluster: a cluster with nodes; its racks are a level where it states no others.
        fill: one of `FILLS`: the tightest domain that suffices; the same, but what is
            unconstrained fills the fullest first; or what is preferred is spread evenly over the
            fewest domains.

    Attributes:
        levels: names from the top, the nodes' last.
        domains: of each level, each node's domain; int array of shape (levels, nodes).
    """

    def __init__(self, cluster: ClusterSpec, fill: str = FILLS[0]) -> None:
        sizes = [node.gpus for node in cluster.node_types for _ in range(node.count)]
        names, paths = cluster.level_paths
        width = len(str(len(sizes)))
        full = [(*path, f"{node:0{width}d}") for node, path in enumerate(paths)]
        self.levels = (*names, HOST)
        self.fill = fill
        room = [{GPUS: size, PODS: max(size, 1)} for size in sizes]  # a pod has a GPU
        self._tree = TopologyTree(self.levels, zip(full, room, strict=True))
        index = self._tree.leaf_index
        #: The leaf of each node, and the node of each leaf.
        self._leaf = np.array([index[path] for path in full], np.intp)
        self._node = np.argsort(self._leaf)
        self._number = {path: node for node, path in enumerate(full)}
        self._pods = self._tree.capacity[PODS]
        self.domains = np.empty((len(self.levels), len(sizes)), np.int64)
        for level in range(len(self.levels)):
            number = {path: at for at, path in enumerate(self._tree.paths[level])}
            self.domains[level] = [number[path[: level + 1]] for path in full]
        self._asks: dict[tuple[Any, int, int], Ask] = {}
        self._allowed: dict[int, np.ndarray] = {}
        self._sizes = np.array(sizes, np.int64)

    @property
    def names(self) -> tuple[str, ...]:
        """The levels as users call them."""
        return (*self.levels[:-1], HOSTS[0])

    def ask(self, request: TopologyRequest | None, pods: int, size: int) -> Ask:
        """Return what so many pods of a size ask for.

        Raises:
            SpecError: the request does not suit the pods.
        """
        key = (request, pods, size)
        if key not in self._asks:
            self._asks[key] = asked(self.levels, request or _ANYWHERE, pods, {GPUS: size})
        return self._asks[key]

    def place(self, free: np.ndarray, demand: Demand) -> Where | None:
        """Return where a demand goes, None if it does not fit.

        Args:
            free: free GPUs of each node, Int64 array (nodes,).
            demand: pods of whole GPUs.
        """
        if demand.gpus == 0:
            return []
        pods = demand.pods or fewest_pods(demand.gpus, demand.largest)
        size = demand.gpus // pods
        self._tree.left = {GPUS: free[self._node], PODS: self._pods}
        found = fit(
            self._tree,
            self.ask(demand.topology, pods, size),
            mixed=self.fill == "least-free",
            balanced=self.fill == "balanced",
            allowed=self._may_use(demand.allowed),
        ).pods
        if found is None:
            return None
        return sorted((self._number[path], count * size) for path, count in found.items())

    def slices(self, free: np.ndarray, ask: Ask) -> int:
        """Return how many whole slices of a request fit in what is free.

        Args:
            free: free GPUs of each node, Int64 array (nodes,).
            ask: the request.
        """
        self._tree.left = {GPUS: free[self._node], PODS: self._pods}
        counts = count(self._tree, ask.slicing, ask.requests)
        return int(counts.slices[ask.slicing.level].sum())

    def holds(self, demand: Demand) -> bool:
        """Return whether the empty cluster holds a demand."""
        return self.place(self._sizes, demand) is not None

    def _may_use(self, allowed: int) -> np.ndarray | None:
        """Return which leaves a set of nodes is; None = all."""
        if allowed == EVERY_NODE:
            return None
        if allowed not in self._allowed:
            nodes = np.array([allowed >> n & 1 for n in range(len(self._leaf))], np.bool_)
            self._allowed[allowed] = nodes[self._node]
        return self._allowed[allowed]
