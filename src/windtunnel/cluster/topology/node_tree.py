"""A cluster's own tree of nodes, and where gangs go in it.

A job is pods of one size, each within a node: its tasks, or as few as the largest node allows. How
many of them fit a node is for whoever knows what is free to say.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from windtunnel.cluster.free import EVERY_NODE
from windtunnel.cluster.levels import HOSTS
from windtunnel.cluster.topology.asking import asked
from windtunnel.cluster.topology.counts import count
from windtunnel.cluster.topology.fitting import fit
from windtunnel.cluster.topology.places import PODS
from windtunnel.cluster.topology.request import TopologyRequest
from windtunnel.cluster.topology.tree import HOST, TopologyTree

if TYPE_CHECKING:
    from windtunnel.cluster.free import Demand, Where
    from windtunnel.cluster.spec import ClusterSpec
    from windtunnel.cluster.topology.asking import Ask

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
    """Places pods in a cluster's tree.

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
        names, paths = cluster.level_paths
        width = len(str(len(paths)))
        full = [(*path, f"{node:0{width}d}") for node, path in enumerate(paths)]
        self.levels = (*names, HOST)
        self.fill = fill
        self._tree = TopologyTree(self.levels, [(path, {PODS: 1}) for path in full])
        index = self._tree.leaf_index
        #: The leaf of each node, and the node of each leaf.
        self._leaf = np.array([index[path] for path in full], np.intp)
        self._node = np.argsort(self._leaf)
        self._number = {path: node for node, path in enumerate(full)}
        self.domains = np.empty((len(self.levels), len(full)), np.int64)
        for level in range(len(self.levels)):
            number = {path: at for at, path in enumerate(self._tree.paths[level])}
            self.domains[level] = [number[path[: level + 1]] for path in full]
        self._asks: dict[tuple[Any, int], Ask] = {}
        self._allowed: dict[int, np.ndarray] = {}

    @property
    def names(self) -> tuple[str, ...]:
        """The levels as users call them."""
        return (*self.levels[:-1], HOSTS[0])

    def ask(self, request: TopologyRequest | None, pods: int) -> Ask:
        """Return what so many pods ask for.

        Raises:
            SpecError: the request does not suit the pods.
        """
        key = (request, pods)
        if key not in self._asks:
            self._asks[key] = asked(self.levels, request or _ANYWHERE, pods, {})
        return self._asks[key]

    def place(
        self,
        fitting: np.ndarray,
        pods: int,
        request: TopologyRequest | None = None,
        allowed: int = EVERY_NODE,
    ) -> list[tuple[int, int]] | None:
        """Return how many pods go to which nodes, by node; None if they do not fit.

        Args:
            fitting: how many of the pods fit each node now, Int64 array (nodes,).
            pods: how many there are.
            request: what they ask of the levels; None = nothing.
            allowed: bitset of the nodes that they may use.
        """
        self._tree.left = {PODS: fitting[self._node]}
        found = fit(
            self._tree,
            self.ask(request, pods),
            mixed=self.fill == "least-free",
            balanced=self.fill == "balanced",
            allowed=self._may_use(allowed),
        ).pods
        if found is None:
            return None
        return sorted((self._number[path], number) for path, number in found.items())

    def place_gpus(self, free: np.ndarray, demand: Demand) -> Where | None:
        """Return where a demand of whole GPUs goes, None if it does not fit.

        Args:
            free: free GPUs of each node, Int64 array (nodes,).
            demand: the job's.
        """
        if demand.gpus == 0:
            return []
        pods = demand.pods or fewest_pods(demand.gpus, demand.largest)
        size = demand.gpus // pods
        found = self.place(free // size, pods, demand.topology, demand.allowed)
        return None if found is None else [(node, of * size) for node, of in found]

    def slices(self, fitting: np.ndarray, ask: Ask) -> int:
        """Return how many whole slices of a request fit.

        Args:
            fitting: how many pods fit each node, Int64 array (nodes,).
            ask: the request.
        """
        self._tree.left = {PODS: fitting[self._node]}
        counts = count(self._tree, ask.slicing, ask.requests)
        return int(counts.slices[ask.slicing.level].sum())

    def _may_use(self, allowed: int) -> np.ndarray | None:
        """Return which leaves a set of nodes is; None = all."""
        if allowed == EVERY_NODE:
            return None
        if allowed not in self._allowed:
            nodes = np.array([allowed >> n & 1 for n in range(len(self._leaf))], np.bool_)
            self._allowed[allowed] = nodes[self._node]
        return self._allowed[allowed]
