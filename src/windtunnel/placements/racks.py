"""Racks: a job over several nodes stays in one rack where one holds it (`topology`).

A job that fits one node goes to the node that the placement picks; racks matter to what goes over
several. The rule for those:

1. Of the racks in which the gang can be laid out (as the placement's ``gang`` option says, over the
   rack's nodes alone), take the one with the fewest free GPUs that the job may use, then the lowest
   index.
2. If there is none, ``rack-only`` waits. ``rack`` spills over several: those that hold most of
   the gang first (lowest index on ties). With ``gang=node`` that is what their empty nodes hold,
   which are taken whole in this order, and the remainder goes to one more node, in a rack that the
   gang uses already where one holds it. With ``gang=fill`` all their nodes count; the nodes of a
   rack are filled in the order of their scores before the next rack's.

Whether a spilling gang can be placed does not depend on racks, and less capacity never makes a
layout possible, with racks or without: within one the argument is that of
`windtunnel.placements.gangs`.
"""

from __future__ import annotations

from itertools import chain
from typing import TYPE_CHECKING, Protocol

from windtunnel.placements.layouts import empty_nodes, filled

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from windtunnel.cluster.devices import DeviceDemand
    from windtunnel.cluster.free_devices import FreeDevices
    from windtunnel.placements.layouts import Layout


class Ranking(Protocol):
    """A placement that picks and orders nodes, such as a scored one."""

    gang: str

    def best(
        self, free: FreeDevices, demand: DeviceDemand, tasks: int, nodes: Iterable[int]
    ) -> int | None:
        """Return the best of some nodes for so many tasks; None = it fits none."""

    def ranked(self, free: FreeDevices, demand: DeviceDemand, nodes: Iterable[int]) -> list[int]:
        """Return nodes, best first."""

    def spread_over_nodes(
        self, free: FreeDevices, demand: DeviceDemand, nodes: Sequence[int]
    ) -> Layout | None:
        """Return whole empty nodes, and one more for the remainder."""


def lay_out(
    placement: Ranking, free: FreeDevices, demand: DeviceDemand, *, spill: bool
) -> Layout | None:
    """Return (node, tasks) pairs for a job that may go over several nodes, or None.

    Args:
        placement: picks and orders nodes.
        free: a cluster with racks.
        demand: the job.
        spill: go over several racks where none holds it.
    """

    def may_use(rack: Sequence[int]) -> int:
        return sum(free.free_milli(node) for node in rack if node not in free.withheld)

    for rack in sorted(free.racks, key=may_use):  # stable
        if sum(free.fitting(node, demand) for node in rack) < demand.count:
            continue
        chosen = (
            filled(free, demand, placement.ranked(free, demand, rack))
            if placement.gang == "fill"
            else placement.spread_over_nodes(free, demand, rack)
        )
        if chosen is not None:
            return chosen
    if not spill:
        return None
    if placement.gang == "fill":
        order = _by_capacity(free, demand, free.racks, empty=False)
        ranked = (placement.ranked(free, demand, rack) for rack in order)
        return filled(free, demand, chain.from_iterable(ranked))
    return _spilt(placement, free, demand)


def _by_capacity(
    free: FreeDevices, demand: DeviceDemand, racks: Sequence[Sequence[int]], *, empty: bool
) -> list[Sequence[int]]:
    """Return racks that hold most of the gang first, lowest index on ties."""

    def capacity(rack: Sequence[int]) -> int:
        return sum(free.fitting(node, demand) for node in rack if not (empty and free.tasks[node]))

    return sorted(racks, key=capacity, reverse=True)  # stable, reversed or not


def _spilt(placement: Ranking, free: FreeDevices, demand: DeviceDemand) -> Layout | None:
    """Lay out a gang larger than any rack holds: empty nodes, then one more for the remainder."""
    order = _by_capacity(free, demand, free.racks, empty=True)
    chosen, rest = empty_nodes(free, demand, chain.from_iterable(order))
    if rest == 0:
        return chosen
    taken = {node for node, _ in chosen}
    used = [rack for rack in free.racks if not taken.isdisjoint(rack)]
    for racks in (used, free.racks):
        others = [node for node in chain.from_iterable(racks) if node not in taken]
        last = placement.best(free, demand, rest, others)
        if last is not None:
            return [*chosen, (last, rest)]
    return None
