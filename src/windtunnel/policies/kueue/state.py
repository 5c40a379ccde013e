"""What is admitted: who holds which quotas and which places in the topology."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

import msgspec
import numpy as np

from windtunnel.cluster.topology.tree import HOST
from windtunnel.policies.kueue.eligibility import selected, tolerated
from windtunnel.policies.kueue.gates import Gates

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from windtunnel.cluster.topology.places import Place
    from windtunnel.cluster.topology.tree import TopologyTree
    from windtunnel.policies.kueue.objects import (
        Amounts,
        Flavor,
        FlavorResource,
        Node,
        PodSet,
        Workload,
    )
    from windtunnel.policies.kueue.quota_tree import QuotaNode, QuotaTree


class Holding(msgspec.Struct, eq=False):
    """A workload that holds quota.

    Attributes:
        workload: the workload.
        queue: its queue's node.
        usage: what it holds, by flavor and resource.
        places: what it holds in topologies, by flavor.
        reserved_at: when it got its quota, s.
        evicted: it is on its way out, and holds its quota until it is gone.
    """

    workload: Workload
    queue: QuotaNode
    usage: Amounts
    places: tuple[tuple[str, Place], ...] = ()
    reserved_at: float = 0.0
    evicted: bool = False

    @property
    def on_its_way(self) -> bool:
        """Whether it is being evicted."""
        return self.evicted or self.workload.evicted

    def uses(self, short: Iterable[FlavorResource]) -> bool:
        """Return whether it holds something of what is short."""
        for what in short:  # noqa: SIM110 - asked millions of times
            if self.usage.get(what, 0) > 0:
                return True
        return False


class State:
    """Quotas, topologies and who holds what of them.

    Args:
        tree: queues and cohorts.
        flavors: the flavors by name.
        topologies: the trees of the flavors that have one, by flavor.
        nodes: all nodes, for selectors and taints.
        fair: the strategies of fair sharing, in order; empty = by priority.
        gates: Kueue's feature gates.
    """

    def __init__(
        self,
        tree: QuotaTree,
        flavors: Mapping[str, Flavor],
        topologies: Mapping[str, TopologyTree] | None = None,
        *,
        fair: tuple[str, ...] = (),
        gates: Gates | None = None,
        nodes: Iterable[Node] = (),
    ) -> None:
        self.tree = tree
        self.flavors = flavors
        self.topologies = dict(topologies or {})
        self.fair = fair
        self.gates = gates or Gates()
        #: The trees in which what a flavor's pods take counts: its own, and those of its hosts.
        self.sharing = {
            flavor: [other for other in self.topologies.values() if self._share(tree, other)]
            for flavor, tree in self.topologies.items()
        }
        #: Which flavors pod sets may use, by the pod set (kept, so that its id stays its own).
        self.may_use: dict[int, tuple[PodSet, dict[tuple[str, str], bool]]] = {}
        #: How often something was admitted, ended or withheld.
        self.changes = 0
        self.hidden: set[Holding] = set()
        self.nodes = {node.labels.get(HOST, node.name): node for node in nodes}
        self._tainted = any(node.taints for node in self.nodes.values())
        self._versions: dict[QuotaNode, int] = {}
        self.holdings: dict[QuotaNode, dict[Holding, None]] = {
            node: {} for node in tree.queues.values()
        }

    def allowed(self, pod_set: PodSet, flavor: str) -> np.ndarray | None:
        """Return which hosts of a flavor a pod set may use; None = all.

        Args:
            pod_set: the pod set.
            flavor: a flavor with a topology; where its leaves are no hosts, all count.
        """
        tree = self.topologies[flavor]
        picky = self._tainted or pod_set.node_selector or pod_set.node_affinity
        if not tree.hosts or not picky:
            return None
        tolerations = (*pod_set.tolerations, *self.flavors[flavor].tolerations)
        found = np.ones(tree.num_leaves, np.bool_)
        for host, leaf in tree.by_host.items():
            node = self.nodes.get(host)
            if node is not None:
                fits = tolerated(node.taints, tolerations) and selected(pod_set, node.labels)
                found[leaf] = fits
        return found

    def _share(self, tree: TopologyTree, other: TopologyTree) -> bool:
        """Return whether two trees stand on the same hosts."""
        if tree is other:
            return True
        overlap = self.gates.tas_handle_overlapping_flavors and tree.hosts and other.hosts
        return overlap and not tree.by_host.keys().isdisjoint(other.by_host)

    def add(self, holding: Holding) -> None:
        """Let a workload hold its quota and places."""
        self.holdings[holding.queue][holding] = None
        self.occupy(holding)
        self._changed(holding.queue)

    def remove(self, holding: Holding) -> None:
        """Take quota and places back."""
        del self.holdings[holding.queue][holding]
        self.vacate(holding)
        self._changed(holding.queue)

    def _changed(self, queue: QuotaNode) -> None:
        """Note that the usage of a queue's tree changed."""
        self.changes += 1
        root = queue.root
        self._versions[root] = self._versions.get(root, 0) + 1

    def withhold(self, flavor: str, resource: str, amounts: np.ndarray) -> None:
        """Withhold so much of each leaf of a flavor's topology; see `TopologyTree.withhold`."""
        self.topologies[flavor].withhold(resource, amounts)
        self.changes += 1

    def version(self, queue: QuotaNode) -> int:
        """Return how often the usage of a queue's tree changed."""
        return self._versions.get(queue.root, 0)

    @contextmanager
    def gone(self, holdings: Iterable[Holding]) -> Iterator[None]:
        """Look at things as if holdings were gone."""
        going = [holding for holding in dict.fromkeys(holdings) if holding not in self.hidden]
        for holding in going:
            self.vacate(holding)
        self.hidden.update(going)
        try:
            yield
        finally:
            self.hidden.difference_update(going)
            for holding in going:
                self.occupy(holding)

    def are_free(self, places: Iterable[tuple[str, Place]]) -> bool:
        """Return whether places are free."""
        taken = list(places)
        for flavor, place in taken:
            self.topologies[flavor].take(place)
        free = all(self.topologies[flavor].sound(place) for flavor, place in taken)
        for flavor, place in taken:
            self.topologies[flavor].give(place)
        return free

    def occupy(self, holding: Holding) -> None:
        """Count what a holding uses; who holds is not changed."""
        holding.queue.use_all(holding.usage)
        for flavor, place in holding.places:
            for tree in self.sharing[flavor]:
                tree.take(place)

    def vacate(self, holding: Holding) -> None:
        """Count what a holding uses no more; who holds is not changed."""
        holding.queue.give_back_all(holding.usage)
        for flavor, place in holding.places:
            for tree in self.sharing[flavor]:
                tree.give(place)
