"""`Plan`: a description of disruptions, resolved for one run: which nodes, when, for whom."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, cast

import numpy as np

from windtunnel.cluster.free import NOBODY
from windtunnel.cluster.gpu_types import spelling, spelt
from windtunnel.cluster.levels import HOSTS
from windtunnel.errors import SpecError, quote
from windtunnel.sim.disruptions.spares import Spares

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from windtunnel.cluster.spec import ClusterSpec
    from windtunnel.sim.disruptions.spec import Disruptions, FailureModel, Reservation
    from windtunnel.sim.problem import Problem

#: What random streams are for: nodes, jobs, which node a recorded failure hit, lemons.
_NODE, _JOB, _RECORDED, _LEMON = range(4)
#: (node or pool, GPU units there).
Places = tuple[tuple[int, int], ...]


@dataclass(frozen=True)
class Hold:
    """Room that is not for everybody during a time.

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


@dataclass(frozen=True)
class NodeStream:
    """The random failures of one node or domain (or of as many GPUs of a pool).

    Attributes:
        places: where.
        model: their distribution.
        random: the node's own generator.
        factor: how many times as often as the model says it fails.
    """

    places: Places
    model: FailureModel
    random: np.random.Generator
    factor: float = 1.0

    def cause(self) -> str:
        """Return what fails next, in words."""
        causes = self.model.causes
        if not causes:
            return self.model.cause
        shares = np.cumsum(list(causes.values()))
        drawn = self.random.random() * shares[-1]
        return list(causes)[int(np.searchsorted(shares, drawn, side="right"))]

    def lifetime(self) -> float:
        """Return the next time to failure, s."""
        mean, shape = cast("float", self.model.mtbf) / self.factor, self.model.shape
        if self.model.distribution == "weibull":
            return float(self.random.weibull(shape)) * mean / math.gamma(1 + 1 / shape)
        return float(self.random.exponential(mean))

    def repair(self) -> float:
        """Return how long the next repair takes, s."""
        mean = cast("float", self.model.mttr)
        return mean if self.model.repair == "fixed" else float(self.random.exponential(mean))


@dataclass(frozen=True)
class Plan:
    """What will happen in a run. Jobs are known by their arrival number.

    Attributes:
        holds: planned ones and failures that are given by their times, in the order described.
        streams: random failures of nodes.
        interval: seconds of work between checkpoints; inf = none.
        checkpoint_cost: seconds a checkpoint takes.
        restart_cost: seconds a job pays when it goes on after a failure.
        startup_cost: seconds a job's first start takes.
        ends: a job that fails is over.
        spares: says which node takes a failed one's place; None = none does.
        hazard: Float array (m,), failures per second that the job runs.
        fails_once: jobs that fail when their work is done.
        access: the reservations each job may use, shape (m,).
        first: the first submit, s.
        crews: how many random failures are repaired at a time; inf = all.
        standby: nodes that stand in for failed ones.
        seed: of what is drawn.
        notes: what a reader of the numbers must know, one sentence each.
    """

    holds: tuple[Hold, ...]
    streams: tuple[NodeStream, ...]
    interval: float
    checkpoint_cost: float
    restart_cost: float
    startup_cost: float
    ends: bool
    spares: Spares | None
    hazard: np.ndarray
    fails_once: frozenset[int]
    access: tuple[tuple[int, ...], ...]
    first: float
    crews: float
    standby: Places
    seed: int
    notes: tuple[str, ...]

    @property
    def slows(self) -> bool:
        """Whether nodes may become slow."""
        return any(stream.model.speed for stream in self.streams)

    def changes(self) -> list[tuple[float, int, int]]:
        """Return the holds known in advance, in order: time, 1 begins or 0 ends, place in holds."""
        return sorted(
            (time, begins, index)
            for index, hold in enumerate(self.holds)
            if hold.planned
            for time, begins in ((hold.begin, 1), (hold.end, 0))
            if math.isfinite(time)
        )

    def job_random(self, row: int) -> np.random.Generator:
        """Return the generator of one job's failures, by its row in the jobs table."""
        return _random(self.seed, _JOB, row)


def _random(seed: int, *key: int) -> np.random.Generator:
    return np.random.default_rng(np.random.SeedSequence(seed, spawn_key=key))


