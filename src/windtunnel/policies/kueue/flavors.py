"""Which flavor each resource of a workload is tried on, and whether it fits or others must go.

Source: Kueue's flavor assigner with flavor fungibility (Apache-2.0), restated.
"""

from __future__ import annotations

from enum import IntEnum
from typing import TYPE_CHECKING, NamedTuple

import msgspec

from windtunnel.policies.kueue.eligibility import selected, tolerated

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from windtunnel.policies.kueue.objects import (
        Flavor,
        FlavorResource,
        Fungibility,
        PodSet,
        ResourceGroup,
        Workload,
    )
    from windtunnel.policies.kueue.quota_tree import QuotaNode
    from windtunnel.policies.kueue.state import State


class Mode(IntEnum):
    """How a resource fits in a flavor, the worst first."""

    NO_FIT = 0
    NO_CANDIDATES = 1
    PREEMPT = 2
    RECLAIM = 3
    FIT = 4

    @property
    def label(self) -> str:
        """Kueue's word for it."""
        return {Mode.NO_FIT: "NoFit", Mode.FIT: "Fit"}.get(self, "Preempt")


class Chosen(NamedTuple):
    """A resource's flavor.

    Attributes:
        flavor: the flavor.
        mode: how it fits.
        level: how high it borrows.
        tried: the flavor of its group that was tried last; -1 = all were.
    """

    flavor: str
    mode: Mode
    level: int = 0
    tried: int = -1


class Assignment(msgspec.Struct, eq=False):
    """What a workload would hold.

    Attributes:
        flavors: by pod set, the flavor of each resource.
        counts: by pod set, its pods.
        usage: by flavor and resource.
        mode: the worst of all.
        tried: where the scan goes on, by pod set's number and resource.
        refused: why, where no flavor fits.
    """

    flavors: dict[str, dict[str, Chosen]] = {}
    counts: dict[str, int] = {}
    usage: dict[tuple[str, str], int] = {}
    mode: Mode = Mode.FIT
    tried: dict[tuple[int, str], int] = {}
    refused: str = ""

    @property
    def level(self) -> int:
        """How high it borrows."""
        return max((c.level for of in self.flavors.values() for c in of.values()), default=0)

    @property
    def short(self) -> frozenset[FlavorResource]:
        """What others must give way for."""
        return frozenset(
            (chosen.flavor, resource)
            for of in self.flavors.values()
            for resource, chosen in of.items()
            if Mode.NO_FIT < chosen.mode < Mode.FIT
        )

    @property
    def flavors_left(self) -> bool:
        """Whether flavors after the last tried one are left."""
        return any(tried >= 0 for tried in self.tried.values())

    def lower(self, pod_set: str, mode: Mode) -> None:
        """Let a pod set fit no better than so, on all its flavors."""
        of = self.flavors[pod_set]
        for resource, chosen in of.items():
            of[resource] = chosen._replace(mode=min(chosen.mode, mode))
        self.mode = min(self.mode, mode)


