"""The plain Python free states, driven as the kernel's are: the oracle of `test_free_states`."""

from __future__ import annotations

from typing import Any

from windtunnel.cluster.free import FreePool
from windtunnel.cluster.parts import free_units


class Oracle:
    """A free state, and a placement that places in it.

    Args:
        free: the state.
        placement: of its kind.
        access_sets: reservations of each access set.
    """

    def __init__(self, free: Any, placement: Any, access_sets: tuple[tuple[int, ...], ...]) -> None:
        self.free = free
        self.placement = placement
        self.access_sets = access_sets

    @property
    def nodes(self) -> int:
        """How many nodes (or pools) there are."""
        return len(free_units(self.free))

    def opened(self, access: int) -> Any:
        """Return what an access set shows; a pool has no reservations."""
        groups = self.access_sets[access]
        return self.free.opened(groups) if groups and not self.is_pool else self.free

    @property
    def is_pool(self) -> bool:
        """Whether there are no nodes."""
        return isinstance(self.free, FreePool)

    def fit(self, demand: Any, access: int = 0, state: Any = None) -> Any:
        """Return where a demand goes: on reserved nodes alone, or else anywhere."""
        shown = self.opened(access) if state is None else state
        if self.access_sets[access] and not self.is_pool and shown.shown:
            inside = shown.copy()
            for node in range(self.nodes):
                if node not in shown.shown:
                    inside.withhold(node)
            where = self.placement.place(inside, demand)
            if where is not None:
                return where
        return self.placement.place(shown, demand)

    def holder(self, node: int) -> int:
        """Return whom a node is withheld for: -1 no hold, 0 nobody, else its oldest hold's."""
        if self.is_pool:
            return 0 if self.free.withheld[node] else -1
        groups = self.free.withheld.get(node, ())
        if not groups:
            return -1
        return 0 if 0 in groups else groups[0]

    def on(self, node: int) -> Any:
        """Return the units of a node that nobody holds."""
        if self.is_pool:
            return self.free.free[node] + self.free.withheld[node]
        return self.free.free_units(node)
