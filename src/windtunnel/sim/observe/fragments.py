"""Fragmentation along a run: how much of the free GPUs the tasks to come could hardly use.

The measure is FGD's (`windtunnel.sim.fragmentation`), taken after every instant at which anything
starts or ends. Each node's share of it changes only as the node does, so that the sum over nodes is
a step function with one step a change; all of it is whole numbers until the end, and exact.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from windtunnel.cluster.devices import CORE_UNITS, MILLI
from windtunnel.errors import SpecError
from windtunnel.sim.device_requests import rounded_down
from windtunnel.sim.flight import REJECTED
from windtunnel.sim.fragmentation import CAUSES, Shape, target_workload
from windtunnel.sim.metrics import horizon
from windtunnel.sim.observe.holdings import (
    bound_by_cores,
    has_nodes,
    holdings_over_time,
    models_devices,
)
from windtunnel.sim.observe.node_states import node_states
from windtunnel.sim.timeline import steps

if TYPE_CHECKING:
    from collections.abc import Iterable

    from windtunnel.cluster.spec import ClusterSpec
    from windtunnel.sim.flown import Flown
    from windtunnel.sim.fragmentation import TargetWorkload
    from windtunnel.sim.observe.node_states import NodeStates

#: What makes a task popular in a target workload: how many there are of it, as in the paper, or
#: the GPU time that they ask for. Where most are small, only the second sees that gangs do not fit.
WEIGHTS: tuple[str, ...] = ("tasks", "gpu_time")
#: GPU time is weighed in so many equal parts of its total.
_PARTS = 1_000_000

_LACK_BOTH, _LACK_GPU, _SERVED, _LACK_CPU, _CPU_ONLY, _CPU_ONLY_LACKS, _NO_ACCESS = range(7)


def own_workload(outcome: Flown, weigh: str = "tasks") -> TargetWorkload:
    """Return the target workload that a run's own jobs stand for, rejected ones left out.

    A job's GPUs and cores are divided evenly among its tasks. Where the number of tasks is unknown,
    GPUs are asked for as placements give them: on devices one by one; else on one node, as far as a
    node that may be used has so many, and a larger gang asks for whole such nodes, and a part of
    one.

    Args:
        outcome: the run.
        weigh: what makes a task popular, one of `WEIGHTS`.

    Raises:
        SpecError: there are no jobs, none with GPU time where that weighs, or no such weight.
    """
    if weigh not in WEIGHTS:
        raise SpecError.unknown("weigh", weigh, WEIGHTS)
    flown = outcome.jobs.filter(pa.array(outcome.flight.status != REJECTED))
    columns = ["num_gpus", "num_tasks", "num_cpus", "gpu_type"]
    kinds = flown.select([*columns, "duration"]).group_by(columns, use_threads=False)
    devices = models_devices(outcome)
    shapes, weights = [], []
    for row in kinds.aggregate([([], "count_all"), ("duration", "sum")]).to_pylist():
        gpus, types = row["num_gpus"], row["gpu_type"] or ""
        known = row["num_tasks"] or (gpus if devices and gpus > 1 else 0)
        for each, count in _tasks(outcome.cluster, gpus, int(known), types):
            part = each / gpus if gpus else 1 / count
            milli = int(rounded_down(min(each, 1.0) * MILLI))
            cores = int(rounded_down((row["num_cpus"] or 0.0) * part * CORE_UNITS))
            shapes.append(Shape(cores, milli, max(round(each), int(milli > 0)), types))
            gpu_time = count * each * row["duration_sum"]
            weights.append(gpu_time if weigh == "gpu_time" else count * row["count_all"])
    if weigh == "gpu_time":
        total = sum(weights)
        weights = [round(weight / total * _PARTS) if total else 0 for weight in weights]
    pairs = zip(shapes, weights, strict=True)
    return target_workload((shape, weight) for shape, weight in pairs if weight)


def _tasks(cluster: ClusterSpec, gpus: float, tasks: int, types: str) -> list[tuple[float, int]]:
    """Return (GPUs of a task, how many such tasks) of a job; 0 tasks = it does not say."""
    if tasks >= 1:
        return [(gpus / tasks, tasks)]
    most = _largest_node(cluster, types)
    if gpus <= most:
        return [(gpus, 1)]
    left = gpus % most
    return [(most, int(gpus // most)), *([(left, 1)] if left else [])]


def _largest_node(cluster: ClusterSpec, types: str) -> int:
    """Return the most GPUs of any node of acceptable type; of any node where none is."""
    wanted = {part.strip() for part in types.split("|") if part.strip()}
    kinds = cluster.node_types
    serve = [kind.gpus for kind in kinds if not wanted or kind.gpu_type in wanted]
    return max(serve, default=0) or max(kind.gpus for kind in kinds)


def fragmentation(
    outcome: Flown,
    workload: TargetWorkload | None = None,
    *,
    weigh: str = "tasks",
    cores: bool | None = None,
) -> pa.Table:
    """Return the fragmentation of the cluster over time.

    Args:
        outcome: a run on nodes.
        workload: the tasks to be expected; None = those of the run's own jobs (`own_workload`).
        weigh: what makes its own tasks popular: ``tasks`` or ``gpu_time``.
        cores: whether cores count: what a node has, less what its jobs ask for. Where they do not,
            every node has enough. None = where they bound the run.

    Returns:
        A row an instant at which the free GPUs change, the first not after the first submission:
        ``time`` (s); from then on ``idle_gpus`` (free), ``frag_gpus`` (fragments F),
        ``frag_ratio`` (F as a share of the free GPUs, null where none is free), ``frag_amount`` (F
        as a share of all GPUs); and the free GPUs by cause, in GPUs, in the columns of
        `windtunnel.sim.fragmentation.CAUSES`. ``q3`` is what is of use; the others are F.

    Raises:
        SpecError: the run was on a pool, which has no nodes to fragment, or pooled the GPUs of each
            node; there are no jobs; or no such weight.
    """
    if not has_nodes(outcome):
        raise SpecError("placement", "the run was on a pool; only nodes fragment: expected nodes")
    if outcome.settings.get("sharing") == "pooled":
        raise SpecError("sharing", "found 'pooled'; only devices fragment: expected 'devices'")
    expected = own_workload(outcome, weigh) if workload is None else workload
    held, start, end = holdings_over_time(outcome)
    states = node_states(
        outcome.cluster,
        held,
        start,
        end,
        cores=bound_by_cores(outcome) if cores is None else cores,
    )
    time, idle, causes = along(outcome.cluster, states, expected, horizon(outcome)[0])
    return _table(time, idle, causes / expected.total, outcome.cluster.num_gpus)


def along(
    cluster: ClusterSpec, states: Iterable[NodeStates], workload: TargetWorkload, first: float
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the measure of a whole cluster over time.

    Args:
        cluster: the nodes.
        states: all states of all nodes with GPUs.
        workload: the tasks to be expected.
        first: when the empty cluster is listed, s, at the latest.

    Returns:
        Float array (k,) of times, ascending, distinct; Int array (k,) of free milli from then on;
        Int array (k, causes) of free milli by cause, times tasks of the target workload.
    """
    times = [np.array([first])]
    changes = [np.zeros((1, len(CAUSES) + 1), dtype=np.int64)]
    for some in states:
        found = state_causes(some, cluster.node_types[some.kind].gpu_type, workload)
        values = np.column_stack([found, some.free.sum(axis=1)])
        before = np.isneginf(some.time)
        changes[0] += values[before].sum(axis=0)
        delta = np.diff(values, axis=0, prepend=values[:1])[~before]
        times.append(some.time[~before])
        changes.append(delta)
    time, *curves = steps(np.concatenate(times), *np.concatenate(changes).T)
    return time, curves[-1], np.stack(curves[:-1], axis=1)