class FlavorSearch:
    """The search for a workload's flavors.

    Args:
        state: quotas and topologies.
        queue: the workload's queue.
        workload: the workload.
        simulate: who would go for one flavor's resource alone.
        tried: the flavors tried last, of the last cycle's `Assignment`.
        fixed: keep to the flavors of this assignment; None = seek them.
    """

    def __init__(
        self,
        state: State,
        queue: QuotaNode,
        workload: Workload,
        simulate: Callable[[FlavorResource, int], tuple[Mode, int]],
        *,
        tried: dict[tuple[int, str], int] | None = None,
        fixed: Assignment | None = None,
    ) -> None:
        self.state = state
        self.node = queue
        self.queue = queue.asks
        self.workload = workload
        self.simulate = simulate
        self.tried = (tried or {}) if fixed is None else {}
        self.fixed = fixed
        self.groups, self.times = queue.groups, queue.times

    def assign(self, counts: Sequence[int] | None = None) -> Assignment:
        """Return the flavors.

        Args:
            counts: the pods of each pod set; None = all.
        """
        pod_sets = self.workload.pod_sets
        found = Assignment(flavors={}, counts={}, usage={}, tried={})
        for number, pod_set in enumerate(pod_sets):
            found.counts[pod_set.name] = counts[number] if counts else self._pods(pod_set)
        for members in _gangs(pod_sets):
            wanted = [self._wanted(pod_sets[n], found.counts[pod_sets[n].name]) for n in members]
            chosen = self._of_gang(members, wanted, found)
            if chosen is None:
                found.mode = Mode.NO_FIT
                return found
            for number, amounts in zip(members, wanted, strict=True):
                self._record(found, number, amounts, chosen)
        return found

    def _pods(self, pod_set: PodSet) -> int:
        """Return how many of a pod set's pods are still needed."""
        done = self.workload.reclaimable_pods if self.state.gates.reclaimable_pods else {}
        return pod_set.count - done.get(pod_set.name, 0)

    def _wanted(self, pod_set: PodSet, count: int) -> dict[str, int]:
        """Return what a pod set's pods need; nothing of a resource that no group covers is free."""
        wanted = {resource: amount * count for resource, amount in pod_set.requests.items()}
        if "pods" in self.groups:
            wanted["pods"] = count
        return {r: amount for r, amount in wanted.items() if amount or r in self.groups}

    def _record(
        self, found: Assignment, number: int, amounts: dict[str, int], chosen: dict[str, Chosen]
    ) -> None:
        """Record a pod set's flavors, and what they add to the usage."""
        of = {resource: chosen[resource] for resource in amounts}
        found.flavors[self.workload.pod_sets[number].name] = of
        for resource, choice in of.items():
            what = (choice.flavor, resource)
            found.usage[what] = found.usage.get(what, 0) + amounts[resource]
            found.tried[number, resource] = choice.tried
            found.mode = min(found.mode, choice.mode)

    def _of_gang(
        self, members: list[int], wanted: list[dict[str, int]], found: Assignment
    ) -> dict[str, Chosen] | None:
        """Return the flavors of the resources of pod sets that stand together, or None."""
        total: dict[str, int] = {}
        for amounts in wanted:
            for resource, amount in amounts.items():
                total[resource] = total.get(resource, 0) + amount
        chosen: dict[str, Chosen] = {}
        for resource in sorted(total, key=lambda resource: self.times.get(resource, 0)):
            if resource in chosen:
                continue
            group = self.groups.get(resource)
            if group is None:
                found.refused = f"queue {self.queue.name!r} has no quota of {resource!r}"
                return None
            of_group = {r: a for r, a in total.items() if r in group.covered and r not in chosen}
            first = self.tried.get((members[0], resource), -1) + 1
            best = self._scan(group, of_group, members, first, found)
            if best is None:
                found.refused = found.refused or f"no flavor has room for {resource!r}"
                return None
            chosen |= best
        return chosen

    def _scan(
        self,
        group: ResourceGroup,
        wanted: dict[str, int],
        members: list[int],
        first: int,
        found: Assignment,
    ) -> dict[str, Chosen] | None:
        """Return the best of a group's flavors from the first to try on; None = none has room."""
        rule = self.queue.fungibility
        best: dict[str, Chosen] | None = None
        best_worth = (Mode.NO_FIT, 0)
        tried = first - 1
        for tried in range(first, len(group.flavors)):
            flavor = self.state.flavors.get(group.flavors[tried].flavor)
            if flavor is None or not self._eligible(flavor, members):
                continue
            if not self._kept(flavor, wanted, members):
                continue
            choice, worth = self._try(flavor.name, wanted, found, rule)
            stop = not _goes_on(worth, rule)
            if stop or _better(worth, best_worth, rule):
                best, best_worth = choice, worth
            if stop:
                break
        if best is None:
            return None
        last = -1 if tried == len(group.flavors) - 1 else tried
        return {r: chosen._replace(tried=last) for r, chosen in best.items()}

    def _kept(self, flavor: Flavor, wanted: dict[str, int], members: list[int]) -> bool:
        """Return whether resources may stand on a flavor: if they are to stay, only on theirs."""
        if self.fixed is None:
            return True
        stay = [self.fixed.flavors.get(self.workload.pod_sets[n].name, {}) for n in members]
        return any(r in of and of[r].flavor == flavor.name for of in stay for r in wanted)

    def _try(
        self, flavor: str, wanted: dict[str, int], found: Assignment, rule: Fungibility
    ) -> tuple[dict[str, Chosen], tuple[Mode, int]]:
        """Return a flavor's choice for all resources of a group, and its worst mode and level."""
        choice: dict[str, Chosen] = {}
        worst = (Mode.FIT, 0)
        for resource, amount in wanted.items():
            what = (flavor, resource)
            worth = self._fits(what, amount + found.usage.get(what, 0))
            if _better(worst, worth, rule):
                worst = worth
            if worth[0] is Mode.NO_FIT:
                return {}, worth
            choice[resource] = Chosen(flavor, *worth)
        return choice, worst

    def _fits(self, what: FlavorResource, amount: int) -> tuple[Mode, int]:
        """Return how an amount of one flavor's resource fits, and how high it borrows."""
        if amount > self.node.potential(what):
            return Mode.NO_FIT, 0
        level, reclaims = self.node.borrowing_level(what, amount)
        if amount <= self.node.available(what):
            return Mode.FIT, level
        if amount <= self.node.nominal.get(what, 0) or reclaims or self._preempts_borrowing():
            return self.simulate(what, amount)
        return Mode.NO_FIT, level

    def _preempts_borrowing(self) -> bool:
        """Return whether the queue may preempt while it borrows."""
        rules = self.queue.preemption
        if rules.borrow_within_cohort.policy != "Never":
            return True
        return bool(self.state.fair) and rules.reclaim_within_cohort != "Never"

    def _eligible(self, flavor: Flavor, members: list[int]) -> bool:
        """Return whether pod sets that stand together may use a flavor."""
        return all(self._may_use(self.workload.pod_sets[number], flavor) for number in members)

    def _may_use(self, pod_set: PodSet, flavor: Flavor) -> bool:
        """Return whether a pod set may use a flavor; found once for each."""
        known = self.state.may_use.setdefault(id(pod_set), (pod_set, {}))[1]
        key = (self.queue.name, flavor.name)
        if key not in known:
            known[key] = (
                self._has_levels(pod_set, flavor)
                and tolerated(flavor.taints, (*pod_set.tolerations, *flavor.tolerations))
                and selected(pod_set, flavor.node_labels, flavor.node_labels.keys())
            )
        return known[key]

    def _has_levels(self, pod_set: PodSet, flavor: Flavor) -> bool:
        """Return whether a flavor's topology has the levels that a pod set asks for."""
        if not self.state.gates.topology_aware_scheduling:
            return True
        asked, tree = pod_set.topology, self.state.topologies.get(flavor.name)
        if not asked or not asked.places:
            return not flavor.topology or self.only_topologies
        return tree is not None and all(level in tree.levels for level in asked.named_levels)

    @property
    def only_topologies(self) -> bool:
        """Whether all flavors of the queue have a topology: every workload of it is placed."""
        flavors = [of.flavor for group in self.queue.resource_groups for of in group.flavors]
        known = [self.state.flavors[name] for name in flavors if name in self.state.flavors]
        return bool(known) and all(flavor.topology for flavor in known)


