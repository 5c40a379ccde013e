"""Who runs beside whom, and at what rate: a `Slowdown` applied to the jobs of a run."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from windtunnel.cluster.devices import CORE_UNITS, node_kinds
from windtunnel.errors import SpecError
from windtunnel.sim.elastic.work import cores_on
from windtunnel.sim.uplinks import Uplinks, fair_rates

if TYPE_CHECKING:
    from windtunnel.cluster.free import Where
    from windtunnel.cluster.spec import ClusterSpec
    from windtunnel.sim.elastic.work import Option
    from windtunnel.sim.problem import Problem
    from windtunnel.sim.slowdown import Slowdown


@dataclass
class _Part:
    """What a job holds on one node: devices as one bit each, and thousandths of cores."""

    devices: int = 0
    cores: int = 0


class Neighbours:
    """The running jobs by node, and the rate of each.

    ``nodes_slow``: nodes may become slow; ``elastic``: where and on how many cores jobs run, their
    options say.

    Attributes:
        notes: what was assumed, one sentence each.
        racks: rack of each node; empty where the cluster states none.
        limits: thousandths of cores of each node; None = not stated.
        cpus: cores that each job asks for, Float array (m,); 0 = unknown.
        neighbours_matter: whether it matters who is near.
        uplinks: what carries jobs' traffic; None = nothing limits it.

    Raises:
        SpecError: the model speaks of what the cluster, or the run, does not have.
    """

    def __init__(
        self, model: Slowdown, problem: Problem, cluster: ClusterSpec, *,
        nodes_slow: bool = False, elastic: bool = False,
    ) -> None:  # fmt: skip
        _check(model, problem, cluster)
        self.model = model
        self.problem = problem
        self.racks = cluster.racks
        self.limits = [
            None if kind.cpus is None else round(kind.cpus * CORE_UNITS)
            for kind in cluster.node_types
            for _ in range(kind.count)
        ]
        self._spread = model.spread_factors()
        self._share = model.share_factors()
        self._spread_names = self._names({name for name, _ in self._spread})
        self._share_names = self._names({name for name, _ in self._share})
        self.cpus: np.ndarray = np.nan_to_num(problem.jobs.num_cpus[problem.rows])
        self._num_gpus: list[float] = problem.jobs.num_gpus[problem.rows].tolist()
        self.notes = () if elastic else self._assumed()
        #: Node -> job -> what it holds there; jobs in order of start.
        self._on: list[dict[int, _Part]] = [{} for _ in self.limits]
        self._cores = [0] * len(self.limits)
        #: Running job -> its factor by locality, and its nodes.
        self._locality: dict[int, float] = {}
        self._nodes: dict[int, list[int]] = {}
        #: Jobs that a policy put on the same GPUs, each with the other.
        self._mate: dict[int, int] = {}
        self._fewest: dict[int, tuple[int, int]] = {}
        self._racks_of_shapes: dict[tuple[tuple[int, ...], int], int] = {}
        self.neighbours_matter = model.by_sharing or model.cpu > 0 or nodes_slow
        self._speed = [1.0] * len(self.limits)
        self.uplinks = Uplinks(model, cluster) if model.by_network else None
        #: Running job -> uplinks that it crosses; their rates, empty where somebody came or left.
        self._crossing: dict[int, list[int]] = {}
        self._fair: dict[int, float] = {}

    def enter(
        self, job: int, where: Where, option: Option | None = None, mate: int | None = None
    ) -> None:
        """Note that a job has started; an elastic one, in an option; or on another's GPUs."""
        if mate is not None:
            self._mate |= {job: mate, mate: job}
        if option is not None:
            parts = _option_parts(option, where)
            fewest = len(option.shape), self.fewest_racks(option, self._allowed(job))
        else:
            parts = {} if self.problem.is_pool else self._parts(job, where)
            fewest = self._needs(job) if parts else (0, 0)
        self._locality[job] = self._locality_of(job, list(parts), fewest)
        self._nodes[job] = list(parts)
        for node, part in parts.items():
            self._on[node][job] = part
            self._cores[node] += part.cores
        if self.uplinks is not None and (crossed := self.uplinks.crossed(parts)):
            self._crossing[job] = crossed
            self._fair = {}

    def leave(self, job: int) -> None:
        """Note that a job has left its nodes."""
        for node in self._nodes.pop(job):
            self._cores[node] -= self._on[node].pop(job).cores
        del self._locality[job]
        if job in self._mate:
            del self._mate[self._mate.pop(job)]
        if self._crossing.pop(job, None):
            self._fair = {}

    def rate(self, job: int) -> float:
        """Return the rate of a running job."""
        paces = (
            [self._pace(job, node) for node in self._nodes[job]] if self.neighbours_matter else []
        )
        rate = self._locality[job] * min(paces, default=1.0)
        if self.uplinks is None:
            return rate
        if not self._fair and self._crossing:
            links = self.uplinks
            self._fair = fair_rates(self._crossing, links.capacity, links.traffic)
        return rate * self._fair.get(job, 1.0)

    def set_speed(self, node: int, speed: float) -> None:
        """Let what runs on a node go at this speed, 1 = as usual."""
        self._speed[node] = speed

    def fewest_places(self, kind: int) -> tuple[int, int]:
        """Return over how many nodes, and racks, jobs of a class go at least if alone."""
        if kind not in self._fewest:
            self._fewest[kind] = self._fewest_places(kind)
        return self._fewest[kind]

    def fewest_racks(self, option: Option, allowed: int) -> int:
        """Return over how many racks an option's pieces go at least, on the empty cluster.

        Its speed is that of its shape, on as many nodes as that says.
        """
        shape, nodes = asked = option.shape, allowed & option.nodes
        if asked not in self._racks_of_shapes:
            sizes = self.problem.sizes[: len(self.racks)]
            holds = [nodes >> node & 1 and size >= shape[0] for node, size in enumerate(sizes)]
            racks = np.array(self.racks[: len(holds)], dtype=np.int64)
            of_racks = np.bincount(racks, weights=np.array(holds, dtype=np.float64))
            self._racks_of_shapes[asked] = _fewest(of_racks, len(shape))
        return self._racks_of_shapes[asked]

    def spread_rates(self) -> np.ndarray:
        """Return each job's rate over more nodes than it needs, Float array (m,)."""
        if not self._spread:
            return np.full(len(self._spread_names), self.model.spread)
        return np.array([self._spread_rate(job) for job in range(len(self._spread_names))])

    def share_rates(self) -> tuple[np.ndarray, np.ndarray]:
        """Return the rates of all jobs beside each other on a GPU.

        Returns:
            The number of each job's name, Int array (m,), 0 = it has none in the tables; and the
            rate of a job with one name beside one with another, Float array (names, names).
        """
        names = [None, *sorted({name for name in self._share_names if name is not None})]
        numbers = {name: number for number, name in enumerate(names)}
        rates = [[self._pair_rate(one, two) for two in names] for one in names]
        return np.array([numbers[name] for name in self._share_names], dtype=np.int64), np.array(
            rates
        )

    def _pace(self, job: int, node: int) -> float:
        """Return how fast others let a job's tasks on one node be."""
        part = self._on[node][job]
        pace, limit = 1.0, self.limits[node]
        if self.model.cpu and limit:
            # Where cores do not constrain, more of them may be promised than there are.
            pace -= self.model.cpu * min((self._cores[node] - part.cores) / limit, 1.0)
        if not self.model.by_sharing or not part.devices:
            return pace * self._speed[node]
        # What two jobs that a policy put on the same GPUs cost each other is in their rates.
        own = job, self._mate.get(job)
        others = [(who, held.devices) for who, held in self._on[node].items() if who not in own]
        shared = 1.0
        device = 1
        while device <= part.devices:
            if part.devices & device:
                beside = [self._beside(job, other) for other, held in others if held & device]
                shared = min(shared, _together(beside))
            device <<= 1
        return pace * shared * self._speed[node]

    def _beside(self, job: int, other: int) -> float:
        """Return the rate of a job with one other on its GPU."""
        return self._pair_rate(self._share_names[job], self._share_names[other])

    def _pair_rate(self, one: str | None, two: str | None) -> float:
        if one is None or two is None:
            return self.model.share
        return self._share.get((one, two), self.model.share)

    def _spread_rate(self, job: int) -> float:
        name = self._spread_names[job]
        measured = None if name is None else self._spread.get((name, self._num_gpus[job]))
        return self.model.spread if measured is None else measured

    def _allowed(self, job: int) -> int:
        """Return the nodes that a job may use, as bits."""
        return int(self.problem.demand(job).allowed)

    def _needs(self, job: int) -> tuple[int, int]:
        """Return over how many nodes, and racks, a job goes at least."""
        if not self.model.by_locality:
            return 0, 0
        return self.fewest_places(int(self.problem.demand_of[job]))

    def _locality_of(self, job: int, nodes: list[int], fewest: tuple[int, int]) -> float:
        factor = 1.0
        if not nodes or not self.model.by_locality:
            return factor
        fewest_nodes, fewest_racks = fewest
        if len(nodes) > fewest_nodes:
            factor = self._spread_rate(job)
        if self.racks and len({self.racks[node] for node in nodes}) > fewest_racks:
            factor *= self.model.rack
        return factor

    def _fewest_places(self, kind: int) -> tuple[int, int]:
        """Return over how many nodes, and racks, a job of a class must go on the empty cluster."""
        demand = self.problem.demands[kind]
        wanted = demand.count if self.problem.devices else demand.gpus
        capacity = self._empty_capacity(demand)
        racks = np.array(self.racks[: len(capacity)], dtype=np.int64)
        of_racks = np.bincount(racks, weights=capacity[: len(racks)])
        return _fewest(capacity, wanted), _fewest(of_racks, wanted)

    def _empty_capacity(self, demand: Any) -> np.ndarray:
        """Return what each empty node holds of a class, tasks or GPUs, Int array (n,)."""
        problem = self.problem
        if problem.devices:
            examples, kind_of = self._node_kinds
            free: Any = problem.free_state()
            capacity: np.ndarray = np.array([free.fitting(node, demand) for node in examples])[
                kind_of
            ]
            return capacity
        allowed = [demand.allowed >> node & 1 for node in range(len(problem.sizes))]
        return np.where(allowed, problem.sizes - problem.sizes % demand.task, 0)

    @cached_property
    def _node_kinds(self) -> tuple[list[int], np.ndarray]:
        """A node of each kind, and the number of each node's kind, Int array (n,)."""
        examples, kind_of = [], np.zeros(len(self.problem.devices), dtype=np.int64)
        for number, kind in enumerate(node_kinds(self.problem.devices)):
            members = [node for node in range(len(kind_of)) if kind.members >> node & 1]
            examples.append(members[0])
            kind_of[members] = number
        return examples, kind_of

    def _parts(self, job: int, where: Where) -> dict[int, _Part]:
        """Return what a job holds on each of its nodes."""
        problem = self.problem
        demand = problem.demand(job)
        total = demand.count if problem.devices else demand.gpus
        parts: dict[int, _Part] = {}
        tasks: dict[int, int] = {}
        for node, grant in where:
            part = parts.setdefault(node, _Part())
            own = demand.tasks(grant, pooled=problem.pooled) if problem.devices else grant
            tasks[node] = tasks.get(node, 0) + own
            if problem.devices and not problem.pooled:
                part.devices |= grant
        cores = float(self.cpus[job]) * CORE_UNITS
        for node, part in parts.items():
            part.cores = round(cores * tasks[node] / total)
        return parts

    def _names(self, known: set[str]) -> list[str | None]:
        """Return by which name a table knows each job: its workload, else its template."""
        jobs, rows = self.problem.jobs, self.problem.rows
        if not known:
            return [None] * len(rows)
        pairs = zip(jobs.workload[rows].tolist(), jobs.template[rows].tolist(), strict=True)
        return [next((name for name in pair if name in known), None) for pair in pairs]

    def _assumed(self) -> tuple[str, ...]:
        notes = []
        if self._spread:
            keys = zip(self._spread_names, self._num_gpus, strict=True)
            missing = sum(gpus > 1 and (name, gpus) not in self._spread for name, gpus in keys)
            if missing:
                notes.append(
                    f"{missing:,} jobs of several GPUs have no row in the table of spread factors; "
                    f"where they are spread their rate is {self.model.spread:g}."
                )
        if self._share and None in self._share_names:
            notes.append(
                f"{self._share_names.count(None):,} jobs are not in the table of share factors; "
                f"beside another job on their GPU their rate is {self.model.share:g}."
            )
        if self.model.cpu:
            unknown = int(np.isnan(self.problem.jobs.num_cpus[self.problem.rows]).sum())
            if unknown:
                notes.append(f"{unknown:,} jobs without a CPU request take no cores from others.")
        return tuple(notes)


