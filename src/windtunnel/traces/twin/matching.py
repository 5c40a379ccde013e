"""Bring sums of GPU time right by exchanging jobs' attributes; what is counted stays as it is."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

_ROUNDS = 200
#: Good enough: this fraction of all.
_TOLERANCE = 5e-4
#: Jobs of a label that are tried in a round, and how light they may be beside what is needed.
_TRIED = 20_000
_LIGHT = 1e-5


def match_product(
    factor: NDArray[np.float64],
    value: NDArray[np.float64],
    target: float,
    rng: np.random.Generator,
) -> NDArray[np.int64]:
    """Return an order of ``factor`` in which its product with ``value`` is nearly ``target``.

    Pairs of jobs, drawn at random, exchange factors as long as that brings the sum nearer.

    Args:
        factor: GPUs of each job, shape (jobs,).
        value: run time of each job, s, shape (jobs,).

    Returns:
        Indices into ``factor``, shape (jobs,).
    """
    order = np.arange(len(factor))
    for _ in range(_ROUNDS):
        miss = target - float(factor[order] @ value)
        if abs(miss) <= _TOLERANCE * target or len(factor) < 2:  # noqa: PLR2004 - a pair
            break
        half = len(factor) // 2
        shuffled = rng.permutation(len(factor))
        a, b = shuffled[:half], shuffled[half : 2 * half]
        gain = (factor[order[a]] - factor[order[b]]) * (value[b] - value[a]) * np.sign(miss)
        taken = _prefix(gain, abs(miss))
        a, b = a[taken], b[taken]
        order[a], order[b] = order[b], order[a]
    return order


def match_shares(
    label: NDArray[np.int64],
    group: NDArray[np.int64],
    weight: NDArray[np.float64],
    target: NDArray[np.float64],
    rng: np.random.Generator,
) -> NDArray[np.int64]:
    """Exchange labels between jobs of one group until each label's weight is nearly its target.

    Args:
        label: of each job, 0 <= label < len(target), shape (jobs,).
        group: jobs exchange labels within their group only, shape (jobs,).
        weight: GPU time of each job, >= 0, shape (jobs,).
        target: wanted weight of each label, shape (labels,).

    Returns:
        The labels, each as often in each group as before, shape (jobs,).
    """
    label = label.copy()
    everything = float(weight.sum())
    if everything == 0 or float(target.sum()) == 0:
        return label
    wanted = target * (everything / float(target.sum()))
    barred = np.zeros((len(target), len(target)), dtype=bool)
    for _ in range(_ROUNDS):
        excess = np.bincount(label, weight, minlength=len(target)) - wanted
        worst = np.where(barred, -np.inf, np.minimum(excess[:, None], -excess[None, :]))
        over, under = np.unravel_index(int(worst.argmax()), worst.shape)
        need = float(worst[over, under])
        if need <= _TOLERANCE * everything:
            break
        heavy = np.flatnonzero((label == over) & (weight > _LIGHT * need))
        a, b = _pairs(heavy, np.flatnonzero(label == under), group, rng)
        taken = _prefix(weight[a] - weight[b], need)
        # Nothing more to be had between these two.
        barred[over, under] = not taken.any()
        label[a[taken]], label[b[taken]] = under, over
    return label


def _pairs(
    one: NDArray[np.int64],
    other: NDArray[np.int64],
    group: NDArray[np.int64],
    rng: np.random.Generator,
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return random pairs of jobs of one group, the first of one set, the second of the other."""
    sides = []
    for jobs in (one, other):
        tried = rng.permutation(jobs)[:_TRIED]
        tried = tried[np.argsort(group[tried], kind="stable")]
        starts = np.searchsorted(group[tried], group[tried])
        sides.append((tried, group[tried], np.arange(len(tried)) - starts))
    (a, group_a, rank_a), (b, group_b, rank_b) = sides
    span = max(len(a), len(b)) + 1
    _, in_a, in_b = np.intersect1d(
        group_a * span + rank_a, group_b * span + rank_b, assume_unique=True, return_indices=True
    )
    mixed = rng.permutation(len(in_a))
    return a[in_a[mixed]], b[in_b[mixed]]


def _prefix(gain: NDArray[np.float64], need: float) -> NDArray[np.bool_]:
    """Return which gains to take: positive ones, in order, whose sum does not exceed ``need``."""
    useful = np.where((gain > 0) & (gain <= need), gain, 0.0)
    return np.asarray((useful > 0) & (np.cumsum(useful) <= need))
