"""Best fit, the canonical placement: fewest free GPUs that suffice, then lowest node index."""

from __future__ import annotations

from typing import TYPE_CHECKING

from windtunnel.placements import gangs

if TYPE_CHECKING:
    from windtunnel.cluster.free import Demand, FreeNodes, Where


class BestFit:
    """Keep large holes whole: use the node that the job fills best."""

    name = "best_fit"

    def place(self, free: FreeNodes, demand: Demand) -> Where | None:
        """Return where the job goes, or None."""
        return gangs.place(free, demand, _fewest_free)


def _fewest_free(free: FreeNodes, gpus: int, allowed: int) -> int:
    by_free = free.by_free
    for count in range(gpus, free.top + 1):
        nodes = by_free[count] & allowed
        if nodes:
            return (nodes & -nodes).bit_length() - 1
    return -1
