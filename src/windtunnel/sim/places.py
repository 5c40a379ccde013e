"""Where the stays of a run were, from what the engines keep: one entry a node.

The engines keep a stay as (node, grant) pairs: on whole nodes a grant is a number of GPUs; on
devices it is a set of devices, one pair a task or several (`windtunnel.cluster.devices`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from windtunnel.cluster.devices import MILLI

if TYPE_CHECKING:
    from collections.abc import Sequence

    from windtunnel.sim.problem import Problem


@dataclass(frozen=True)
class Places:
    """Nodes of all stays, stay by stay; see `windtunnel.sim.flight.Flight` for each array."""

    node_offset: np.ndarray
    nodes: np.ndarray
    node_gpus: np.ndarray
    node_tasks: np.ndarray
    devices: np.ndarray


def places(
    problem: Problem, jobs: np.ndarray, offsets: np.ndarray, pairs: Sequence[np.ndarray]
) -> Places:
    """Return where stays were.

    Args:
        problem: jobs and cluster.
        jobs: Int array (s,), arrival number of each stay's job.
        offsets: Int array (s + 1,), where each stay's pairs begin.
        pairs: two Int arrays (p,): nodes and grants, stay by stay, in placement order.
    """
    none, nobody = np.empty(0, dtype=np.int64), np.empty(0, dtype=np.int32)
    if problem.is_pool:  # a pool's "nodes" are the engine's own affair
        never = np.zeros(len(offsets), dtype=np.int64)
        return Places(never, nobody, nobody, nobody, none)
    nodes, grants = pairs
    offsets = offsets.astype(np.int64)
    if not problem.devices:
        return Places(offsets, nodes.astype(np.int32), grants.astype(np.int32), nobody, none)
    stay = np.repeat(np.arange(len(jobs)), np.diff(offsets))
    kind = problem.demand_of[jobs[stay]]
    milli, tasks = _of_grants(problem, kind, grants)
    # Tasks of one job on one node are next to each other: they become one entry.
    first = np.ones(len(nodes), dtype=bool)
    first[1:] = (nodes[1:] != nodes[:-1]) | (stay[1:] != stay[:-1])
    begin = np.flatnonzero(first)
    held = none if problem.pooled else _joined(np.bitwise_or, grants, begin)
    return Places(
        np.concatenate([[0], np.cumsum(np.bincount(stay[begin], minlength=len(jobs)))]),
        nodes[begin].astype(np.int32),
        _joined(np.add, milli, begin) / MILLI,
        _joined(np.add, tasks, begin).astype(np.int32),
        held,
    )


def _of_grants(
    problem: Problem, kind: np.ndarray, grants: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Return thousandths of GPUs and tasks of each grant, Int arrays (p,)."""
    whole = np.array([demand.gpus for demand in problem.demands], dtype=np.int64)[kind]
    part = np.array([demand.milli for demand in problem.demands], dtype=np.int64)[kind]
    amount = whole * MILLI + part
    if problem.pooled:
        return grants, np.where(amount > 0, grants // np.maximum(amount, 1), 1)
    devices = np.bitwise_count(grants).astype(np.int64)
    tasks = np.where(whole > 0, devices // np.maximum(whole, 1), 1)
    return devices * np.where(part > 0, part, MILLI), tasks


def _joined(how: np.ufunc, values: np.ndarray, begin: np.ndarray) -> np.ndarray:
    """Return values joined from each beginning to the next."""
    if len(begin) == 0:
        return values
    joined: np.ndarray = how.reduceat(values, begin)
    return joined
