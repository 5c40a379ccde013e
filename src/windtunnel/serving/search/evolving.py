"""Evolution of placements: models move and swap, groups merge, split and change configuration.

A variant of AlpaServe's artifact (OSDI'23) that its figures do not use. The best of parents and
children survive; a placement and its reorderings count once.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from windtunnel.serving.placement import Group, Placement
from windtunnel.serving.search.layouts import NODE, search_configurations
from windtunnel.serving.search.problem import best_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from windtunnel.serving.parallel import Parallel
    from windtunnel.serving.search.problem import Problem, Scored

#: Children tried for each one wanted: many are as good as their parents, or known.
_TRIES = 4


class Evolution(NamedTuple):
    """How long and how broadly placements evolve.

    Attributes:
        population: placements that survive a generation; the source's 1024 take minutes.
        generations: rounds; the source has 200.
        seed: of every choice.
    """

    population: int = 64
    generations: int = 40
    seed: int = 0


def evolve(
    problem: Problem,
    start: list[Scored],
    how: Evolution,
    evaluate: Callable[[Iterable[Placement]], list[Scored]],
) -> Scored:
    """Return the best placement of all generations; never worse than the best it starts with.

    Args:
        problem: what is searched for.
        start: the first generation.
        how: size, rounds and seed.
        evaluate: scores placements in order, in parallel where it likes.
    """
    random = np.random.default_rng(how.seed)
    breeding = _Breeding(problem, random)
    every = {one.placement.normal(): one for one in start if one.placement.num_replicas}
    simulations = sum(one.simulations for one in start)
    alive = _fittest(list(every.values()), how.population)
    for _ in range(how.generations if alive else 0):
        children: dict[Placement, Placement] = {}
        for _ in range(_TRIES * how.population):
            if len(children) == how.population:
                break
            child = breeding.child(alive[int(random.integers(len(alive)))].placement)
            normal = child.normal()
            if child.num_replicas and normal not in every:
                children.setdefault(normal, child)
        scored = evaluate(children.values())
        simulations += len(scored)
        every |= dict(zip(children, scored, strict=True))
        alive = _fittest([*alive, *scored], how.population)
    return best_of(alive)._replace(simulations=simulations)


def _fittest(found: list[Scored], many: int) -> list[Scored]:
    """Return the best by score, the earlier of equals."""
    return sorted(found, key=lambda one: -one.score)[:many]


class _Breeding:
    """Makes children of placements."""

    def __init__(self, problem: Problem, random: np.random.Generator) -> None:
        self._problem = problem
        self._random = random
        self._weights: dict[Parallel, np.ndarray] = {}
        self._ways = (self._swap, self._mutate, self._merge, self._split, self._reshape)

    def child(self, parent: Placement) -> Placement:
        """Return a placement one change away, its free memory filled at random."""
        way = self._ways[int(self._random.integers(len(self._ways)))]
        groups = way(list(parent.groups))
        return Placement(tuple(self._filled(group) for group in groups))

    def _swap(self, groups: list[Group]) -> list[Group]:
        """Exchange two models between groups, where they fit."""
        a, b = self._two(groups)
        if a == b or not groups[a].models or not groups[b].models:
            return groups
        mine, its = (self._pick(groups[g].models) for g in (a, b))
        groups[a] = self._with(groups[a], [m for m in groups[a].models if m != mine], its)
        groups[b] = self._with(groups[b], [m for m in groups[b].models if m != its], mine)
        return groups

    def _mutate(self, groups: list[Group]) -> list[Group]:
        """Let one model give way to another."""
        at = int(self._random.integers(len(groups)))
        held = list(groups[at].models)
        if held:
            held.remove(self._pick(tuple(held)))
        groups[at] = self._with(groups[at], held, self._pick(self._problem.models))
        return groups

    def _merge(self, groups: list[Group]) -> list[Group]:
        """Make one group of two of a size; what does not fit is left out."""
        a, b = self._two(groups)
        size = 2 * groups[a].parallel.gpus
        if a == b or groups[a].parallel.gpus != groups[b].parallel.gpus or size > NODE:
            return groups
        held = dict.fromkeys((*groups[a].models, *groups[b].models))
        merged = self._packed(self._shape(size), tuple(held))
        return [*(g for i, g in enumerate(groups) if i not in (a, b)), merged]

    def _split(self, groups: list[Group]) -> list[Group]:
        """Make two groups of one, each with what fits of its models."""
        at = int(self._random.integers(len(groups)))
        size = groups[at].parallel.gpus
        if size == 1:
            return groups
        shape = self._shape(size // 2)
        order = self._random.permutation(len(groups[at].models))
        held = [groups[at].models[i] for i in order.tolist()]
        halves = [self._packed(shape, tuple(one)) for one in (held, held[::-1])]
        return [*groups[:at], *halves, *groups[at + 1 :]]

    def _reshape(self, groups: list[Group]) -> list[Group]:
        """Give a group another configuration of its size."""
        at = int(self._random.integers(len(groups)))
        shape = self._shape(groups[at].parallel.gpus)
        groups[at] = self._packed(shape, groups[at].models)
        return groups

    def _shape(self, gpus: int) -> Parallel:
        shapes = [p for p in search_configurations(gpus) if p.gpus == gpus]
        return shapes[int(self._random.integers(len(shapes)))]

    def _two(self, groups: list[Group]) -> tuple[int, int]:
        a, b = self._random.integers(len(groups), size=2).tolist()
        return a, b

    def _pick(self, models: tuple[int, ...]) -> int:
        return models[int(self._random.integers(len(models)))]

    def _with(self, group: Group, held: list[int], model: int) -> Group:
        return self._packed(group.parallel, (*held, model))

    def _packed(self, parallel: Parallel, models: tuple[int, ...]) -> Group:
        """Return a group with the models that fit, in order, each once."""
        weight = self._weight(parallel)
        kept: list[int] = []
        used = 0.0
        for model in dict.fromkeys(models):
            if used + weight[model] <= self._problem.mem_budget:
                kept.append(model)
                used += float(weight[model])
        return Group(parallel, tuple(sorted(kept)))

    def _filled(self, group: Group) -> Group:
        """Return a group with models added in random order while they fit."""
        order = self._random.permutation(len(self._problem.models)).tolist()
        more = tuple(self._problem.models[i] for i in order)
        return self._packed(group.parallel, (*group.models, *more))

    def _weight(self, parallel: Parallel) -> np.ndarray:
        if parallel not in self._weights:
            self._weights[parallel] = self._problem.weights(parallel)
        return self._weights[parallel]