def _option_parts(option: Option, where: Where) -> dict[int, _Part]:
    """Return what an elastic job holds on each of its nodes."""
    gpus: dict[int, int] = {}
    for node, grant in where:
        gpus[node] = gpus.get(node, 0) + grant
    return {node: _Part(cores=cores_on(option, held)) for node, held in gpus.items()}


def _check(model: Slowdown, problem: Problem, cluster: ClusterSpec) -> None:
    """Check that the model speaks of what is there.

    Raises:
        SpecError: it does not.
    """
    if problem.is_pool and (model.by_locality or model.by_sharing or model.cpu or model.by_network):
        raise SpecError("slowdown", "on a pool no job is near another; expected nodes")
    if model.rack != 1 and not cluster.racks:
        raise SpecError(
            "slowdown.rack",
            "the cluster states no racks; expected nodes_per_rack for every node type",
        )
    if model.by_sharing and problem.pooled:
        raise SpecError(
            "slowdown.share",
            "pooled nodes do not tell who shares a GPU; expected sharing='devices'",
        )
    if model.cpu and all(kind.cpus is None for kind in cluster.node_types):
        raise SpecError(
            "slowdown.cpu", "the cluster states no cores; expected cpus for some node type"
        )


def _together(factors: list[float]) -> float:
    """Return the rate beside several others: the time that each costs adds up.

    With one other it is the factor itself; with k that would each halve the rate it is 1 / (k + 1).
    """
    if len(factors) <= 1:
        return factors[0] if factors else 1.0
    cost = 0.0
    for factor in factors:  # sum() adds otherwise from Python 3.12 on
        cost += 1.0 / factor - 1.0
    return 1.0 / (1.0 + cost)


def _fewest(capacity: np.ndarray, wanted: int) -> int:
    """Return how many of the largest places hold so much together."""
    held = np.cumsum(np.sort(capacity)[::-1])
    return min(int(np.searchsorted(held, wanted)) + 1, len(capacity))
