"""What priority-based and fair preemption share: the attempt, its order, its fit, giving back."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from windtunnel.policies.kueue.usage import goes_by_usage, local_queue

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from windtunnel.policies.kueue.objects import Amounts, FlavorResource, Workload
    from windtunnel.policies.kueue.quota_tree import QuotaNode
    from windtunnel.policies.kueue.state import Holding, State
    from windtunnel.policies.kueue.usage import UsageBook

IN_QUEUE = "InClusterQueue"
RECLAIMED = "InCohortReclamation"
RECLAIMED_BORROWING = "InCohortReclaimWhileBorrowing"
FAIR = "InCohortFairSharing"


class Victim(NamedTuple):
    """A holding that must go, and why."""

    holding: Holding
    reason: str


class Attempt(NamedTuple):
    """Who wants what, and what of it is short.

    Attributes:
        state: quotas, topologies and who holds what.
        queue: the queue that asks.
        workload: the workload that asks.
        usage: what it would hold.
        short: the flavors and resources that it lacks.
        fits_topology: whether the topology has room for it as things stand; None = not asked.
        usage_book: what local queues used; None = it does not count.
    """

    state: State
    queue: QuotaNode
    workload: Workload
    usage: Amounts
    short: frozenset[FlavorResource]
    fits_topology: Callable[[], bool] | None = None
    usage_book: UsageBook | None = None

    def fits(self, *, borrowing: bool) -> bool:
        """Return whether it could start now, borrowing or not."""
        for what, amount in self.usage.items():
            if not borrowing and self.queue.would_borrow(what, amount):
                return False
            if amount > self.queue.available(what):
                return False
        return self.fits_topology is None or self.fits_topology()

    def passes(self, holding: Holding, policy: str) -> bool:
        """Return whether a policy lets a holding go for it, by priority and age."""
        mine, theirs = self.workload.priority, holding.workload.priority
        if policy == "Any" or theirs < mine:
            return policy != "Never"
        if policy != "LowerOrNewerEqualPriority" or theirs > mine:
            return False
        return _created(self.workload) < _created(holding.workload)

    def candidates(self, queue: QuotaNode, policy: str) -> list[Holding]:
        """Return a queue's holdings that use what is short and may go, by policy."""
        if policy == "Never":
            return []
        below = self.workload.priority + (policy == "LowerOrNewerEqualPriority")
        any_goes, hidden = policy == "Any", self.state.hidden
        return [
            holding
            for holding in self.state.holdings[queue]
            if (any_goes or holding.workload.priority < below)
            and holding not in hidden
            and holding.uses(self.short)
            and self.passes(holding, policy)
        ]

    def order(self, holding: Holding) -> tuple[bool, bool, float, int, float, str]:
        """Return what candidates are sorted by: who goes first comes first."""
        own, load = holding.queue is self.queue, 0.0
        if own and self.usage_book is not None and goes_by_usage(self.queue):
            load = -self.usage_book.load(local_queue(holding.workload))
        return (
            not holding.on_its_way,
            own,
            load,
            holding.workload.priority,
            -holding.reserved_at,
            holding.workload.uid,
        )

    def give_back(self, victims: list[Victim], *, borrowing: bool) -> list[Victim]:
        """Keep, latest first, whoever is not needed; the last one taken is.

        The slot of one that is kept is filled with the last of the list: the order in which the
        others are tried depends on it.
        """
        for index in range(len(victims) - 2, -1, -1):
            self.state.occupy(victims[index].holding)
            if self.fits(borrowing=borrowing):
                victims[index] = victims[-1]
                victims.pop()
            else:
                self.state.vacate(victims[index].holding)
        return victims

    def restore(self, victims: Iterable[Victim]) -> None:
        """Count again what the victims hold: they are still there."""
        for victim in victims:
            self.state.occupy(victim.holding)


def _created(workload: Workload) -> float:
    """Return when a workload came, s; those without a time came before everything."""
    return float("-inf") if workload.created is None else workload.created
