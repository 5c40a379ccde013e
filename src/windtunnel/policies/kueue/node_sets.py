"""`NodeSets`: among which nodes sleeping ones are called for a job that Kueue lets wait."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

from windtunnel.policies.kueue.flavors import FlavorSearch, Mode

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import numpy as np

    from windtunnel.policies.kueue.objects import FlavorResource, Workload
    from windtunnel.policies.kueue.quota_tree import QuotaNode
    from windtunnel.policies.kueue.state import State

#: Nodes by index; None = all.
Nodes: TypeAlias = frozenset[int] | None


class NodeSets:
    """The nodes of flavors, and of the domains of their topologies.

    Args:
        state: quotas and topologies.
        gpu: the resource that is GPUs.
        types: GPU types of each flavor; None = all.
        type_of: GPU type of each node.
        leaves: nodes of each flavor with a topology, in the order of its leaves.

    Attributes:
        differ: there may be other sets than that of all nodes.
    """

    def __init__(
        self,
        state: State,
        gpu: str,
        types: Mapping[str, tuple[str, ...] | None],
        type_of: Sequence[str | None],
        leaves: Mapping[str, np.ndarray],
    ) -> None:
        self._state, self._gpu, self._leaves = state, gpu, leaves
        self._of = {
            flavor: None
            if kinds is None
            else frozenset(node for node, kind in enumerate(type_of) if kind in kinds)
            for flavor, kinds in types.items()
        }
        self._alike = len(set(type_of)) == 1
        self.differ = not self._alike or bool(state.topologies)
        self._domains: dict[tuple[str, str], tuple[Nodes, ...]] = {}

    def for_waiting(self, workload: Workload, node: QuotaNode, gpus: int) -> tuple[Nodes, ...]:
        """Return the nodes of each flavor with quota for a workload, of all where none has.

        Of a level that it requires, each domain by itself.

        Args:
            workload: it waits.
            node: its queue.
            gpus: units that it asks for.
        """
        level = self._level(workload)
        if self._alike and not level:
            return (None,)
        return self._within(self._with_quota(workload, node, gpus), level)

    def for_admitted(
        self, workload: Workload, usage: Mapping[FlavorResource, int]
    ) -> tuple[Nodes, ...]:
        """Return the nodes of the flavor on which a workload has its quota; as `for_waiting`."""
        level = self._level(workload)
        if self._alike and not level:
            return (None,)
        return self._within([flavor for flavor, of in usage if of == self._gpu], level)

    def _level(self, workload: Workload) -> str:
        """Return the level that a workload requires, where levels count."""
        asked = workload.pod_sets[0].topology
        if asked is None or not self._state.gates.topology_aware_scheduling:
            return ""
        return asked.required or ""

    def _with_quota(self, workload: Workload, node: QuotaNode, gpus: int) -> list[str]:
        """Return flavors; the one that Kueue would choose, had all of them nodes, comes first."""
        flavors = [of.flavor for group in node.asks.resource_groups for of in group.flavors]
        able = [of for of in flavors if node.fits({(of, self._gpu): gpus})] or flavors
        if len(able) > 1:
            search = FlavorSearch(self._state, node, workload, _nobody_goes)
            chosen = {of.flavor for by in search.assign().flavors.values() for of in by.values()}
            able.sort(key=lambda of: of not in chosen)
        return able

    def _within(self, flavors: list[str], level: str) -> tuple[Nodes, ...]:
        sets = (nodes for flavor in flavors for nodes in self._of_flavor(flavor, level))
        return tuple(dict.fromkeys(sets)) or (None,)  # who asks for no GPU is on no flavor of them

    def _of_flavor(self, flavor: str, level: str) -> tuple[Nodes, ...]:
        """Return a flavor's nodes; of each domain of a level by itself, where one is required.

        Who requires a node goes to one wherever it may.
        """
        tree = self._state.topologies.get(flavor)
        if tree is None or level not in tree.levels[:-1]:
            return (self._of[flavor],)
        if (flavor, level) not in self._domains:
            depth = tree.levels.index(level) + 1
            domains: dict[tuple[str, ...], list[int]] = {}
            for path, node in zip(tree.paths[-1], self._leaves[flavor].tolist(), strict=True):
                domains.setdefault(path[:depth], []).append(node)
            self._domains[flavor, level] = tuple(map(frozenset, domains.values()))
        return self._domains[flavor, level]


def _nobody_goes(_what: FlavorResource, _amount: int) -> tuple[Mode, int]:
    """Say that nobody would give way where quota is short."""
    return Mode.NO_CANDIDATES, 0
