"""How long jobs wait where little more than a mean and a median is published."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from windtunnel.traces.synthetic.concentration import grouped
from windtunnel.traces.synthetic.knots import bins_from_points, draw, largest_remainder, onto

if TYPE_CHECKING:
    from numpy.typing import NDArray

#: How often short jobs are offered another wait.
_EXCHANGE_ROUNDS = 40


def waits_from_points(
    points: dict[int, int],
    count: int,
    real: int,
    *,
    maximum: int,
    rng: np.random.Generator,
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """Draw waits from points of their distribution, in random order.

    Args:
        points: s -> jobs of the real trace with at most so long a wait.
        maximum: longest wait, s.

    Returns:
        Waits, and the bounds inside which each can move without moving a point; s, shape
        (count,) each.
    """
    bins = bins_from_points(points, real, first=0, maximum=maximum)
    index = rng.permutation(bins.each(count))
    return draw(bins, index, rng), bins.low[index], bins.high[index]


def waits_of_few(
    count: int,
    waiting: float,
    sigma: float,
    *,
    total: int,
    maximum: int,
    rng: np.random.Generator,
) -> NDArray[np.int64]:
    """Draw waits of which most are 0 and the others log-normal, s, in random order.

    Args:
        waiting: share of the jobs that wait at all.
        sigma: log-normal spread of their waits.
        total: seconds that they wait together.
        maximum: longest wait, s.
    """
    waits = np.zeros(count, dtype=np.int64)
    those = rng.permutation(count)[: round(waiting * count)]
    waits[those] = _lognormal(len(those), sigma, total, maximum, rng)
    return waits


def waits_by_user(
    owner: NDArray[np.int64],
    share: NDArray[np.float64],
    waiting: float,
    sigma: float,
    *,
    total: int,
    maximum: int,
    rng: np.random.Generator,
) -> NDArray[np.int64]:
    """Draw waits of which most are 0, so that the users' shares of the waiting are the wanted ones.

    The user with the most jobs has the largest share, and so on. Who has much of the waiting has
    more jobs that wait, and longer waits.

    Args:
        owner: each job's user, shape (jobs,).
        share: shares of the users, falling, sum 1, shape (users,).
        waiting: share of the jobs that wait at all.
        sigma: log-normal spread of the waits of a user.
        total: seconds that all wait together.
        maximum: longest wait, s.

    Returns:
        Waits, s, shape (jobs,).
    """
    users = len(share)
    has = np.bincount(owner, minlength=users)
    busy = np.argsort(-has, kind="stable")
    of_user = np.empty(users)
    of_user[busy] = share
    of_user = np.where(has > 0, of_user, 0.0)
    seconds = largest_remainder(of_user, total)
    jobs = largest_remainder(
        (of_user / max(of_user.sum(), 1e-300) + has / has.sum()) / 2.0, round(waiting * len(owner))
    )
    waits = np.zeros(len(owner), dtype=np.int64)
    for user, mine in enumerate(grouped(owner, users)):
        number = min(max(int(jobs[user]), int(seconds[user] > 0)), len(mine), int(seconds[user]))
        those = rng.permutation(mine)[:number]
        waits[those] = _lognormal(number, sigma, int(seconds[user]), maximum, rng)
    return waits


def _lognormal(
    count: int, sigma: float, total: int, maximum: int, rng: np.random.Generator
) -> NDArray[np.int64]:
    """Draw whole log-normal seconds from 1 to ``maximum`` with this sum."""
    values = np.exp(rng.normal(0.0, sigma, count))
    values *= total / max(float(values.sum()), 1e-300)
    low, high = np.ones(count, dtype=np.int64), np.full(count, maximum, dtype=np.int64)
    return onto(np.clip(np.rint(values), 1, maximum).astype(np.int64), low, high, total)


def calm_short_jobs(
    queue: NDArray[np.int64],
    duration: NDArray[np.float64],
    law: NDArray[np.int64],
    share: float,
    rng: np.random.Generator,
) -> NDArray[np.int64]:
    """Return the waits with some exchanged, so that few short jobs wait longer than they run.

    Short is up to the median. A short job that waits longer than it runs exchanges its wait with
    a long one's of the same law where both then wait no longer than they run: every law's waits
    stay what they are.

    Args:
        queue: waits, s, shape (jobs,).
        duration: run times, s, shape (jobs,).
        law: index of each job's law of waits, shape (jobs,).
        share: largest share of the short jobs that may wait longer than they run.
    """
    result = queue.copy()
    short = duration <= np.median(duration)
    allowed = round(share * int(short.sum()))
    for _ in range(_EXCHANGE_ROUNDS):
        waiting = np.flatnonzero(short & (result > duration))
        if len(waiting) <= allowed:
            break
        waiting = rng.permutation(waiting)[: len(waiting) - allowed]
        for one in np.unique(law[waiting]).tolist():
            mine, others = waiting[law[waiting] == one], np.flatnonzero(~short & (law == one))
            number = min(len(mine), len(others))
            mine, others = mine[:number], rng.permutation(others)[:number]
            good = (result[others] <= duration[mine]) & (result[mine] <= duration[others])
            mine, others = mine[good], others[good]
            result[mine], result[others] = result[others], result[mine]
    return result
