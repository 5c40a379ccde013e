"""`Plan`: a description of disruptions, resolved for one run: which nodes, when, for whom."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from windtunnel.errors import SpecError, unused_names
from windtunnel.sim.disruptions.dated import DatedDisruptions
from windtunnel.sim.disruptions.holds import all_holds
from windtunnel.sim.disruptions.places import Site
from windtunnel.sim.disruptions.spares import Spares

if TYPE_CHECKING:
    from collections.abc import Iterator

    from windtunnel.cluster.spec import ClusterSpec
    from windtunnel.sim.disruptions.failures import FailureModel
    from windtunnel.sim.disruptions.holds import Hold
    from windtunnel.sim.disruptions.places import Places
    from windtunnel.sim.disruptions.spec import Disruptions
    from windtunnel.sim.problem import Problem

#: What random streams are for: nodes, jobs, which node a recorded failure hit, lemons.
_NODE, _JOB, _, _LEMON = range(4)


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

    @property
    def by_chance(self) -> bool:
        """Whether nodes or jobs fail at random times."""
        return bool(self.streams) or bool(self.hazard.any())

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

    ``seed``: the run's, where the description has none of its own; ``one_rack``: a gang stays in
    one rack.

    Raises:
        SpecError: a node or a GPU type that the cluster does not have; nodes of a pool; more GPUs
            than a pool has; a reservation on a pool; dates.
    """
    if isinstance(disruptions, DatedDisruptions):
        raise SpecError(
            "disruptions",
            "they have dates, which nothing has put on the trace's clock; give seconds, or fly "
            "from the command line a log that knows its dates.",
        )
    site = Site(problem, cluster)
    chosen = seed if disruptions.seed is None else disruptions.seed
    jobs, rows = problem.jobs, problem.rows
    first = float(problem.submit[0]) if len(rows) else 0.0
    status = jobs.status[rows] if len(rows) else np.empty(0, dtype=object)
    once = np.isin(status.astype(str), disruptions.job_failures.statuses)
    holds, none_recorded = all_holds(disruptions, site, problem, chosen)
    notes = []
    if none_recorded:
        notes.append("No job is recorded as lost to a node: recorded failures change nothing.")
    if disruptions.job_failures.statuses and not once.any():
        notes.append("No job is recorded with a status that is to fail once.")
    notes += _unused(disruptions, problem)
    checkpoint = disruptions.checkpoint
    interval = math.inf if checkpoint.interval is None else cast("float", checkpoint.interval)
    return Plan(
        holds=holds,
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


def _streams(disruptions: Disruptions, site: Site, seed: int) -> Iterator[NodeStream]:
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
            lemon = model.lemons and model.lemons > _random(seed, _LEMON, index, domain[0]).random()
            yield NodeStream(places, model, draws, model.lemon_factor if lemon else 1.0)


def _standby(disruptions: Disruptions, site: Site) -> Places:
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


def _access(disruptions: Disruptions, problem: Problem) -> tuple[tuple[int, ...], ...]:
    """Return the reservations that each flown job may use, numbered from 1."""
    jobs, rows = problem.jobs, problem.rows
    if not disruptions.reservations:
        return ((),) * len(rows)
    named: list[dict[str | None, list[int]]] = [{}, {}, {}]
    for number, held in enumerate(disruptions.reservations, start=1):
        for numbers, names in zip(named, (held.users, held.vcs, held.jobs), strict=True):
            for name in names:
                numbers.setdefault(name, []).append(number)
    # By user, virtual cluster and, if a reservation names it, job: few, though there are many jobs.
    sets: dict[tuple[Any, ...], tuple[int, ...]] = {}
    access = []
    for names in zip(jobs.user[rows], jobs.vc[rows], jobs.job_id[rows], strict=True):
        key = *names[:2], names[2] if names[2] in named[2] else None
        if key not in sets:
            lists = [of.get(name, ()) for of, name in zip(named, key, strict=True)]
            sets[key] = tuple(sorted({number for numbers in lists for number in numbers}))
        access.append(sets[key])
    return tuple(access)


def _unused(disruptions: Disruptions, problem: Problem) -> list[str]:
    """Return what to note of users, virtual clusters and jobs that have reservations only."""
    jobs, notes = problem.jobs, []
    for kind, column, lists in (
        ("user", "user", [held.users for held in disruptions.reservations]),
        ("vc", "vc", [held.vcs for held in disruptions.reservations]),
        ("job", "job_id", [held.jobs for held in disruptions.reservations]),
    ):
        named = {name for names in lists for name in names}
        if named:
            occurring = getattr(jobs, column).tolist()
            notes += unused_names("Reservations name", kind, named, occurring, where="the trace")
    return notes