def _gangs(pod_sets: Sequence[PodSet]) -> Iterator[list[int]]:
    """Yield the numbers of pod sets that stand together."""
    of: dict[str, list[int]] = {}
    for number, pod_set in enumerate(pod_sets):
        of.setdefault(pod_set.gang or f"\0{number}", []).append(number)
    yield from of.values()


def _worth(worth: tuple[Mode, int], rule: Fungibility) -> tuple[int, int, int]:
    """Return what modes with levels are compared by, better is larger."""
    mode, level = worth
    kind = min(mode, Mode.PREEMPT)  # no fit, no candidates, the rest
    if rule.preference == "PreemptionOverBorrowing":
        return kind, -level, mode
    return kind, mode, -level


def _better(one: tuple[Mode, int], other: tuple[Mode, int], rule: Fungibility) -> bool:
    """Return whether one mode with its level is better than another."""
    if one[0] is Mode.NO_FIT or other[0] is Mode.NO_FIT:
        return one[0] is not Mode.NO_FIT and other[0] is Mode.NO_FIT
    return _worth(one, rule) > _worth(other, rule)


def _goes_on(worth: tuple[Mode, int], rule: Fungibility) -> bool:
    """Return whether the search goes on past a flavor."""
    mode, level = worth
    if mode <= Mode.NO_CANDIDATES:
        return True
    if mode < Mode.FIT and rule.when_can_preempt == "TryNextFlavor":
        return True
    return level > 0 and rule.when_can_borrow == "TryNextFlavor"
