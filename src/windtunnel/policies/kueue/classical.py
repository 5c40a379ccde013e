"""Who gives way by priority: one's own queue, then cohort by cohort up to the root.

Source: Kueue's classical and hierarchical preemption (Apache-2.0), restated.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from windtunnel.policies.kueue.preempting import (
    IN_QUEUE,
    RECLAIMED,
    RECLAIMED_BORROWING,
    Attempt,
    Victim,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from windtunnel.policies.kueue.objects import Amounts, FlavorResource, Preemption
    from windtunnel.policies.kueue.quota_tree import QuotaNode
    from windtunnel.policies.kueue.state import Holding


class Candidate(NamedTuple):
    """A holding that may have to go.

    Attributes:
        holding: the holding.
        reason: why it would go.
        common: the lowest cohort above it and the queue that asks; None in the own queue.
        lends_only: it goes only for a request that then does not borrow.
    """

    holding: Holding
    reason: str
    common: QuotaNode | None = None
    lends_only: bool = False

    def may_go(self, short: frozenset[FlavorResource], *, borrowing: bool) -> bool:
        """Return whether it may go now: its queue and all up to the common cohort still borrow."""
        if self.common is None:
            return True
        if borrowing and self.lends_only:
            return False
        node: QuotaNode | None = self.holding.queue
        while node is not None and node is not self.common:
            if node.within_nominal(short):
                return False
            node = node.parent
        return True


def victims(attempt: Attempt) -> list[Victim]:
    """Return who must go so that the request fits; empty if it cannot be made to fit.

    The state is as before: nobody has gone yet.
    """
    rules = _rules(attempt)
    hierarchical, by_priority = _others(attempt)
    own = [
        Candidate(holding, IN_QUEUE)
        for holding in attempt.candidates(attempt.queue, rules.within_cluster_queue)
    ]
    candidates = _sorted(attempt, hierarchical, by_priority, own)
    if not candidates:
        return []
    may_borrow = rules.borrow_within_cohort.policy != "Never"
    full = any(
        attempt.queue.usage.get(what, 0) >= attempt.queue.subtree.get(what, 0)
        for what in attempt.short
    )
    if not (hierarchical or by_priority) or (not may_borrow and full):
        modes: tuple[bool, ...] = (True,)
    elif not may_borrow and not hierarchical:
        modes = (False, True)
    else:
        modes = (True, False)
    for borrowing in modes:
        found = _try(attempt, candidates, borrowing=borrowing)
        if found:
            return found
    return []


def _try(attempt: Attempt, candidates: list[Candidate], *, borrowing: bool) -> list[Victim]:
    """Take candidates one by one until the request fits; give back whoever is not needed."""
    taken: list[Victim] = []
    for candidate in candidates:
        if not candidate.may_go(attempt.short, borrowing=borrowing):
            continue
        attempt.state.vacate(candidate.holding)
        taken.append(Victim(candidate.holding, candidate.reason))
        if attempt.fits(borrowing=borrowing):
            taken = attempt.give_back(taken, borrowing=borrowing)
            attempt.restore(taken)
            return taken
    attempt.restore(taken)
    return []


def _sorted(attempt: Attempt, *groups: list[Candidate]) -> list[Candidate]:
    """Return the candidates in the order to try: whoever is on the way out, then by group."""
    ordered = [sorted(group, key=lambda c: attempt.order(c.holding)) for group in groups]
    everybody = [candidate for group in ordered for candidate in group]
    everybody.sort(key=lambda candidate: not candidate.holding.on_its_way)
    return everybody


def _rules(attempt: Attempt) -> Preemption:
    """Return whom the queue that asks may preempt."""
    return attempt.queue.asks.preemption


def _others(attempt: Attempt) -> tuple[list[Candidate], list[Candidate]]:
    """Return the candidates of other queues: hierarchical ones, and those by priority.

    Hierarchical are those above a subtree that owns all that is asked for.
    """
    found: tuple[list[Candidate], list[Candidate]] = ([], [])
    rules, came_from = _rules(attempt), attempt.queue
    if rules.reclaim_within_cohort == "Never":
        return found
    advantage = came_from.within(attempt.usage)
    rest = _past_local(came_from, attempt.usage)
    for cohort in attempt.queue.above():
        for queue in _exceeding(cohort, came_from, attempt.short):
            for holding in attempt.candidates(queue, rules.reclaim_within_cohort):
                candidate = _candidate(attempt, holding, cohort, advantage=advantage)
                found[0 if advantage else 1].append(candidate)
        advantage = advantage or cohort.within(rest)
        rest = _past_local(cohort, rest)
        came_from = cohort
    return found


def _past_local(node: QuotaNode, amounts: Amounts) -> Amounts:
    """Return what of the amounts is left for the cohort above."""
    return {what: max(0, v - node.free_local(what)) for what, v in amounts.items()}


def _candidate(
    attempt: Attempt, holding: Holding, cohort: QuotaNode, *, advantage: bool
) -> Candidate:
    """Return a holding of another queue as a candidate, with what it may go for."""
    if advantage:
        return Candidate(holding, RECLAIMED, cohort)
    rule = _rules(attempt).borrow_within_cohort
    priority, threshold = holding.workload.priority, rule.max_priority_threshold
    too_high = priority >= attempt.workload.priority or (
        threshold is not None and priority > threshold
    )
    if rule.policy == "Never" or too_high:
        return Candidate(holding, RECLAIMED, cohort, lends_only=True)
    return Candidate(holding, RECLAIMED_BORROWING, cohort)


def _exceeding(
    cohort: QuotaNode, came_from: QuotaNode, short: frozenset[FlavorResource]
) -> Iterator[QuotaNode]:
    """Yield the queues below a cohort that exceed what they own, as do all cohorts between."""
    for below in cohort.cohorts:
        if below is not came_from and not below.within_nominal(short):
            yield from _exceeding(below, came_from, short)
    for queue in cohort.queues:
        if queue is not came_from and not queue.within_nominal(short):
            yield queue
