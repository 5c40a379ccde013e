"""What Gavel's policies run: a jobs table and a throughput table as arrays (`Work`)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from windtunnel.errors import SchemaError, SpecError, Violation
from windtunnel.policies.gavel.queue_quotas import QueueQuotas
from windtunnel.policies.gavel.work import Work
from windtunnel.policies.quota_books import open_accounts
from windtunnel.policies.quotas import ANY_TYPE, NO_VC, REST
from windtunnel.predictors.features import numbers
from windtunnel.sim.columns import numeric_column
from windtunnel.study.around import quotas_of

if TYPE_CHECKING:
    import pyarrow as pa

    from windtunnel.cluster.spec import ClusterSpec, NodeType
    from windtunnel.site.conditions import Conditions
    from windtunnel.throughput.measured import ThroughputTable

#: Suffix of the tables of gangs that are spread over nodes.
SPREAD = "_unconsolidated"


#: The GPU type of a cluster that names none.
NAMELESS = ""


def work_of(
    table: pa.Table,
    cluster: ClusterSpec,
    *,
    speeds: ThroughputTable,
    conditions: Conditions,
    packed: bool,
    parts: bool,
    notes: list[str],
) -> tuple[Work, np.ndarray, dict[int, str]]:
    """Return the work, the table row of each of its jobs, and why others are not in it.

    Args:
        table: jobs table.
        cluster: where; every node names its GPU type, which the throughput table knows.
        speeds: measured speeds by ``template`` and GPUs.
        conditions: ``oversize``, ``incomplete`` and ``bind_types``.
        packed: whether pairs of jobs share GPUs.
        parts: whether jobs may ask for parts of GPUs.
        notes: what a reader of the numbers must know is added to it.

    Raises:
        SpecError: GPUs without a type, or of one that the throughput table does not know.
        SchemaError: jobs that cannot be run, and were not to be rejected.
    """
    types = _types(cluster)
    gangs = numbers(table, "num_gpus")
    measured = {"total_steps", "template"} <= set(table.column_names)
    measured = measured and table["total_steps"].null_count < max(len(table), 1)
    if measured:
        steps = numeric_column(table, "total_steps", "steps")
        names = _names_in(speeds, types)
        kinds, tables = _measured(table, gangs, speeds, names)
        alone, spread = tables[0][kinds], tables[1][kinds]
        if any(node.count > 1 for node in cluster.node_types):
            notes += _spread_notes(speeds, names)
    else:
        steps, kinds = numbers(table, "duration"), np.zeros(len(table), int)
        alone = spread = np.ones((len(table), len(types)))
        notes.append(
            "The jobs have no steps: each runs equally fast on every GPU type that it accepts."
        )
    accepted = _accepted(table, types, conditions.scheduler.bind_types)
    alone, spread = alone * accepted, spread * accepted
    missing = {"submit_time": numbers(table, "submit_time"), "num_gpus": gangs}
    missing["total_steps" if measured else "duration"] = steps
    counts = [node.count for node in cluster.node_types]
    kind_of = np.repeat([_type_of(node) for node in cluster.node_types], counts)
    sizes = np.repeat(np.array([node.gpus for node in cluster.node_types], dtype=np.int64), counts)
    node_index = tuple(np.flatnonzero(kind_of == name) for name in types)
    capacity = np.array([sizes[of].sum() for of in node_index])
    asked = ("a number of GPUs > 0", gangs > 0)
    if not parts:
        asked = ("a whole number of GPUs >= 1", (gangs >= 1) & (gangs % 1 == 0))
    reasons = _refused(
        table,
        needed=missing,
        asked=asked,
        speeds=alone,
        gangs=gangs,
        capacity=capacity,
        conditions=conditions,
    )
    keep = np.array([row for row in range(len(table)) if row not in reasons], int)
    rows = keep[np.argsort(missing["submit_time"][keep], kind="stable")]
    quotas = _quotas_of(table["vc"].take(rows), gangs[rows], types, cluster, conditions)
    if quotas is not None:
        able = accepted.copy()
        able[rows] &= quotas.most() >= gangs[rows, None]
        # Who has no quota at all where he runs is refused by name, as under any policy.
        runs = able & (alone > 0) & (gangs[:, None] <= capacity)
        able[~runs.any(axis=1)] = True
        accepted = accepted & able
        alone, spread = alone * accepted, spread * accepted
    pairs = None
    if measured and packed:
        kinds, pairs = _accepted_pairs(kinds, tables[2], accepted)
        if not (pairs > 0).any():
            notes.append("The throughput table has no pairs of jobs: none share GPUs.")
    job_ids = table["job_id"].to_pylist()
    work = Work(
        names=[job_ids[row] for row in rows.tolist()],
        gpu_types=types,
        num_gpus=capacity,
        node_sizes=tuple(sizes[of] for of in node_index),
        node_index=node_index,
        submit=missing["submit_time"][rows],
        steps=steps[rows],
        gangs=gangs[rows] if parts else gangs[rows].astype(np.int64),
        speeds=alone[rows],
        spread_speeds=spread[rows],
        kinds=kinds[rows],
        pair_speeds=pairs,
        quotas=quotas,
    )
    return work, rows, reasons


def _quotas_of(
    vcs: pa.ChunkedArray,
    gangs: np.ndarray,
    types: tuple[str, ...],
    cluster: ClusterSpec,
    conditions: Conditions,
) -> QueueQuotas | None:
    """Return the quotas of jobs of some virtual clusters; None = none limit the run.

    Nor where a queue or a GPU type is missing: that is refused when the jobs are flown.
    """
    quotas = quotas_of(conditions)
    if quotas is None:
        return None
    accounts = {account.name: account for account in open_accounts(quotas.in_types_of(cluster))}
    found = [
        accounts.get(NO_VC if vc is None else vc, accounts.get(REST)) for vc in vcs.to_pylist()
    ]
    known = {ANY_TYPE, *types}
    if any(set(account.flavors) - known for account in accounts.values()) or None in found:
        return None
    return QueueQuotas([account for account in found if account is not None], gangs, types)


def _types(cluster: ClusterSpec) -> tuple[str, ...]:
    """Return the cluster's GPU types, sorted; a cluster without types is of one, `NAMELESS`."""
    if not cluster.gpu_types:
        return (NAMELESS,)
    if any(node.gpus and node.gpu_type is None for node in cluster.node_types):
        raise SpecError("cluster", "expected the GPU type of every node, or of none: v100:8,k80:24")
    return tuple(sorted(cluster.gpu_types))


