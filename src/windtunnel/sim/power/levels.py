"""Which power limit for which running job, so that their draws stay within a budget.

A job's options are pairs (draw, slow-down) in the order of its table, highest limit first; a
budget is met by the lowest draws of all, whatever is chosen. A power cap for many jobs is a
multiple-choice knapsack: exact for few jobs, else upgrades by gain a watt (Sinha and Zoltners,
Operations Research 1979), which is within one job's upgrade of the optimum.
"""

from __future__ import annotations

import heapq
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

#: Up to so many jobs with a choice, limits are exactly optimal.
EXACT_JOBS = 6


@dataclass(frozen=True)
class Choice:
    """One job at one power limit.

    Attributes:
        limit_w: the limit of its GPUs, W.
        draw: what the job adds to the cluster's draw, nanowatts.
        slow: time at this limit over time at the highest.
    """

    limit_w: float
    draw: int
    slow: float


def least(options: Sequence[Choice], limits: str) -> int:
    """Return the place of the option that a job can always be put to.

    Args:
        options: a job's.
        limits: ``uniform`` (the lowest limit) or ``optimised`` (the lowest draw, then fastest).
    """
    if limits == "uniform":
        return len(options) - 1
    return min(range(len(options)), key=lambda i: (options[i].draw, options[i].slow))


def uniform(jobs: Sequence[Sequence[Choice]], budget: int) -> list[int]:
    """Return each job's place where all have one limit: the highest within the budget.

    A job not measured at the limit takes its highest below it, or else its lowest.
    """
    choosing = [options for options in jobs if len(options) > 1]
    limits = sorted({one.limit_w for options in choosing for one in options}, reverse=True)
    chosen = [len(options) - 1 for options in jobs]
    for limit in limits:
        places = [place_at(options, limit) for options in jobs]
        if sum(options[i].draw for options, i in zip(jobs, places, strict=True)) <= budget:
            return places
    return chosen


def place_at(options: Sequence[Choice], limit: float) -> int:
    """Return the place of a job's highest limit up to ``limit`` (W), or else of its lowest."""
    last = len(options) - 1
    return next((i for i, one in enumerate(options) if one.limit_w <= limit), last)


def optimised(jobs: Sequence[Sequence[Choice]], budget: int) -> list[int]:
    """Return each job's place of least mean slow-down within the budget; the least draw of equals.

    Exact with up to `EXACT_JOBS` jobs that have a choice; beyond, by gain a watt.
    """
    chosen = [least(options, "optimised") for options in jobs]
    choosing = [j for j, options in enumerate(jobs) if len(options) > 1]
    fixed = sum(options[0].draw for options in jobs if len(options) == 1)
    fronts = [front_of(jobs[j]) for j in choosing]
    solve = _exact if len(choosing) <= EXACT_JOBS else _by_gain
    for job, place in zip(choosing, solve(jobs, choosing, fronts, budget - fixed), strict=True):
        chosen[job] = place
    return chosen


def front_of(options: Sequence[Choice]) -> list[int]:
    """Return the places no other is at least as good as in both, by rising draw."""
    front: list[int] = []
    for i in sorted(range(len(options)), key=lambda i: (options[i].draw, options[i].slow)):
        if not front or options[i].slow < options[front[-1]].slow:
            front.append(i)
    return front


def _exact(
    jobs: Sequence[Sequence[Choice]], choosing: list[int], fronts: list[list[int]], budget: int
) -> list[int]:
    """Return the best places by keeping, job by job, every sum that no other beats in both."""
    states: list[tuple[int, float, tuple[int, ...]]] = [(0, 0.0, ())]
    for at, (job, front) in enumerate(zip(choosing, fronts, strict=True)):
        rest = sum(
            jobs[j][f[0]].draw for j, f in zip(choosing[at + 1 :], fronts[at + 1 :], strict=True)
        )
        grown = [
            (draw + jobs[job][i].draw, slow + jobs[job][i].slow, (*places, i))
            for draw, slow, places in states
            for i in front
            if i == front[0] or draw + jobs[job][i].draw + rest <= budget
        ]
        grown.sort(key=lambda state: state[:2])
        states = []
        for state in grown:
            if not states or state[1] < states[-1][1]:
                states.append(state)
    within = [state for state in states if state[0] <= budget] or states[:1]
    return list(min(within, key=lambda state: (state[1], state[0]))[2])


def _by_gain(
    jobs: Sequence[Sequence[Choice]], choosing: list[int], fronts: list[list[int]], budget: int
) -> list[int]:
    """Return places by taking upgrades in order of gain a watt while they fit."""
    left = budget - sum(jobs[j][f[0]].draw for j, f in zip(choosing, fronts, strict=True))
    hulls = [hull_of(jobs[j], f) for j, f in zip(choosing, fronts, strict=True)]
    at = [0] * len(hulls)
    heap: list[tuple[float, int]] = []

    def offer(number: int) -> None:
        hull, options = hulls[number], jobs[choosing[number]]
        if at[number] + 1 < len(hull):
            here, there = options[hull[at[number]]], options[hull[at[number] + 1]]
            heapq.heappush(heap, ((there.slow - here.slow) / (there.draw - here.draw), number))

    for number in range(len(hulls)):
        offer(number)
    while heap:
        number = heapq.heappop(heap)[1]
        hull, options = hulls[number], jobs[choosing[number]]
        more = options[hull[at[number] + 1]].draw - options[hull[at[number]]].draw
        if more <= left:  # else the job stays where it is, and others are tried
            left -= more
            at[number] += 1
            offer(number)
    return [hull[i] for hull, i in zip(hulls, at, strict=True)]


def hull_of(options: Sequence[Choice], front: list[int]) -> list[int]:
    """Return the front's lower convex hull: gains a watt fall along it."""
    hull: list[int] = []
    for i in front:
        while len(hull) > 1:
            a, b = options[hull[-2]], options[hull[-1]]
            c = options[i]
            if (b.slow - a.slow) * (c.draw - b.draw) < (c.slow - b.slow) * (b.draw - a.draw):
                break
            hull.pop()
        hull.append(i)
    return hull
