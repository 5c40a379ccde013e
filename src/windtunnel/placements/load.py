"""Placements that look at how full a node is, before the job comes.

`FirstFit` looks at nothing; the others keep large holes whole (`best_fit`, `least_idle`) or spread
the load (`worst_fit`, `spread`, `most_idle`, `lowest_utilization`). The node orders of the PAI
simulator (alibaba/clusterdata, ``cluster-trace-gpu-v2020/simulator``) are `first_fit` (node id),
`least_idle`, `most_idle` and `lowest_utilization`, on pooled nodes with ``gang="fill"``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from windtunnel.cluster.devices import MILLI
from windtunnel.placements.scored import ScoredPlacement

if TYPE_CHECKING:
    from windtunnel.cluster.devices import DeviceDemand, FreeDevices


class FirstFit(ScoredPlacement):
    """The first node with room: the lowest index, or the smallest name."""

    name = "first_fit"

    def score(
        self,
        free: FreeDevices,  # noqa: ARG002 - one contract
        node: int,  # noqa: ARG002 - ditto
        demand: DeviceDemand,  # noqa: ARG002 - ditto
        grants: list[int],  # noqa: ARG002 - ditto
    ) -> int:
        """Return the same for every node: ties decide."""
        return 0


class Random(FirstFit):
    """Any node with room, and any of its devices that suffices."""

    name = "random"
    device = "random"
    own_ties = "random"


class BestFitDevices(ScoredPlacement):
    """The canonical placement: the fewest free GPUs that suffice, counted in thousandths."""

    name = "best_fit"

    def score(
        self,
        free: FreeDevices,
        node: int,
        demand: DeviceDemand,  # noqa: ARG002 - one contract
        grants: list[int],  # noqa: ARG002 - ditto
    ) -> int:
        """Return the free thousandths, negated."""
        return -free.free_milli(node)


class WorstFit(ScoredPlacement):
    """The most free GPUs, counted in thousandths."""

    name = "worst_fit"

    def score(
        self,
        free: FreeDevices,
        node: int,
        demand: DeviceDemand,  # noqa: ARG002 - one contract
        grants: list[int],  # noqa: ARG002 - ditto
    ) -> int:
        """Return the free thousandths."""
        return free.free_milli(node)


class SpreadDevices(WorstFit):
    """`WorstFit` under the name that it has where GPUs are not shared."""

    name = "spread"


class MostIdle(ScoredPlacement):
    """The most GPUs that nobody uses; on pooled nodes the most free thousandths."""

    name = "most_idle"

    def score(
        self,
        free: FreeDevices,
        node: int,
        demand: DeviceDemand,  # noqa: ARG002 - one contract
        grants: list[int],  # noqa: ARG002 - ditto
    ) -> int:
        """Return the number of idle GPUs."""
        return free.free_milli(node) if free.pooled else free.idle(node)


class LeastIdle(MostIdle):
    """The fewest GPUs that nobody uses; on pooled nodes the fewest free thousandths."""

    name = "least_idle"

    def score(self, free: FreeDevices, node: int, demand: DeviceDemand, grants: list[int]) -> int:
        """Return the number of idle GPUs, negated."""
        return -super().score(free, node, demand, grants)


class LowestUtilization(ScoredPlacement):
    """The lowest mean of the shares of GPUs and cores in use, in whole percent.

    Rounded half to even, as the PAI simulator does. Without GPUs, or without a limit of cores, the
    other counts alone.
    """

    name = "lowest_utilization"

    def score(
        self,
        free: FreeDevices,
        node: int,
        demand: DeviceDemand,  # noqa: ARG002 - one contract
        grants: list[int],  # noqa: ARG002 - ditto
    ) -> int:
        """Return the percentage in use, negated."""
        size = free.nodes[node]
        gpus = cores = 0.0
        if size.gpus:
            total = size.gpus * MILLI
            gpus = (total - free.free_milli(node)) / total
        if size.cores:
            cores = (size.cores - free.cores[node]) / size.cores
        use = 100 * (gpus + cores) / 2 if size.gpus and size.cores else 100 * (gpus + cores)
        return -round(use) if self.scale == 1 else -self.cut(use)
