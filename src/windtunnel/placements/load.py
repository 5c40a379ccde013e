"""Placements that look at how full a node is, before the job comes.

`FirstFit` looks at nothing; the others keep large holes whole (`best_fit`, `least_idle`) or spread
the load (`worst_fit`, `spread`, `most_idle`, `lowest_utilization`, `load_rate`).

The node orders of the PAI simulator (alibaba/clusterdata, ``cluster-trace-gpu-v2020/simulator``)
are `first_fit` (node id), `least_idle`, `most_idle` and `lowest_utilization`, on pooled nodes with
``gang="fill"``.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from windtunnel.cluster.devices import MILLI
from windtunnel.errors import SpecError, quote
from windtunnel.placements.scored import ScoredPlacement

if TYPE_CHECKING:
    from collections.abc import Sequence

    from windtunnel.cluster.devices import DeviceDemand
    from windtunnel.cluster.free_devices import FreeDevices


class ByLoad(ScoredPlacement):
    """A placement to which a node is as good as it is full, whoever comes."""

    def level(self, free: FreeDevices, node: int) -> int:
        """Return how good a node is: the higher the better; see `ScoredPlacement.score`."""
        raise NotImplementedError

    def score(
        self,
        free: FreeDevices,
        node: int,
        demand: DeviceDemand,  # noqa: ARG002 - the job does not matter here
        grants: list[int],  # noqa: ARG002 - ditto
    ) -> int:
        """Return the node's level."""
        return self.level(free, node)


class FirstFit(ByLoad):
    """The first node with room: the lowest index, or the smallest name."""

    name = "first_fit"

    def level(self, free: FreeDevices, node: int) -> int:  # noqa: ARG002 - one contract
        """Return the same for every node: ties decide."""
        return 0


class Random(FirstFit):
    """Any node with room, and any of its devices that suffices."""

    name = "random"
    device = "random"
    own_ties = "random"


class BestFitDevices(ByLoad):
    """The canonical placement: the fewest free GPUs that suffice, counted in thousandths."""

    name = "best_fit"

    def level(self, free: FreeDevices, node: int) -> int:
        """Return the free thousandths, negated."""
        return -free.free_milli(node)


class WorstFit(ByLoad):
    """The most free GPUs, counted in thousandths."""

    name = "worst_fit"

    def level(self, free: FreeDevices, node: int) -> int:
        """Return the free thousandths."""
        return free.free_milli(node)


class SpreadDevices(WorstFit):
    """`WorstFit` under the name that it has where GPUs are not shared."""

    name = "spread"


class MostIdle(ByLoad):
    """The most GPUs that nobody uses; on pooled nodes the most free thousandths."""

    name = "most_idle"

    def level(self, free: FreeDevices, node: int) -> int:
        """Return the number of idle GPUs."""
        return free.free_milli(node) if free.pooled else free.idle(node)


class LeastIdle(MostIdle):
    """The fewest GPUs that nobody uses; on pooled nodes the fewest free thousandths."""

    name = "least_idle"

    def level(self, free: FreeDevices, node: int) -> int:
        """Return the number of idle GPUs, negated."""
        return -super().level(free, node)


class LowestUtilization(ByLoad):
    """The lowest mean of the shares of GPUs and cores in use, in whole percent.

    Rounded half to even, as the PAI simulator does. Without GPUs, or without a limit of cores, the
    other counts alone.
    """

    name = "lowest_utilization"

    def level(self, free: FreeDevices, node: int) -> int:
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


class LoadRate(ByLoad):
    """The lowest weighted rate of allocation: load balancing as PAI deployed it.

    The rate of a node is ``w_cpu x cores taken / cores + w_mem x memory taken / memory + w_gpu x
    GPUs taken / GPUs``, over the sum of the weights ("MLaaS in the Wild", NSDI 2022; the weights
    were not published). A resource that the node lacks, or of which no limit is known, does not
    count, nor does its weight. The score is 100 x (1 - rate), cut to a whole number.

    Args:
        weights: weights of cores, memory and GPUs, three numbers or text as in ``1/1/2``; exact to
            a thousandth.
        options: as for every scored placement.

    Raises:
        SpecError: the weights are not three numbers >= 0, one of them above 0.
    """

    name = "load_rate"

    def __init__(self, *, weights: str | Sequence[float] = (1.0, 1.0, 1.0), **options: Any) -> None:
        super().__init__(**options)
        self.weights = _thousandths(weights)

    def level(self, free: FreeDevices, node: int) -> int:
        """Return what the rate leaves of 100."""
        of_cores, of_mem, of_gpus = self.weights
        size = free.nodes[node]
        value, weight = 0.0, 0
        if size.gpus:
            total = size.gpus * MILLI
            value += of_gpus * ((total - free.free_milli(node)) / total)
            weight += of_gpus
        if size.cores:
            value += of_cores * ((size.cores - free.cores[node]) / size.cores)
            weight += of_cores
        if size.mem:
            value += of_mem * ((size.mem - free.mem[node]) / size.mem)
            weight += of_mem
        rate = value / weight if weight else 0.0
        return self.cut((1.0 - rate) * 100)


def _thousandths(weights: str | Sequence[float]) -> tuple[int, int, int]:
    parts = weights.split("/") if isinstance(weights, str) else weights
    try:
        cores, mem, gpus = (float(part) for part in parts)
    except (TypeError, ValueError):
        cores = mem = gpus = math.nan
    found = tuple(
        round(weight * MILLI) if 0 <= weight <= MILLI else -1 for weight in (cores, mem, gpus)
    )
    if min(found) < 0 or not any(found):
        message = (
            f"found {quote(weights)}; expected three numbers from 0 to 1000, for cores, memory and "
            "GPUs, one of them above 0."
        )
        raise SpecError("weights", message)
    return found[0], found[1], found[2]
