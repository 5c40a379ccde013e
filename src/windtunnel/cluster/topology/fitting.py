"""Which domains a request gets: required, preferred or unconstrained, in slices, with a leader.

Source: Kueue's topology-aware scheduling (Apache-2.0), restated: the tightest domain of the level
asked for, or as few as possible, and then down level by level.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from windtunnel.cluster.topology.asking import Share
from windtunnel.cluster.topology.balanced import balanced_shares
from windtunnel.cluster.topology.counts import count

if TYPE_CHECKING:
    from collections.abc import Sequence

    from windtunnel.cluster.topology.asking import Ask
    from windtunnel.cluster.topology.counts import Counts
    from windtunnel.cluster.topology.places import Path, Place
    from windtunnel.cluster.topology.tree import TopologyTree

#: More than any domain holds.
_MOST = np.iinfo(np.int64).max


class Fit(NamedTuple):
    """Where a request goes, or how much of it would.

    Attributes:
        pods: pods by leaf; None = refused.
        leader: the leader's leaf; None = there is none.
        fits_only: slices that would fit where it was refused.
    """

    pods: dict[Path, int] | None
    leader: Path | None = None
    fits_only: int = 0


def fit(
    tree: TopologyTree,
    ask: Ask,
    *,
    assumed: Sequence[Place] = (),
    empty: bool = False,
    mixed: bool = True,
    balanced: bool = False,
    allowed: np.ndarray | None = None,
) -> Fit:
    """Return where a request goes.

    Args:
        tree: the tree.
        ask: the request.
        assumed: what others that are placed at the same time take.
        empty: as if nothing were used.
        mixed: unconstrained requests fill the fullest domains first, not the emptiest.
        balanced: preferred requests are spread evenly over the fewest domains.
        allowed: which leaves count; bool array of shape (leaves,), None = all.
    """
    if not tree.num_leaves:
        return Fit(None)
    counts = count(
        tree, ask.slicing, ask.requests, ask.leader, assumed=assumed, empty=empty, allowed=allowed
    )
    filling = _Filling(tree, ask, counts, best_fit=not (ask.unconstrained and mixed))
    found: tuple[int, list[Share]] | None = None
    if balanced and not ask.required and not ask.unconstrained:
        found = balanced_shares(tree, ask, counts)
    even = found is not None
    if found is None:
        first = filling.first()
        if isinstance(first, int):
            return Fit(None, fits_only=first)
        found = first
    shares = filling.down(*found, apart=even)
    leaves = tree.paths[-1]
    leader = next((leaves[share.domain] for share in shares if share.leader), None)
    return Fit({leaves[share.domain]: share.pods for share in shares if share.pods}, leader)


class _Filling:
    """Domains taken in order until all slices stand.

    Args:
        tree: the tree.
        ask: the request.
        counts: what each domain could hold.
        best_fit: most slices first and the last domain the tightest; else the fewest first.
    """

    def __init__(self, tree: TopologyTree, ask: Ask, counts: Counts, *, best_fit: bool) -> None:
        self.tree = tree
        self.ask = ask
        self.counts = counts
        self.best_fit = best_fit
        self.size = ask.slicing.size

    def first(self) -> tuple[int, list[Share]] | int:
        """Return the level and the domains that hold all, or how many slices would fit."""
        needed, level = self.ask.pods // self.size, self.ask.level
        while True:
            whole = self._one(level, needed)
            if whole is not None:
                return level, [self._share(level, whole, needed)]
            if self.ask.required:
                units = (
                    self.counts.with_slices if self.ask.leader is not None else self.counts.slices
                )
                return int(units[level].max())
            if level == 0 or self.ask.unconstrained:
                break
            level -= 1
        taken = self._several(level, np.arange(len(self.tree.paths[level])), needed)
        return taken if isinstance(taken, int) else (level, taken)

    def _share(self, level: int, domain: int, slices: int) -> Share:
        """Return a domain's share of so many slices, with the leader if there is one."""
        return Share(domain, slices * self.ask.slicing.unit(level), self.ask.leader is not None)

    def _one(self, level: int, needed: int) -> int | None:
        """Return the one domain that holds all: of the fewest slices, then pods, then by name."""
        units = self.counts.with_slices[level]
        too_few = units < needed
        if self.ask.leader is not None:
            too_few |= self.counts.leaders[level] == 0
        held = np.where(too_few, _MOST, units)
        best = int(held.argmin())
        if held[best] == _MOST:
            return None
        if self.ask.slicing.is_pods:
            return best
        alike = np.flatnonzero(held == held[best])
        return int(alike[np.argmin(self.counts.with_pods[level][alike])])

    def order(self, level: int, domains: np.ndarray) -> np.ndarray:
        """Return domains in the order in which they are taken."""
        slices, pods = (of[level][domains] for of in (self.counts.slices, self.counts.pods))
        if level > self.ask.slicing.level:  # no slices are counted below theirs: fewest pods first
            slices = np.zeros_like(slices)
        elif self.best_fit:
            slices = -slices
        return domains[np.lexsort((pods, slices))]

    def _several(self, level: int, domains: np.ndarray, needed: int) -> list[Share] | int:
        """Take domains in order until all stands; returns how many slices fit if too few do."""
        pods = needed * self.ask.slicing.unit(level)
        shares = self._among(level, domains, pods, leader=self.ask.leader is not None)
        placed = sum(share.pods for share in shares) // self.ask.slicing.unit(level)
        return shares if placed == needed else placed

    def _tightest(self, level: int, order: np.ndarray, rest: int, *, with_leader: bool) -> int:
        """Return the first of the order or, if it holds all that is left, the tightest so."""
        units = (self.counts.with_slices if with_leader else self.counts.slices)[level][order]
        if not self.best_fit or units[0] < rest:
            return int(order[0])
        can = units >= rest
        if with_leader:
            can &= self.counts.leaders[level][order] > 0
        return int(order[np.argmin(np.where(can, units, _MOST))])

    def take(self, level: int, order: np.ndarray, needed: int) -> list[Share]:
        """Take domains in order, the last one the tightest, until so many units stand."""
        if needed <= 0 or not len(order):
            return []
        unit = self.ask.slicing.unit(level)
        held = self.counts.slices[level][order]
        order, held = order[held > 0], held[held > 0]
        total = np.cumsum(held)
        last = int(np.searchsorted(total, needed))
        shares = [
            Share(int(domain), int(amount) * unit)
            for domain, amount in zip(order[:last].tolist(), held[:last].tolist(), strict=True)
        ]
        if last < len(order):
            rest = needed - int(total[last] - held[last])
            tightest = self._tightest(level, order[last:], rest, with_leader=False)
            shares.append(Share(tightest, rest * unit))
        return shares

    def down(self, level: int, shares: list[Share], *, apart: bool = False) -> list[Share]:
        """Hand the shares of a level down to the leaves.

        Args:
            level: the level.
            shares: the shares of its domains.
            apart: each domain keeps its own share; else the children of all above the slice level
                are one lot.
        """
        while level + 1 < len(self.tree.levels):
            if level < self.ask.slicing.level and not apart:
                below = np.sort(np.concatenate([self._children(level, share) for share in shares]))
                leader = any(share.leader for share in shares)
                pods = sum(share.pods for share in shares)
                shares = self._among(level + 1, below, pods, leader=leader)
            else:
                shares = [
                    part
                    for share in shares
                    for part in self._among(
                        level + 1, self._children(level, share), share.pods, leader=share.leader
                    )
                ]
            level += 1
        return shares

    def _children(self, level: int, share: Share) -> np.ndarray:
        """Return a domain's children."""
        span = self.tree.children(level, share.domain)
        return np.arange(span.start, span.stop)

    def _among(self, level: int, domains: np.ndarray, pods: int, *, leader: bool) -> list[Share]:
        """Share pods, and perhaps the leader, among domains of a level."""
        unit = self.ask.slicing.unit(level)
        needed = pods // unit
        if not leader:
            return self.take(level, self.order(level, domains), needed)
        order = self._leader_first(level, self.order(level, domains), needed)
        if not len(order):
            return []
        first = self._tightest(level, order, needed, with_leader=True)
        held = min(needed, int(self.counts.with_slices[level][first]))
        rest = self.order(level, domains[domains != first])
        return [Share(first, held * unit, True), *self.take(level, rest, needed - held)]

    def _leader_first(self, level: int, order: np.ndarray, needed: int) -> np.ndarray:
        """Move a domain for the leader to the front; an empty order if it can stand nowhere.

        It is the first whose loss leaves enough, one that the leader would fill alone last.
        """
        slices, beside = self.counts.slices[level][order], self.counts.with_slices[level][order]
        loss = slices - beside
        can = (self.counts.leaders[level][order] > 0) & (slices.sum() - loss >= needed)
        if not can.any():
            return order[:0]
        shared = can & ((beside > 0) | (loss == 0))
        front = int(np.argmax(shared if shared.any() else can))
        return np.concatenate([order[front : front + 1], np.delete(order, front)])
