"""The tree of quotas: queues below cohorts, what each owns, lends, borrows and uses.

Source: Kueue's resource node (pkg/cache, Apache-2.0), restated: usage bubbles up past what a node
keeps for itself, and what may be used is what stays free on the way to the root.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from windtunnel.errors import SpecError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from windtunnel.policies.kueue.objects import (
        Amounts,
        ClusterQueue,
        Cohort,
        FlavorResource,
        ResourceGroup,
    )


class QuotaNode:
    """A queue or a cohort of the tree.

    Attributes:
        name: the queue's or cohort's.
        queue: the queue; None of a cohort.
        parent: the cohort above; None of a root.
        queues: the queues right below a cohort.
        cohorts: the cohorts right below.
        height: levels below it; 0 of a queue.
        nominal, borrowing_limit, lending_limit: its own quotas; no limit, no entry.
        subtree: what it and all below it own together and lend to each other.
        local: what of that nobody above may use.
        usage: what is used of its subtree, as far as it is known here.
    """

    def __init__(self, name: str, weight: float, queue: ClusterQueue | None = None) -> None:
        self.name = name
        self.weight = weight
        self.queue = queue
        self.parent: QuotaNode | None = None
        self.queues: list[QuotaNode] = []
        self.cohorts: list[QuotaNode] = []
        self.height = 0
        self.nominal: Amounts = {}
        self.borrowing_limit: Amounts = {}
        self.lending_limit: Amounts = {}
        self.subtree: Amounts = {}
        self.local: Amounts = {}
        self.usage: Amounts = {}
        self._lendable: dict[str, int] | None = None
        #: A queue's first group that covers each resource, and how many groups do.
        self.groups: dict[str, ResourceGroup] = {}
        self.times: dict[str, int] = {}
        for group in queue.resource_groups if queue is not None else ():
            for resource in group.covered:
                self.groups.setdefault(resource, group)
                self.times[resource] = self.times.get(resource, 0) + 1

    def own(self, groups: Iterable[ResourceGroup]) -> None:
        """Take the quotas of resource groups as its own."""
        for group in groups:
            for of_flavor in group.flavors:
                for resource, quota in of_flavor.quotas.items():
                    what = (of_flavor.flavor, resource)
                    self.nominal[what] = quota.nominal
                    if quota.borrowing_limit is not None:
                        self.borrowing_limit[what] = quota.borrowing_limit
                    if quota.lending_limit is not None:
                        self.lending_limit[what] = quota.lending_limit

    @property
    def asks(self) -> ClusterQueue:
        """The queue, of a node that asks for quota: only queues do."""
        if self.queue is None:
            raise TypeError(f"cohort {self.name!r} has no workloads")
        return self.queue

    @property
    def root(self) -> QuotaNode:
        """The top of its tree."""
        node = self
        while node.parent is not None:
            node = node.parent
        return node

    def above(self) -> Iterator[QuotaNode]:
        """Yield the cohorts above it, from its parent to the root."""
        node = self.parent
        while node is not None:
            yield node
            node = node.parent

    def below(self) -> Iterator[QuotaNode]:
        """Yield the queues of its subtree."""
        if self.queue is not None:
            yield self
        yield from self.queues
        for cohort in self.cohorts:
            yield from cohort.below()

    def sum_up(self) -> None:
        """Sum up the quotas of its subtree, its children's first."""
        self.subtree = dict(self.nominal)
        for child in (*self.cohorts, *self.queues):
            child.sum_up()
            self.height = max(self.height, child.height + 1)
            for what, amount in child.subtree.items():
                lent = amount - child.local.get(what, 0)
                self.subtree[what] = self.subtree.get(what, 0) + lent
        if self.parent is not None:
            self.local = {
                what: amount - self.lending_limit[what]
                for what, amount in self.subtree.items()
                if what in self.lending_limit and amount > self.lending_limit[what]
            }

    def available(self, what: FlavorResource) -> int:
        """Return how much more of it may be used here; above a queue it may be negative."""
        used, parent = self.usage.get(what, 0), self.parent
        if parent is None:
            free = self.subtree.get(what, 0) - used
        else:
            local = self.local.get(what, 0)
            free = parent.available(what)
            limit = self.borrowing_limit.get(what)
            if limit is not None:
                lent = self.subtree.get(what, 0) - local
                free = min(free, lent - max(0, used - local) + limit)
            free += max(0, local - used)
        return max(0, free) if self.queue is not None else free

    def potential(self, what: FlavorResource) -> int:
        """Return how much of it could ever be used here, were the whole tree empty."""
        if self.parent is None:
            return self.subtree.get(what, 0)
        most = self.local.get(what, 0) + self.parent.potential(what)
        limit = self.borrowing_limit.get(what)
        return most if limit is None else min(most, self.subtree.get(what, 0) + limit)

    def free_local(self, what: FlavorResource) -> int:
        """Return what is free of its part that nobody above may use."""
        return max(0, self.local.get(what, 0) - self.usage.get(what, 0))

    def use(self, what: FlavorResource, amount: int) -> None:
        """Use an amount; what exceeds its free local part is used of the parent."""
        past = amount - self.free_local(what)
        self.usage[what] = self.usage.get(what, 0) + amount
        if self.parent is not None and past > 0:
            self.parent.use(what, past)

    def give_back(self, what: FlavorResource, amount: int) -> None:
        """Give an amount back, first to the parent what is used of it."""
        used = self.usage.get(what, 0)
        past = used - self.local.get(what, 0)
        self.usage[what] = used - amount
        if self.parent is not None and past > 0:
            self.parent.give_back(what, min(amount, past))

    def use_all(self, amounts: Amounts) -> None:
        """Use several amounts."""
        for what, amount in amounts.items():
            self.use(what, amount)

    def give_back_all(self, amounts: Amounts) -> None:
        """Give several amounts back."""
        for what, amount in amounts.items():
            self.give_back(what, amount)

    def within(self, amounts: Amounts) -> bool:
        """Return whether the amounts fit in what its subtree owns and does not use."""
        return all(
            self.usage.get(what, 0) + amount <= self.subtree.get(what, 0)
            for what, amount in amounts.items()
        )

    def within_nominal(self, short: Iterable[FlavorResource]) -> bool:
        """Return whether it uses no more than its subtree owns of each."""
        for what in short:  # noqa: SIM110 - asked millions of times
            if self.usage.get(what, 0) > self.subtree.get(what, 0):
                return False
        return True

    def would_borrow(self, what: FlavorResource, amount: int) -> bool:
        """Return whether it would use more than it owns (a cohort: than its subtree) with it."""
        return self.usage.get(what, 0) + amount > self.subtree.get(what, 0)

    def fits(self, amounts: Amounts) -> bool:
        """Return whether the amounts may be used now."""
        return all(amount <= self.available(what) for what, amount in amounts.items())

    def lendable(self) -> dict[str, int]:
        """Return what could ever be used here, by resource; quotas do not change during a run."""
        if self._lendable is None:
            self._lendable = {}
            for what in self.root.subtree:
                amount = self._lendable.get(what[1], 0) + self.potential(what)
                self._lendable[what[1]] = amount
        return self._lendable

    def borrowing_level(self, what: FlavorResource, amount: int) -> tuple[int, bool]:
        """Return how high a request borrows, and whether it may reclaim below the root.

        The level is the height of the lowest subtree that owns enough, 0 = its own.
        """
        if self.parent is None or not self.would_borrow(what, amount):
            return 0, self.parent is not None
        rest = amount - self.free_local(what)
        node = self
        for node in self.above():
            if not node.would_borrow(what, rest):
                return node.height, node.parent is not None
            rest -= node.free_local(what)
        return node.height, False


