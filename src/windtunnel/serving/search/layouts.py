"""Ways to share out a cluster: into groups of one configuration each, and among buckets of models.

Short and long requests in one queue delay the short ones; AlpaServe (OSDI'23, section 4.2) gives
each bucket of models with similar latency GPUs of its own.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

import numpy as np

from windtunnel.serving.parallel import Parallel

if TYPE_CHECKING:
    from collections.abc import Sequence

    from windtunnel.serving.search.problem import Layout


#: GPUs of a node: built groups have no more, and parts are whole nodes where they can be.
NODE = 8
#: The published search's limits.
MOST_STAGES, MOST_OP = 8, 4


def powers_of_two(number: int) -> list[int]:
    """Return a number as powers of two, largest first.

    >>> powers_of_two(11)
    [8, 2, 1]
    """
    return [1 << bit for bit in reversed(range(number.bit_length())) if number >> bit & 1]


def equal_groups(gpus: int, parallel: Parallel) -> Layout:
    """Return as many groups as fit; pipelines of powers of two from what is left over.

    >>> [p.name for p in equal_groups(7, Parallel(1, 2, 2))]
    ['(1,2,2)', '(1,1,2)', '(1,1,1)']
    """
    count, rest = divmod(gpus, parallel.gpus)
    return (parallel,) * count + tuple(Parallel(1, 1, size) for size in powers_of_two(rest))


def search_layouts(gpus: int) -> list[Layout]:
    """Return the layouts of the model-parallel search: group sizes are powers of two.

    Every size g <= gpus with each pp <= 8 that divides it and op = g / pp <= 4; sizes ascending,
    then pp ascending.

    >>> [layout[0].name for layout in search_layouts(4)]
    ['(1,1,1)', '(1,2,1)', '(1,1,2)', '(1,4,1)', '(1,2,2)', '(1,1,4)']
    """
    return [equal_groups(gpus, parallel) for parallel in search_configurations(gpus)]


def search_configurations(gpus: int) -> list[Parallel]:
    """Return the configurations that `search_layouts` tries, in its order."""
    found: list[Parallel] = []
    size = 1
    while size <= gpus:
        found += [
            Parallel(1, size // pp, pp)
            for pp in range(1, min(size, MOST_STAGES) + 1)
            if size % pp == 0 and size // pp <= MOST_OP
        ]
        size *= 2
    return found


#: Models within this share of a bucket's first member belong to it.
SIMILAR = 0.38
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
        if gpus % NODE == 0 or part <= gpus % NODE or (gpus - part) % NODE == 0
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
