"""Room of a cluster for the kernels: whole GPUs of nodes, pools, or nodes with devices.

The kernels of the engine call these; which kind of tables they got shows in the placement's code.
Where `on_devices` says that there are none, ``devices`` is None, whose type numba knows: it leaves
out all that is for devices, and a first flight on whole GPUs compiles in a third of the time.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numba import njit

from windtunnel.sim.compiled import device_tables, nodes
from windtunnel.sim.compiled.device_tables import CACHE, DRAWS
from windtunnel.sim.compiled.devices import give as give_devices
from windtunnel.sim.compiled.devices import is_free as devices_are_free
from windtunnel.sim.compiled.devices import take as take_devices
from windtunnel.sim.compiled.devices import take_there as take_those_devices
from windtunnel.sim.compiled.nodes import give as give_nodes
from windtunnel.sim.compiled.nodes import is_free as nodes_are_free
from windtunnel.sim.compiled.nodes import take as take_nodes
from windtunnel.sim.compiled.nodes import take_there as take_those_nodes
from windtunnel.sim.compiled.offsets import offsets_of

if TYPE_CHECKING:
    from windtunnel.sim.problem import Problem

#: Codes of placements on devices begin here.
ON_DEVICES = 16


# Inlined, as `windtunnel.sim.compiled.nodes.take` is, and for the same reason.
@njit(cache=True, inline="always")
def take(node, rows, classes, kind, placement, where, grants, offset, devices=1):
    """Place one job of class ``kind``: write its nodes from ``offset`` on; return how many, or -1.

    Nothing changes when it does not fit.
    """
    if devices is not None and placement >= ON_DEVICES:
        return take_devices(
            node, rows, classes, kind, placement - ON_DEVICES, where, grants, offset
        )
    return take_nodes(node, rows, classes, kind, placement, where, grants, offset)


@njit(cache=True, inline="always")
def give(node, rows, classes, kind, placement, where, grants, begin, end, devices=1):
    """Give back what a job of class ``kind`` holds in entries ``begin`` to ``end``."""
    if devices is not None and placement >= ON_DEVICES:
        give_devices(node, rows, classes, kind, placement - ON_DEVICES, where, grants, begin, end)
    else:
        give_nodes(node, rows, classes, kind, placement, where, grants, begin, end)


@njit(cache=True)
def undo(node, rows, classes, kind, placement, where, grants, begin, end, devices=1):
    """Undo the last `take`, as if it had never been."""
    give(node, rows, classes, kind, placement, where, grants, begin, end, devices)
    if devices is not None and placement >= ON_DEVICES:
        rows[0, DRAWS] -= 1


@njit(cache=True)
def take_there(node, rows, classes, kind, placement, where, grants, begin, end, devices=1):
    """Take what stands in entries ``begin`` to ``end``; the reverse of `give`."""
    if devices is not None and placement >= ON_DEVICES:
        take_those_devices(
            node, rows, classes, kind, placement - ON_DEVICES, where, grants, begin, end
        )
    else:
        take_those_nodes(node, rows, classes, kind, placement, where, grants, begin, end)


@njit(cache=True)
def is_free(node, rows, classes, kind, placement, where, grants, begin, end, devices=1):
    """Return whether what stands in entries ``begin`` to ``end`` could be taken, all together."""
    if devices is not None and placement >= ON_DEVICES:
        return devices_are_free(
            node, rows, classes, kind, placement - ON_DEVICES, where, grants, begin, end
        )
    return nodes_are_free(node, classes, kind, placement, where, grants, begin, end)


@njit(cache=True)
def forget_scores(rows, placement, devices=1):
    """Score every node anew: these rows are a copy without the scores that are kept."""
    if devices is not None and placement >= ON_DEVICES:
        rows[0, CACHE] = 0


def kept_rows(tables: tuple[np.ndarray, np.ndarray, np.ndarray], placement: int) -> int:
    """Return how many of the table's ``rows`` a copy needs that scores every node anew."""
    rows = tables[1]
    return int(rows[0, CACHE]) if placement >= ON_DEVICES and rows[0, CACHE] else len(rows)


def tables(problem: Problem, placement: Any) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return ``node``, ``rows`` and ``classes`` with nothing running."""
    if problem.devices:
        return device_tables.tables(
            problem.devices, problem.demands, placement, pooled=problem.pooled
        )
    return nodes.tables(problem)


def own_code(problem: Problem, placement: Any) -> int:
    """Return a placement's code among those on devices, or among those that are not."""
    codes = device_tables.CODES if problem.devices else nodes.CODES
    return codes[placement.name]


def code(problem: Problem, placement: Any) -> int:
    """Return a placement's code among all."""
    return own_code(problem, placement) + (ON_DEVICES if problem.devices else 0)


def on_devices(problem: Problem) -> int | None:
    """Return what `take` and the others are given as ``devices``."""
    return 1 if problem.devices else None


def groups(problem: Problem) -> np.ndarray:
    """Return the number of each class's group, shape (classes,): what it asks of GPUs."""
    if not problem.devices:
        return np.zeros(len(problem.demands), dtype=np.int64)
    numbers: dict[tuple[int, ...], int] = {}
    return np.array(
        [
            numbers.setdefault((d.allowed, d.count, d.gpus, d.milli), len(numbers))
            for d in problem.demands
        ],
        dtype=np.int64,
    )


def class_entries(problem: Problem) -> np.ndarray:
    """Return the most entries that the node list of a job of each class can have, (classes,)."""
    if problem.devices:
        return np.array([demand.count for demand in problem.demands], dtype=np.int64)
    return nodes.class_entries(problem)


def slots(problem: Problem) -> np.ndarray:
    """Return where each job's nodes begin in an array with room for all jobs', shape (m + 1,)."""
    return offsets_of(class_entries(problem)[problem.demand_of])


def most_entries(problem: Problem) -> int:
    """Return the most entries that the node list of one job can have."""
    if problem.devices:
        return max((demand.count for demand in problem.demands), default=0)
    return len(problem.sizes)


def places(problem: Problem) -> int:
    """Return the most entries that the node lists of all jobs can have, each job placed once."""
    return int(slots(problem)[-1]) + most_entries(problem) + 1
