"""Numbers for GPUs that a table counts but does not name, so that a Gantt chart can show them."""

from __future__ import annotations

import heapq
from itertools import accumulate
from typing import TYPE_CHECKING

import pyarrow as pa

from windtunnel.companions import HOLDING_COLUMNS, companion

if TYPE_CHECKING:
    from collections.abc import Sequence

    #: From when, until when, and how many GPUs on which node.
    Stay = tuple[float, float, Sequence[tuple[int, int]]]


class _Node:
    """The GPUs of one node, those that are free by number."""

    def __init__(self, first: int) -> None:
        self._free: list[int] = []
        self._next = first

    def take(self, count: int) -> list[int]:
        """Return the lowest free numbers. Numbers never used are above all that were."""
        again = min(count, len(self._free))
        numbers = [heapq.heappop(self._free) for _ in range(again)]
        fresh = range(self._next, self._next + count - again)
        self._next = fresh.stop
        return [*numbers, *fresh]

    def give_back(self, numbers: list[int]) -> None:
        for number in numbers:
            heapq.heappush(self._free, number)


def number_resources(stays: Sequence[Stay], gpus_per_node: Sequence[int] | None) -> list[list[int]]:
    """Return numbers for each stay: on each node the lowest that are free all the while.

    At one instant GPUs are given back before others are taken; stays that begin together are
    served in their order.

    Args:
        stays: in any order.
        gpus_per_node: GPUs of each node; node k's are numbered behind those of node k - 1. None =
            one node, as large as it takes.
    """
    firsts = [0] if gpus_per_node is None else [0, *accumulate(gpus_per_node)]
    nodes = [_Node(first) for first in firsts]
    held: list[tuple[float, int]] = []
    numbers: list[list[list[int]]] = [[] for _ in stays]
    for index in sorted(range(len(stays)), key=lambda index: stays[index][0]):
        start, end, wanted = stays[index]
        while held and held[0][0] <= start:
            _, over = heapq.heappop(held)
            for (node, _), given in zip(stays[over][2], numbers[over], strict=True):
                nodes[node].give_back(given)
        numbers[index] = [nodes[node].take(count) for node, count in wanted]
        heapq.heappush(held, (end, index))
    return [[number for given in parts for number in given] for parts in numbers]


def stay_holdings(
    job_ids: Sequence[str], segments: pa.Table, gpus_per_node: Sequence[int]
) -> pa.Table:
    """Return which job had which GPU when, as holdings with the GPU's number as node.

    Args:
        job_ids: id of each job, by its row.
        segments: one row a stay: ``row`` (of its job), ``start``, ``end`` (null = still there),
            ``num_gpus``, ``nodes`` and ``node_gpus`` (lists, empty on a pool), as
            `windtunnel.sim.outcome.Outcome.segments`.
        gpus_per_node: GPUs of each node, in the order in which nodes are numbered; a pool is one
            node.

    Returns:
        Table of `windtunnel.companions.HOLDING_COLUMNS`, one row a GPU and stay.
    """
    names = ("row", "start", "end", "num_gpus", "nodes", "node_gpus")
    rows = list(zip(*(segments[name].to_pylist() for name in names), strict=True))
    stays = [
        (
            start,
            float("inf") if end is None else end,
            list(zip(nodes, gpus, strict=True)) or [(0, int(count))],
        )
        for _, start, end, count, nodes, gpus in rows
    ]
    numbers = number_resources(stays, gpus_per_node)
    each = [
        (job_ids[row], str(number), start, end)
        for (row, start, end, *_), given in zip(rows, numbers, strict=True)
        for number in given
    ]
    columns = ("job_id", "node", "start_time", "end_time")
    types = (pa.string(), pa.string(), pa.float64(), pa.float64())
    values = zip(*each, strict=True) if each else ([], [], [], [])
    arrays = {
        name: pa.array(list(cells), kind)
        for name, kind, cells in zip(columns, types, values, strict=True)
    }
    return companion(HOLDING_COLUMNS, arrays)
