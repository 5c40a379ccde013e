"""Where the stays of a run were, from what the engines keep: one entry a node; shared GPU time.

The engines keep a stay as (node, grant) pairs: on whole nodes a grant is a number of GPUs; on
devices it is a set of devices, one pair a task or several (`windtunnel.cluster.free_devices`).
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from windtunnel.cluster.devices import MILLI

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from windtunnel.sim.problem import Problem


def places(
    problem: Problem, jobs: np.ndarray, offsets: np.ndarray, pairs: Sequence[np.ndarray]
) -> dict[str, Any]:
    """Return where stays were: the arrays of `windtunnel.sim.flight.Flight` about nodes, by name.

    Args:
        problem: jobs and cluster.
        jobs: Int array (s,), arrival number of each stay's job.
        offsets: Int array (s + 1,), where each stay's pairs begin.
        pairs: two Int arrays (p,): nodes and grants, stay by stay, in placement order.
    """
    if problem.is_pool:  # a pool's "nodes" are the engine's own affair
        nowhere = np.empty(0, dtype=np.int32)
        never = np.zeros(len(offsets), dtype=np.int64)
        return {"node_offset": never, "nodes": nowhere, "node_gpus": nowhere}
    nodes, grants = pairs
    offsets = offsets.astype(np.int64, copy=False)
    nodes = nodes.astype(np.int32, copy=False)
    if not problem.devices:
        gpus = grants.astype(np.int32)
        return {"node_offset": offsets, "nodes": nodes, "node_gpus": gpus}
    # Tasks of one job on one node are next to each other: they become one entry.
    first = np.ones(len(nodes), dtype=bool)
    first[1:] = nodes[1:] != nodes[:-1]
    first[offsets[:-1][offsets[1:] > offsets[:-1]]] = True
    begin = np.flatnonzero(first)
    joined = np.concatenate([[0], np.cumsum(first)])[offsets]
    kind = np.repeat(problem.demand_of[jobs], np.diff(joined))
    grants_of = np.diff(np.append(begin, len(nodes)))
    milli, tasks = _of_grants(problem, kind, grants, begin, grants_of)
    found = {
        "node_offset": joined,
        "nodes": nodes[begin],
        "node_gpus": milli / MILLI,
        "node_tasks": tasks.astype(np.int32),
    }
    if not problem.pooled:
        found["devices"] = _joined(np.bitwise_or, grants, begin)
    return found


def _of_grants(
    problem: Problem, kind: np.ndarray, grants: np.ndarray, begin: np.ndarray, grants_of: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Return thousandths of GPUs and tasks of each entry, Int arrays (e,)."""
    whole = np.array([demand.gpus for demand in problem.demands], dtype=np.int64)[kind]
    part = np.array([demand.milli for demand in problem.demands], dtype=np.int64)[kind]
    if problem.pooled:
        milli, amount = _joined(np.add, grants, begin), whole * MILLI + part
        return milli, np.where(amount > 0, milli // np.maximum(amount, 1), grants_of)
    # Shares, and tasks without GPUs, have a grant each.
    devices = _joined(np.add, np.bitwise_count(grants).astype(np.int64), begin)
    tasks = np.where(whole > 0, devices // np.maximum(whole, 1), grants_of)
    return devices * np.where(part > 0, part, MILLI), tasks


def _joined(how: np.ufunc, values: np.ndarray, begin: np.ndarray) -> np.ndarray:
    """Return values joined from each beginning to the next."""
    if len(begin) == 0:
        return values
    joined: np.ndarray = how.reduceat(values, begin)
    return joined


def gpu_time(
    problem: Problem,
    columns: Mapping[str, np.ndarray],
    shared: Iterable[tuple[int, int]],
    horizon: float,
) -> tuple[np.ndarray, np.ndarray]:
    """Return what jobs hold that share places: an equal part of one while they are there together.

    ``shared``: pairs of a stay and the one whose place it shares, in order of start.

    Returns:
        GPU-seconds of each job, Float array (m,), and `windtunnel.sim.flight.Flight.portions`.
    """
    jobs, begins = columns["stay_job"].tolist(), columns["stay_start"].tolist()
    stops = columns["stay_end"].tolist()
    ends = [horizon if math.isnan(end) else end for end in stops]
    place = list(range(len(jobs)))
    changes: dict[int, list[int]] = {}
    for stay, other in shared:
        place[stay] = place[other]
        changes.setdefault(place[stay], [place[stay]]).append(stay)
    found = [0.0] * len(problem.rows)
    portions = []
    units = _units_of_stays(problem, columns)
    for stay, job in enumerate(jobs):
        members = changes.get(place[stay], [stay])
        began, over = begins[stay], ends[stay]
        times = {began, over}
        for other in members:
            times |= {t for t in (begins[other], ends[other]) if began < t < over}
        since = began
        for time in sorted(times)[1:]:
            among = sum(begins[other] <= since and ends[other] >= time for other in members)
            found[job] += (time - since) * units[place[stay]] / problem.units / among
            portions.append((stay, since, stops[stay] if time == over else time, 1 / among))
            since = time
    table = np.array(portions, dtype=np.float64).reshape(-1, 4)
    return np.array(found, dtype=np.float64), table


def _units_of_stays(problem: Problem, columns: Mapping[str, np.ndarray]) -> list[int]:
    """Return the GPU units of each stay's place."""
    grants, first = columns["grants"].tolist(), columns["stay_first"].tolist()
    found = []
    for stay, job in enumerate(columns["stay_job"].tolist()):
        demand = problem.demand(job)
        own = grants[first[stay] : first[stay + 1]]
        found.append(sum(problem.units_of(demand, grant) for grant in own))
    return found
