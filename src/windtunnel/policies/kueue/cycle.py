"""One scheduling cycle: the head of each queue, who starts, who must go, who is tried again.

Source: Kueue's scheduler (Apache-2.0), restated.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import msgspec

from windtunnel.policies.kueue.flavors import Mode
from windtunnel.policies.kueue.nominating import Nomination, Nominator
from windtunnel.policies.kueue.ordering import by_share, by_time
from windtunnel.policies.kueue.state import Holding
from windtunnel.policies.kueue.usage import goes_by_usage, local_queue
from windtunnel.policies.kueue.waiting import Line, Pending, pending

if TYPE_CHECKING:
    from windtunnel.policies.kueue.objects import Workload
    from windtunnel.policies.kueue.preempting import Victim
    from windtunnel.policies.kueue.quota_tree import QuotaNode
    from windtunnel.policies.kueue.state import State
    from windtunnel.policies.kueue.usage import UsageBook


class Changes(NamedTuple):
    """What a cycle changed.

    Attributes:
        admitted: who starts, in the order of the decisions.
        preempted: who must go, and why.
        tried: how many heads were looked at.
    """

    admitted: list[Nomination]
    preempted: list[Victim]
    tried: int


class Scheduler:
    """Queues of workloads, and the cycles that empty them.

    Args:
        state: quotas, topologies and who holds what.
        usage: what local queues used, where queues go by it.
    """

    def __init__(self, state: State, usage: UsageBook | None = None) -> None:
        self.state = state
        self.usage = usage if state.gates.admission_fair_sharing else None
        self.nominator = Nominator(state, self.usage)
        self.lines = {
            node: Line(node, self._load if self._by_usage(node) else None)
            for node in state.tree.queues.values()
        }
        self.ready: dict[QuotaNode, None] = {}
        self.cycles = 0

    def submit(self, workload: Workload, queue: str) -> Pending:
        """Let a workload wait in a cluster queue."""
        node = self.state.tree.queues[queue]
        waits = pending(workload, by_local_queue=self._by_usage(node))
        self.resubmit(waits, node)
        return waits

    def _by_usage(self, node: QuotaNode) -> bool:
        """Return whether a queue's workloads go by the use of their local queues."""
        return self.usage is not None and goes_by_usage(node)

    def _load(self, waits: Pending) -> float:
        """Return the use of a workload's local queue."""
        return self.usage.load(local_queue(waits.workload)) if self.usage is not None else 0.0

    def resubmit(self, waits: Pending, node: QuotaNode) -> None:
        """Let a workload wait again, as old as it is; its search begins at the first flavor."""
        waits.tried = {}
        self.lines[node].push(waits)
        self.ready[node] = None

    def release(self, holding: Holding) -> None:
        """Let a holding end; whoever waits for room in its tree of cohorts is tried again."""
        self.state.remove(holding)
        self.wake(holding.queue)

    def wake(self, node: QuotaNode) -> None:
        """Try again all that were set aside in a queue's tree of cohorts."""
        for queue in node.root.below():
            if self.lines[queue].wake():
                self.ready[queue] = None

    def wake_all(self) -> None:
        """Try again all that were set aside: nodes are back."""
        for queue, line in self.lines.items():
            if line.wake():
                self.ready[queue] = None

    def cycle(self) -> Changes:
        """Run one cycle; whoever is admitted holds quota and places, whoever must go is evicted."""
        self.cycles += 1
        heads = self._heads()
        order = by_share if self.state.fair else by_time
        round_ = _Round(self)
        for nomination in order(self.state, [self._nominate(*head) for head in heads]):
            round_.process(nomination)
        round_.finish()
        return Changes(round_.admitted, list(round_.victims), len(heads))

    @property
    def num_active(self) -> int:
        """How many are tried again in the next cycles."""
        return sum(self.lines[node].num_active for node in self.ready)

    def _heads(self) -> list[tuple[Pending, QuotaNode]]:
        """Take the head of each queue that has one."""
        heads = []
        for node in list(self.ready):
            head = self.lines[node].head() if node.queue and not self.held(node) else None
            if head is None:
                del self.ready[node]
                continue
            self.lines[node].take(head)
            heads.append((head, node))
        return heads

    def held(self, node: QuotaNode) -> bool:
        """Return whether a queue is stopped."""
        return node.queue is not None and node.queue.stop_policy in ("Hold", "HoldAndDrain")

    def _nominate(self, waits: Pending, node: QuotaNode) -> Nomination:
        """Return what a head would hold, the search for flavors where the last one stopped."""
        version = self.state.version(node)
        if waits.seen is not None:
            cycle, seen = waits.seen
            if cycle + 1 < self.cycles and seen != version:
                waits.tried = {}
        found = self.nominator.nominate(waits, node)
        waits.tried = found.assignment.tried
        waits.seen = (self.cycles, version)
        return found

    def back(self, nomination: Nomination, *, at_once: bool) -> None:
        """Put a head back: to be tried again, or aside with all of its shape."""
        line = self.lines[nomination.queue]
        if line.strict or at_once or nomination.assignment.flavors_left:
            line.push(nomination.pending)
            self.ready[nomination.queue] = None
        else:
            line.put_aside(nomination.pending)


