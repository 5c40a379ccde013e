"""Placements by counting alone, and by beam searches over replicas or over groups."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from windtunnel.serving.parallel import Parallel
from windtunnel.serving.placement import Group, Placement
from windtunnel.serving.search.layouts import NODE, search_configurations
from windtunnel.serving.search.problem import Scored, best_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from windtunnel.serving.search.problem import Layout, Problem


def uniform(problem: Problem, gpus: int) -> Placement:
    """Return GPU i with models i .. i + k - 1 (mod models), k = budget over the heaviest weight.

    Models that do not fit a GPU alone are left out of the count.
    """
    weights = problem.weights(Parallel())
    fitting = np.flatnonzero(weights <= problem.mem_budget).tolist()
    if not fitting:
        return Placement((Group(Parallel(), ()),) * gpus)
    heaviest = max(weights[fitting].max(), 1.0)
    count = min(int(problem.mem_budget // heaviest), len(fitting))
    groups = [
        Group(Parallel(), tuple(sorted(fitting[(gpu + i) % len(fitting)] for i in range(count))))
        for gpu in range(gpus)
    ]
    return Placement(tuple(groups))


def round_robin(problem: Problem, layout: Layout) -> Placement:
    """Return groups with models dealt in turn while they fit.

    A model goes to the next group, from the last one used on, that it fits and that does not
    hold it yet; dealing ends with a round in which no model finds one.
    """
    weights = [problem.weights(parallel) for parallel in layout]
    used = [0.0] * len(layout)
    held: list[list[int]] = [[] for _ in layout]
    turn, dealt = 0, True
    while dealt:
        dealt = False
        for model in problem.models:
            for step in range(len(layout)):
                group = (turn + step) % len(layout)
                fits = used[group] + weights[group][model] <= problem.mem_budget
                if fits and model not in held[group]:
                    held[group].append(model)
                    used[group] += weights[group][model]
                    turn, dealt = group + 1, True
                    break
    groups = [Group(p, tuple(sorted(models))) for p, models in zip(layout, held, strict=True)]
    return Placement(tuple(groups))


#: Placements kept after each step.
BEAM = 3


def beam_search(
    problem: Problem,
    layout: Layout,
    beam: int,
    evaluate: Callable[[Iterable[Placement]], list[Scored]],
) -> Scored:
    """Add one replica at a time to the ``beam`` best placements; return the best ever seen.

    AlpaServe's algorithm 1 (OSDI'23, section 4.1). Placements that differ only in the order of
    equal groups are one. As in the source a replica fits if memory stays strictly below the budget.

    Args:
        problem: what is searched for.
        layout: configuration of each group.
        beam: placements kept, >= 1.
        evaluate: scores placements in order, in parallel where it likes.
    """
    weights = [problem.weights(parallel) for parallel in layout]
    start = Placement(tuple(Group(parallel, ()) for parallel in layout))
    front, seen = [start], {start.normal()}
    every = evaluate([start])
    while front:
        grown: list[Placement] = []
        for placement in front:
            for index, group in enumerate(placement.groups):
                used = sum(weights[index][list(group.models)].tolist())
                for model in problem.models:
                    if model in group.models or not used + weights[index][model] < (
                        problem.mem_budget
                    ):
                        continue
                    larger = Group(group.parallel, (*group.models, model))
                    groups = (*placement.groups[:index], larger, *placement.groups[index + 1 :])
                    found = Placement(groups)
                    if found.normal() not in seen:
                        seen.add(found.normal())
                        grown.append(found)
        scored = evaluate(grown)
        every.append(best_of(scored) if scored else every[0])
        order = sorted(range(len(scored)), key=lambda row: -scored[row].score)
        front = [scored[row].placement for row in order[:beam]]
    return best_of(every)


def grow(
    problem: Problem,
    gpus: int,
    beam: int,
    replicate: Callable[[Iterable[tuple[Problem, Layout]]], list[Scored]],
) -> Scored:
    """Return the best placement of layouts of ``gpus`` GPUs that grew from good smaller ones.

    The published model-parallel search (AlpaServe, OSDI'23, section 4.2) divides a cluster into
    equal groups; this variant of its artifact builds unequal ones: the best layouts of n GPUs are
    the best of n - k GPUs with a group of k GPUs more.

    Args:
        problem: what is searched for.
        gpus: GPUs of the cluster.
        beam: layouts kept for each number of GPUs, >= 1.
        replicate: fills layouts greedily, in order, in parallel where it likes.
    """
    groups = [p for p in search_configurations(gpus) if p.gpus <= NODE]
    kept: list[list[Layout]] = [[()]]
    simulations, last = 0, []
    for size in range(1, gpus + 1):
        # The order of groups breaks ties of dispatch alone: one order stands for all.
        grown = {
            tuple(sorted((*layout, group), key=lambda p: (p.gpus, p.pp))): None
            for group in groups
            if group.gpus <= size
            for layout in kept[size - group.gpus]
        }
        last = replicate((problem, layout) for layout in grown)
        simulations += sum(one.simulations for one in last)
        order = sorted(range(len(last)), key=lambda row: -last[row].score)
        layouts = list(grown)
        kept.append([layouts[row] for row in order[:beam]])
    return best_of(last)._replace(simulations=simulations)
