"""Beam search over the groups themselves, one GPU more at a time.

The published model-parallel search (AlpaServe, OSDI'23, section 4.2) divides a cluster into equal
groups; this variant of its artifact builds unequal ones: the best layouts of n GPUs are the best of
n - k GPUs with a group of k GPUs more.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from windtunnel.serving.search.layouts import search_configurations
from windtunnel.serving.search.problem import Scored, best_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from windtunnel.serving.search.problem import Layout, Problem

#: Groups have so many GPUs at most: those of a node.
_MOST_GPUS = 8


def grow(
    problem: Problem,
    gpus: int,
    beam: int,
    replicate: Callable[[Iterable[tuple[Problem, Layout]]], list[Scored]],
) -> Scored:
    """Return the best placement of layouts of ``gpus`` GPUs that grew from good smaller ones.

    Args:
        problem: what is searched for.
        gpus: GPUs of the cluster.
        beam: layouts kept for each number of GPUs, >= 1.
        replicate: fills layouts greedily, in order, in parallel where it likes.
    """
    groups = [p for p in search_configurations(gpus) if p.gpus <= _MOST_GPUS]
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