def _type_of(node: NodeType) -> str:
    return node.gpu_type or NAMELESS


def _names_in(speeds: ThroughputTable, types: tuple[str, ...]) -> list[str]:
    """Return the throughput table's own spelling of the cluster's GPU types."""
    if types == (NAMELESS,):
        raise SpecError(
            "cluster", "measured speeds are by GPU type: name that of every node: v100:8,k80:24"
        )
    spelt = {name.lower(): name for name in speeds.gpu_types}
    for name in types:
        if name.lower() not in spelt:
            raise SpecError.unknown("cluster: GPU type", name, speeds.gpu_types)
    return [spelt[name.lower()] for name in types]


def _measured(
    table: pa.Table, gangs: np.ndarray, speeds: ThroughputTable, names: list[str]
) -> tuple[np.ndarray, tuple[np.ndarray, np.ndarray, np.ndarray]]:
    """Return each job's kind, and speeds by kind: alone, spread (kinds, types), and of pairs.

    A job type that was not measured is the last kind, which runs nowhere.
    """
    models = table["template"].to_pylist()
    keys = list(zip(models, np.nan_to_num(gangs).tolist(), strict=True))
    found = sorted({key for key in keys if key in speeds.job_types_known})
    number = {key: at for at, key in enumerate(found)}
    kinds = np.array([number.get(key, len(found)) for key in keys], int)
    shape = (len(found) + 1, len(names))
    alone, spread = np.zeros(shape), np.zeros(shape)
    pairs = np.zeros((len(found) + 1, *shape, 2))
    for kind, key in enumerate(found):
        for at, name in enumerate(names):
            alone[kind, at] = speeds.alone[name].get(key, 0.0)
            apart = speeds.alone.get(name + SPREAD, {}).get(key)
            spread[kind, at] = alone[kind, at] if apart is None or key[1] == 1 else apart
            for mate, other in enumerate(found):
                if other[1] == key[1]:
                    pairs[kind, mate, at] = speeds.pair_speeds(key, other, name)
    return kinds, (alone, spread, pairs)


