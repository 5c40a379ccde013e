"""The packing heuristics that fragmentation gradient descent was compared with (ATC'23, section 6).

Scores as the public simulator computes them (hkust-adsl/kubernetes-scheduler-simulator); ties go to
the smallest node name there. Free and asked-for amounts are scaled by the largest node, which for
the published nodes is 128 cores and 8 GPUs.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from windtunnel.cluster.devices import MILLI, UNLIMITED
from windtunnel.placements.scored import ScoredPlacement

if TYPE_CHECKING:
    from windtunnel.cluster.devices import DeviceDemand
    from windtunnel.cluster.free_devices import FreeDevices

#: The highest score, and what `GpuPacking` gives at most for opening idle GPUs of a used node and
#: of an idle one.
TOP, USED_NODE, IDLE_NODE = 100, 50, 33
#: What `GpuClustering` gives a node: its own class alone, among others, no class, other classes;
#: and what a full one gets on top.
ALONE, AMONG, NOBODY, OTHERS, FULL = 75, 50, 25, 0, 25


class OpenbBestFit(ScoredPlacement):
    """The least left over after placing: half for cores, half for GPUs."""

    name = "openb_best_fit"
    own_ties = "name"

    def score(self, free: FreeDevices, node: int, demand: DeviceDemand, grants: list[int]) -> int:
        """Return 100 x (1 - what is left, as a share of the largest node).

        The public simulator stretches the feasible nodes' scores to 0..100 afterwards; that changes
        neither their order nor their ties, because the stretch is a factor of at least 1.
        """
        tasks = _tasks(demand, grants, pooled=free.pooled)
        left = 0.0
        if free.cores[node] != UNLIMITED:
            left += (free.cores[node] - tasks * demand.cores) / free.max_cores * 0.5
        left += (free.free_milli(node) - tasks * demand.amount) / free.max_milli * 0.5
        return self.cut((1.0 - left) * TOP)


class DotProd(ScoredPlacement):
    """The smallest product of what is free and what is asked for (after Tetris, SIGCOMM'14)."""

    name = "dot_prod"
    own_ties = "name"

    def score(self, free: FreeDevices, node: int, demand: DeviceDemand, grants: list[int]) -> int:
        """Return 100 x (1 - half the dot product of cores and GPUs)."""
        tasks = _tasks(demand, grants, pooled=free.pooled)
        product = 0.0
        if free.cores[node] != UNLIMITED:
            asked = tasks * demand.cores / free.max_cores
            product += free.cores[node] / free.max_cores * asked
        asked = tasks * demand.amount / free.max_milli
        product += free.free_milli(node) / free.max_milli * asked
        return self.cut((1.0 - product / 2) * TOP)


class GpuPacking(ScoredPlacement):
    """Used GPUs first, then idle GPUs of used nodes, then idle nodes (after Gandiva, OSDI'18)."""

    name = "gpu_packing"
    own_ties = "name"
    needs_devices = True

    def score(self, free: FreeDevices, node: int, demand: DeviceDemand, grants: list[int]) -> int:
        """Return a score of 50 to 100, of 33 to 50, or of up to 33 for these three cases."""
        if not demand.amount:
            return 0
        devices = free.devices[node]
        if free.idle(node) == len(devices):
            return max(IDLE_NODE - len(devices), len(devices)) * self.scale
        used = 0
        for grant in grants:
            used |= grant
        parts = [milli for device, milli in enumerate(devices) if used >> device & 1]
        opened = parts.count(MILLI)
        if opened:
            return max(USED_NODE - opened, IDLE_NODE) * self.scale
        if self.scale == 1:
            free_part = sum(milli * TOP // MILLI for milli in parts) // 10
        else:
            free_part = sum(parts) * self.scale // 100
        return max(TOP * self.scale - free_part, USED_NODE * self.scale)


class GpuClustering(ScoredPlacement):
    """Nodes that run the same kind of GPU job first (after Gandiva, OSDI'18).

    The kind is a share, one whole GPU, two, and so on (`DeviceDemand.group`).
    """

    name = "gpu_clustering"
    own_ties = "name"

    def score(
        self,
        free: FreeDevices,
        node: int,
        demand: DeviceDemand,
        grants: list[int],  # noqa: ARG002 - one contract
    ) -> int:
        """Return 75, 50, 25 or 0 by what runs there, and up to 25 for how full it is."""
        if demand.group < 0:
            return 0
        held = free.held[node]
        kinds = sum(1 for tasks in held if tasks)
        if held[demand.group]:
            base = ALONE if kinds == 1 else AMONG
        else:
            base = OTHERS if kinds else NOBODY
        used = free.max_milli - free.free_milli(node)
        return FULL * used * self.scale // free.max_milli + base * self.scale


def _tasks(demand: DeviceDemand, grants: list[int], *, pooled: bool) -> int:
    return sum(demand.tasks(grant, pooled=pooled) for grant in grants)
