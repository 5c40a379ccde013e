"""Capacity that is taken away at times that are given: `Hold`, and how descriptions become some."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, cast

import numpy as np

from windtunnel.cluster.free import NOBODY
from windtunnel.errors import SpecError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from windtunnel.sim.disruptions.places import Places, Site
    from windtunnel.sim.disruptions.spec import Disruptions, Reservation
    from windtunnel.sim.problem import Problem

#: What a random stream is for: which node a recorded failure hit.
_RECORDED = 2


@dataclass(frozen=True)
class Hold:
    """Capacity that is not for everybody during a time.

    Attributes:
        begin: from when no job starts there, s.
        start: from when jobs there are dealt with, s.
        end: until when, s; inf = for good.
        places: where.
        group: the reservation whose jobs may use it; `NOBODY` = none.
        on_start: what becomes of other jobs that run there at the start.
        planned: known in advance.
        cause: what it is, in words.
    """

    begin: float
    start: float
    end: float
    places: Places
    group: int = NOBODY
    on_start: str = "wait"
    planned: bool = True
    cause: str = ""


def all_holds(
    disruptions: Disruptions, site: Site, problem: Problem, seed: int
) -> tuple[tuple[Hold, ...], bool]:
    """Return the capacity that a description takes away at known times, in the order described.

    Returns:
        The holds, and whether recorded failures are asked for of jobs that record none.

    Raises:
        SpecError: as `windtunnel.sim.disruptions.plan.resolve`.
    """
    recorded = list(_recorded(disruptions, site, problem, seed))
    holds = [*_failures(disruptions, site), *recorded]
    holds += [*_maintenance(disruptions, site), *_changes(disruptions, site)]
    holds += _reservations(disruptions, site)
    return tuple(holds), disruptions.recorded_failures is not None and not recorded


def _numbers(*values: object) -> tuple[float, ...]:
    """Return spans, which the description has turned into seconds."""
    return tuple(math.inf if value is None else cast("float", value) for value in values)


def _failures(disruptions: Disruptions, site: Site) -> Iterator[Hold]:
    for index, failure in enumerate(disruptions.node_failures):
        path = f"node_failures[{index}]"
        nodes = () if failure.node is None else (failure.node,)
        if site.has_nodes and any(node >= len(site.gpus) for node in nodes):
            most = max(other.node or 0 for other in disruptions.node_failures)
            raise SpecError(
                path,
                f"found node {failure.node}; the cluster has nodes 0 to {len(site.gpus) - 1}, and "
                f"{most + 1:,} fail (of a recording of spot nodes: all that ever could be had). "
                f"Give a cluster of {most + 1:,} nodes or more.",
            )
        places = site.either(path, nodes, failure.gpus, failure.gpu_type)
        time, until = _numbers(failure.time, failure.until)
        yield Hold(time, time, until, places, on_start="kill", planned=False, cause=failure.cause)


def _recorded(disruptions: Disruptions, site: Site, problem: Problem, seed: int) -> Iterator[Hold]:
    wanted = disruptions.recorded_failures
    if wanted is None:
        return
    jobs = problem.jobs
    ends = jobs.end_time
    hit = np.isin(jobs.status.astype(str), wanted.statuses) & ~np.isnan(ends)
    (repair,) = _numbers(wanted.repair)
    seen: set[float] = set()
    for row in np.flatnonzero(hit).tolist():
        time = float(ends[row])
        if time in seen:
            continue
        seen.add(time)
        asked = jobs.gpu_type[row]
        types = {part.strip() for part in asked.split("|")} if asked else set()
        nodes = site.of_type("recorded_failures", None)
        nodes = [node for node in nodes if site.types[node] in types] or nodes
        node = nodes[
            int(
                np.random.default_rng(
                    np.random.SeedSequence(seed, spawn_key=(_RECORDED, row))
                ).integers(len(nodes))
            )
        ]
        places = site.nodes("recorded_failures", (node,))
        yield Hold(
            time, time, time + repair, places, on_start="kill", planned=False, cause="recorded"
        )


def _maintenance(disruptions: Disruptions, site: Site) -> Iterator[Hold]:
    for index, window in enumerate(disruptions.maintenance):
        path = f"maintenance[{index}]"
        places = site.either(path, window.nodes, window.gpus, window.gpu_type)
        start, end, drain = _numbers(window.start, window.end, window.drain_before)
        yield Hold(start - drain, start, end, places, on_start=window.on_start, cause="maintenance")


def _changes(disruptions: Disruptions, site: Site) -> Iterator[Hold]:
    for index, change in enumerate(disruptions.capacity_changes):
        path = f"capacity_changes[{index}]"
        (time,) = _numbers(change.time)
        for nodes, gpus, begin, end in (
            (change.add, change.add_gpus, -math.inf, time),
            (change.remove, change.remove_gpus, time, math.inf),
        ):
            places: Places = ()
            places += site.nodes(path, nodes) if nodes else ()
            places += site.pool(path, gpus, change.gpu_type) if gpus else ()
            if places:
                yield Hold(begin, begin, end, places, on_start=change.on_start, cause="capacity")


def _reservations(disruptions: Disruptions, site: Site) -> Iterator[Hold]:
    for index, held in enumerate(disruptions.reservations):
        path = f"reservations[{index}]"
        if site.is_pool:
            raise SpecError(path, "a pool has no nodes to reserve; use a placement on nodes.")
        nodes = held.nodes
        if bool(nodes) == (held.gpus is not None):
            raise SpecError(path, "expected either nodes or gpus.")
        if held.gpus is not None:
            nodes = _last_nodes(path, held, site)
        start, end = _numbers(held.start, held.end)
        places = site.nodes(path, nodes)
        yield Hold(start, start, end, places, index + 1, held.on_start, cause="reservation")


def _last_nodes(path: str, held: Reservation, site: Site) -> tuple[int, ...]:
    """Return the last nodes that together have the GPUs asked for."""
    wanted, chosen = held.gpus or 0, []
    for node in reversed(site.of_type(path, held.gpu_type)):
        if wanted <= 0:
            break
        chosen.append(node)
        wanted -= site.gpus[node]
    if wanted > 0 or not chosen:
        raise SpecError(path, f"found {held.gpus} GPUs; the cluster has not so many (or none).")
    return tuple(sorted(chosen))