class QuotaTree:
    """All queues and cohorts.

    Args:
        queues: the cluster queues.
        cohorts: those that are defined; one that is only named owns nothing.

    Raises:
        SpecError: a cycle of cohorts, or two of one name.
    """

    def __init__(self, queues: Iterable[ClusterQueue], cohorts: Iterable[Cohort] = ()) -> None:
        self.queues: dict[str, QuotaNode] = {}
        self.cohorts: dict[str, QuotaNode] = {}
        parents: dict[str, str] = {}
        for cohort in cohorts:
            node = QuotaNode(cohort.name, cohort.weight)
            node.own(cohort.resource_groups)
            self.cohorts[cohort.name] = node
            parents[cohort.name] = cohort.parent
        for name, parent in parents.items():
            if parent:
                self._below(self.cohorts[name], parent).cohorts.append(self.cohorts[name])
        for queue in queues:
            node = QuotaNode(queue.name, queue.weight, queue)
            node.own(queue.resource_groups)
            self.queues[queue.name] = node
            if queue.cohort:
                self._below(node, queue.cohort).queues.append(node)
        _refuse_cycles(self.cohorts)
        for node in (*self.cohorts.values(), *self.queues.values()):
            if node.parent is None:
                node.sum_up()

    def _below(self, node: QuotaNode, parent: str) -> QuotaNode:
        """Hang a node below a cohort, which begins to exist if it is only named."""
        node.parent = self.cohorts.setdefault(parent, QuotaNode(parent, 1.0))
        return node.parent

    def nodes(self) -> Iterator[QuotaNode]:
        """Yield all cohorts, then all queues."""
        yield from self.cohorts.values()
        yield from self.queues.values()


def _refuse_cycles(cohorts: dict[str, QuotaNode]) -> None:
    """Raise SpecError if a cohort is above itself."""
    sound: set[str] = set()
    for node in cohorts.values():
        path: dict[str, None] = {}
        above: QuotaNode | None = node
        while above is not None and above.name not in sound:
            if above.name in path:
                names = list(path)
                circle = " -> ".join([*names[names.index(above.name) :], above.name])
                raise SpecError("cohort", f"cohorts form a cycle: {circle}. Cut it at one parent.")
            path[above.name] = None
            above = above.parent
        sound.update(path)
