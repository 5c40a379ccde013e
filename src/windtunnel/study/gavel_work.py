"""What Gavel's policies run: a jobs table and a throughput table as arrays (`Work`)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from windtunnel.errors import SpecError
from windtunnel.policies.gavel.queue_quotas import QueueQuotas
from windtunnel.policies.gavel.work import Work
from windtunnel.policies.quota_books import open_accounts
from windtunnel.policies.quotas import ANY_TYPE, NO_VC, REST
from windtunnel.predictors.features import numbers
from windtunnel.study.around import quotas_of
from windtunnel.study.gavel_refused import refused
from windtunnel.study.gavel_speeds import NAMELESS, job_speeds

if TYPE_CHECKING:
    import pyarrow as pa

    from windtunnel.cluster.spec import ClusterSpec, NodeType
    from windtunnel.site.conditions import Conditions
    from windtunnel.throughput.measured import ThroughputTable


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
    gangs, submit = numbers(table, "num_gpus"), numbers(table, "submit_time")
    on_nodes = any(node.count > 1 for node in cluster.node_types)
    found = job_speeds(table, gangs, types, speeds, notes, on_nodes=on_nodes, packed=packed)
    accepted = _accepted(table, types, conditions.scheduler.bind_types)
    found = found.where(accepted)
    node_index, node_sizes = _nodes_of(cluster, types)
    capacity = np.array([sizes.sum() for sizes in node_sizes])
    reasons = refused(
        table,
        submit=submit,
        gangs=gangs,
        speeds=found,
        capacity=capacity,
        parts=parts,
        conditions=conditions,
    )
    keep = np.array([row for row in range(len(table)) if row not in reasons], int)
    rows = keep[np.argsort(submit[keep], kind="stable")]
    quotas = _quotas_of(table["vc"].take(rows), gangs[rows], types, cluster, conditions)
    if quotas is not None:
        accepted = _within(
            quotas, rows, gangs, accepted, (found.alone > 0) & (gangs[:, None] <= capacity)
        )
        found = found.where(accepted)
    found = found.paired(accepted)
    if found.pairs is not None and not (found.pairs > 0).any():
        notes.append("The throughput table has no pairs of jobs: none share GPUs.")
    job_ids = table["job_id"].to_pylist()
    work = Work(
        names=[job_ids[row] for row in rows.tolist()],
        gpu_types=types,
        num_gpus=capacity,
        node_sizes=node_sizes,
        node_index=node_index,
        submit=submit[rows],
        steps=found.steps[rows],
        gangs=gangs[rows] if parts else gangs[rows].astype(np.int64),
        speeds=found.alone[rows],
        spread_speeds=found.spread[rows],
        kinds=found.kinds[rows],
        pair_speeds=found.pairs,
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


def _within(
    quotas: QueueQuotas,
    rows: np.ndarray,
    gangs: np.ndarray,
    accepted: np.ndarray,
    fits: np.ndarray,
) -> np.ndarray:
    """Return which of the types that jobs accept their quotas have, shape (rows, types).

    Args:
        quotas: of the jobs.
        rows: of the jobs in the table.
        gangs: GPUs that each row asks for.
        accepted: types that each row accepts, shape (rows, types).
        fits: on which it would run; who would on none that he has a quota of keeps all types: he is
            refused by name, as under any policy.
    """
    able = accepted.copy()
    able[rows] &= quotas.most() >= gangs[rows, None]
    able[~(able & fits).any(axis=1)] = True
    found: np.ndarray = accepted & able
    return found


def _types(cluster: ClusterSpec) -> tuple[str, ...]:
    """Return the cluster's GPU types, sorted; a cluster without types is of one, `NAMELESS`."""
    if not cluster.gpu_types:
        return (NAMELESS,)
    if any(node.gpus and node.gpu_type is None for node in cluster.node_types):
        raise SpecError("cluster", "expected the GPU type of every node, or of none: v100:8,k80:24")
    return tuple(sorted(cluster.gpu_types))


def _type_of(node: NodeType) -> str:
    return node.gpu_type or NAMELESS


def _nodes_of(
    cluster: ClusterSpec, types: tuple[str, ...]
) -> tuple[tuple[np.ndarray, ...], tuple[np.ndarray, ...]]:
    """Return the number of each node of each type in the cluster, and its GPUs."""
    counts = [node.count for node in cluster.node_types]
    kind_of = np.repeat([_type_of(node) for node in cluster.node_types], counts)
    sizes = np.repeat(np.array([node.gpus for node in cluster.node_types], dtype=np.int64), counts)
    node_index = tuple(np.flatnonzero(kind_of == name) for name in types)
    return node_index, tuple(sizes[of] for of in node_index)


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
