"""Free state of a cluster during a run, for the reference engine and its placements.

`FreeNodes` keeps, for every number of free GPUs, the set of nodes that have exactly that many, as
one Python integer used as a bitset: "fewest free GPUs that suffice, then lowest index" is then a
short walk over counts and one lowest set bit. `FreePool` is for clusters without node boundaries.
Both are changed only through ``take`` and ``give``, and through ``withhold`` and ``restore``, which
hide what a node has free from those who may not use it: a node that is down, or reserved. What is
given back on a hidden node stays hidden until it is restored.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol, Self

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Sequence

    from windtunnel.cluster.topology.request import TopologyRequest

#: Whom a node is withheld for: nobody; reservations are numbered from 1.
NOBODY = 0
#: The bitset of all nodes, however many there are.
EVERY_NODE = -1
#: Where a job runs: (node index, GPU units taken there), in placement order.
Where = list[tuple[int, int]]


@dataclass(frozen=True)
class Demand:
    """What jobs of one class ask of a cluster; jobs with equal demands are interchangeable.

    Attributes:
        gpus: GPU units of the whole gang (whole GPUs on nodes, millionths on a sharing pool).
        task: GPU units of one task, which must fit one node; 1 where a gang may split anywhere.
        cpus: thousandths of a CPU core, 0 where unknown or not constrained.
        allowed: bitset of the nodes whose GPU type is acceptable; `EVERY_NODE` = all.
        largest: most GPU units the gang could use on one allowed node that is empty.
        smallest: least such number above 0 (0 where no allowed node serves).
        capacity: GPU units it could use on the allowed nodes of an empty cluster.
        pods: pods of one size, each within a node, where a topology places them; 0 = none does.
        topology: what they ask of the topology; None = nothing.
    """

    gpus: int
    task: int
    cpus: int
    allowed: int
    largest: int
    smallest: int
    capacity: int
    pods: int = 0
    topology: TopologyRequest | None = None

    @property
    def is_nothing(self) -> bool:
        """Whether the job asks for nothing at all, and so runs nowhere in particular."""
        return self.gpus == 0 and self.cpus == 0


class FreeState(Protocol):
    """What is free in a cluster; demands are of the state's own kind.

    Attributes:
        total: free GPU units of the whole cluster.
    """

    total: int
    #: Where something is withheld, and for whom.
    withheld: Any

    @property
    def down(self) -> int:
        """GPU units that nobody may use."""

    def withhold(self, node: int, group: int = ..., units: int | None = None) -> None:
        """Keep a node, or units of a pool, for a group of jobs or for nobody."""

    def restore(self, node: int, group: int = ..., units: int | None = None) -> None:
        """Undo `withhold`."""

    def take(self, where: Where, demand: Any) -> None:
        """Take what a placement chose."""

    def give(self, where: Where, demand: Any) -> None:
        """Give back what `take` took."""

    def copy(self) -> Self:
        """Return an independent copy."""

    def meet(self, other: Any) -> None:
        """Keep only what is free in ``other``, too."""

    def fits(self, where: Where, demand: Any) -> bool:
        """Return whether a policy's own choice is free, allowed and of the right sum."""


class FreeOfNodes:
    """What the free states of clusters with nodes have in common: nodes that are hidden.

    Attributes:
        withheld: hidden nodes (down, or reserved): for whom, once for each time that they were
            withheld.
        shown: nodes that `opened` showed.
    """

    def __init__(self) -> None:
        self.withheld: dict[int, tuple[int, ...]] = {}
        self.shown: frozenset[int] = frozenset()

    def copy(self) -> Self:
        """Return an independent copy."""
        raise NotImplementedError

    def withhold(self, node: int, group: int = NOBODY, units: int | None = None) -> None:  # noqa: ARG002 - one contract with FreePool
        """Hide what a node has free until it is restored as often as it was withheld.

        Args:
            node: its index; jobs may still run there.
            group: the reservation whose jobs may use it all the same (`opened`).
            units: of pools only; a node is withheld whole.
        """
        groups = self.withheld.get(node, ())
        self.withheld[node] = (*groups, group)
        if not groups:
            self._hide(node)

    def restore(self, node: int, group: int = NOBODY, units: int | None = None) -> None:  # noqa: ARG002 - one contract with FreePool
        """Undo one `withhold` of the same node for the same group."""
        groups = list(self.withheld.pop(node))
        groups.remove(group)
        if groups:
            self.withheld[node] = tuple(groups)
        else:
            self._unhide(node)

    def opened(self, groups: Collection[int]) -> Self:
        """Return a copy that shows what is withheld for these groups alone."""
        twin = self.copy()
        shown = [n for n, held in self.withheld.items() if all(g in groups for g in held)]
        for node in shown:
            del twin.withheld[node]
            twin._unhide(node)  # noqa: SLF001 - its own kind
        twin.shown = frozenset(shown)
        return twin

    def _hide(self, node: int) -> None:
        """Count what a node has free no more, where it is counted apart."""

    def _unhide(self, node: int) -> None:
        """Count it again."""


