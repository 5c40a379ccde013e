"""A tree of domains above the nodes, and what is free in its leaves.

Domains of a level are sorted by their values from the top, so the children of a domain stand side
by side in the level below, and a sum over children is one sum over stretches of an array.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from windtunnel.cluster.topology.places import Path, Place

#: The label of a level whose domains are hosts.
HOST = "kubernetes.io/hostname"


class TopologyTree:
    """Levels of domains; the leaves hold capacity.

    Args:
        levels: the levels' names, from the top.
        nodes: each node's path and what it holds, by resource; nodes of one path are one leaf.

    Attributes:
        levels: the levels' names, from the top.
        paths: the domains of each level, sorted.
        starts: of each level but the last, where each domain's children begin in the next; int
            arrays of shape (domains,).
        parents: of each level, each domain's parent in the level above; int arrays (domains,).
        capacity: what each leaf holds, by resource; int arrays of shape (leaves,).
        left: what nobody uses of it, and what is withheld is not in it either.
        withheld: what others hold, or is out of order, by resource.
    """

    def __init__(
        self, levels: tuple[str, ...], nodes: Iterable[tuple[Path, Mapping[str, int]]]
    ) -> None:
        held: dict[Path, dict[str, int]] = {}
        for path, capacity in nodes:
            leaf = held.setdefault(path, {})
            for resource, amount in capacity.items():
                leaf[resource] = leaf.get(resource, 0) + amount
        self.levels = levels
        leaves = sorted(held)
        self.paths: list[list[Path]] = [
            list(dict.fromkeys(path[: level + 1] for path in leaves))
            for level in range(len(levels))
        ]
        self.starts: list[np.ndarray] = []
        self.parents: list[np.ndarray] = [np.zeros(len(self.paths[0]) if levels else 0, np.intp)]
        for above, below in zip(self.paths, self.paths[1:], strict=False):
            index = {path: at for at, path in enumerate(above)}
            parents = np.array([index[path[:-1]] for path in below], np.intp)
            self.parents.append(parents)
            self.starts.append(np.searchsorted(parents, np.arange(len(above))))
        #: Leaves that are hosts are the same in every tree, whatever stands above them.
        self.hosts = levels[-1:] == (HOST,)
        self.by_host = {path[-1]: at for at, path in enumerate(leaves)} if self.hosts else {}
        self.leaf_index = {path: at for at, path in enumerate(leaves)}
        resources = dict.fromkeys(resource for leaf in held.values() for resource in leaf)
        self.capacity = {
            resource: np.array([held[path].get(resource, 0) for path in leaves], np.int64)
            for resource in resources
        }
        self.withheld: dict[str, np.ndarray] = {}
        self.left = {resource: held.copy() for resource, held in self.capacity.items()}

    @property
    def num_leaves(self) -> int:
        """How many leaves there are."""
        return len(self.leaf_index)

    def children(self, level: int, domain: int) -> slice:
        """Return where in the next level a domain's children stand."""
        starts = self.starts[level]
        end = starts[domain + 1] if domain + 1 < len(starts) else len(self.paths[level + 1])
        return slice(int(starts[domain]), int(end))

    def take(self, place: Place) -> None:
        """Count what pods at a place use."""
        self._count(place, 1)

    def give(self, place: Place) -> None:
        """Count it no more."""
        self._count(place, -1)

    def leaf_of(self, path: Path) -> int | None:
        """Return a leaf's number by its path, or by its host; None = it is not of this tree."""
        leaf = self.leaf_index.get(path)
        return self.by_host.get(path[-1]) if leaf is None and self.hosts else leaf

    def _count(self, place: Place, sign: int) -> None:
        """Add what pods at a place use; leaves that are no more hold nothing."""
        for path, pods in place.leaves:
            leaf = self.leaf_of(path)
            if leaf is None:
                continue
            for resource, amount in place.requests.items():
                left = self.left.get(resource)
                if left is not None:
                    left[leaf] -= sign * pods * amount

    def sound(self, place: Place) -> bool:
        """Return whether the leaves of a place exist and no more is used of them than they hold."""
        for path, _ in place.leaves:
            leaf = self.leaf_index.get(path)
            if leaf is None:
                return False
            for resource, amount in place.requests.items():
                if amount and (resource not in self.left or self.left[resource][leaf] < 0):
                    return False
        return True

    def free(self, resource: str, *, empty: bool = False) -> np.ndarray:
        """Return what is free in each leaf; int array of shape (leaves,).

        Args:
            resource: the resource; nobody has one that is not known.
            empty: as if nothing were used.
        """
        if resource not in self.capacity:
            return np.zeros(self.num_leaves, np.int64)
        return self.capacity[resource] if empty else self.left[resource]

    def withhold(self, resource: str, amounts: np.ndarray) -> None:
        """Withhold so much of each leaf: others hold it, or it is out of order.

        Args:
            resource: the resource.
            amounts: Int array of shape (leaves,); it takes the place of what was withheld before.
        """
        now = np.maximum(amounts, 0)
        self.left[resource] -= now - self.withheld.get(resource, 0)
        self.withheld[resource] = now
