"""How a gang larger than a node is laid out, given a rule that picks one node.

Canonical rule (DESIGN "placement"): a job that fits one node goes to one node. A larger gang takes
whole empty nodes, lowest index first, while what remains fills one; the remainder goes to one more
node, picked by the rule.

Less capacity never makes a layout possible, whatever the nodes' sizes: it fails only where every
empty node that could be used was taken whole (one that was passed over would hold the remainder),
and then no other node fits the remainder. Both engines rely on it: a request that was refused stays
refused until something completes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    from windtunnel.cluster.free import Demand, FreeNodes, Where

    #: (free state, GPUs, bitset of allowed nodes) -> node index, or -1.
    Picker = Callable[[FreeNodes, int, int], int]


def place(free: FreeNodes, demand: Demand, pick: Picker) -> Where | None:
    """Return where a gang larger than a node goes, or None if it does not fit now.

    A job without GPUs goes nowhere in particular: an empty list.
    """
    if demand.gpus > free.total:
        return None
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
