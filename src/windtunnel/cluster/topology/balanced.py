"""Balanced placement: a preferred request spread evenly over the fewest domains.

Source: Kueue's balanced placement (gate ``TASBalancedPlacement``, Apache-2.0), restated.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from windtunnel.cluster.topology.asking import Share

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from windtunnel.cluster.topology.asking import Ask
    from windtunnel.cluster.topology.counts import Counts
    from windtunnel.cluster.topology.tree import TopologyTree


@dataclass
class Domain:
    """What a domain could hold, as far as it was not removed.

    Attributes:
        index: its number in its level.
        pods, slices, with_pods, with_slices, leader: see `Counts`.
        below: its children, where slices are counted there.
    """

    index: int
    pods: int
    slices: int
    with_pods: int
    with_slices: int
    leader: bool
    below: list[Domain] = field(default_factory=list)

    def remove_below(self, threshold: int) -> None:
        """Remove what holds fewer slices; with the leader fewer: it keeps its workers only."""
        if self.slices < threshold:
            self.pods = self.slices = self.with_pods = self.with_slices = 0
            self.leader = False
        elif self.with_slices < threshold:
            self.with_pods, self.with_slices, self.leader = self.pods, self.slices, False

    def sum_up(self, size: int, *, slices: bool) -> None:
        """Make its sums anew from its children; slices are counted here if ``slices``."""
        able = [child for child in self.below if child.leader]
        self.pods = sum(child.pods for child in self.below)
        loss = min((child.pods - child.with_pods for child in able), default=0)
        self.with_pods = self.pods - loss
        self.leader = bool(able)
        if slices:
            self.slices, self.with_slices = self.pods // size, self.with_pods // size
        else:
            self.slices = sum(child.slices for child in self.below)
            loss = min((child.slices - child.with_slices for child in able), default=0)
            self.with_slices = self.slices - loss

    @property
    def entropy(self) -> float:
        """The entropy of its children's pods, bits."""
        total = sum(child.pods for child in self.below)
        shares = [child.pods / total for child in self.below if child.pods] if total else []
        return -sum(share * math.log2(share) for share in shares)


@dataclass
class Greedy:
    """Domains taken in order until all stands.

    Attributes:
        taken: how many.
        with_leader: the last one with a leader.
        last: the last one without.
    """

    taken: int
    with_leader: Domain | None
    last: Domain | None

    def threshold(self, slices: int) -> int:
        """Return how many slices each of so many domains gets at least."""
        value = slices // self.taken
        if self.last is not None:
            value = min(value, self.last.slices)
        if self.with_leader is not None:
            value = min(value, self.with_leader.with_slices)
        return value


def balanced_shares(tree: TopologyTree, ask: Ask, counts: Counts) -> tuple[int, list[Share]] | None:
    """Return the level and the shares of the domains chosen, None if balance cannot be had.

    Args:
        tree: the tree.
        ask: a preferred request.
        counts: what each domain could hold.
    """
    needed = ask.pods // ask.slicing.size
    best: tuple[int, int, list[Domain]] | None = None
    for domains in _candidates(tree, ask, counts):
        found = _balance(domains, ask, needed)
        if found is not None and (best is None or (-found[0], found[1]) < (-best[0], best[1])):
            best = found
    if best is None:
        return None
    threshold, _, domains = best
    level = ask.level
    if level < ask.slicing.level:
        order = sorted(domains, key=lambda d: (-d.with_slices, -d.entropy, d.index))
        chosen = _fewest(order, ask, needed)
        if chosen is None:
            return None
        domains = [child for domain in chosen for child in domain.below]
        level += 1
    chosen = _fewest(sorted(domains, key=lambda d: d.index), ask, needed)
    if chosen is None:
        return None
    shares = _spread(chosen, ask, needed, threshold)
    return None if shares is None else (level, shares)


def _candidates(tree: TopologyTree, ask: Ask, counts: Counts) -> Iterator[list[Domain]]:
    """Yield the sets of domains to balance over: the children of each domain above."""

    def made(level: int, index: int) -> Domain:
        below: list[Domain] = []
        if level == ask.level and level < ask.slicing.level:
            span = tree.children(level, index)
            below = [made(level + 1, child) for child in range(span.start, span.stop)]
        return Domain(
            index,
            int(counts.pods[level][index]),
            int(counts.slices[level][index]),
            int(counts.with_pods[level][index]),
            int(counts.with_slices[level][index]),
            bool(counts.leaders) and bool(counts.leaders[level][index]),
            below,
        )

    if ask.level == 0:
        yield [made(0, index) for index in range(len(tree.paths[0]))]
        return
    for above in range(len(tree.paths[ask.level - 1])):
        span = tree.children(ask.level - 1, above)
        yield [made(ask.level, index) for index in range(span.start, span.stop)]


