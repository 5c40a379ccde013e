"""Who gives way by fair share: the queue that borrows most, weighed where the paths part.

Source: Kueue's fair sharing preemption (Apache-2.0), restated.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from windtunnel.policies.kueue.preempting import FAIR, IN_QUEUE, RECLAIMED, Attempt, Victim
from windtunnel.policies.kueue.shares import Share, dominant_share

if TYPE_CHECKING:
    from collections.abc import Iterator

    from windtunnel.policies.kueue.quota_tree import QuotaNode
    from windtunnel.policies.kueue.state import Holding

FINAL = "LessThanOrEqualToFinalShare"
INITIAL = "LessThanInitialShare"


def victims(attempt: Attempt) -> list[Victim]:
    """Return who must go so that the request fits; empty if it cannot be made to fit.

    The state is as before: nobody has gone yet.
    """
    candidates = _candidates(attempt)
    if not candidates:
        return []
    contest = _Contest(attempt)
    attempt.queue.use_all(attempt.usage)  # shares are weighed with the request
    strategies = attempt.state.fair
    done = contest.first(candidates, strategies[0])
    if not done and len(strategies) > 1:
        done = contest.second()
    attempt.queue.give_back_all(attempt.usage)
    needed = attempt.give_back(contest.taken, borrowing=True) if done else contest.taken
    attempt.restore(needed)
    return needed if done else []


def _candidates(attempt: Attempt) -> list[Holding]:
    """Return the holdings that may go, of the own queue and of all in the tree that borrow."""
    rules = attempt.queue.asks.preemption
    found = attempt.candidates(attempt.queue, rules.within_cluster_queue)
    if rules.reclaim_within_cohort != "Never" and attempt.queue.parent is not None:
        for queue in attempt.queue.root.below():
            if queue is not attempt.queue and not queue.within_nominal(attempt.short):
                found += attempt.candidates(queue, rules.reclaim_within_cohort)
    return sorted(found, key=attempt.order)


class _Contest:
    """Candidates taken one by one, the request counted in its queue's usage.

    Args:
        attempt: who wants what.

    Attributes:
        taken: who goes so far.
        kept: candidates that the first strategy spared.
    """

    def __init__(self, attempt: Attempt) -> None:
        self.attempt = attempt
        self.taken: list[Victim] = []
        self.kept: list[Holding] = []

    def first(self, candidates: list[Holding], strategy: str) -> bool:
        """Take by the first strategy; return whether the request fits now."""
        queue = self.attempt.queue
        within = self.attempt.state.gates.fair_sharing_preempt_within_nominal and all(
            queue.usage.get(what, 0) <= queue.subtree.get(what, 0) for what in self.attempt.short
        )
        targets = _Targets(self.attempt, candidates)
        for target in targets:
            if target is queue or within:
                reason = IN_QUEUE if target is queue else RECLAIMED
                if self._take(targets.pop(target), reason):
                    return True
                continue
            mine, theirs = _parting(queue, target)
            share, before = dominant_share(mine), dominant_share(theirs)
            while targets.left(target):
                candidate = targets.pop(target)
                if _passes(strategy, share, before, candidate, theirs):
                    if self._take(candidate, FAIR):
                        return True
                    break
                self.kept.append(candidate)
        return False

    def second(self) -> bool:
        """Take of what the first strategy spared where my share is below theirs as it stands."""
        targets = _Targets(self.attempt, self.kept)
        for target in targets:
            mine, theirs = _parting(self.attempt.queue, target)
            if dominant_share(mine).rank < dominant_share(theirs).rank and self._take(
                targets.pop(target), FAIR
            ):
                return True
            targets.drop(target)
        return False

    def _take(self, holding: Holding, reason: str) -> bool:
        """Let a holding go; return whether the request fits now."""
        self.attempt.state.vacate(holding)
        self.taken.append(Victim(holding, reason))
        self.attempt.queue.give_back_all(self.attempt.usage)
        fits = self.attempt.fits(borrowing=True)
        self.attempt.queue.use_all(self.attempt.usage)
        return fits


def _passes(
    strategy: str, mine: Share, before: Share, candidate: Holding, theirs: QuotaNode
) -> bool:
    """Return whether the first strategy lets a candidate go."""
    if mine.infinite and not before.infinite:
        return False
    if strategy == INITIAL:
        return mine.rank < before.rank
    candidate.queue.give_back_all(candidate.usage)
    after = dominant_share(theirs)
    candidate.queue.use_all(candidate.usage)
    return mine.rank <= after.rank


def _parting(mine: QuotaNode, theirs: QuotaNode) -> tuple[QuotaNode, QuotaNode]:
    """Return the nodes just below the lowest cohort above both queues, mine first."""
    path = {node: child for child, node in _steps(mine)}
    for child, node in _steps(theirs):
        if node in path:
            return path[node], child
    raise AssertionError("queues of one tree")


def _steps(node: QuotaNode) -> Iterator[tuple[QuotaNode, QuotaNode]]:
    """Yield child and parent, from a queue up to the root."""
    for parent in node.above():
        yield node, parent
        node = parent


class _Targets:
    """Queues to take from, again and again the one with the largest share; see `__iter__`.

    Args:
        attempt: who wants what.
        candidates: the holdings that may go, in order.
    """

    def __init__(self, attempt: Attempt, candidates: list[Holding]) -> None:
        self.attempt = attempt
        self.of: dict[QuotaNode, list[Holding]] = {}
        for holding in reversed(candidates):
            self.of.setdefault(holding.queue, []).append(holding)
        self.dropped: set[QuotaNode] = set()
        self.own_path = {attempt.queue, *attempt.queue.above()}

    def left(self, queue: QuotaNode) -> bool:
        """Return whether a queue has candidates left."""
        return bool(self.of.get(queue))

    def pop(self, queue: QuotaNode) -> Holding:
        """Take a queue's first candidate off its list."""
        return self.of[queue].pop()

    def drop(self, queue: QuotaNode) -> None:
        """Ask a queue no more."""
        self.dropped.add(queue)

    def __iter__(self) -> Iterator[QuotaNode]:
        """Yield the next queue to take from, until none has candidates."""
        if self.attempt.queue.parent is None:
            while self.left(self.attempt.queue):
                yield self.attempt.queue
            return
        root = self.attempt.queue.root
        while root not in self.dropped:
            target = self._next(root)
            if target is not None:
                yield target

    def _next(self, cohort: QuotaNode) -> QuotaNode | None:
        """Return the queue to take from below a cohort; None = look again, something is dropped."""
        queue, queue_share = self._largest_queue(cohort)
        below, below_share = self._largest_cohort(cohort)
        if below is not None and (queue is None or below_share.rank >= queue_share.rank):
            return self._next(below)
        if queue is None:
            self.dropped.add(cohort)
        return queue

    def _largest_queue(self, cohort: QuotaNode) -> tuple[QuotaNode | None, Share]:
        """Return the queue with the largest share; of equals, whose first candidate goes first."""
        best, best_share = None, Share(infinite=False, value=-1.0, borrows=False, resource="")
        for queue in cohort.queues:
            if queue in self.dropped:
                continue
            share = dominant_share(queue)
            if not self.left(queue) or not (share.borrows or queue is self.attempt.queue):
                self.dropped.add(queue)
            elif best is None or share.rank > best_share.rank:
                best, best_share = queue, share
            elif share.rank == best_share.rank and self._sooner(queue, best):
                best = queue
        return best, best_share

    def _sooner(self, one: QuotaNode, other: QuotaNode) -> bool:
        """Return whether one queue's first candidate goes before another's."""
        return self.attempt.order(self.of[one][-1]) < self.attempt.order(self.of[other][-1])

    def _largest_cohort(self, cohort: QuotaNode) -> tuple[QuotaNode | None, Share]:
        """Return the cohort with the largest share; of equals the last."""
        best, best_share = None, Share(infinite=False, value=-1.0, borrows=False, resource="")
        for below in cohort.cohorts:
            if below in self.dropped:
                continue
            share = dominant_share(below)
            if not share.borrows and below not in self.own_path:
                self.dropped.add(below)
            elif share.rank >= best_share.rank:
                best, best_share = below, share
        return best, best_share
