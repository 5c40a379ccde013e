"""`Domains`: racks, or domains of a tree, in which the pieces of an option lie together.

An option's pieces are of unlike size, so they are no pods of one size that a domain could be
counted in: a domain holds an option if its pieces can be laid out there, each on a node of its own.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from windtunnel.cluster.topology.node_tree import NodeTree
    from windtunnel.cluster.topology.request import TopologyRequest


class Within(NamedTuple):
    """Which domains an option's pieces are to lie in.

    Attributes:
        level: the level whose domains are tried first; then those one level up, and so on; -1 =
            none, the pieces go anywhere.
        required: no other level will do.
    """

    level: int = -1
    required: bool = False


ANYWHERE = Within()


class Domains:
    """The domains of a cluster, and what options ask of them.

    Args:
        levels: nodes of each domain, in node order, level by level from the top.
        names: the levels' names.
        racks: what every option of several pieces asks for, whatever its job says; None = what the
            job's own request says counts.
    """

    def __init__(
        self,
        levels: Sequence[Sequence[tuple[int, ...]]],
        names: Sequence[str] = (),
        racks: Within | None = None,
    ) -> None:
        self.levels = tuple(tuple(level) for level in levels)
        self.names, self.racks = tuple(names), racks
        self._bits = {nodes: sum(1 << n for n in nodes) for level in self.levels for nodes in level}

    @classmethod
    def of_racks(cls, racks: Sequence[tuple[int, ...]], topology: str) -> Domains | None:
        """Return a placement's racks; None = it does not look at them.

        Args:
            racks: nodes of each rack.
            topology: the placement's option: ``none``, ``rack`` or ``rack-only``.
        """
        if topology == "none":
            return None
        return cls([racks], racks=Within(0, required=topology == "rack-only"))

    @classmethod
    def of_tree(cls, tree: NodeTree) -> Domains:
        """Return the domains of a tree, its nodes the lowest level."""
        levels: list[list[tuple[int, ...]]] = []
        for of_node in tree.domains.tolist():
            nodes: list[list[int]] = [[] for _ in range(max(of_node) + 1)]
            for node, domain in enumerate(of_node):
                nodes[domain].append(node)
            levels.append([tuple(members) for members in nodes])
        return cls(levels, tree.levels)

    def within(self, request: TopologyRequest | None, pieces: int) -> Within:
        """Return where an option's pieces are to lie."""
        if self.racks is not None:
            return self.racks if pieces > 1 else ANYWHERE
        if request is None or not (request.required or request.preferred):
            return ANYWHERE
        level = self.names.index(request.required or request.preferred)
        return Within(level, required=bool(request.required))

    def tried(self, within: Within, free: Sequence[int], allowed: int) -> Iterator[int]:
        """Yield the domains to try, as bitsets.

        Of a level that with the fewest GPUs free on the nodes of a bitset comes first.
        """

        def room(nodes: tuple[int, ...]) -> int:
            return sum(free[node] for node in nodes if allowed >> node & 1)

        last = within.level if within.required else 0
        for level in range(within.level, last - 1, -1):
            for nodes in sorted(self.levels[level], key=room):
                yield self._bits[nodes]
