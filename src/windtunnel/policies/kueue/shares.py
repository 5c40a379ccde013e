"""Dominant resource shares: what fair sharing weighs queues and cohorts by.

Source: Ghodsi et al., Dominant Resource Fairness (NSDI 2011), as Kueue counts it: only what is
borrowed counts, against what the parent could lend.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from windtunnel.policies.kueue.objects import Amounts
    from windtunnel.policies.kueue.quota_tree import QuotaNode


class Share(NamedTuple):
    """What a node borrows, in thousandths of what it could borrow, over its weight.

    Attributes:
        infinite: it borrows and has no weight.
        value: the share; without weight the ratio itself.
        borrows: it uses more than it owns of something.
        resource: the resource that dominates.
    """

    infinite: bool
    value: float
    borrows: bool
    resource: str

    @property
    def rank(self) -> tuple[bool, float]:
        """What shares are compared by."""
        return self.infinite, self.value

    @property
    def rounded(self) -> int:
        """The share as it is reported: rounded up; without weight the largest number."""
        return 2**63 - 1 if self.infinite else math.ceil(self.value)


NONE = Share(infinite=False, value=0.0, borrows=False, resource="")


def dominant_share(node: QuotaNode, added: Amounts | None = None) -> Share:
    """Return a node's share.

    Args:
        node: a queue or a cohort.
        added: what it would use besides.
    """
    if node.parent is None:
        return NONE
    borrowed: dict[str, int] = {}
    for what, owned in node.subtree.items():
        amount = node.usage.get(what, 0) - owned
        if added:
            amount += added.get(what, 0)
        if amount > 0:
            borrowed[what[1]] = borrowed.get(what[1], 0) + amount
    if not borrowed:
        return NONE
    ratio, dominant = 0.0, ""
    lendable = node.parent.lendable()
    for resource in sorted(borrowed):
        lent = lendable.get(resource, 0)
        if lent > 0 and (borrowed[resource] * 1000 / lent > ratio or not dominant):
            ratio, dominant = borrowed[resource] * 1000 / lent, resource
    if node.weight == 0:
        return Share(True, ratio, True, dominant)
    return Share(False, ratio / node.weight, True, dominant)
