"""Parts of a cluster: a demand bound to some of its nodes, and what is free on each.

Both work on every free state (`windtunnel.cluster.free`, `windtunnel.cluster.free_devices`).
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from windtunnel.cluster.devices import DeviceDemand, device_demand
from windtunnel.cluster.free_devices import FreeDevices

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from windtunnel.cluster.free import Demand, Where


def nodes_of_types(types: Sequence[str | None], wanted: frozenset[str | None]) -> int:
    """Return the bitset of the nodes (or pools) that have one of the wanted GPU types.

    Args:
        types: GPU type of each node, None = not distinguished, shape (nodes,).
        wanted: GPU types.

    >>> nodes_of_types(["T4", "V100", "T4"], frozenset({"T4"}))
    5
    """
    return sum(1 << node for node, kind in enumerate(types) if kind in wanted)


def restricted(demand: Any, free: Any, nodes: int) -> Any:
    """Return a demand that accepts only those of its nodes that are in a set.

    Args:
        demand: a demand of the free state's own kind.
        free: the free state; only its nodes' sizes are looked at, not what is free.
        nodes: bitset of nodes.
    """
    allowed = demand.allowed & nodes
    if isinstance(demand, DeviceDemand):
        return _restricted_devices(demand, free, allowed)
    return _restricted_gpus(demand, free.sizes, allowed)


def _restricted_gpus(demand: Demand, sizes: Sequence[int], allowed: int) -> Demand:
    usable = [
        size - size % demand.task if allowed >> node & 1 else 0 for node, size in enumerate(sizes)
    ]
    return replace(
        demand,
        allowed=allowed,
        largest=max(usable),
        smallest=min((gpus for gpus in usable if gpus), default=0),
        capacity=sum(usable),
    )


def _restricted_devices(demand: DeviceDemand, free: FreeDevices, allowed: int) -> DeviceDemand:
    inside = [node for index, node in enumerate(free.nodes) if allowed >> index & 1]
    alone = device_demand(
        inside,
        count=demand.count,
        gpus=demand.gpus,
        milli=demand.milli,
        cores=demand.cores,
        mem=demand.mem,
        pooled=free.pooled,
    )
    return replace(alone, allowed=allowed)


def holding_types(
    demand: Any, free: Any, types: Sequence[str | None]
) -> frozenset[str | None] | None:
    """Return the GPU types of which the empty cluster has enough for a demand, each type alone.

    None where it needs no GPU.

    Args:
        demand: a demand of the free state's own kind.
        free: the free state; only its nodes' sizes are looked at.
        types: GPU type of each node, shape (nodes,).
    """
    if not (demand.amount if isinstance(demand, DeviceDemand) else demand.gpus):
        return None
    found = set()
    for kind in dict.fromkeys(types):
        bound = restricted(demand, free, nodes_of_types(types, frozenset({kind})))
        wanted = bound.count if isinstance(bound, DeviceDemand) else bound.gpus
        if wanted <= bound.capacity:
            found.add(kind)
    return frozenset(found)


def reserved_first(shown: Any, nodes: int, place: Callable[[Any], Where | None]) -> Where | None:
    """Return where something goes, on nodes reserved for it before others, or None.

    Args:
        shown: what it may use, its reservations opened to it.
        nodes: how many the cluster has.
        place: (free state) -> where it goes there, or None.
    """
    if shown.shown:
        inside = shown.copy()
        for node in range(nodes):
            if node not in shown.shown:
                inside.withhold(node)
        where = place(inside)
        if where is not None:
            return where
    return place(shown)


def free_units(free: Any) -> list[int]:
    """Return the free GPU units of each node (or pool), shape (nodes,)."""
    if isinstance(free, FreeDevices):
        return [free.free_milli(node) for node in range(len(free.nodes))]
    return list(free.free)
