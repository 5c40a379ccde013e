"""Ways to divide a cluster into groups with one parallel configuration each."""

from __future__ import annotations

from typing import TYPE_CHECKING

from windtunnel.serving.parallel import Parallel

if TYPE_CHECKING:
    from windtunnel.serving.search.problem import Layout

#: The published search's limits.
MOST_STAGES, MOST_OP = 8, 4


def powers_of_two(number: int) -> list[int]:
    """Return a number as powers of two, largest first.

    >>> powers_of_two(11)
    [8, 2, 1]
    """
    return [1 << bit for bit in reversed(range(number.bit_length())) if number >> bit & 1]


def equal_groups(gpus: int, parallel: Parallel) -> Layout:
    """Return as many groups as fit; pipelines of powers of two from what is left over.

    >>> [p.name for p in equal_groups(7, Parallel(1, 2, 2))]
    ['(1,2,2)', '(1,1,2)', '(1,1,1)']
    """
    count, rest = divmod(gpus, parallel.gpus)
    return (parallel,) * count + tuple(Parallel(1, 1, size) for size in powers_of_two(rest))


def search_layouts(gpus: int) -> list[Layout]:
    """Return the layouts of the model-parallel search: group sizes are powers of two.

    Every size g <= gpus with each pp <= 8 that divides it and op = g / pp <= 4; sizes ascending,
    then pp ascending.

    >>> [layout[0].name for layout in search_layouts(4)]
    ['(1,1,1)', '(1,2,1)', '(1,1,2)', '(1,4,1)', '(1,2,2)', '(1,1,4)']
    """
    return [equal_groups(gpus, parallel) for parallel in search_configurations(gpus)]


def search_configurations(gpus: int) -> list[Parallel]:
    """Return the configurations that `search_layouts` tries, in its order."""
    found: list[Parallel] = []
    size = 1
    while size <= gpus:
        found += [
            Parallel(1, size // pp, pp)
            for pp in range(1, min(size, MOST_STAGES) + 1)
            if size % pp == 0 and size // pp <= MOST_OP
        ]
        size *= 2
    return found
