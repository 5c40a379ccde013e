"""Best fit, the canonical placement: fewest free GPUs that suffice, then lowest node index."""

from __future__ import annotations

from typing import TYPE_CHECKING

from windtunnel.cluster.free import EVERY_NODE
from windtunnel.placements import gangs

if TYPE_CHECKING:
    from windtunnel.cluster.free import Demand, FreeNodes, Where


class BestFit:
    """Keep large holes whole: use the node that the job fills best."""

    name = "best_fit"

    def place(self, free: FreeNodes, demand: Demand) -> Where | None:
        """Return where the job goes, or None."""
        gpus = demand.gpus
        if 0 < gpus <= demand.largest:
            node = _fewest_free(free, gpus, demand.allowed)
            return None if node < 0 else [(node, gpus)]
        return gangs.place(free, demand, _fewest_free)


def _fewest_free(free: FreeNodes, gpus: int, allowed: int) -> int:
    for nodes in free.by_free[gpus:]:
        if nodes and (fitting := nodes if allowed == EVERY_NODE else nodes & allowed):
            return (fitting & -fitting).bit_length() - 1
    return -1