def resolve(
    disruptions: Disruptions,
    problem: Problem,
    cluster: ClusterSpec,
    seed: int,
    *,
    one_rack: bool = False,
) -> Plan:
    """Return what a description means for a run.

    Args:
        disruptions: the description.
        problem: jobs and cluster.
        cluster: the same cluster, with its nodes.
        seed: the run's, where the description has none of its own.
        one_rack: a gang stays in one rack.

    Raises:
        SpecError: a node or a GPU type that the cluster does not have; nodes of a pool; more GPUs
            than a pool has; a reservation on a pool.
    """
    site = _Site(problem, cluster)
    chosen = seed if disruptions.seed is None else disruptions.seed
    jobs, rows = problem.jobs, problem.rows
    first = float(problem.submit[0]) if len(rows) else 0.0
    status = jobs.status[rows] if len(rows) else np.empty(0, dtype=object)
    once = np.isin(status.astype(str), disruptions.job_failures.statuses)
    recorded = list(_recorded(disruptions, site, problem, chosen))
    notes = []
    if disruptions.recorded_failures is not None and not recorded:
        notes.append("No job is recorded as lost to a node: recorded failures change nothing.")
    if disruptions.job_failures.statuses and not once.any():
        notes.append("No job is recorded with a status that is to fail once.")
    holds = [*_failures(disruptions, site), *recorded]
    holds += [*_maintenance(disruptions, site), *_changes(disruptions, site)]
    holds += _reservations(disruptions, site)
    checkpoint = disruptions.checkpoint
    interval = math.inf if checkpoint.interval is None else cast("float", checkpoint.interval)
    return Plan(
        holds=tuple(holds),
        streams=tuple(_streams(disruptions, site, chosen)),
        interval=interval,
        checkpoint_cost=cast("float", checkpoint.cost),
        restart_cost=cast("float", checkpoint.restart_cost),
        startup_cost=cast("float", checkpoint.startup_cost),
        ends=disruptions.on_failure == "end",
        spares=Spares.of(disruptions, problem, cluster, one_rack=one_rack),
        hazard=disruptions.job_failures.rate * jobs.num_gpus[rows] / 3600.0,
        fails_once=frozenset(np.flatnonzero(once).tolist()),
        access=_access(disruptions, problem),
        first=first,
        crews=math.inf if disruptions.repair_crews is None else disruptions.repair_crews,
        standby=_standby(disruptions, site),
        seed=chosen,
        notes=tuple(notes),
    )


class _Site:
    """Where the cluster's nodes are in the run: themselves, or in the pool of their type."""

    def __init__(self, problem: Problem, cluster: ClusterSpec) -> None:
        self.is_pool = problem.is_pool
        self.has_nodes = not cluster.is_pool
        self.levels, self.paths = cluster.level_paths if self.has_nodes else ((), ())
        self.units = problem.units
        kinds = [kind for kind in cluster.node_types for _ in range(kind.count)]
        self.types = [kind.gpu_type for kind in kinds]
        self.spelling = spelling(cluster.gpu_types, cluster.aliases)
        self.gpus = [kind.gpus for kind in kinds]
        pooled = [k.gpu_type for k in cluster.node_types if k.gpus or cluster.is_pool]
        self.pool_types = list(dict.fromkeys(pooled))
        self.sizes = problem.sizes.tolist()

    def nodes(self, path: str, nodes: Sequence[int]) -> Places:
        """Return the places of nodes by their indices."""
        if not self.has_nodes:
            raise SpecError(
                path,
                "a pool has no nodes that fail. Give a cluster of nodes, such as 4x8, or tell in a "
                ".toml file which GPUs fail when ([[node_failures]] with gpus = 8).",
            )
        if len(set(nodes)) != len(nodes):
            raise SpecError(path, f"found {list(nodes)}; expected each node once.")
        places = []
        for node in nodes:
            if not 0 <= node < len(self.gpus):
                last = len(self.gpus) - 1
                raise SpecError(path, f"found node {node}; the cluster has nodes 0 to {last}.")
            if self.is_pool and self.gpus[node]:
                pool = self.pool_types.index(self.types[node])
                places.append((pool, self.gpus[node] * self.units))
            elif not self.is_pool:
                places.append((node, self.sizes[node]))
        return tuple(places)

    def pool(self, path: str, gpus: int, gpu_type: str | None) -> Places:
        """Return so many GPUs of a pool."""
        if not self.is_pool:
            raise SpecError(path, "expected nodes (nodes = [0]); only a pool loses single GPUs.")
        if gpu_type is None and len(self.pool_types) > 1:
            known = ", ".join(str(name) for name in self.pool_types)
            raise SpecError(path, f"expected a gpu_type, one of {known}.")
        index = 0 if gpu_type is None else self._pool_of(path, gpu_type)
        size = self.sizes[index] // self.units
        if not 1 <= gpus <= size:
            raise SpecError(path, f"found {gpus} GPUs; the pool has {size}.")
        return ((index, gpus * self.units),)

    def either(
        self, path: str, nodes: Sequence[int], gpus: int | None, gpu_type: str | None
    ) -> Places:
        """Return the places of nodes, or of GPUs of a pool, whichever is given."""
        if bool(nodes) == (gpus is not None):
            raise SpecError(path, "expected either nodes or gpus.")
        return self.nodes(path, nodes) if gpus is None else self.pool(path, gpus, gpu_type)

    def of_type(self, path: str, gpu_type: str | None) -> list[int]:
        """Return the nodes with GPUs, of one type or all of them."""
        gpu_type = None if gpu_type is None else spelt(gpu_type, self.spelling)
        if gpu_type is not None and gpu_type not in self.types:
            raise SpecError.unknown(path, gpu_type, [name for name in self.types if name])
        types = enumerate(self.types)
        return [n for n, name in types if self.gpus[n] and gpu_type in (None, name)]

    def domains(self, path: str, level: str | None, nodes: Sequence[int]) -> list[tuple[int, ...]]:
        """Return the nodes of each domain of a level; each by itself where there is none.

        Raises:
            SpecError: the cluster has no such level.
        """
        if level is None or level in HOSTS:
            return [(node,) for node in nodes]
        if not self.has_nodes:
            raise SpecError(f"{path}.level", "a pool has no nodes, and so no levels above them.")
        if level not in self.levels:
            raise SpecError.unknown(f"{path}.level", level, [*self.levels, *HOSTS])
        depth = self.levels.index(level) + 1
        found: dict[tuple[str, ...], list[int]] = {}
        for node in nodes:
            if not 0 <= node < len(self.paths):
                self.nodes(path, (node,))  # says which nodes there are
            found.setdefault(self.paths[node][:depth], []).append(node)
        return [tuple(of) for of in found.values()]

    def _pool_of(self, path: str, gpu_type: str) -> int:
        gpu_type = spelt(gpu_type, self.spelling)
        if gpu_type not in self.pool_types:
            raise SpecError.unknown(path, gpu_type, [name for name in self.pool_types if name])
        return self.pool_types.index(gpu_type)


