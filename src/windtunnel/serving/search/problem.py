"""A search's question as arrays: requests, and every configuration's times and weights."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from windtunnel.checked import checked_number
from windtunnel.errors import InfeasibleError
from windtunnel.serving.compiled import kernels
from windtunnel.serving.placement import Group, Placement

if TYPE_CHECKING:
    from windtunnel.serving.overheads import Overheads
    from windtunnel.serving.parallel import Parallel
    from windtunnel.serving.profile import Profile
    from windtunnel.serving.workload import Workload

#: Called with a step's name when it is done.
OnDone = Callable[[str], None]
#: The configuration of each group of a cluster.
Layout = tuple["Parallel", ...]


class Scored(NamedTuple):
    """A placement and how it did on the training workload.

    Attributes:
        placement: models on groups.
        score: attainment - mean latency of served requests / 10^4 + replicas / 10^6.
        attainment: share of requests served within their SLO, without any cut.
        simulations: simulations made to find it.
    """

    placement: Placement
    score: float
    attainment: float
    simulations: int


@dataclass(frozen=True)
class Problem:
    """What a placement is searched for.

    Attributes:
        workload: the training workload.
        profile: costs and memory.
        mem_budget: bytes for weights on a GPU.
        overheads: what serving costs besides.
        models: the models that may be placed; others have no requests here.
        stopped: whether searches end at their next simulation, Bool array (1,).
    """

    workload: Workload
    profile: Profile
    mem_budget: float
    overheads: Overheads
    models: tuple[int, ...]
    stopped: np.ndarray = field(default_factory=lambda: np.zeros(1, dtype=np.uint8))

    def __post_init__(self) -> None:
        checked_number("mem_budget", self.mem_budget, "bytes > 0", above=0)
        for name in self.workload.models:
            self.profile.check_model(name, "workload.models")

    def restricted(self, models: Sequence[int]) -> Problem:
        """Return the problem of some models alone."""
        chosen = tuple(models)
        return replace(self, workload=self.workload.only(chosen), models=chosen)

    @cached_property
    def _names(self) -> list[tuple[int, str]]:
        return [(model, self.workload.models[model]) for model in self.models]

    def weights(self, parallel: Parallel) -> np.ndarray:
        """Return what each model takes in a group, bytes a GPU; infinite: not to be placed."""
        found = np.full(len(self.workload.models), np.inf)
        for model, name in self._names:
            found[model] = self.profile.weight(name, parallel)
        return found

    def stage_times(self, parallel: Parallel) -> dict[int, np.ndarray]:
        """Return the stage times, s, of each model that was profiled on a configuration."""
        return {
            model: self.overheads.stage_times(self.profile.stages(name, parallel).latency)
            for model, name in self._names
            if self.profile.has(name, parallel)
        }

    def slo_by_model(self) -> np.ndarray:
        """Return the strictest deadline of each model's requests, shape (models,), s."""
        slo = np.full(len(self.workload.models), np.inf)
        np.minimum.at(slo, self.workload.model, self.workload.slo)
        return slo

    def _trial(self, groups: Sequence[Group]) -> tuple[Any, np.ndarray]:
        """Return the kernel's trial of a placement, and each configuration's weights."""
        layout = [group.parallel for group in groups]
        known = list(dict.fromkeys(layout))
        width = max(parallel.pp for parallel in known)
        times = np.zeros((len(known), len(self.workload.models), width))
        for row, parallel in enumerate(known):
            for model, stage_times in self.stage_times(parallel).items():
                times[row, model, : parallel.pp] = stage_times
        config = np.array([known.index(parallel) for parallel in layout], dtype=np.int64)
        stages = np.array([parallel.pp for parallel in known], dtype=np.int64)
        placed = np.zeros((len(groups), len(self.workload.models)), dtype=np.bool_)
        for place, group in enumerate(groups):
            placed[place, list(group.models)] = True
        arrays = self.workload.arrays()
        trial = kernels().Trial(arrays, config, stages, times, self.overheads.fixed, placed)
        return trial, np.array([self.weights(parallel) for parallel in known])

    def replicate(self, layout: Layout) -> Scored:
        """Fill groups greedily; return the best placement seen on the way."""
        trial, weights = self._trial([Group(parallel, ()) for parallel in layout])
        placed, score, attainment, runs = kernels().replicate(
            trial, weights, self.mem_budget, self.stopped
        )
        return Scored(_placement(layout, placed), score, attainment, runs)

    def refine(self, found: Scored, simulations: int) -> Scored:
        """Improve a placement by single additions and exchanges of models, in its groups."""
        layout = tuple(group.parallel for group in found.placement.groups)
        trial, weights = self._trial(found.placement.groups)
        placed, score, attainment, runs = kernels().refine(
            trial, weights, self.mem_budget, self.stopped, simulations
        )
        return Scored(_placement(layout, placed), score, attainment, found.simulations + runs)

    def evaluate(self, placement: Placement) -> Scored:
        """Simulate a placement on the training workload."""
        score, attainment = kernels().score(self._trial(placement.groups)[0])
        return Scored(placement, score, attainment, 1)


def _placement(layout: Layout, placed: np.ndarray) -> Placement:
    groups = [
        Group(parallel, tuple(np.flatnonzero(row).tolist()))
        for parallel, row in zip(layout, placed, strict=True)
    ]
    return Placement(tuple(groups))


def best_of(found: Sequence[Scored]) -> Scored:
    """Return the best by score, the first of equals, with everybody's simulations added up.

    Raises:
        InfeasibleError: none holds a single model.
    """
    holding = [one for one in found if one.placement.num_replicas]
    if not holding:
        raise InfeasibleError("placement search", "no model fits into any group")
    best = max(holding, key=lambda one: one.score)
    return best._replace(simulations=sum(one.simulations for one in found))
