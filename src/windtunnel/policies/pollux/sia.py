"""Sia: an integer program, each round, for the number and type of each job's GPUs.

Jayaram Subramanya et al., *Sia: Heterogeneity-aware, goodput-optimized ML-cluster scheduling*,
SOSP'23, section 4; siasosp23/artifacts, ``sia-simulator/``.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from windtunnel.optimize import LinearProgram
from windtunnel.policies.pollux.roaming import Roaming

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from windtunnel.policies.pollux.clock import ElasticJob
    from windtunnel.policies.pollux.roaming import Machines
    from windtunnel.throughput.goodput import BatchLimits

#: What an entry is for GPUs that a job cannot use, and the largest coefficient.
_UNUSABLE, _DEAREST = 1e-4, 3_000.0
#: Objective of a job that gets nothing.
_LEFT_OUT = 1.1
#: Share of the objective by which the solution may miss the best.
_GAP = 1e-4
#: Published: s that a restart is taken to cost, by application; not what it costs.
_BELIEVED = {"deepspeech2": 25, "imagenet": 250, "cifar10": 30, "bert": 120, "yolov3": 45}
_OTHERWISE = 30.0
#: Published: largest micro-batch that the scheduler thinks of, by GPU type and application.
_BELIEVED_LOCAL = {("rtx", "deepspeech2"): 57}


@dataclass(frozen=True)
class Configuration:
    """GPUs of one type that a job may get.

    Attributes:
        kind: GPU type.
        placement: GPUs on each node.
    """

    kind: str
    placement: tuple[int, ...]

    @property
    def gpus(self) -> int:
        """How many GPUs."""
        return sum(self.placement)


@dataclass(frozen=True)
class SiaRules:
    """What is weighed.

    Attributes:
        power: of an entry of the matrix; below 0 the sum of inverse powers is made small.
        decimals: to which entries are rounded before the program is solved, as published, which
            makes ties the rule; None = they are not.
        own_batch: whether goodputs are taken with the batch size asked for as the largest, as
            published, though the job may train with larger ones.
        believed: whether restarts are taken to cost what the published scheduler believes, and not
            what they do.
    """

    power: float = -0.5
    decimals: int | None = 2
    own_batch: bool = True
    believed: bool = True


class Sia:
    """Chooses a configuration for each job.

    Args:
        machines: the nodes, and what is known of the applications on them.
        rules: what is weighed.
    """

    def __init__(self, machines: Machines, rules: SiaRules = SiaRules()) -> None:
        self._machines, self._rules = machines, rules
        self._choices = configurations(machines)
        self._ratios: dict[tuple[str, str, str], float] = {}

    @property
    def trains(self) -> Callable[[ElasticJob], Roaming]:
        """As what jobs are made."""
        return lambda job: Roaming(job, machines=self._machines)

    def __call__(
        self, active: Sequence[Any], free: list[int], now: float, interval: float
    ) -> dict[str, tuple[int, ...]]:
        """Return the nodes of each job that runs."""
        del interval
        if not active:
            return {}
        costs = np.array([self._costs(job, now) for job in active])
        kept = [self._current(job) if job.delay > 0 else None for job in active]
        chosen = self._solved(costs, kept, free)
        return self._placed(active, chosen, free)

    def _current(self, job: Any) -> int | None:
        """Return which configuration a job has."""
        if not job.nodes:
            return None
        return self._choices.index(Configuration(job.kind, job.placement))

    def _costs(self, job: Any, now: float) -> np.ndarray:
        """Return what each configuration costs, as a coefficient of the program."""
        entries = self._goodputs(job)
        usable = entries > 0
        entries = np.where(usable, entries / entries[usable].min(initial=np.inf), _UNUSABLE)
        current, rules = self._current(job), self._rules
        if current is not None:
            held = entries[current]
            entries = entries * self._kept(job, now)
            entries[current] = held
        with np.errstate(divide="ignore"):
            costs = entries**rules.power
        if rules.decimals is not None:
            costs = np.round(costs, rules.decimals)
        return np.minimum(costs, _DEAREST)

    def _kept(self, job: Any, now: float) -> float:
        """Return the part of a goodput that is left where the job is moved."""
        age = now - job.job.submit
        cost = self._restart_time(job)
        return 1.0 if age < cost else max(age - job.restarts * cost, 0.0) / (age + cost)

    def _restart_time(self, job: Any) -> float:
        """Return the seconds that a restart is taken to cost."""
        if not self._rules.believed:
            return float(job.restart_time)
        return _BELIEVED.get(job.job.application.name, _OTHERWISE)

    def _goodputs(self, job: Any) -> np.ndarray:
        """Return the goodput of each configuration; 0 where it cannot be used."""
        found = np.zeros(len(self._choices))
        if not job.models:
            found[[choice.gpus == 1 for choice in self._choices]] = 1.0
            return found
        for kind in self._machines.types:
            mine = [
                at
                for at, choice in enumerate(self._choices)
                if choice.kind == kind and choice.gpus <= job.most_gpus
            ]
            if mine:
                found[mine] = self._goodputs_on(job, kind, [self._choices[at] for at in mine])
        return found

    def _goodputs_on(self, job: Roaming, kind: str, choices: list[Configuration]) -> np.ndarray:
        """Return the goodputs of configurations of a type: its own, or projected from another."""
        known = (
            kind if kind in job.models else next(k for k in self._machines.types if k in job.models)
        )
        placements = [choice.placement for choice in choices]
        if known != kind:
            size = self._machines.sizes[self._machines.kinds.index(known)]
            placements = [_filled(choice.gpus, size) for choice in choices]
        limits = self._limits(job, known, placements)
        several = np.array([len(placement) > 1 for placement in placements])
        gpus = np.array([choice.gpus for choice in choices])
        found, _, _ = job.models[known].best_batch(several, gpus, job.noise, limits)
        return found * (1.0 if known == kind else self._ratio(job, kind, known))

    def _limits(
        self, job: Roaming, kind: str, placements: Sequence[tuple[int, ...]]
    ) -> BatchLimits:
        """Return the batch sizes that the scheduler thinks of."""
        limits = job.limits_on(kind, placements)
        bound = _BELIEVED_LOCAL.get((kind, job.job.application.name))
        if bound is not None:
            limits = replace(limits, most_local=np.minimum(limits.most_local, bound))
        return replace(limits, largest=job.job.batch) if self._rules.own_batch else limits

    def _ratio(self, job: Roaming, kind: str, known: str) -> float:
        """Return how much faster one GPU of a type is than one of another."""
        key = (job.job.application.name, kind, known)
        if key not in self._ratios:
            speeds = []
            for one in (kind, known):
                steps = job.on(one).placed[1,]
                local = max(steps)
                speeds.append(local / steps[local][0])
            self._ratios[key] = speeds[0] / speeds[1]
        return self._ratios[key]

    def _solved(
        self, costs: np.ndarray, kept: Sequence[int | None], free: Sequence[int]
    ) -> list[int | None]:
        """Return which configuration each job gets."""
        program = LinearProgram("sia")
        jobs, columns = np.nonzero(costs < _LEFT_OUT)
        pairs = zip(jobs.tolist(), columns.tolist(), strict=True)
        fixed = np.array([float(kept[job] == column) for job, column in pairs])
        held = [at for at in range(len(kept)) if kept[at] is not None]
        drop = np.isin(jobs, held) & (fixed == 0)
        jobs, columns, fixed = jobs[~drop], columns[~drop], fixed[~drop]
        x = program.add_columns(
            "configuration",
            range(len(jobs)),
            lower=fixed,
            upper=1.0,
            cost=costs[jobs, columns] - _LEFT_OUT,
            integer=True,
        )
        once = program.add_rows("job", range(len(costs)), upper=1.0)
        types = self._machines.types
        nodes = list(zip(free, self._machines.kinds, strict=True))
        capacity = [sum(gpus for gpus, kind in nodes if kind == own) for own in types]
        limits = program.add_rows("GPUs", types, upper=capacity)
        program.add_coefficients(once[jobs], x, 1.0)
        of_type = np.array([types.index(choice.kind) for choice in self._choices])
        gpus = np.array([float(choice.gpus) for choice in self._choices])
        program.add_coefficients(limits[of_type[columns]], x, gpus[columns])
        values = program.solve(gap=_GAP).values if len(jobs) else np.empty(0)
        chosen: list[int | None] = [None] * len(costs)
        for at in np.flatnonzero(values > 0.5).tolist():  # noqa: PLR2004 - 0 or 1, but for rounding
            chosen[int(jobs[at])] = int(columns[at])
        return chosen

    def _placed(
        self, active: Sequence[Any], chosen: Sequence[int | None], free: list[int]
    ) -> dict[str, tuple[int, ...]]:
        """Return nodes: the largest first, each on the first nodes of its type with room."""
        given = [
            (job, self._choices[at])
            for job, at in zip(active, chosen, strict=True)
            if at is not None
        ]
        placed = {}
        for job, choice in sorted(given, key=lambda pair: -pair[1].gpus):
            nodes: list[int] = []
            for want in choice.placement:
                node = next(
                    at
                    for at, kind in enumerate(self._machines.kinds)
                    if kind == choice.kind and free[at] >= want
                )
                free[node] -= want
                nodes += [node] * want
            placed[job.job.name] = tuple(nodes)
        return placed


def configurations(machines: Machines) -> list[Configuration]:
    """Return all configurations: powers of two on one node, then whole nodes."""
    found = []
    for kind in machines.types:
        sizes = [s for s, k in zip(machines.sizes, machines.kinds, strict=True) if k == kind]
        gpus = 1
        while gpus <= sizes[0]:
            found.append(Configuration(kind, (gpus,)))
            gpus *= 2
        found += [Configuration(kind, tuple(sizes[:k])) for k in range(2, len(sizes) + 1)]
    return found


def _filled(gpus: int, size: int) -> tuple[int, ...]:
    """Return GPUs on nodes of a size, filled one after the other."""
    full, rest = divmod(gpus, size)
    return (size,) * full + ((rest,) if rest else ())
