"""Fragmentation gradient descent: where the placement adds the least fragments (ATC'23, section 4).

For a share of a GPU every device of the node that suffices is tried, and the best one counts; the
first one on ties.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from functools import lru_cache
from typing import TYPE_CHECKING

from windtunnel.cluster.devices import MILLI
from windtunnel.placements.scored import ScoredPlacement
from windtunnel.sim.fragmentation import node_fragments

if TYPE_CHECKING:
    from windtunnel.cluster.devices import DeviceDemand
    from windtunnel.cluster.free_devices import FreeDevices


class Fgd(ScoredPlacement):
    """The node, and in it the device, that fragments least."""

    name = "fgd"
    device = "scored"
    own_ties = "name"
    needs_devices = True
    needs_workload = True

    @property
    def steps(self) -> tuple[int, ...]:
        """The least gain of each integer score."""
        assert self.workload is not None  # noqa: S101 - checked when the placement was made
        return steps(self.workload.total)

    def score(self, free: FreeDevices, node: int, demand: DeviceDemand, grants: list[int]) -> int:
        """Return 100 x sigmoid(fewer fragments / 1 GPU), or the fewer fragments themselves.

        Where scores are floats, the sigmoid is left out: it is monotone, and flat where it matters.
        """
        left = free.devices[node].copy()
        tasks = 0
        for grant in grants:
            tasks += demand.tasks(grant, pooled=False)
            for device in range(len(left)):
                if grant >> device & 1:
                    left[device] -= demand.milli or MILLI
        cores = free.cores[node] - tasks * demand.cores
        return self._gain(free, node, (free.devices[node], free.cores[node]), (left, cores))

    def pick_device(
        self,
        free: FreeDevices,
        node: int,
        demand: DeviceDemand,
        left: list[int],
        *,
        cores: int,
        task: int,  # noqa: ARG002 - nothing is random here
    ) -> int:
        """Return the device on which the task fragments least."""
        best, chosen = -math.inf, -1
        for device, milli in enumerate(left):
            if milli < demand.milli:
                continue
            after = left.copy()
            after[device] -= demand.milli
            gain = self._gain(free, node, (left, cores), (after, cores - demand.cores))
            if gain > best:
                best, chosen = gain, device
        return chosen

    def _gain(
        self,
        free: FreeDevices,
        node: int,
        before: tuple[list[int], int],
        after: tuple[list[int], int],
    ) -> int:
        """Return the score of changing a node's free devices and cores."""
        assert self.workload is not None  # noqa: S101 - checked when the placement was made
        size = free.nodes[node]
        gain = node_fragments(size, *before, self.workload) - node_fragments(
            size, *after, self.workload
        )
        return bisect_right(self.steps, gain) if self.scale == 1 else gain


@lru_cache(maxsize=16)
def steps(total: int) -> tuple[int, ...]:
    """Return the least gain of each integer score from 1 to 99.

    100 x sigmoid(x) reaches s at x = ln(s / (100 - s)); x is the gain in GPUs. So the integer score
    of a gain is how many of these it reaches: whole numbers, the same on every machine.

    Args:
        total: tasks of the target workload; gains are in GPU milli times tasks.
    """
    return tuple(math.ceil(total * MILLI * math.log(s / (100 - s))) for s in range(1, 100))