def _balance(domains: list[Domain], ask: Ask, needed: int) -> tuple[int, int, list[Domain]] | None:
    """Return threshold, domains used and what is left of a set; None if it cannot be balanced."""
    deep = ask.level < ask.slicing.level
    first = _greedy(_lower(domains, deep=deep), ask, needed)
    if first is None:
        return None
    threshold = first.threshold(needed)
    left = _removed(domains, ask, threshold)
    found = _greedy(_lower(left, deep=deep), ask, needed)
    if found is None and ask.leader is not None and first.last is not None:
        threshold = min(threshold, first.last.with_slices)
        left = _removed(domains, ask, threshold)
        found = _greedy(_lower(left, deep=deep), ask, needed)
    if found is None or threshold <= 0:
        return None
    used = _greedy(left, ask, needed)
    return None if used is None else (threshold, used.taken, left)


def _lower(domains: list[Domain], *, deep: bool) -> list[Domain]:
    """Return the domains that slices are given to: the children, where slices are counted there."""
    return [child for domain in domains for child in domain.below] if deep else domains


def _removed(domains: list[Domain], ask: Ask, threshold: int) -> list[Domain]:
    """Return copies of domains without what holds fewer slices than the threshold."""
    left = [replace(d, below=[replace(child) for child in d.below]) for d in domains]
    for domain in left:
        for child in domain.below:
            child.remove_below(threshold)
        if domain.below:
            domain.sum_up(ask.slicing.size, slices=ask.level == ask.slicing.level)
        domain.remove_below(threshold)
    return left


def _greedy(domains: Sequence[Domain], ask: Ask, needed: int) -> Greedy | None:
    """Take domains, most slices first, until all stands; None if they hold too little."""
    waiting = list(domains)
    taken, with_leader, last = 0, None, None
    if ask.leader is not None:
        waiting.sort(key=lambda d: (not d.leader, -d.with_slices, d.with_pods, d.index))
        if not waiting or not waiting[0].leader:
            return None
        with_leader = waiting.pop(0)
        taken, needed = 1, needed - with_leader.with_slices
    waiting.sort(key=lambda d: (-d.slices, d.pods, d.index))
    for domain in waiting:
        if needed <= 0 or not domain.slices:
            break
        taken, needed, last = taken + 1, needed - domain.slices, domain
    return None if needed > 0 else Greedy(taken, with_leader, last)


def _fewest(domains: list[Domain], ask: Ask, needed: int) -> list[Domain] | None:
    """Return the fewest domains with the least surplus, of equals the first found."""
    greedy = _greedy(domains, ask, needed)
    if greedy is None:
        return None
    leaders = int(ask.leader is not None)
    found: list[dict[tuple[int, int], tuple[Domain, ...]]] = [{} for _ in range(greedy.taken + 1)]
    found[0][leaders, needed] = ()
    for domain in domains:
        for number in range(greedy.taken, 0, -1):
            before = sorted(found[number - 1].items(), key=lambda item: -item[0][0])
            for (waits, rest), chosen in before:
                if rest <= 0 and not waits:
                    continue
                if waits and domain.leader:
                    key = (0, rest - domain.with_slices)
                    found[number].setdefault(key, (*chosen, domain))
                if domain.slices:
                    key = (waits, rest - domain.slices)
                    found[number].setdefault(key, (*chosen, domain))
    fits = [rest for waits, rest in found[greedy.taken] if not waits and rest <= 0]
    return list(found[greedy.taken][0, max(fits)]) if fits else None


def _spread(domains: list[Domain], ask: Ask, needed: int, threshold: int) -> list[Share] | None:
    """Give each domain the threshold, and the rest front to back."""
    leader = ask.leader is not None
    order: Callable[[Domain], tuple[int, ...]] = lambda d: (  # noqa: E731 - a key of two lines
        (not d.leader, -d.with_slices, d.with_pods, d.index)
        if leader
        else (-d.slices, d.pods, d.index)
    )
    extra = needed - threshold * len(domains)
    shares = []
    for domain in sorted(domains, key=order):
        holds = leader and domain.leader
        most = domain.with_slices if holds else domain.slices
        more = min(extra, most - threshold)
        if more < 0:
            return None
        shares.append(Share(domain.index, (threshold + more) * ask.slicing.size, holds))
        extra -= more
        leader = leader and not holds
    return shares if extra == 0 and not leader else None
