"""Dealing jobs to users so that the busiest have the published shares."""

from __future__ import annotations

import heapq
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from windtunnel.traces.synthetic.attributes import statuses
from windtunnel.traces.synthetic.knots import largest_remainder

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from windtunnel.traces.synthetic.size_facts import VirtualClusters

#: The heaviest jobs are dealt one by one, the others in blocks.
_ONE_BY_ONE = 5_000


def quotas(top_percent: list[float], share: list[float], users: int) -> NDArray[np.float64]:
    """Return each user's share of everything, falling, from the shares of the busiest.

    Between two published points the shares fall linearly, at each end no further than half way to
    the neighbouring stretch's mean: so they fall everywhere and every point is met.

    Args:
        top_percent: percent of the users, ascending, each a whole number of users.
        share: percent that these users have together.

    Returns:
        Shares that sum to 1, shape (users,).
    """
    edges = [0, *(round(users * p / 100.0) for p in top_percent), users]
    cumulative = [0.0, *(s / 100.0 for s in share), 1.0]
    pieces = [
        (b - a, y - x)
        for (a, b), (x, y) in zip(pairwise(edges), pairwise(cumulative), strict=True)
        if b > a
    ]
    means = [amount / width for width, amount in pieces]
    result = []
    for i, (width, _) in enumerate(pieces):
        above = means[i - 1] - means[i] if i > 0 else means[i]
        below = means[i] - means[i + 1] if i + 1 < len(means) else means[i]
        tilt = max(min(above, below) / 2.0, 0.0)
        at = (np.arange(width) + 0.5) / width
        result.append(means[i] + tilt * (1.0 - 2.0 * at))
    return np.concatenate(result)


def deal(
    weight: NDArray[np.float64], quota: NDArray[np.float64], rng: np.random.Generator
) -> NDArray[np.int64]:
    """Return who gets what, so that each one's share of the weight is nearly the wanted one.

    Everyone first gets one of the lightest. The heaviest go one by one to someone drawn in
    proportion to what is still missing, among those who lack as much; the others in a random
    order, in stretches as long as what is left of each quota. So a quota is missed by little more
    than one of the others.

    Args:
        weight: weight of each thing, >= 0, shape (things,).
        quota: everyone's share, >= 0, sum 1, shape (people,).

    Returns:
        Index of the one who gets it, shape (things,).
    """
    people = len(quota)
    owner = np.zeros(len(weight), dtype=np.int64)
    order = np.argsort(-weight, kind="stable")
    missing = quota * float(weight.sum())
    if len(order) > people * people:  # enough to give everyone one without moving the shares
        first, order = order[-people:], order[:-people]
        owner[first] = rng.permutation(people)
        missing -= np.bincount(owner[first], weight[first], people)
    heavy, light = order[:_ONE_BY_ONE], rng.permutation(order[_ONE_BY_ONE:])
    draws = rng.random(len(heavy))
    for thing, u in zip(heavy.tolist(), draws.tolist(), strict=True):
        able = np.where(missing >= weight[thing], missing, 0.0)
        edges = np.cumsum(able)
        if edges[-1] > 0.0:
            one = int(np.searchsorted(edges, u * edges[-1], side="right"))
        else:
            one = int(missing.argmax())
        owner[thing] = one
        missing[one] -= weight[thing]
    edges = np.cumsum(np.maximum(missing, 0.0))
    amount = np.cumsum(weight[light])
    if len(light) and edges[-1] > 0.0 and amount[-1] > 0.0:
        middle = (amount - weight[light] / 2.0) * (edges[-1] / amount[-1])
        owner[light] = np.minimum(np.searchsorted(edges, middle, side="right"), people - 1)
    elif len(light):
        owner[light] = rng.integers(people, size=len(light))
    return owner


def grouped(owner: NDArray[np.int64], people: int) -> list[NDArray[np.int64]]:
    """Return the things of each one, ascending: one array a person."""
    order = np.argsort(owner, kind="stable")
    edges = np.cumsum(np.bincount(owner, minlength=people))[:-1]
    return list(np.split(order, edges))


def vcs_of_users(share: NDArray[np.float64], vcs: VirtualClusters) -> NDArray[np.int64]:
    """Return each user's virtual cluster, so that the clusters' shares are near the wanted ones.

    From the largest user on, each goes where most is still wanted.

    Args:
        share: the users' shares of the GPU time, falling, shape (users,).

    Returns:
        Index of the virtual cluster, shape (users,).
    """
    total = sum(vcs.gpu_time)
    wanted = [(-weight / total, k) for k, weight in enumerate(vcs.gpu_time)]
    heapq.heapify(wanted)
    chosen = []
    for mine in share.tolist():
        least, k = wanted[0]
        heapq.heapreplace(wanted, (least + mine, k))
        chosen.append(k)
    return np.array(chosen, dtype=np.int64)


def member_users(
    vcs: VirtualClusters, users: int, weight: NDArray[np.float64], rng: np.random.Generator
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return each job's user and virtual cluster, where only the latter's shares are known.

    The jobs of each virtual cluster are exact, its GPU time is near the published share. Users
    belong to one virtual cluster, which has them in proportion to the root of its jobs; the k-th
    of them submits in proportion to 1/k.

    Args:
        vcs: the virtual clusters with shares of jobs and GPU time.
        weight: GPU time of each job, shape (jobs,).

    Returns:
        Indices of user and virtual cluster, shape (jobs,) each.
    """
    total = sum(vcs.gpu_time)
    by_weight = {v: w / total for v, w in zip(vcs.names, vcs.gpu_time, strict=True)}
    names = statuses(dict(zip(vcs.names, vcs.jobs, strict=True)), by_weight, weight, rng)
    code = {v: k for k, v in enumerate(vcs.names)}
    vc = np.array([code[v] for v in names.to_pylist()], dtype=np.int64)
    members = 1 + largest_remainder(np.sqrt(vcs.jobs), users - len(vcs.names))
    first = np.concatenate([[0], np.cumsum(members)])
    user = np.empty(len(vc), dtype=np.int64)
    for k, number in enumerate(members.tolist()):
        mine = np.flatnonzero(vc == k)
        edges = np.cumsum(1.0 / np.arange(1, number + 1))
        rank = np.searchsorted(edges, rng.random(len(mine)) * edges[-1], side="right")
        user[mine] = first[k] + np.minimum(rank, number - 1)
    return user, vc
