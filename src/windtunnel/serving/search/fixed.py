"""Placements that follow from counting alone: uniform replication and round robin."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from windtunnel.serving.parallel import Parallel
from windtunnel.serving.placement import Group, Placement

if TYPE_CHECKING:
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

    A model goes to the next group, from the last one used on, that has room and does not hold it
    yet; dealing ends with a round in which no model finds one.
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