def _numbers(*values: object) -> tuple[float, ...]:
    """Return spans, which the description has turned into seconds."""
    return tuple(math.inf if value is None else cast("float", value) for value in values)


def _failures(disruptions: Disruptions, site: _Site) -> Iterator[Hold]:
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


def _recorded(disruptions: Disruptions, site: _Site, problem: Problem, seed: int) -> Iterator[Hold]:
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
        node = nodes[int(_random(seed, _RECORDED, row).integers(len(nodes)))]
        places = site.nodes("recorded_failures", (node,))
        yield Hold(
            time, time, time + repair, places, on_start="kill", planned=False, cause="recorded"
        )


def _streams(disruptions: Disruptions, site: _Site, seed: int) -> Iterator[NodeStream]:
    for index, model in enumerate(disruptions.failure_models):
        path = f"failure_models[{index}]"
        nodes = site.of_type(path, model.gpu_type) if model.nodes is None else list(model.nodes)
        for domain in site.domains(path, model.level, nodes):
            places = site.nodes(path, domain)
            if model.speed and site.is_pool:
                raise SpecError(f"{path}.speed", "on a pool no job is on a node that is slow.")
            if model.found_after and site.is_pool:
                raise SpecError(f"{path}.found_after", "on a pool no job is on a node that errs.")
            draws = _random(seed, _NODE, index, domain[0])
            lemon = model.lemons > _random(seed, _LEMON, index, domain[0]).random()
            yield NodeStream(places, model, draws, model.lemon_factor if lemon else 1.0)


def _standby(disruptions: Disruptions, site: _Site) -> Places:
    """Return the nodes that stand in for failed ones.

    Raises:
        SpecError: there are no nodes, or not so many.
    """
    wanted = disruptions.spares
    if not wanted:
        return ()
    if site.is_pool:
        raise SpecError("spares", "a pool has no nodes to spare; use a placement on nodes.")
    nodes = site.of_type("spares", None)
    if wanted >= len(nodes):
        message = f"found {wanted:,}; the cluster has {len(nodes):,} nodes, and one must be left."
        raise SpecError("spares", message)
    return site.nodes("spares", nodes[-wanted:])


def _maintenance(disruptions: Disruptions, site: _Site) -> Iterator[Hold]:
    for index, window in enumerate(disruptions.maintenance):
        path = f"maintenance[{index}]"
        places = site.either(path, window.nodes, window.gpus, window.gpu_type)
        start, end, drain = _numbers(window.start, window.end, window.drain_before)
        yield Hold(start - drain, start, end, places, on_start=window.on_start, cause="maintenance")


def _changes(disruptions: Disruptions, site: _Site) -> Iterator[Hold]:
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


def _reservations(disruptions: Disruptions, site: _Site) -> Iterator[Hold]:
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


def _last_nodes(path: str, held: Reservation, site: _Site) -> tuple[int, ...]:
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


def _access(disruptions: Disruptions, problem: Problem) -> tuple[tuple[int, ...], ...]:
    """Return the reservations that each flown job may use, numbered from 1."""
    jobs, rows = problem.jobs, problem.rows.tolist()
    groups: list[tuple[int, ...]] = [()] * len(rows)
    for index, held in enumerate(disruptions.reservations):
        if not (held.users or held.vcs or held.jobs):
            continue
        for name in held.jobs:
            if name not in jobs.job_id:
                where = f"reservations[{index}].jobs"
                raise SpecError(where, f"found {quote(name)}; the trace has no such job.")
        lists = ((jobs.user, held.users), (jobs.vc, held.vcs), (jobs.job_id, held.jobs))
        for job, row in enumerate(rows):
            if any(column[row] in names for column, names in lists):
                groups[job] = (*groups[job], index + 1)
    return tuple(groups)