def state_causes(states: NodeStates, gpu_type: str | None, workload: TargetWorkload) -> np.ndarray:
    """Return free milli by cause of each state, as `node_causes` does of one.

    Args:
        states: k states of nodes of one kind.
        gpu_type: the type of their GPUs.
        workload: the tasks to be expected.

    Returns:
        Int array (k, causes), times tasks of the target workload.
    """
    free = states.free
    total = free.sum(axis=1)
    causes = np.zeros((len(total), len(CAUSES)), dtype=np.int64)
    fitting: dict[int, tuple[np.ndarray, np.ndarray]] = {}
    for shape, count in zip(workload.shapes, workload.counts, strict=True):
        enough = states.cores >= shape.cores
        amount = count * total
        if shape.gpus == 0 or shape.milli == 0:
            causes[:, _CPU_ONLY] += np.where(enough, amount, 0)
            causes[:, _CPU_ONLY_LACKS] += np.where(enough, 0, amount)
            continue
        if not shape.accepts(gpu_type):
            causes[:, _NO_ACCESS] += amount
            continue
        if shape.milli not in fitting:
            fits = free >= shape.milli
            fitting[shape.milli] = fits.sum(axis=1), (free * fits).sum(axis=1)
        devices, useful = fitting[shape.milli]
        has_gpus = devices >= shape.gpus
        served = has_gpus & enough
        causes[:, _SERVED] += np.where(served, count * useful, 0)
        causes[:, _LACK_GPU] += np.where(served, amount - count * useful, 0)
        causes[:, _LACK_GPU] += np.where(~has_gpus & enough, amount, 0)
        causes[:, _LACK_BOTH] += np.where(~has_gpus & ~enough, amount, 0)
        causes[:, _LACK_CPU] += np.where(has_gpus & ~enough, amount, 0)
    return causes


def _table(time: np.ndarray, idle: np.ndarray, causes: np.ndarray, num_gpus: int) -> pa.Table:
    fragments = causes.sum(axis=1) - causes[:, _SERVED]
    ratio = np.divide(fragments, idle, out=np.zeros(len(idle)), where=idle > 0)
    return pa.table(
        {
            "time": time,
            "idle_gpus": idle / MILLI,
            "frag_gpus": fragments / MILLI,
            "frag_ratio": pa.array(ratio, mask=idle == 0),
            "frag_amount": fragments / (num_gpus * MILLI),
            **{name: causes[:, at] / MILLI for at, name in enumerate(CAUSES)},
        }
    )
