"""The demands of many classes of jobs at once: `device_demand` on arrays."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from windtunnel.cluster.devices import MILLI, DeviceDemand, device_demand, node_kinds

if TYPE_CHECKING:
    from collections.abc import Sequence

    from windtunnel.cluster.devices import DeviceNode, NodeKind


def device_demands(
    nodes: Sequence[DeviceNode],
    columns: np.ndarray,
    types: Sequence[frozenset[str] | None],
    type_of: np.ndarray,
    *,
    pooled: bool = False,
    bind_cpu_tasks: bool = False,
) -> tuple[DeviceDemand, ...]:
    """Return what `device_demand` returns for each class; a trace may have tens of thousands.

    Args:
        nodes: the cluster.
        columns: Int array (k, 5), a class a row: tasks of the gang; and of one task whole GPUs,
            thousandths of a shared GPU, thousandths of cores, MiB.
        types: distinct sets of acceptable GPU types; None = any.
        type_of: Int array (k,), each class's index into ``types``.
        pooled: whether a node's GPUs are one pool.
        bind_cpu_tasks: GPU types bind tasks without GPUs, too.

    Raises:
        SpecError: as `device_demand`, of the first class that is out of range.
    """
    count, gpus, milli = columns[:, 0], columns[:, 1], columns[:, 2]
    wrong = (columns < 0).any(axis=1) | (count < 1) | (milli >= MILLI)
    wrong |= (gpus > 0) & (milli > 0) & (not pooled)
    for row in np.flatnonzero(wrong)[:1].tolist():
        names = ("count", "gpus", "milli", "cores", "mem")
        asked = dict(zip(names, columns[row].tolist(), strict=True))
        device_demand(nodes, **asked, pooled=pooled)
    kinds = node_kinds(nodes)
    accepted = np.array(
        [[wanted is None or kind.example.gpu_type in wanted for wanted in types] for kind in kinds]
    ).reshape(len(kinds), len(types))
    binds = (gpus > 0) | (milli > 0) | bind_cpu_tasks
    serves = accepted[:, type_of] | ~binds
    fitting = np.array([_tasks_on_empty(kind.example, columns, pooled=pooled) for kind in kinds])
    fitting = np.where(serves, fitting.reshape(len(kinds), len(columns)), 0)
    numbers = np.array([kind.count for kind in kinds], dtype=np.int64)
    smallest = np.where(fitting > 0, fitting, np.iinfo(np.int64).max).min(axis=0, initial=2**62)
    largest = fitting.max(axis=0, initial=0)
    return tuple(
        map(
            DeviceDemand,
            *columns.T.tolist(),
            _allowed(kinds, serves),
            largest.tolist(),
            np.where(largest > 0, smallest, 0).tolist(),
            (fitting * numbers[:, None]).sum(axis=0).tolist(),
        )
    )


def _tasks_on_empty(node: DeviceNode, columns: np.ndarray, *, pooled: bool) -> np.ndarray:
    """Return how many tasks of each class's gang an empty node holds, Int array (k,)."""
    tasks, gpus, milli, cores, mem = columns.T
    if node.cores is not None:
        tasks = np.where(cores > 0, np.minimum(tasks, node.cores // np.maximum(cores, 1)), tasks)
    if node.mem is not None:
        tasks = np.where(mem > 0, np.minimum(tasks, node.mem // np.maximum(mem, 1)), tasks)
    if pooled:
        amount = gpus * MILLI + milli
        most = node.gpus * MILLI // np.maximum(amount, 1)
        return np.asarray(np.where(amount > 0, np.minimum(tasks, most), tasks))
    shares = np.minimum(tasks, node.gpus * (MILLI // np.maximum(milli, 1)))
    wholes = np.minimum(tasks, node.gpus // np.maximum(gpus, 1))
    return np.asarray(np.where(milli > 0, shares, np.where(gpus > 0, wholes, tasks)))


def _allowed(kinds: Sequence[NodeKind], serves: np.ndarray) -> list[int]:
    """Return the bitset of the nodes that serve each class.

    Args:
        kinds: the kinds of nodes.
        serves: Bool array (kinds, k).
    """
    patterns, which = np.unique(serves.T, axis=0, return_inverse=True)
    bits = [
        sum(kind.members for kind, yes in zip(kinds, pattern, strict=True) if yes)
        for pattern in patterns.tolist()
    ]
    return [bits[number] for number in which.reshape(-1).tolist()]
