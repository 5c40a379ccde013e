"""Dealing jobs to users so that the busiest have the published shares."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

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
    proportion to what is still owed, among those who are owed as much; the others in a random
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
    owed = quota * float(weight.sum())
    if len(order) > people * people:  # enough to give everyone one without moving the shares
        first, order = order[-people:], order[:-people]
        owner[first] = rng.permutation(people)
        owed -= np.bincount(owner[first], weight[first], people)
    heavy, light = order[:_ONE_BY_ONE], rng.permutation(order[_ONE_BY_ONE:])
    draws = rng.random(len(heavy))
    for thing, u in zip(heavy.tolist(), draws.tolist(), strict=True):
        able = np.where(owed >= weight[thing], owed, 0.0)
        edges = np.cumsum(able)
        if edges[-1] > 0.0:
            one = int(np.searchsorted(edges, u * edges[-1], side="right"))
        else:
            one = int(owed.argmax())
        owner[thing] = one
        owed[one] -= weight[thing]
    edges = np.cumsum(np.maximum(owed, 0.0))
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
