"""Who submits what again: users with the published numbers of jobs, and groups that recur."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from windtunnel.traces.synthetic.knots import bins_from_points, draw, largest_remainder, onto

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from windtunnel.traces.synthetic.request_facts import Gangs, Recurrence

#: Groups that recur: sizes fall off as a power law above the fewest runs (modelled).
_TAIL = 1.2
#: Sizes of the other groups and how often (modelled).
_SMALL = (1, 2, 3, 4)
_SMALL_WEIGHTS = (0.7, 0.15, 0.1, 0.05)


def jobs_of_users(
    facts: Recurrence, jobs: int, real: int, rng: np.random.Generator
) -> NDArray[np.int64]:
    """Return the number of jobs of each user, shape (users,).

    At the real size the published points of the distribution are met to the user. Otherwise the
    real numbers are scaled by largest remainders, so that small users may have none.
    """
    cumulative = np.cumsum(
        largest_remainder(np.diff([0.0, *facts.percent, 100.0]), facts.users)
    ).tolist()
    points = dict(zip(facts.jobs, cumulative, strict=False))
    bins = bins_from_points(points, facts.users, first=1, maximum=facts.most)
    index = bins.each(facts.users)
    values = draw(bins, index, rng)
    top = index == len(bins.jobs) - 1
    low, high = bins.low[index][top], bins.high[index][top]
    wanted = real - int(values[~top].sum())
    values[top] = onto(values[top], low, high, wanted)
    return rng.permutation(values if jobs == real else largest_remainder(values, jobs))


def groups_of_users(
    facts: Recurrence, jobs_of: NDArray[np.int64], rng: np.random.Generator
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the groups of jobs: each one's user and size, in random order.

    The jobs in groups of at least ``runs`` are the published share of all, to the job wherever
    that many can recur.

    Args:
        facts: fewest runs and share.
        jobs_of: jobs of each user, shape (users,).
    """
    able = np.where(jobs_of >= facts.runs, jobs_of, 0)
    recurring = np.minimum(
        largest_remainder(able, min(round(facts.share * int(jobs_of.sum())), int(able.sum()))),
        able,
    )
    # Too few to recur even once: the user with the most jobs left takes them.
    few = (recurring > 0) & (recurring < facts.runs)
    moved = int(recurring[few].sum())
    recurring[few] = 0
    free = able - recurring
    if moved and free.max() >= moved and recurring[free.argmax()] + moved >= facts.runs:
        recurring[free.argmax()] += moved
    users, sizes = [], []
    for user, (all_jobs, again) in enumerate(
        zip(jobs_of.tolist(), recurring.tolist(), strict=True)
    ):
        mine = [*_recurring(facts.runs, again, rng), *_small(all_jobs - again, rng)]
        users.append(np.full(len(mine), user, dtype=np.int64))
        sizes.append(np.array(mine, dtype=np.int64))
    order = rng.permutation(sum(map(len, sizes)))
    return np.concatenate(users)[order], np.concatenate(sizes)[order]


def _recurring(runs: int, jobs: int, rng: np.random.Generator) -> list[int]:
    """Return sizes of at least ``runs`` that sum to ``jobs``."""
    if jobs < runs:
        return []
    draws = rng.random(jobs // runs)
    sizes = np.minimum(np.floor(runs * (1.0 - draws) ** (-1.0 / _TAIL)), jobs).astype(np.int64)
    kept: list[int] = sizes[: int(np.searchsorted(np.cumsum(sizes), jobs, side="right"))].tolist()
    left = jobs - sum(kept)
    if left >= runs:
        kept.append(left)
    elif left:
        kept[-1] += left
    return kept


def _small(jobs: int, rng: np.random.Generator) -> list[int]:
    """Return small sizes that sum to ``jobs``."""
    if jobs == 0:
        return []
    sizes = rng.choice(_SMALL, size=jobs, p=_SMALL_WEIGHTS)
    kept: list[int] = sizes[: int(np.searchsorted(np.cumsum(sizes), jobs, side="right"))].tolist()
    left = jobs - sum(kept)
    return [*kept, left] if left else kept


#: Jobs whose tasks ask for several GPUs, or for a scarce type, have no larger gangs (modelled).
_MOST_OF_LARGE = 8
_MOST_OF_SCARCE = 100
_THIRD = 3


def deal_gangs(
    facts: Gangs,
    large: NDArray[np.bool_],
    scarce: NDArray[np.bool_],
    thirds: NDArray[np.bool_],
    rng: np.random.Generator,
) -> NDArray[np.int64]:
    """Return the tasks of each job; so many jobs have so many tasks as the facts say.

    Args:
        large: jobs whose tasks ask for several GPUs: small gangs, shape (jobs,).
        scarce: jobs on a scarce GPU type: no very large gangs, shape (jobs,).
        thirds: jobs whose mean run time is an odd third: a multiple of three tasks, where there
            are enough, shape (jobs,).
    """
    count = len(large)
    left = rng.permutation(np.repeat(facts.tasks, largest_remainder(facts.jobs, count)))
    tasks = np.zeros(count, dtype=np.int64)
    rules = (
        (thirds, left % _THIRD == 0),
        (large & ~thirds, left <= _MOST_OF_LARGE),
        (scarce & ~large & ~thirds, left <= _MOST_OF_SCARCE),
    )
    taken = np.zeros(count, dtype=bool)
    for jobs, fits in rules:
        mine = np.flatnonzero(jobs)
        chosen = np.flatnonzero(fits & ~taken)[: len(mine)]
        tasks[mine[: len(chosen)]] = left[chosen]
        taken[chosen] = True
    tasks[tasks == 0] = left[~taken]
    return tasks