class FreeNodes(FreeOfNodes):
    """Free GPUs of a cluster with nodes.

    Args:
        sizes: GPUs of each node, shape (nodes,).
    """

    def __init__(self, sizes: Sequence[int]) -> None:
        super().__init__()
        self.sizes = list(sizes)
        self.free = list(sizes)
        self.total = sum(sizes)
        self.top = max(sizes)
        self.by_free = [0] * (self.top + 1)
        self.empty = (1 << len(sizes)) - 1
        self._bit = [1 << node for node in range(len(sizes))]
        for node, size in enumerate(sizes):
            self.by_free[size] |= self._bit[node]
        #: What is free on the hidden nodes.
        self.hidden: dict[int, int] = {}

    def take(self, where: Where, demand: Demand) -> None:  # noqa: ARG002 - one contract with FreePool
        """Take GPUs on nodes that have them free."""
        by_free, free, hidden = self.by_free, self.free, self.hidden
        for node, gpus in where:
            if hidden and node in hidden:
                hidden[node] -= gpus
                continue
            before = free[node]
            after = free[node] = before - gpus
            bit = self._bit[node]
            by_free[before] ^= bit
            by_free[after] ^= bit
            if before == self.sizes[node]:
                self.empty ^= bit
            self.total -= gpus

    def give(self, where: Where, demand: Demand) -> None:  # noqa: ARG002 - one contract with FreePool
        """Give back what `take` took."""
        by_free, free, hidden = self.by_free, self.free, self.hidden
        for node, gpus in where:
            if hidden and node in hidden:
                hidden[node] += gpus
                continue
            before = free[node]
            after = free[node] = before + gpus
            bit = self._bit[node]
            by_free[before] ^= bit
            by_free[after] ^= bit
            if after == self.sizes[node]:
                self.empty ^= bit
            self.total += gpus

    def copy(self) -> FreeNodes:
        """Return an independent copy."""
        twin = object.__new__(FreeNodes)
        twin.__dict__.update(self.__dict__)
        twin.free, twin.by_free = self.free.copy(), self.by_free.copy()
        twin.withheld, twin.hidden = self.withheld.copy(), self.hidden.copy()
        return twin

    def _hide(self, node: int) -> None:
        self.hidden[node] = self.free[node]
        self._show(node, 0)

    def _unhide(self, node: int) -> None:
        self._show(node, self.hidden.pop(node))

    def free_units(self, node: int) -> int:
        """Return the GPU units of a node that nobody holds, hidden or not."""
        return self.hidden.get(node, self.free[node])

    @property
    def down(self) -> int:
        """GPU units that nobody holds and nobody may use."""
        return sum(self.hidden[n] for n, held in self.withheld.items() if NOBODY in held)

    def _show(self, node: int, gpus: int) -> None:
        """Let a node have so many free GPUs; a hidden one is never empty."""
        bit, before = self._bit[node], self.free[node]
        self.by_free[before] ^= bit
        self.by_free[gpus] ^= bit
        self.free[node] = gpus
        self.total += gpus - before
        is_empty = gpus == self.sizes[node] and node not in self.withheld
        self.empty = self.empty | bit if is_empty else self.empty & ~bit

    def meet(self, other: FreeNodes) -> None:
        """Keep on each node only what is free in ``other``, too."""
        for node, (mine, theirs) in enumerate(zip(self.free, other.free, strict=True)):
            if theirs < mine:
                bit = self._bit[node]
                self.by_free[mine] ^= bit
                self.by_free[theirs] ^= bit
                if mine == self.sizes[node]:
                    self.empty ^= bit
                self.free[node] = theirs
                self.total -= mine - theirs

    def fits(self, where: Where, demand: Demand) -> bool:
        """Return whether a policy's own choice of nodes is free, allowed and of the right sum."""
        wanted: dict[int, int] = {}
        for node, gpus in where:
            if not 0 <= node < len(self.free) or gpus < 1 or gpus % demand.task:
                return False
            if not demand.allowed >> node & 1:
                return False
            wanted[node] = wanted.get(node, 0) + gpus
        enough = all(self.free[node] >= gpus for node, gpus in wanted.items())
        return enough and sum(wanted.values()) == demand.gpus


