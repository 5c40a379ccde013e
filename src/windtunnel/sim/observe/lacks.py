"""What a job lacks though GPUs enough are free: its GPU type, cores, memory, or one place for it.

Nodes are put back as they were once all had happened at an instant. Where nodes fail, sleep, or
jobs change their size, what is free on each of them is not looked at, and it is `FRAGMENTATION`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from windtunnel.cluster.devices import CORE_UNITS, MILLI
from windtunnel.sim.demands import binding_sets
from windtunnel.sim.observe.holdings import bound_by_cores, has_nodes, holdings

if TYPE_CHECKING:
    from windtunnel.sim.flown import Flown

#: What a job lacks that does not fit.
LIMITS: tuple[str, ...] = ("gpus", "cores", "memory", "fragmentation", "gpu_type", "topology")
GPUS, CORES, MEMORY, FRAGMENTATION, GPU_TYPE, TOPOLOGY = range(len(LIMITS))


@dataclass(frozen=True)
class _Task:
    """What one of a job's tasks asks of a node, and how many there are."""

    milli: float
    cores: float
    memory: float
    count: int
    total: float


def lacks(outcome: Flown, time: np.ndarray, row: np.ndarray) -> np.ndarray:
    """Return what each of some jobs lacks for which enough GPUs are free in all.

    Args:
        outcome: the run.
        time: Float array (k,), s, ascending: when.
        row: Int array (k,), whose row in the jobs table.

    Returns:
        Int8 array (k,), places in `LIMITS`.
    """
    found = np.full(len(time), FRAGMENTATION, dtype=np.int8)
    flight = outcome.flight
    changes = flight.interruptions is not None or flight.stretches is not None
    if changes or flight.power is not None or not has_nodes(outcome) or not len(time):
        return found
    nodes = _Nodes(outcome)
    if not nodes.tells:
        return found
    known: dict[tuple[Any, ...], int] = {}
    for at, (now, who) in enumerate(zip(time.tolist(), row.tolist(), strict=True)):
        if nodes.go_on(now):
            known.clear()
        key = nodes.asks(who)
        if key not in known:
            known[key] = nodes.lacking(*key)
        found[at] = known[key]
    return found


class _Nodes:
    """What is free on each node at an instant, later and later."""

    def __init__(self, outcome: Flown) -> None:
        self.outcome = outcome
        kinds = [kind for kind in outcome.cluster.node_types for _ in range(kind.count)]
        self._with_cores = bound_by_cores(outcome)
        asks_topology = outcome.settings.get("topology_request") is not None
        self._otherwise = TOPOLOGY if asks_topology else FRAGMENTATION
        self._types = [kind.gpu_type for kind in kinds]
        texts = outcome.jobs["gpu_type"]
        self._binds = len(set(self._types)) > 1 and texts.null_count < len(texts)
        self.tells = self._with_cores or asks_topology or self._binds
        if not self.tells:
            return
        self._free = np.array(
            [
                [kind.gpus * MILLI for kind in kinds],
                [_most(kind.cpus) * CORE_UNITS for kind in kinds],
                [_most(kind.mem_gib) for kind in kinds],
            ]
        )
        self._largest = self._free[0].max(initial=0)
        self._texts = texts.to_pylist()
        distinct, bind_types = list(dict.fromkeys(self._texts)), outcome.settings.get("bind_types")
        sets = binding_sets(distinct, outcome.cluster, bind_types)
        self._wanted = dict(zip(distinct, sets, strict=True))
        columns = ("num_cpus", "mem_gib", "num_tasks")
        self._cores, self._memory, self._tasks = (
            np.nan_to_num(outcome.jobs[name].to_numpy(zero_copy_only=False).astype(np.float64))
            for name in columns
        )
        self._order_changes()
        self._masks: dict[str | None, np.ndarray] = {}

    def _order_changes(self) -> None:
        held, flight = holdings(self.outcome), self.outcome.flight
        job = flight.segment_job[held.stay]
        part = np.zeros(len(job))  # of the job's memory that is on the node: the part of its tasks
        if len(flight.node_tasks):
            part = flight.node_tasks / np.bincount(held.stay, flight.node_tasks)[held.stay]
        taken = np.stack([held.milli, held.cores, self._memory[job] * part])
        self._when = np.concatenate(
            [flight.segment_start[held.stay], flight.segment_end[held.stay]]
        )
        order = np.argsort(self._when, kind="stable")  # those that never end are last
        self._when = self._when[order]
        self._what = np.concatenate([-taken, taken], axis=1)[:, order]
        self._where = np.concatenate([held.node, held.node])[order]
        self._next = 0

    def go_on(self, now: float) -> bool:
        """Let happen all up to an instant; return whether anything did."""
        last = int(np.searchsorted(self._when, now, side="right"))
        if last == self._next:
            return False
        part = slice(self._next, last)
        for free, change in zip(self._free, self._what[:, part], strict=True):
            np.add.at(free, self._where[part], change)
        self._next = last
        return True

    def asks(self, row: int) -> tuple[str | None, _Task]:
        """Return the GPU types that a job names, and what its tasks ask for."""
        count = max(int(self._tasks[row]), 1)
        total = float(self.outcome.num_gpus[row]) * MILLI
        if total / count > self._largest:  # larger than a node: each GPU may be anywhere
            count = max(round(total / MILLI), 1)
        cores = self._cores[row] / count * CORE_UNITS if self._with_cores else 0.0
        memory = self._memory[row] / count if self._with_cores else 0.0
        task = _Task(total / count, float(cores), float(memory), count, total)
        return self._texts[row] if self._binds else None, task

    def lacking(self, text: str | None, task: _Task) -> int:
        """Return which of `LIMITS` keeps a job from its start."""
        free = self._free[:, self._accepted(text)]
        if free[0].sum() < task.total - 1e-6:
            return GPU_TYPE
        if _places(free[0], task.milli) < task.count:
            return FRAGMENTATION
        if _places(free[0], task.milli, free[1], task.cores) < task.count:
            return CORES
        if _places(free[0], task.milli, free[2], task.memory) < task.count:
            return MEMORY
        return self._otherwise

    def _accepted(self, text: str | None) -> np.ndarray:
        """Return which nodes are of a type that a job is bound to."""
        if text not in self._masks:
            wanted = self._wanted.get(text)
            known = [wanted is None or name in wanted for name in self._types]
            # A type that the cluster does not have binds nobody.
            self._masks[text] = np.array(known if any(known) else [True] * len(known))
        return self._masks[text]


def _most(number: float | None) -> float:
    return np.inf if number is None else number


def _places(
    free: np.ndarray, task: float, more: np.ndarray | None = None, each: float = 0.0
) -> float:
    """Return how many tasks nodes hold by one resource, or by two."""
    found = np.floor((free + 1e-6) / task) if task else np.full(len(free), np.inf)
    if more is not None and each:
        found = np.minimum(found, np.floor((more + 1e-6) / each))
    return float(np.maximum(found, 0).sum())
