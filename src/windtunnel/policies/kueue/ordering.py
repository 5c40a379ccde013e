"""In which order the heads of a cycle are processed: by time, or by a tournament of shares."""

from __future__ import annotations

from typing import TYPE_CHECKING

from windtunnel.policies.kueue.shares import dominant_share

if TYPE_CHECKING:
    from collections.abc import Iterator

    from windtunnel.policies.kueue.nominating import Nomination
    from windtunnel.policies.kueue.quota_tree import QuotaNode
    from windtunnel.policies.kueue.state import State


def by_time(state: State, heads: list[Nomination]) -> Iterator[Nomination]:
    """Yield heads: whoever borrows least, then priority, then age, then uid."""
    by_priority = state.gates.priority_sorting_within_cohort

    def rank(head: Nomination) -> tuple[int, int, float, str]:
        waits = head.pending
        priority = -waits.workload.priority if by_priority else 0
        return head.assignment.level, priority, waits.created, waits.workload.uid

    yield from sorted(heads, key=rank)


def by_share(state: State, heads: list[Nomination]) -> Iterator[Nomination]:
    """Yield heads, each the winner of a tournament that is held anew before every one.

    In each cohort the heads of its children are compared with what they ask for added.
    """
    of = {head.queue: head for head in heads}
    trees: dict[QuotaNode, None] = dict.fromkeys(head.queue.root for head in heads)
    for root in trees:
        while True:
            winner = _winner(state, root, of)
            if winner is None:
                break
            del of[winner.queue]
            yield winner


def _winner(state: State, node: QuotaNode, of: dict[QuotaNode, Nomination]) -> Nomination | None:
    """Return the head that wins below a node, None if there is none left."""
    if node.queue is not None:
        return of.get(node)
    best: Nomination | None = None
    best_rank: tuple[bool, tuple[bool, float], int, float, str] | None = None
    for child in (*node.queues, *node.cohorts):
        head = _winner(state, child, of)
        if head is None:
            continue
        usage = head.assignment.usage
        head.queue.use_all(usage)
        borrows = state.gates.fair_sharing_prioritize_non_borrowing and not child.within_nominal(
            usage
        )
        share = dominant_share(child).rank
        head.queue.give_back_all(usage)
        workload = head.pending.workload
        rank = (borrows, share, -workload.priority, head.pending.created, workload.uid)
        if best_rank is None or rank < best_rank:
            best, best_rank = head, rank
    return best