class FreePool:
    """Free GPUs and CPU cores of a cluster without nodes: one pool a GPU type.

    Args:
        sizes: GPU units of each pool, shape (pools,).
        cpus: thousandths of cores of each pool, None = not constrained, shape (pools,).
    """

    def __init__(self, sizes: Sequence[int], cpus: Sequence[int | None]) -> None:
        self.sizes = list(sizes)
        self.free = list(sizes)
        self.total = sum(sizes)
        self.constrained = [limit is not None for limit in cpus]
        self.free_cpus = [limit or 0 for limit in cpus]
        #: GPU units of each pool that are withheld.
        self.withheld = [0] * len(self.sizes)

    def take(self, where: Where, demand: Demand) -> None:
        """Take GPUs and cores of a pool that has them free."""
        self._move(where, demand, -1)

    def give(self, where: Where, demand: Demand) -> None:
        """Give back what `take` took."""
        self._move(where, demand, 1)

    def copy(self) -> FreePool:
        """Return an independent copy."""
        twin = object.__new__(FreePool)
        twin.__dict__.update(self.__dict__)
        twin.free, twin.free_cpus = self.free.copy(), self.free_cpus.copy()
        twin.withheld = self.withheld.copy()
        return twin

    def withhold(self, node: int, group: int = NOBODY, units: int | None = None) -> None:  # noqa: ARG002 - a pool has no reservations
        """Take GPU units out of a pool; while jobs hold them, its free units are negative.

        Args:
            node: the pool's index.
            group: of nodes only.
            units: how many; None = all that the pool has.
        """
        lost = self.sizes[node] if units is None else units
        self.withheld[node] += lost
        self.free[node] -= lost
        self.total -= lost

    def restore(self, node: int, group: int = NOBODY, units: int | None = None) -> None:  # noqa: ARG002 - a pool has no reservations
        """Undo one `withhold` of the same units."""
        back = self.sizes[node] if units is None else units
        self.withheld[node] -= back
        self.free[node] += back
        self.total += back

    @property
    def down(self) -> int:
        """GPU units that nobody holds and nobody may use."""
        pairs = zip(self.withheld, self.free, strict=True)
        return sum(lost + min(0, free) for lost, free in pairs if lost)

    def meet(self, other: FreePool) -> None:
        """Keep in each pool only what is free in ``other``, too."""
        self.free = list(map(min, self.free, other.free))
        self.free_cpus = list(map(min, self.free_cpus, other.free_cpus))
        self.total = sum(self.free)

    def candidates(self, demand: Demand) -> Iterator[int]:
        """Yield the pools in which the whole demand fits now, in index order."""
        for pool, free in enumerate(self.free):
            if free < demand.gpus or not demand.allowed >> pool & 1:
                continue
            if self.constrained[pool] and self.free_cpus[pool] < demand.cpus:
                continue
            yield pool

    def fits(self, where: Where, demand: Demand) -> bool:
        """Return whether a policy's own choice of a pool serves."""
        if not where:
            return demand.is_nothing
        return any(where == [(pool, demand.gpus)] for pool in self.candidates(demand))

    def _move(self, where: Where, demand: Demand, sign: int) -> None:
        for pool, gpus in where:
            self.free[pool] += sign * gpus
            self.free_cpus[pool] += sign * demand.cpus
            self.total += sign * gpus
