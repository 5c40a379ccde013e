"""Who and what holds GPUs, and who waits, over time: exact step functions, group by group."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from windtunnel.cluster.devices import MILLI
from windtunnel.sim.demands import binding_sets
from windtunnel.sim.metrics import NONE, horizon
from windtunnel.sim.observe.groups import grouped_steps, job_groups, labelled
from windtunnel.sim.observe.holdings import has_nodes, holdings
from windtunnel.sim.timeline import held_over_time, queue_changes

if TYPE_CHECKING:
    from windtunnel.sim.flown import Flown

#: What GPUs of a pool are counted under where it is not known which type a job was given.
ANY = "(any)"
#: Curves are summed in whole millionths of a GPU, so that an idle group is exactly 0.
_UNITS = 1e6


def allocation_by_type(outcome: Flown) -> pa.Table:
    """Return GPUs in use by GPU type over time.

    On nodes the type is that of the node. A run on a pool does not record which of several types a
    job drew from: a job that accepts one of them only counts there, any other under ``(any)``, and
    what is reported of the types is then what they have in use at least.

    Returns:
        A row a type and instant at which its value changes, types in the cluster's order:
        ``gpu_type`` (``(none)`` where the cluster tells no types apart), ``time`` (s), ``gpus`` in
        use from then on, and ``utilization``, their share of the type's GPUs (0..1; null under
        ``(any)``). A type's first row is not after the first submission.
    """
    labels = type_labels(outcome)
    sizes = [gpus_of(outcome, label) for label in labels]
    stay, code, gpus = held_by_type(outcome, labels)
    if (code == len(labels)).any():
        labels.append(ANY)
        sizes.append(np.nan)
    group, time, used = _held_over_time(outcome, stay, code, gpus, len(labels))
    share = used / np.array(sizes)[group]
    return pa.table(
        {
            "gpu_type": labelled(group, labels),
            "time": time,
            "gpus": used,
            "utilization": pa.array(share, mask=np.isnan(share)),
        }
    )


def allocation(outcome: Flown, by: str = "vc") -> pa.Table:
    """Return GPUs in use by group of jobs over time.

    Args:
        outcome: the run.
        by: ``size``, or a column of text: ``vc``, ``user``, ``workload`` ...

    Returns:
        A row a group and instant at which its value changes, groups in order: the column named as
        ``by``, ``time`` (s), ``gpus`` in use from then on, ``share`` of the cluster's (0..1). A
        group of which nothing ever ran has one row of 0.

    Raises:
        SpecError: there is no such grouping.
    """
    codes, labels = job_groups(outcome, by)
    job = outcome.flight.segment_job
    group, time, used = _held_over_time(
        outcome, np.arange(len(job)), codes[job], outcome.segment_gpus, len(labels)
    )
    present = np.isin(group, codes)
    group, time, used = group[present], time[present], used[present]
    return pa.table(
        {
            by: labelled(group, labels),
            "time": time,
            "gpus": used,
            "share": used / outcome.cluster.num_gpus,
        }
    )


def queue(outcome: Flown, by: str) -> pa.Table:
    """Return what waits over time by group of jobs, as `windtunnel.sim.timeline.queue` does.

    Args:
        outcome: the run.
        by: ``size``, or a column of text: ``vc``, ``user``, ``workload`` ...

    Returns:
        A row a group and instant at which a value changes, groups in order: the column named as
        ``by``, ``time`` (s), ``jobs`` waiting from then on, ``gpus`` asked for by them.

    Raises:
        SpecError: there is no such grouping.
    """
    codes, labels = job_groups(outcome, by)
    who, times, sign = queue_changes(outcome)
    gpus = np.round(outcome.num_gpus[who] * _UNITS)
    group, time, jobs, waiting = grouped_steps(codes[who], times, sign, sign * gpus)
    return pa.table(
        {by: labelled(group, labels), "time": time, "jobs": jobs, "gpus": waiting / _UNITS}
    )


def _held_over_time(
    outcome: Flown, stay: np.ndarray, code: np.ndarray, gpus: np.ndarray, groups: int
) -> tuple[np.ndarray, ...]:
    """Return group, time and GPUs in use of each step; every group has one at the first submission.

    Args:
        outcome: the run.
        stay: Int array (e,), the stay of each entry.
        code: Int array (e,), its group.
        gpus: Float array (e,), GPUs it holds.
        groups: number of groups.
    """
    entry, start, end, gpus = held_over_time(outcome, stay, gpus)
    code = code[entry]
    amount = np.round(gpus * _UNITS)
    ended = ~np.isnan(end)
    group, time, used = grouped_steps(
        np.concatenate([np.arange(groups), code, code[ended]]),
        np.concatenate([np.full(groups, horizon(outcome)[0]), start, end[ended]]),
        np.concatenate([np.zeros(groups), amount, -amount[ended]]),
    )
    return group, time, used / _UNITS


def type_labels(outcome: Flown) -> list[str]:
    """Return the cluster's GPU types in order, then ``(none)`` if some GPUs have no type."""
    untyped = any(n.gpus and n.gpu_type is None for n in outcome.cluster.node_types)
    return [*outcome.cluster.gpu_types, *([NONE] if untyped else [])]


def gpus_of(outcome: Flown, label: str) -> float:
    """Return how many GPUs of a type of `type_labels` the cluster has."""
    gpu_type = None if label == NONE else label
    kinds = outcome.cluster.node_types
    return float(sum(kind.count * kind.gpus for kind in kinds if kind.gpu_type == gpu_type))


def held_by_type(outcome: Flown, labels: list[str]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return (stay, type, GPUs) of what is held, shapes (e,).

    Types are indices into the labels (`type_labels`); ``len(labels)`` where the type is not known.
    """
    flight = outcome.flight
    if len(labels) > 1 and has_nodes(outcome):
        held = holdings(outcome)
        kinds = outcome.cluster.node_types
        of_kind = [labels.index(kind.gpu_type or NONE) if kind.gpus else 0 for kind in kinds]
        of_node = np.repeat(of_kind, [kind.count for kind in kinds])
        return held.stay, of_node[held.node], held.milli / MILLI
    stay = np.arange(len(flight.segment_job))
    gpus = outcome.segment_gpus
    if len(labels) == 1:
        return stay, np.zeros(len(stay), dtype=np.int64), gpus
    only = _only_type(outcome, labels)[flight.segment_job]
    return stay, np.where(gpus > 0, only, 0), gpus


def _only_type(outcome: Flown, labels: list[str]) -> np.ndarray:
    """Return the one type that each job accepts as an index, ``len(labels)`` where several."""
    asked = outcome.jobs["gpu_type"].combine_chunks().dictionary_encode()
    texts = (*asked.dictionary.to_pylist(), None)
    found = []
    for wanted in binding_sets(texts, outcome.cluster, outcome.settings.get("bind_types")):
        serve = [index for index, label in enumerate(labels) if label in (wanted or ())]
        found.append(serve[0] if len(serve) == 1 else len(labels))
    indices = asked.indices.fill_null(len(found) - 1).to_numpy(zero_copy_only=False)
    only: np.ndarray = np.array(found, dtype=np.int64)[indices]
    return only