def _spread_notes(speeds: ThroughputTable, names: list[str]) -> list[str]:
    unknown = [name for name in names if name + SPREAD not in speeds.gpu_types]
    if not unknown:
        return []
    where = ", ".join(unknown)
    lacking = f"The throughput table has no speeds of gangs spread over nodes on {where}"
    return [f"{lacking}: they run as fast as on one node."]


def _accepted(
    table: pa.Table, types: tuple[str, ...], bind_types: tuple[str, ...] | None
) -> np.ndarray:
    """Return which types each job accepts, shape (rows, types)."""
    wanted = np.ones((len(table), len(types)), bool)
    binding = None if bind_types is None else {name.lower() for name in bind_types}
    for row, text in enumerate(table["gpu_type"].to_pylist()):
        if text and types != (NAMELESS,):
            named = {part.strip().lower() for part in text.split("|")}
            if binding is None or named & binding:
                wanted[row] = [name.lower() in named for name in types]
    return wanted


def _refused(
    table: pa.Table,
    *,
    needed: dict[str, np.ndarray],
    asked: tuple[str, np.ndarray],
    speeds: np.ndarray,
    gangs: np.ndarray,
    capacity: np.ndarray,
    conditions: Conditions,
) -> dict[int, str]:
    """Return why some jobs are not flown, by row.

    Args:
        table: jobs table.
        needed: columns that must be known.
        asked: what a number of GPUs may be, in words, and of which rows it is so.
        speeds: shape (rows, types).
        gangs: shape (rows,).
        capacity: GPUs of each type, shape (types,).
        conditions: ``incomplete`` and ``oversize``.

    Raises:
        SchemaError: there are some, and they were not to be rejected.
    """
    reasons: dict[int, str] = {}
    for name, values in needed.items():
        bad, words = np.isnan(values), "a known number"
        if name == "num_gpus":
            words, bad = asked[0], ~asked[1]
        _sort_out(
            table, (name, words), np.flatnonzero(bad), conditions.scheduler.incomplete, reasons
        )
    nowhere = np.flatnonzero(~(speeds > 0).any(axis=1))
    nowhere = np.array([row for row in nowhere.tolist() if row not in reasons], int)
    rule = ("template", "a job type with a speed, on as many GPUs, on a GPU type of the cluster")
    if "total_steps" not in needed:
        rule = ("gpu_type", "a GPU type of the cluster")
    _sort_out(table, rule, nowhere, conditions.scheduler.incomplete, reasons)
    fits = ((speeds > 0) & (gangs[:, None] <= capacity)).any(axis=1)
    large = np.array([row for row in np.flatnonzero(~fits).tolist() if row not in reasons], int)
    rule = ("num_gpus", "at most the GPUs of a type on which the job runs")
    _sort_out(table, rule, large, conditions.scheduler.oversize, reasons)
    return reasons


def _sort_out(
    table: pa.Table,
    rule: tuple[str, str],
    rows: np.ndarray,
    ask: str,
    reasons: dict[int, str],
) -> None:
    """Raise for rows whose column breaks a rule, or note the reason; ``rule``: column, words."""
    if not len(rows):
        return
    column, words = rule
    value = table[column][int(rows[0])].as_py()
    if ask == "raise":
        found = Violation(column, words, len(rows), int(rows[0]) + 1, value, "row")
        raise SchemaError("jobs", [found])
    for row in rows.tolist():
        reasons[row] = f"column {column}: expected {words}"


def _accepted_pairs(
    kinds: np.ndarray, pairs: np.ndarray, accepted: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Return kinds of jobs that accept the same types, and pairs that both accept.

    Args:
        kinds: of the jobs, shape (rows,).
        pairs: speeds, shape (kinds, kinds, types, 2).
        accepted: shape (rows, types).
    """
    if accepted.all():
        return kinds, pairs
    found, parted = np.unique(np.column_stack([kinds, accepted]), axis=0, return_inverse=True)
    before, able = found[:, 0], found[:, 1:] > 0
    both = able[:, None, :, None] & able[None, :, :, None]
    return parted.ravel(), pairs[np.ix_(before, before)] * both
