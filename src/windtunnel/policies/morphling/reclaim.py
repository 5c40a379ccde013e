"""Reclaiming GPUs: running jobs that hold more than their floor give way, flattest slope first."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from windtunnel.policies.morphling.shadow import Shadow

if TYPE_CHECKING:
    from windtunnel.policies.morphling.draft import Draft, Held
    from windtunnel.policies.morphling.rules import Rules
    from windtunnel.sim.elastic.work import Option
    from windtunnel.sim.jobs import JobView


def reclaim_for(policy: Rules, draft: Draft, job: JobView) -> bool:
    """Launch a job at its floor by letting others give way, if that can be and pays.

    Victims are taken in ascending slope until the floor fits. Then they get back, steepest first,
    what is left: their own place, if it is not needed after all, else the largest option that fits.
    A best-effort victim of a guaranteed job may get nothing; nobody else goes below the floor.

    Args:
        policy: whose rules count.
        draft: who runs; as before if the job is not launched.
        job: it waits, and fits nowhere.

    Returns:
        Whether the job is launched.
    """
    guaranteed = draft.cluster.work(job).guaranteed
    floor = policy.ladder(draft.cluster, job).floor
    victims = _victims(policy, draft, to_nothing=guaranteed)
    if sum(spare for _, _, spare, _ in victims) + draft.free.total < floor.num_gpus:
        return False
    gain = math.inf if guaranteed else _time_saved(policy, draft, job)
    if gain <= policy.margin:
        return False
    held, free = dict(draft.held), draft.free.copy()
    loss = _launch_over(policy, draft, job, [victim for *_, victim in victims])
    if loss is None or gain <= loss + policy.margin:
        draft.held, draft.free = held, free
        return False
    return True


def _victims(
    policy: Rules, draft: Draft, *, to_nothing: bool
) -> list[tuple[float, int, int, Held]]:
    """Return (slope, number, GPUs that it can spare, what it holds) in ascending slope.

    Args:
        policy: whose rules count.
        draft: who runs.
        to_nothing: best-effort jobs that are not aged can spare everything.
    """
    found = []
    for number, held in draft.held.items():
        if draft.changed(held):
            continue
        ladder = policy.ladder(draft.cluster, held.job)
        promised = draft.cluster.work(held.job).guaranteed
        everything = to_nothing and not promised and not policy.is_aged(held.job, draft.now)
        spare = held.option.num_gpus - (0 if everything else ladder.floor.num_gpus)
        if spare <= 0 or not policy.may_give_way(held.job):
            continue
        slope = ladder.slope(None if everything else ladder.floor, held.option)
        found.append((slope, number, spare, held))
    return sorted(found, key=lambda victim: victim[:2])


def _time_saved(policy: Rules, draft: Draft, job: JobView) -> float:
    """Return how much sooner a job completes at its floor now than where it fits by itself, s."""
    ladder = policy.ladder(draft.cluster, job)
    shadow = Shadow.of(draft, job, ladder)
    if shadow is None:
        return math.inf
    return shadow.done - draft.now - draft.runtime(job, ladder.floor)


def _launch_over(policy: Rules, draft: Draft, job: JobView, victims: list[Held]) -> float | None:
    """Launch a job at its floor over victims; return the seconds that they lose, None = it fails.

    The draft is left as it is where it fails.
    """
    floor = policy.ladder(draft.cluster, job).floor
    gone: list[Held] = []
    where = None
    for held in victims:
        draft.drop(held.job)
        gone.append(held)
        where = draft.fit(job, floor)
        if where is not None:
            break
    if where is None:
        return None
    draft.put(job, floor, where)
    guaranteed = draft.cluster.work(job).guaranteed

    def may_lose(other: JobView) -> bool:
        promised = draft.cluster.work(other).guaranteed
        return guaranteed and not promised and not policy.is_aged(other, draft.now)

    loss = 0.0
    for held in reversed(gone):
        lost = _settle(policy, draft, held)
        if lost is None and not may_lose(held.job):
            return None
        loss += lost or 0.0
    return loss


def _settle(policy: Rules, draft: Draft, held: Held) -> float | None:
    """Give a victim what it can get; return the seconds it loses, None where it gets nothing."""
    if draft.free.may_stay(held.where, held.option, held.job.number):
        draft.restore(held)
        return 0.0
    smaller: list[Option] = [
        option
        for option in policy.ladder(draft.cluster, held.job).options
        if option.num_gpus <= held.option.num_gpus
    ]
    if draft.put_first(held.job, sorted(smaller, key=lambda o: o.iteration_time)):
        return draft.held[held.job.number].until - held.until
    return None