class _Round:
    """The heads of one cycle, one by one, with the usage of the earlier ones.

    Args:
        scheduler: whose cycle it is.
    """

    def __init__(self, scheduler: Scheduler) -> None:
        self.scheduler = scheduler
        self.state = scheduler.state
        self.admitted: list[Nomination] = []
        self.victims: list[Victim] = []
        self.going: set[Holding] = set()
        self.held: list[Holding] = []

    def process(self, nomination: Nomination) -> None:
        """Admit a head, let others go for it, or put it back."""
        if nomination.mode < Mode.FIT and not nomination.victims:
            self._without_victims(nomination)
            return
        if any(victim.holding in self.going for victim in nomination.victims):
            if not self.state.gates.recompute_assignment_upon_preemption_targets_overlap:
                self.scheduler.back(nomination, at_once=True)
                return
            nomination = self._again(nomination)
            if nomination.mode is Mode.FIT:  # it fits once the others are gone
                self._count(holding_of(nomination))
                self.scheduler.back(nomination, at_once=True)
                return
        elif not self._fits(nomination):
            if not self._may_move(nomination):
                self.scheduler.back(nomination, at_once=True)
                return
            nomination = self.scheduler.nominator.again(nomination)
            if any(victim.holding in self.going for victim in nomination.victims):
                self.scheduler.back(nomination, at_once=True)
                return
        if nomination.mode is Mode.FIT or nomination.victims:
            self._start(nomination)
        else:
            self._without_victims(nomination)

    def _start(self, nomination: Nomination) -> None:
        """Let a head start, or let others go for it, if it still fits."""
        if not self._fits(nomination):
            self.scheduler.back(nomination, at_once=True)
        elif nomination.victims:
            self._preempt(nomination)
        else:
            self._admit(nomination)

    def _may_move(self, nomination: Nomination) -> bool:
        """Return whether only its places are taken, and it may seek others."""
        return (
            bool(nomination.places)
            and self.state.gates.tas_recompute_assignment_within_scheduling_cycle
            and self._fits(nomination, anywhere=True)
        )

    def _again(self, nomination: Nomination) -> Nomination:
        """Seek anew on the same flavors, as if those that must go were gone."""
        with self.state.gone(self.going):
            return self.scheduler.nominator.again(nomination)

    def _without_victims(self, nomination: Nomination) -> None:
        """Put back a head that does not fit and finds nobody to go."""
        if nomination.mode is not Mode.NO_FIT:
            self._reserve(nomination)
        self.scheduler.back(nomination, at_once=False)

    def _reserve(self, nomination: Nomination) -> None:
        """Keep the quota of a head that finds nobody to go, unless it can always reclaim it."""
        if nomination.queue.asks.preemption.reclaim_within_cohort == "Any":
            return
        node, kept = nomination.queue, {}
        for what, amount in nomination.assignment.usage.items():
            used, owned = node.usage.get(what, 0), node.nominal.get(what, 0)
            limit = node.borrowing_limit.get(what)
            if nomination.assignment.level == 0:
                kept[what] = max(0, min(amount, owned - used))
            else:
                kept[what] = amount if limit is None else min(amount, owned + limit - used)
        self._count(msgspec.structs.replace(holding_of(nomination), usage=kept))

    def _count(self, holding: Holding) -> None:
        """Count what a head would hold, until the cycle is over."""
        self.state.occupy(holding)
        self.held.append(holding)

    def _fits(self, nomination: Nomination, *, anywhere: bool = False) -> bool:
        """Return whether it still fits, in its places or anywhere, without those that go."""
        if not self.held:  # nothing has changed since it was nominated
            return True
        going = [victim.holding for victim in nomination.victims]
        with self.state.gone([*self.going, *going]):
            if not nomination.queue.fits(nomination.assignment.usage):
                return False
            return anywhere or self.state.are_free(nomination.places.values())

    def _preempt(self, nomination: Nomination) -> None:
        """Tell the victims to go; the head is tried again when they are gone."""
        self._count(holding_of(nomination))
        self.victims += nomination.victims
        self.going.update(victim.holding for victim in nomination.victims)
        nomination.pending.tried = {}
        line = self.scheduler.lines[nomination.queue]
        if not line.strict:
            line.sticky = nomination.pending
        self.scheduler.back(nomination, at_once=True)

    def _admit(self, nomination: Nomination) -> None:
        """Let a head start."""
        self._count(holding_of(nomination))
        self.admitted.append(nomination)
        line = self.scheduler.lines[nomination.queue]
        if line.sticky is nomination.pending:
            line.sticky = None

    def finish(self) -> None:
        """Count no more what was only kept for this cycle."""
        for holding in self.held:
            self.state.vacate(holding)


def holding_of(nomination: Nomination, reserved_at: float = 0.0) -> Holding:
    """Return what a head holds once it is admitted.

    Args:
        nomination: what it is to hold.
        reserved_at: when, s.
    """
    return Holding(
        nomination.pending.workload,
        nomination.queue,
        nomination.assignment.usage,
        tuple(nomination.places.values()),
        reserved_at,
    )
