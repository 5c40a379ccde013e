"""Free GPUs and CPU cores of each node, and where an option fits.

Nothing is ever taken that is not free: `FreeShares.take` checks GPUs and cores of every node each
time, so that a run in which it does not raise has kept within capacity at every instant.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from windtunnel.cluster.devices import CORE_UNITS
from windtunnel.cluster.free import EVERY_NODE, FreeNodes
from windtunnel.sim.elastic.work import cores_on

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from windtunnel.cluster.free import Where
    from windtunnel.cluster.topology.request import TopologyRequest
    from windtunnel.sim.elastic.domains import Domains
    from windtunnel.sim.elastic.headroom import Headroom
    from windtunnel.sim.elastic.scores import Scores
    from windtunnel.sim.elastic.work import Option


class FreeShares(FreeNodes):
    """Free GPUs and cores of a cluster with nodes.

    Args:
        sizes: GPUs of each node, shape (nodes,).
        cores: thousandths of cores of each node, None = not constrained, shape (nodes,).
        scores: of a placement that scores nodes; None = best fit.
        domains: in which pieces lie together; None = they go anywhere.

    Attributes:
        headroom: what admission leaves to jobs besides; None = it does not limit the run.
        draws: stays begun so far, set by who asks; seeds what is random in the next placement.
    """

    def __init__(
        self,
        sizes: Sequence[int],
        cores: Sequence[int | None],
        scores: Scores | None = None,
        domains: Domains | None = None,
    ) -> None:
        super().__init__(sizes)
        self.scores, self.domains, self.draws = scores, domains, 0
        self.headroom: Headroom | None = None
        self.unlimited = [limit is None for limit in cores]
        self.free_cores = [limit or 0 for limit in cores]

    def take(self, where: Where, option: Option, job: int = -1) -> None:  # type: ignore[override] # an option is the demand here
        """Take an option's GPUs and cores.

        Of quotas and power it counts as the job's; -1 = they are not asked.

        Raises:
            ValueError: they are not free.
        """
        for node, gpus in where:
            if not self._fits(node, gpus, option, hidden=True):
                cores = cores_on(option, gpus) / CORE_UNITS
                raise ValueError(f"node {node} has no {gpus} GPUs with {cores:g} cores free")
            if not self.unlimited[node]:
                self.free_cores[node] -= cores_on(option, gpus)
        if self.scores is not None:
            self.scores.move(where, option, -1)
        super().take(where, option)  # type: ignore[arg-type] # GPUs go by where alone
        if self.headroom is not None and job >= 0:
            self.headroom.begin(job, where)

    def give(self, where: Where, option: Option, job: int = -1) -> None:  # type: ignore[override] # as above
        """Give back what `take` took."""
        if self.headroom is not None and job >= 0:
            self.headroom.end(job)
        for node, gpus in where:
            if not self.unlimited[node]:
                self.free_cores[node] += cores_on(option, gpus)
        if self.scores is not None:
            self.scores.move(where, option, 1)
        super().give(where, option)  # type: ignore[arg-type] # as above

    def copy(self) -> FreeShares:
        """Return an independent copy."""
        twin = object.__new__(FreeShares)
        twin.__dict__.update(self.__dict__)
        twin.free, twin.by_free = self.free.copy(), self.by_free.copy()
        twin.withheld, twin.hidden = self.withheld.copy(), self.hidden.copy()
        twin.free_cores = self.free_cores.copy()
        twin.scores = None if self.scores is None else self.scores.copy()
        twin.headroom = None if self.headroom is None else self.headroom.copy()
        return twin

    def meet(self, other: FreeNodes) -> None:
        """Keep on each node only what is free in ``other``, too."""
        super().meet(other)
        if isinstance(other, FreeShares):
            self.free_cores = list(map(min, self.free_cores, other.free_cores))
            if self.scores is not None and other.scores is not None:
                self.scores.devices.meet(other.scores.devices)
            if self.headroom is not None and other.headroom is not None:
                self.headroom.meet(other.headroom)

    def suits(self, where: Where, option: Option, job: int) -> bool:
        """Return whether a place is free for a job's option, and the job is admitted there."""
        return self._admits(where, job) and self.has(where, option)

    def may_stay(self, where: Where, option: Option, job: int) -> bool:
        """Return whether a job may go on where it was: also where nobody may start any more."""
        fits = (self._fits(node, gpus, option, hidden=True) for node, gpus in where)
        return self._admits(where, job) and all(fits)

    def _admits(self, where: Where, job: int) -> bool:
        return self.headroom is None or self.headroom.admits(job, where)

    def has(self, where: Where, option: Option, allowed: int = EVERY_NODE) -> bool:
        """Return whether a policy's own choice is free, allowed, and of the option's shape."""
        nodes = [node for node, _ in where]
        if len(set(nodes)) < len(nodes) or not all(0 <= n < len(self.free) for n in nodes):
            return False
        if sorted((gpus for _, gpus in where), reverse=True) != list(option.shape):
            return False
        allowed &= option.nodes
        return all(allowed >> n & 1 and self._fits(n, gpus, option) for n, gpus in where)

    def place(
        self,
        option: Option,
        allowed: int = EVERY_NODE,
        request: TopologyRequest | None = None,
    ) -> Where | None:
        """Return where an option goes, or None if it does not fit now.

        Piece by piece, largest first; no two pieces share a node. Each goes to the node with the
        fewest free GPUs that suffice, then the lowest index (best fit), or, under a placement that
        scores, to the node with room that scores best. Pieces that are to lie in a domain go to
        the one with the fewest GPUs free to the job that has room for all.
        """
        allowed &= option.nodes
        if self.domains is None:
            return self._lay_out(option, allowed)
        within = self.domains.within(request, len(option.shape))
        for domain in self.domains.tried(within, self.free, allowed):
            where = self._lay_out(option, allowed & domain)
            if where is not None:
                return where
        return None if within.required else self._lay_out(option, allowed)

    def _lay_out(self, option: Option, allowed: int) -> Where | None:
        """Return where an option goes on the nodes of a bitset."""
        where: Where = []
        for gpus in option.shape:
            fitting = self._fitting(option, gpus, allowed)
            if self.scores is None:
                best = next(fitting, None)
            else:
                best = self.scores.best(option, gpus, sorted(fitting), self.draws)
            if best is None:
                return None
            where.append((best, gpus))
            allowed &= ~(1 << best)
        return where

    def _fitting(self, option: Option, gpus: int, allowed: int) -> Iterator[int]:
        """Yield the nodes of a bitset that a piece fits, those with the fewest free GPUs first."""
        cores = cores_on(option, gpus)
        for alike in self.by_free[gpus:]:
            nodes = alike & allowed
            while nodes:
                node = (nodes & -nodes).bit_length() - 1
                nodes &= nodes - 1
                if self.unlimited[node] or self.free_cores[node] >= cores:
                    yield node

    def _fits(self, node: int, gpus: int, option: Option, *, hidden: bool = False) -> bool:
        """Return whether a piece fits a node; ``hidden``: though it is withheld."""
        enough = self.unlimited[node] or self.free_cores[node] >= cores_on(option, gpus)
        free = self.free_units(node) if hidden else self.free[node]
        return enough and free >= gpus
