"""Options: what a job may run on, and how fast it is there; shapes of placements."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

from windtunnel.errors import SpecError, quote

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from windtunnel.throughput.plans import Plan

#: GPUs on each node, descending: (4, 4) is two nodes with 4 GPUs each.
Shape: TypeAlias = tuple[int, ...]

_ONE_DIGIT = re.compile(r"[1-9]+", re.ASCII)
_LONG = re.compile(r"[1-9]\d{0,5}(\+[1-9]\d{0,5})*\+?", re.ASCII)


@dataclass(frozen=True, slots=True)
class Option:
    """One way to run a job.

    Attributes:
        plan: how the work is divided.
        shape: GPUs on each node, descending.
        num_cpus: CPUs in all, spread as the GPUs are.
        iteration_time: seconds per iteration of the global batch.
        measured: whether the time was measured just so; otherwise it is interpolated or predicted.
        gpu_type: type of the GPUs that it is for; None = any.
        nodes: bitset of the nodes that it may be on: those with such GPUs; -1 = all.
    """

    plan: Plan
    shape: Shape
    num_cpus: int
    iteration_time: float
    measured: bool
    gpu_type: str | None = None
    nodes: int = -1

    @property
    def num_gpus(self) -> int:
        """GPUs in all."""
        return sum(self.shape)

    @property
    def num_nodes(self) -> int:
        """Nodes that it takes part of."""
        return len(self.shape)

    @property
    def cpus_per_gpu(self) -> int:
        """CPUs with each GPU."""
        return self.num_cpus // self.num_gpus

    def order(self) -> tuple[int, float, int, int, Shape, str]:
        """Return its place among options: fewest GPUs, then fastest, fewest CPUs and nodes."""
        return (
            self.num_gpus,
            self.iteration_time,
            self.num_cpus,
            len(self.shape),
            tuple(-gpus for gpus in self.shape),
            self.plan.name,
        )


def as_shape(gpus: Sequence[int]) -> Shape:
    """Return a shape of GPUs on each node, in any order.

    Raises:
        SpecError: there are none, or fewer than one on a node.

    >>> as_shape([3, 5])
    (5, 3)
    """
    shape = tuple(sorted(gpus, reverse=True))
    if not shape or shape[-1] < 1:
        raise SpecError("placement", f"found {quote(list(gpus))}; expected whole numbers >= 1.")
    return shape


def parse_placement(text: str) -> Shape:
    """Return the shape that a placement's digits stand for, one a node.

    Raises:
        SpecError: it is no placement.

    >>> parse_placement("112"), parse_placement("16+16"), parse_placement("16+")
    ((2, 1, 1), (16, 16), (16,))
    """
    word = text.strip()
    if _ONE_DIGIT.fullmatch(word):
        return as_shape([int(digit) for digit in word])
    if "+" in word and _LONG.fullmatch(word):
        return as_shape([int(number) for number in word.removesuffix("+").split("+")])
    raise SpecError(
        "placement",
        f"found {quote(text)}; expected the GPUs on each node as digits, such as '44' for two "
        "nodes with 4 each, or '16+16' and '16+' where a node has more than 9.",
    )


def placement_name(shape: Sequence[int]) -> str:
    """Return a shape as placements are written: digits, fewest GPUs first.

    >>> placement_name((2, 1, 1)), placement_name((16, 16)), placement_name((16,))
    ('112', '16+16', '16+')
    """
    if max(shape) <= 9:  # noqa: PLR2004 - what one digit holds
        return "".join(map(str, sorted(shape)))
    return "+".join(map(str, sorted(shape))) + "+" * (len(shape) == 1)


def shapes_of(num_gpus: int, *, node_gpus: int, num_nodes: int) -> Iterator[Shape]:
    """Yield every shape of so many GPUs, fullest nodes first.

    Args:
        num_gpus: GPUs in all, >= 1.
        node_gpus: GPUs of a node at most.
        num_nodes: nodes at most.
    """
    if num_gpus == 0:
        yield ()
    elif num_nodes:
        for first in range(min(num_gpus, node_gpus), -(-num_gpus // num_nodes) - 1, -1):
            rest = shapes_of(num_gpus - first, node_gpus=first, num_nodes=num_nodes - 1)
            yield from ((first, *others) for others in rest)
