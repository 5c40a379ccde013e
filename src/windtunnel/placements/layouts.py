"""How tasks of a gang are counted out over nodes with devices, given the order of the nodes."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

    from windtunnel.cluster.devices import DeviceDemand
    from windtunnel.cluster.free_devices import FreeDevices

    #: (node, tasks) in placement order.
    Layout = list[tuple[int, int]]


def filled(free: FreeDevices, demand: DeviceDemand, nodes: Iterable[int]) -> Layout | None:
    """Return as many tasks on each node as fit, in the order of the nodes; None if not all fit."""
    chosen: Layout = []
    rest = demand.count
    for node in nodes:
        tasks = min(rest, free.fitting(node, demand))
        if tasks:
            chosen.append((node, tasks))
            rest -= tasks
        if rest == 0:
            return chosen
    return None


def empty_nodes(
    free: FreeDevices, demand: DeviceDemand, nodes: Iterable[int]
) -> tuple[Layout, int]:
    """Return the empty nodes that a gang takes whole, in their order, and the tasks that remain."""
    chosen: Layout = []
    rest = demand.count
    for node in nodes:
        fitting = 0 if free.tasks[node] else free.fitting(node, demand)
        if 0 < fitting <= rest:
            chosen.append((node, fitting))
            rest -= fitting
    return chosen, rest
