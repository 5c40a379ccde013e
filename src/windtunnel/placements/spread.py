"""Spread (load balancing): most free GPUs, then lowest node index, as Kubernetes' LeastAllocated.

A job that fits one node stays on one node; what is spread is the load over nodes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from windtunnel.cluster.free import EVERY_NODE
from windtunnel.placements import gangs

if TYPE_CHECKING:
    from windtunnel.cluster.free import Demand, FreeNodes, Where


class Spread:
    """Keep every node as idle as possible."""

    name = "spread"

    def place(self, free: FreeNodes, demand: Demand) -> Where | None:
        """Return where the job goes, or None."""
        gpus = demand.gpus
        if 0 < gpus <= demand.largest:
            node = _most_free(free, gpus, demand.allowed)
            return None if node < 0 else [(node, gpus)]
        return gangs.place(free, demand, _most_free)


def _most_free(free: FreeNodes, gpus: int, allowed: int) -> int:
    for nodes in reversed(free.by_free[gpus:]):
        if nodes and (fitting := nodes if allowed == EVERY_NODE else nodes & allowed):
            return (fitting & -fitting).bit_length() - 1
    return -1
