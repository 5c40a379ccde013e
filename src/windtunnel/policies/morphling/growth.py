"""What is left over: to running jobs, by steepest gain, where changing pays."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from windtunnel.policies.morphling.draft import Draft, Held
    from windtunnel.policies.morphling.rules import Rules
    from windtunnel.sim.elastic.work import Option


def grow(policy: Rules, draft: Draft, price: float) -> None:
    """Give running jobs more of what is free, steepest normalised gain per GPU (per core) first.

    Each job changes at most once an instant, to one of the points of its envelope for which the
    change pays: itself by more than the margin, and all by the price of GPU time.

    Args:
        policy: its margin counts.
        draft: who runs.
        price: seconds of others' waiting that a GPU-second costs.
    """
    steps: list[tuple[float, int, Option]] = []
    for number, held in draft.held.items():
        if draft.changed(held) or held.until - draft.now <= policy.margin:
            continue
        if not policy.may_grow(held.job):
            continue
        ladder = policy.ladder(draft.cluster, held.job)
        steps += [
            (-ladder.slope(held.option, option), number, option)
            for option in ladder.larger(held.option)
            if _pays(policy, draft, held, option, price)
        ]
    steps.sort(key=lambda step: step[:2])
    grown: set[int] = set()
    for _, number, option in steps:
        if number not in grown and _change(draft, draft.held[number], option):
            grown.add(number)


def _pays(policy: Rules, draft: Draft, held: Held, option: Option, price: float) -> bool:
    """Return whether a change saves the job more than the margin, and others no less than it."""
    left, after = held.until - draft.now, draft.runtime(held.job, option)
    if not after < left - policy.margin:
        return False
    return after * (1 + price * option.num_gpus) < left * (1 + price * held.option.num_gpus)


def _change(draft: Draft, held: Held, option: Option) -> bool:
    """Let a job run in another option if it fits; return whether it does."""
    draft.drop(held.job)
    if draft.put_first(held.job, [option]):
        return True
    draft.restore(held)
    return False
