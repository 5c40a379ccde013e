"""What levels cost a run: jobs that waited though GPUs were free, and GPUs that no slice could use.

A run's stays are replayed; between two changes the nodes are asked again, by the rules of
`windtunnel.cluster.topology`, what fits.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from windtunnel.cluster.topology.node_tree import NodeTree
from windtunnel.errors import SpecError
from windtunnel.sim import problem as problems
from windtunnel.sim.metrics import horizon
from windtunnel.sim.topology_asks import Asks

if TYPE_CHECKING:
    from collections.abc import Iterator

    from windtunnel.cluster.free import Demand
    from windtunnel.cluster.topology.request import TopologyRequest
    from windtunnel.sim.flown import Flown


def topology_losses(outcome: Flown) -> pa.Table:
    """Return one row a request for levels that jobs of a run made, most jobs first.

    Columns: ``level`` (the level required, preferred, or of the slices), ``kind`` (``required``,
    ``preferred`` or ``slices``), ``slice`` (pods of the largest slice, 1 = single pods), ``jobs``;
    ``refused``: of these, how many ever waited though their pods would have fitted without the
    request; ``refused_gpu_time``: GPUs they asked for x how long that was so, GPU-s; ``unusable``:
    GPUs that were free and in no whole slice of the request, on average over the run (of pods of
    the size most common among its jobs); 0 without slices.

    Raises:
        SpecError: the run was not placed by levels; its jobs are elastic; or nodes were lost in it,
            or devices, cores or memory were modelled: what was free is then not known from its
            stays.
    """
    _check(outcome)
    settings = outcome.settings
    fill = str(settings.get("placement")).partition(":")[2]
    tree = NodeTree(outcome.cluster, fill.removeprefix("fill=") or "best-fit")
    asks = Asks(tree, settings.get("topology_request"))
    problem = problems.build(
        outcome.jobs, outcome.cluster, as_pool=False, oversize="reject", incomplete="reject",
        asks=asks,
    )  # fmt: skip
    books = {
        request: _Book(request, tree)
        for demand in problem.demands
        if (request := demand.topology) is not None and request.named_levels
    }
    for demand, jobs in zip(
        problem.demands, np.bincount(problem.demand_of, minlength=len(problem.demands)), strict=True
    ):
        if demand.topology in books:
            books[demand.topology].add(demand, int(jobs))
    for span, free, waiting in _instants(outcome, problem):
        for book in books.values():
            book.free_for(span, free)
        for number, rows in waiting.items():
            demand = problem.demands[number]
            asked = books.get(demand.topology)
            if asked is not None and asked.is_refused(free, demand):
                asked.note(demand, rows, span)
    first, last = horizon(outcome)
    ordered = sorted(books.values(), key=lambda book: -book.jobs)
    return pa.Table.from_pylist([book.row(last - first) for book in ordered], _SCHEMA)


def _check(outcome: Flown) -> None:
    """Check that what was free in a run is known from its stays, and placed by levels.

    Raises:
        SpecError: it is not.
    """
    settings = outcome.settings
    if str(settings.get("placement")).partition(":")[0] != "tree":
        raise SpecError("placement", "the run was not placed by levels; expected --placement tree.")
    if outcome.flight.interruptions is not None:
        raise SpecError("disruptions", "what is free is not known where nodes are lost.")
    if settings.get("sharing") is not None:
        raise SpecError("resources", "what is free of cores and memory is not known afterwards.")
    if outcome.flight.stretches is not None:
        raise SpecError("policy", "what elastic jobs would have taken is their policy's to say.")


_SCHEMA = pa.schema(
    [
        ("level", pa.string()),
        ("kind", pa.string()),
        ("slice", pa.int64()),
        ("jobs", pa.int64()),
        ("refused", pa.int64()),
        ("refused_gpu_time", pa.float64()),
        ("unusable", pa.float64()),
    ]
)


class _Book:
    """What one request cost."""

    def __init__(self, request: TopologyRequest, tree: NodeTree) -> None:
        self.request, self.tree = request, tree
        self.jobs = 0
        self.rows: set[int] = set()
        self.gpu_time = 0.0
        self.lost = 0.0
        self._sizes: Counter[int] = Counter()
        self._known: dict[tuple[int, int], bool] = {}
        self._free: np.ndarray | None = None

    @property
    def slice(self) -> int:
        """Pods of the largest slice."""
        sizes = [layer.size for layer in self.request.layers]
        return max(self.request.slice_size, 1, *sizes)

    def add(self, demand: Demand, jobs: int) -> None:
        """Count the jobs of a demand."""
        self.jobs += jobs
        self._sizes[demand.gpus // demand.pods] += jobs

    def free_for(self, span: float, free: np.ndarray) -> None:
        """Count the free GPUs that are in no whole slice, for so long."""
        if self.slice == 1:
            return
        size = self._sizes.most_common(1)[0][0]
        slices = self.tree.slices(free // size, self.tree.ask(self.request, self.slice))
        self.lost += span * (int(free.sum()) - slices * self.slice * size)

    def is_refused(self, free: np.ndarray, demand: Demand) -> bool:
        """Return whether a demand fits only without its request."""
        if demand.gpus > int(free.sum()):
            return False
        if self._free is not free:
            self._free, self._known = free, {}
        key = demand.gpus, demand.pods
        if key not in self._known:
            bare = replace(demand, topology=None)
            self._known[key] = (
                self.tree.place_gpus(free, demand) is None
                and self.tree.place_gpus(free, bare) is not None
            )
        return self._known[key]

    def note(self, demand: Demand, rows: set[int], span: float) -> None:
        """Note that jobs of a demand wait for so long though GPUs are free."""
        self.rows |= rows
        self.gpu_time += span * demand.gpus * len(rows)

    def row(self, length: float) -> dict[str, Any]:
        """Return the row of a run of so many s."""
        of = self.request
        named = [layer.level for layer in of.layers]
        kind = "required" if of.required else "preferred" if of.preferred else "slices"
        return {
            "level": of.required or of.preferred or of.slice_level or (named or [""])[0],
            "kind": kind,
            "slice": self.slice,
            "jobs": self.jobs,
            "refused": len(self.rows),
            "refused_gpu_time": self.gpu_time,
            "unusable": self.lost / length if length else 0.0,
        }


def _instants(
    outcome: Flown, problem: problems.Problem
) -> Iterator[tuple[float, np.ndarray, dict[int, set[int]]]]:
    """Yield how long nothing changed, free GPUs by node, and the waiting jobs by demand."""
    flight = outcome.flight
    class_of = dict(zip(problem.rows.tolist(), problem.demand_of.tolist(), strict=True))
    submit = outcome.submit_time
    events = [(float(submit[row]), 1, -1, row) for row in class_of]
    for stay, row in enumerate(flight.segment_job.tolist()):
        if row in class_of:
            events.append((float(flight.segment_start[stay]), 2, stay, row))
            end = float(flight.segment_end[stay])
            if not np.isnan(end):
                events.append((end, 0, stay, row))
    events.sort(key=lambda event: (event[0], event[1]))
    free = np.array(problem.sizes, np.int64)
    waiting: dict[int, set[int]] = {}
    over = flight.end
    for place, (time, kind, stay, row) in enumerate(events):
        there = waiting.setdefault(class_of[row], set())
        if kind == 1:
            there.add(row)
        else:
            nodes = slice(int(flight.node_offset[stay]), int(flight.node_offset[stay + 1]))
            sign = 1 if kind == 0 else -1
            free = free.copy()
            np.add.at(free, flight.nodes[nodes], sign * flight.node_gpus[nodes].astype(np.int64))
            if kind == 2:  # noqa: PLR2004 - a start
                there.discard(row)
            elif over[row] != time:  # stopped, and waits again
                there.add(row)
        then = events[place + 1][0] if place + 1 < len(events) else time
        if then > time:
            yield then - time, free, {number: rows for number, rows in waiting.items() if rows}
