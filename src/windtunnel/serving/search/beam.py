"""Beam search over placements with given groups: AlpaServe's algorithm 1 (OSDI'23, section 4.1)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from windtunnel.serving.placement import Group, Placement
from windtunnel.serving.search.problem import Scored, best_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from windtunnel.serving.search.problem import Layout, Problem

#: Placements kept after each step.
BEAM = 3


def beam_search(
    problem: Problem,
    layout: Layout,
    beam: int,
    evaluate: Callable[[Iterable[Placement]], list[Scored]],
) -> Scored:
    """Add one replica at a time to the ``beam`` best placements; return the best ever seen.

    Placements that differ only in the order of equal groups are one. As in the source a replica
    fits if memory stays strictly below the budget.

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
