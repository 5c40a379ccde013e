"""How a gang is laid out on nodes, given a rule that picks the one node of a job that fits a node.

Canonical rule (DESIGN "placement"): a job that fits one node goes to one node. A larger gang takes
whole empty nodes, lowest index first, while what remains fills one; the remainder goes to one more
node, picked by the rule.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    from windtunnel.cluster.free import Demand, FreeNodes, Where

    #: (free state, GPUs, bitset of allowed nodes) -> node index, or -1.
    Picker = Callable[[FreeNodes, int, int], int]


def place(free: FreeNodes, demand: Demand, pick: Picker) -> Where | None:
    """Return where a job of this demand goes, or None if it does not fit now."""
    if demand.gpus > free.total:
        return None
    if demand.gpus == 0:
        return []
    if demand.gpus <= demand.largest:
        node = pick(free, demand.gpus, demand.allowed)
        return None if node < 0 else [(node, demand.gpus)]
    return _gang(free, demand, pick)


def _gang(free: FreeNodes, demand: Demand, pick: Picker) -> Where | None:
    where: Where = []
    rest = demand.gpus
    others = demand.allowed
    empty = free.empty & demand.allowed
    while empty and rest >= demand.smallest:
        lowest = empty & -empty
        empty ^= lowest
        node = lowest.bit_length() - 1
        size = free.sizes[node]
        usable = size - size % demand.task
        if 0 < usable <= rest:
            where.append((node, usable))
            others &= ~lowest
            rest -= usable
    if rest:
        node = pick(free, rest, others)
        if node < 0:
            return None
        where.append((node, rest))
    return where
