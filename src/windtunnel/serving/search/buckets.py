"""Buckets of models with similar latency, and how GPUs may be shared among them.

Short and long requests in one queue delay the short ones; AlpaServe (OSDI'23, section 4.2) gives
each bucket GPUs of its own.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

#: Models within this share of a bucket's first member belong to it.
SIMILAR = 0.38
#: Nodes have so many GPUs: parts are whole nodes where they can be.
_NODE = 8
#: Differences of shares that are allowed, tried in turn until few enough are left.
_THRESHOLDS = (1.0, 0.5, 0.3, 0.2, 0.1)
_FEW = 100


def latency_buckets(latencies: Sequence[float], similar: float = SIMILAR) -> list[list[int]]:
    """Return models in buckets, first fit in index order.

    Args:
        latencies: of each model on one GPU, s.
        similar: a model belongs to a bucket if |latency - first| / first is less.

    >>> latency_buckets([0.4, 0.24, 0.15, 0.23])
    [[0], [1, 2, 3]]
    """
    buckets: list[list[int]] = []
    for model, latency in enumerate(latencies):
        for bucket in buckets:
            first = latencies[bucket[0]]
            if abs(latency - first) / first < similar:
                bucket.append(model)
                break
        else:
            buckets.append([model])
    return buckets


@cache
def compositions(gpus: int, parts: int) -> list[tuple[int, ...]]:
    """Return the ways to share GPUs among buckets, in lexicographic order.

    A part i of n GPUs is allowed if n is a multiple of 8, i <= n mod 8, or n - i is a multiple of
    8: so that at most one bucket shares a node.

    >>> len(compositions(32, 3)), compositions(12, 2)
    (171, [(1, 11), (2, 10), (3, 9), (4, 8)])
    """
    if parts == 1:
        return [(gpus,)] if gpus >= 1 else []
    return [
        (part, *rest)
        for part in range(1, gpus)
        if gpus % _NODE == 0 or part <= gpus % _NODE or (gpus - part) % _NODE == 0
        for rest in compositions(gpus - part, parts - 1)
    ]


def plausible(
    ways: list[tuple[int, ...]], rates: Sequence[float], latencies: Sequence[float]
) -> list[tuple[int, ...]]:
    """Return the ways whose share of capacity is near the share of requests.

    The capacity of a bucket is its GPUs over its latency. The allowed difference shrinks until
    fewer than 100 ways are left; a step that would leave none is not taken.

    Args:
        ways: GPUs of each bucket.
        rates: requests of each bucket, in any unit.
        latencies: mean latency of each bucket on one GPU, s.
    """
    total = sum(rates)
    wanted = np.asarray(rates) / total if total else np.full(len(rates), 1 / len(rates))
    for threshold in _THRESHOLDS:
        capacity = np.array(ways) / np.asarray(latencies)
        shares = capacity / capacity.sum(axis=1, keepdims=True)
        near = (np.abs(shares - wanted) < threshold).all(axis=1)
        ways = [way for way, good in zip(ways, near, strict=True) if good] or ways
        if len(ways) < _FEW:
            break
    return ways
