"""Measured iteration times by plan and placement, and what lies between them."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, TypeAlias

from windtunnel.throughput.options import parse_placement

if TYPE_CHECKING:
    from collections.abc import Mapping

    from windtunnel.throughput.options import Shape
    from windtunnel.throughput.plans import Plan

#: Nodes and GPUs, all that interpolation sees of a shape.
_Size: TypeAlias = tuple[int, int]


@dataclass(frozen=True, slots=True)
class Measurement:
    """One measured point of a model.

    Attributes:
        plan: the plan that ran.
        placement: digits, one a node, as its source writes them.
        iteration_time: seconds per iteration; None = it ran out of memory.
        threads: CPU threads with each GPU; None = not given.
    """

    plan: Plan
    placement: str
    iteration_time: float | None
    threads: int | None = None

    @property
    def shape(self) -> Shape:
        """GPUs on each node, descending."""
        return parse_placement(self.placement)


@dataclass(frozen=True, slots=True)
class ProfiledPoint:
    """One measured iteration of a data-parallel plan on one node, with its phases, ms.

    The analytic model is fitted to a few of them.

    Attributes:
        plan: the plan.
        gpus: GPUs, all on one node.
        threads: CPU threads with each GPU.
        forward: forward time of one GPU's samples, once; None = not measured.
        sync: backward and communication, overlapped, with what goes to the CPUs (``Tcc``); None =
            not measured.
        update: optimizer with swapping (``Topt``); None = not measured.
        total: the iteration.
    """

    plan: Plan
    gpus: int
    threads: int
    forward: float | None
    sync: float | None
    update: float | None
    total: float


@dataclass(frozen=True, eq=False)
class MeasuredTable:
    """A model's measurements.

    Attributes:
        rows: the measurements, each (plan, shape, threads) at most once.
    """

    rows: tuple[Measurement, ...]

    @cached_property
    def _exact(self) -> Mapping[tuple[Plan, Shape], tuple[Measurement, ...]]:
        found: dict[tuple[Plan, Shape], list[Measurement]] = defaultdict(list)
        for row in self.rows:
            found[row.plan, row.shape].append(row)
        return {key: tuple(sorted(rows, key=_threads)) for key, rows in found.items()}

    @cached_property
    def _sizes(self) -> Mapping[Plan, Mapping[_Size, float]]:
        """Plan -> (nodes, GPUs) -> mean time over its shapes of this size, fewest threads each."""
        times: dict[Plan, dict[_Size, list[float]]] = defaultdict(lambda: defaultdict(list))
        for (plan, shape), rows in self._exact.items():
            if rows[0].iteration_time is not None:
                times[plan][len(shape), sum(shape)].append(rows[0].iteration_time)
        return {
            plan: {size: sum(found) / len(found) for size, found in sizes.items()}
            for plan, sizes in times.items()
        }

    @cached_property
    def plans(self) -> tuple[Plan, ...]:
        """The plans that ran somewhere, in the order of the rows."""
        return tuple(dict.fromkeys(r.plan for r in self.rows if r.iteration_time is not None))

    @cached_property
    def keys(self) -> tuple[tuple[Plan, Shape], ...]:
        """The plans and shapes tried, in the order of the rows."""
        return tuple(self._exact)

    def at(self, plan: Plan, shape: Shape) -> tuple[Measurement, ...]:
        """Return the measurements of a plan on a shape, fewest threads first."""
        return self._exact.get((plan, shape), ())

    def fewest_threads(self, plan: Plan) -> int | None:
        """Return the fewest CPU threads a GPU of a plan's rows; None = none tells."""
        given = [r.threads for r in self.rows if r.plan == plan and r.threads is not None]
        return min(given, default=None)

    def interpolated(self, plan: Plan, shape: Shape) -> float | None:
        """Return the time of a plan between its measured sizes; None outside of them.

        A size is a number of nodes and of GPUs, as published; shapes of one size count as their
        mean. Between sizes the time is linear: along the nodes at the same number of GPUs, else
        along the GPUs on the same number of nodes. No other plan's time is ever used.

        Args:
            plan: the plan.
            shape: GPUs on each node.
        """
        sizes = self._sizes.get(plan, {})
        nodes, gpus = len(shape), sum(shape)
        if (nodes, gpus) in sizes:
            return sizes[nodes, gpus]
        along_nodes = _between(nodes, {n: t for (n, g), t in sizes.items() if g == gpus})
        if along_nodes is not None:
            return along_nodes
        return _between(gpus, {g: t for (n, g), t in sizes.items() if n == nodes})


def _threads(row: Measurement) -> int:
    return row.threads or 0


def _between(where: int, known: Mapping[int, float]) -> float | None:
    """Return the linear interpolation at ``where``; None where nothing stands on both sides."""
    below = max((x for x in known if x < where), default=None)
    above = min((x for x in known if x > where), default=None)
    if below is None or above is None:
        return None
    share = (where - below) / (above - below)
    return known[below] * (1 - share) + known[above] * share
