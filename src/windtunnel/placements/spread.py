"""Spread (load balancing): most free GPUs, then lowest node index, as Kubernetes' LeastAllocated.

A job that fits one node stays on one node; what is spread is the load over nodes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from windtunnel.placements import gangs

if TYPE_CHECKING:
    from windtunnel.cluster.free import Demand, FreeNodes, Where


class Spread:
    """Keep every node as idle as possible."""

    name = "spread"

    def place(self, free: FreeNodes, demand: Demand) -> Where | None:
        """Return where the job goes, or None."""
        return gangs.place(free, demand, _most_free)


def _most_free(free: FreeNodes, gpus: int, allowed: int) -> int:
    by_free = free.by_free
    for count in range(free.top, gpus - 1, -1):
        nodes = by_free[count] & allowed
        if nodes:
            return (nodes & -nodes).bit_length() - 1
    return -1
