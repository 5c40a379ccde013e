"""Placements of whole GPUs: best fit, which is canonical, spread, and pool.

Of nodes: a job that fits one goes to one; how a larger gang is laid out says
`windtunnel.placements.gangs`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from windtunnel.cluster.free import EVERY_NODE
from windtunnel.placements import gangs

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from windtunnel.cluster.free import Demand, FreeNodes, FreePool, Where


class BestFit:
    """Keep large holes whole: fewest free GPUs that suffice, then lowest node index."""

    name = "best_fit"

    def place(self, free: FreeNodes, demand: Demand) -> Where | None:
        """Return where the job goes, or None."""
        gpus = demand.gpus
        if 0 < gpus <= demand.largest:
            node = self._pick(free, gpus, demand.allowed)
            return None if node < 0 else [(node, gpus)]
        return gangs.place(free, demand, self._pick)

    def _pick(self, free: FreeNodes, gpus: int, allowed: int) -> int:
        """Return the lowest of the nodes that are tried first of those with room, or -1."""
        for nodes in self._order(free.by_free[gpus:]):
            if nodes and (fitting := nodes if allowed == EVERY_NODE else nodes & allowed):
                return (fitting & -fitting).bit_length() - 1
        return -1

    def _order(self, by_free: Sequence[int]) -> Iterable[int]:
        """Return bitsets of nodes in the order to try; they come by their free GPUs, ascending."""
        return by_free


class Spread(BestFit):
    """Keep every node as idle as possible: most free GPUs, then lowest node index.

    It is the load that is spread over nodes, as Kubernetes' LeastAllocated does.
    """

    name = "spread"

    def _order(self, by_free: Sequence[int]) -> Iterable[int]:
        return reversed(by_free)


class Pool:
    """No node boundaries: any free GPUs of one acceptable type serve.

    Where the cluster tells GPU types apart there is one pool a type; the fullest that suffices is
    taken.
    """

    name = "pool"

    def place(self, free: FreePool, demand: Demand) -> Where | None:
        """Return the pool the job draws from, or None."""
        if demand.is_nothing:
            return []
        best = min(free.candidates(demand), key=free.free.__getitem__, default=None)
        return None if best is None else [(best, demand.gpus)]
