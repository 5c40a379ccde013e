"""The inverse of a what-if: how few nodes keep waits short?"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from windtunnel.errors import SpecError
from windtunnel.study.changes import with_nodes
from windtunnel.study.simulate import simulate

if TYPE_CHECKING:
    from collections.abc import Callable

    from windtunnel.cluster.spec import ClusterSpec


@dataclass(frozen=True)
class FewestNodes:
    """The fewest nodes that keep waits short.

    Attributes:
        cluster: with them.
        num_nodes: of the type that was varied (GPUs, of a pool).
        num_now: of that type before.
        p90_wait: with them, s.
        tried: number of nodes -> P90 of the waits, s, in rising order; infinite = jobs that do
            not fit.
    """

    cluster: ClusterSpec
    num_nodes: int
    num_now: int
    p90_wait: float
    tried: dict[int, float]


def fewest_nodes(
    jobs: pa.Table,
    cluster: ClusterSpec,
    limit: float,
    *,
    most: int = 1 << 20,
    on_done: Callable[[str], None] = lambda _: None,
    **options: Any,
) -> FewestNodes:
    """Search the fewest nodes with which the P90 of the waits is at most a limit.

    Doubling finds a number that suffices, halving the least one. More nodes do not always shorten
    every wait, so the least found is one whose next smaller neighbour does not suffice.

    Args:
        jobs: a jobs table (`windtunnel.schema`).
        cluster: its nodes with GPUs of which there are most are varied (a pool's GPUs).
        limit: s.
        most: nodes that are tried at most.
        on_done: called with each number that was tried.
        options: of `windtunnel.simulate`.

    Raises:
        SpecError: not even ``most`` nodes suffice, or ``limit`` is below 0.
    """
    if not limit >= 0:
        raise SpecError("--keep-p90-wait", f"found {limit:g}; expected a time from 0 on.")
    node = max((n for n in cluster.node_types if n.gpus), key=lambda n: n.count)
    now = node.gpus if cluster.is_pool else node.count
    tried: dict[int, float] = {}
    # Jobs that the cluster cannot hold as it is are no reason to want more nodes.
    as_is = simulate(jobs, cluster, **{**options, "oversize": "reject", "incomplete": "reject"})
    fits = np.ones(jobs.num_rows, dtype=bool)
    fits[list(as_is.reasons)] = False
    jobs = jobs.filter(pa.array(fits))

    def p90(count: int) -> float:
        if count not in tried:
            tried[count] = _p90_with(jobs, with_nodes(cluster, count - now), options)
            on_done(str(count))
        return tried[count]

    high = now
    while p90(high) > limit:
        if high >= most:
            raise SpecError("--keep-p90-wait", f"not even {high:,} nodes keep P90 to {limit:g} s.")
        high = min(2 * high, most)
    low = 0
    while high - low > 1:
        middle = (low + high) // 2
        if p90(middle) <= limit:
            high = middle
        else:
            low = middle
    return FewestNodes(
        with_nodes(cluster, high - now), high, now, tried[high], dict(sorted(tried.items()))
    )


def _p90_with(jobs: pa.Table, cluster: ClusterSpec, options: dict[str, Any]) -> float:
    """Return the P90 of the waits; infinite where a job does not fit the cluster at all."""
    outcome = simulate(jobs, cluster, **{**options, "oversize": "reject"})
    if outcome.reasons:
        return float("inf")
    p90 = outcome.metrics()["p90_wait"]
    return 0.0 if p90 is None else float(p90)
