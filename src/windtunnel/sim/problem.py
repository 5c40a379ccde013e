"""`Problem`: a jobs table and a cluster turned into the arrays both engines run on.

Jobs are renumbered by (submit_time, input order), so that one integer breaks every tie; jobs with
the same demand share a class, because what one of them cannot be given none of them can.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from windtunnel.cluster.free import EVERY_NODE, Demand, FreeNodes, FreePool
from windtunnel.errors import SchemaError, SpecError, Violation, quote
from windtunnel.schema import source_of
from windtunnel.sim.jobs import Jobs

if TYPE_CHECKING:
    from collections.abc import Sequence

    from windtunnel.cluster.spec import ClusterSpec

#: GPU units a GPU where requests are fractional: shares are exact to a millionth.
SHARE_UNITS = 1_000_000
#: Units of a CPU core.
CPU_UNITS = 1_000


@dataclass(frozen=True)
class Problem:
    """What an engine runs: m flown jobs in arrival order, on nodes or pools.

    Attributes:
        jobs: the whole jobs table (n rows).
        rows: Int array (m,), table row of each flown job, by (submit_time, input order).
        submit: Float array (m,), s.
        duration: Float array (m,), s.
        estimate: Float array (m,), expected run time, s; NaN where it was not asked for.
        gpus: Int array (m,), GPU units asked for.
        demand_of: Int array (m,), class of each job.
        demands: the classes.
        sizes: Int array (nodes,), GPU units of each node (or pool).
        types: GPU type of each node (or pool); None = not told apart.
        cpu_limits: thousandths of cores of each pool, None = not constrained.
        units: GPU units a GPU (1, or `SHARE_UNITS` on a pool with fractional requests).
        is_pool: no node boundaries.
        reasons: table row -> why the job is not flown.
        notes: what was assumed, one sentence each.
    """

    jobs: Jobs
    rows: np.ndarray
    submit: np.ndarray
    duration: np.ndarray
    estimate: np.ndarray
    gpus: np.ndarray
    demand_of: np.ndarray
    demands: tuple[Demand, ...]
    sizes: np.ndarray
    types: tuple[str | None, ...]
    cpu_limits: tuple[int | None, ...]
    units: int
    is_pool: bool
    reasons: dict[int, str]
    notes: tuple[str, ...]

    @property
    def quota(self) -> int:
        """GPU units of the whole cluster."""
        return int(self.sizes.sum())

    def plain_demand(self, num_gpus: float) -> Demand:
        """Return the demand of so many GPUs of any type, as one gang that may split anywhere."""
        gpus = round(num_gpus * self.units)
        sizes = self.sizes.tolist()
        positive = [size for size in sizes if size > 0]
        return Demand(gpus, 1, 0, EVERY_NODE, max(sizes), min(positive), sum(sizes))

    def free_state(self) -> FreeNodes | FreePool:
        """Return the cluster's free state with nothing running."""
        if self.is_pool:
            return FreePool(self.sizes.tolist(), self.cpu_limits)
        return FreeNodes(self.sizes.tolist())


@dataclass(frozen=True)
class _Nodes:
    sizes: np.ndarray
    types: list[str | None]
    cpu_limits: tuple[int | None, ...]


def build(
    table: pa.Table,
    cluster: ClusterSpec,
    *,
    as_pool: bool,
    estimates: str | None = None,
    oversize: str = "raise",
    incomplete: str = "raise",
) -> Problem:
    """Turn a validated jobs table and a cluster into a `Problem`.

    Args:
        table: jobs table.
        cluster: the cluster.
        as_pool: ignore node boundaries.
        estimates: ``recorded`` or ``perfect`` where the run plans with expected ends; None = it
            does not.
        oversize: what to do with a job larger than the cluster: ``raise``, or ``reject`` it into
            the outcome.
        incomplete: the same for a job whose submit time, duration or GPUs are unknown.

    Raises:
        SchemaError: a job is larger than the cluster or incomplete, and was not to be rejected;
            or it has no estimate, and the run plans with those recorded.
        SpecError: an option's value is unknown.
    """
    for name, value in (("oversize", oversize), ("incomplete", incomplete)):
        if value not in ("raise", "reject"):
            raise SpecError.unknown(name, value, ("raise", "reject"))
    jobs = Jobs(table)
    notes: list[str] = []
    reasons = _incomplete(jobs, incomplete)
    known = np.ones(len(jobs), dtype=bool)
    known[list(reasons)] = False
    fractional = bool((jobs.num_gpus[known] != np.floor(jobs.num_gpus[known])).any())
    units = SHARE_UNITS if as_pool and fractional else 1
    nodes = _pools(cluster, units) if as_pool else _nodes(cluster)
    if not as_pool:
        _refuse_shares(jobs, known)
    rows = np.flatnonzero(known)
    rows = rows[np.argsort(jobs.submit_time[rows], kind="stable")]
    demand_of, demands = _classes(jobs, rows, cluster, nodes, notes, units=units, as_pool=as_pool)
    too_large = np.array([_impossible(d, nodes, as_pool=as_pool) for d in demands], dtype=bool)
    flown = ~too_large[demand_of] if len(demands) else np.ones(0, dtype=bool)
    _oversize(jobs, rows[~flown], cluster, oversize, reasons)
    rows, demand_of = rows[flown], demand_of[flown]
    gpus = np.array([d.gpus for d in demands], dtype=np.int64)
    estimate = _estimates(jobs, rows, estimates, notes)
    return Problem(
        jobs=jobs,
        rows=rows,
        submit=jobs.submit_time[rows],
        duration=jobs.duration[rows],
        estimate=estimate,
        gpus=gpus[demand_of] if len(demands) else np.empty(0, dtype=np.int64),
        demand_of=demand_of,
        demands=demands,
        sizes=nodes.sizes,
        types=tuple(nodes.types),
        cpu_limits=nodes.cpu_limits,
        units=units,
        is_pool=as_pool,
        reasons=reasons,
        notes=tuple(notes),
    )


def _incomplete(jobs: Jobs, incomplete: str) -> dict[int, str]:
    """Return row -> reason for the jobs that lack what a run needs."""
    reasons: dict[int, str] = {}
    violations = []
    for name in ("submit_time", "duration", "num_gpus"):
        unknown = np.flatnonzero(np.isnan(getattr(jobs, name)))
        for row in unknown.tolist():
            reasons.setdefault(row, f"{name} unknown")
        if len(unknown):
            first = jobs.job_id[unknown[0]]
            rule = f"a known value; job {quote(first)} has none"
            violations.append(Violation(name, rule, len(unknown), int(unknown[0]) + 1, unit="row"))
    if violations and incomplete == "raise":
        hint = "Pass incomplete='reject' (--incomplete reject) to list them as rejected instead."
        raise SchemaError(source_of(jobs.table), violations, hint)
    return reasons


def _estimates(jobs: Jobs, rows: np.ndarray, estimates: str | None, notes: list[str]) -> np.ndarray:
    """Return the expected run time of each flown job, NaN where nothing plans with it."""
    if estimates is None:
        return np.full(len(rows), np.nan)
    if estimates == "perfect":
        durations: np.ndarray = jobs.duration[rows]
        return durations
    estimate: np.ndarray = jobs.estimate[rows]
    unknown = rows[np.isnan(estimate)]
    if len(unknown):
        rule = f"a requested wall time; job {quote(jobs.job_id[unknown.min()])} has none"
        raise SchemaError(
            source_of(jobs.table),
            [Violation("estimate", rule, len(unknown), int(unknown.min()) + 1, unit="row")],
            "Backfilling plans with it. Pass estimates='perfect' (--estimates perfect) to plan "
            "with true durations.",
        )
    overruns = int((jobs.duration[rows] > estimate).sum())
    if overruns:
        notes.append(f"{overruns:,} jobs run longer than they asked for; they are not killed.")
    return estimate


def _nodes(cluster: ClusterSpec) -> _Nodes:
    sizes = np.repeat([n.gpus for n in cluster.node_types], [n.count for n in cluster.node_types])
    types = [n.gpu_type for n in cluster.node_types for _ in range(n.count)]
    return _Nodes(sizes.astype(np.int64), types, (None,) * len(types))


def _pools(cluster: ClusterSpec, units: int) -> _Nodes:
    """Return one big node a GPU type, in node order."""
    totals: dict[str | None, int] = {}
    cpus: dict[str | None, float | None] = {}
    for node in cluster.node_types:
        if node.gpus == 0 and not cluster.is_pool:
            continue
        totals[node.gpu_type] = totals.get(node.gpu_type, 0) + node.count * node.gpus
        limit = node.cpus if cluster.is_pool else None
        before = cpus.get(node.gpu_type, 0.0)
        # One node type that does not say how many cores it has leaves its pool unconstrained.
        if limit is None or before is None:
            cpus[node.gpu_type] = None
        else:
            cpus[node.gpu_type] = before + node.count * limit
    limits = tuple(None if c is None else round(c * CPU_UNITS) for c in cpus.values())
    sizes = np.array(list(totals.values()), dtype=np.int64) * units
    return _Nodes(sizes, list(totals), limits)


def _refuse_shares(jobs: Jobs, known: np.ndarray) -> None:
    gpus = np.where(known, jobs.num_gpus, 0.0)
    tasks = np.where(np.isnan(jobs.num_tasks), 1.0, jobs.num_tasks)
    share = gpus / tasks
    bad = np.flatnonzero((gpus != np.floor(gpus)) | (share != np.floor(share)))
    if len(bad):
        first = int(bad[0])
        raise SchemaError(
            source_of(jobs.table),
            [
                Violation(
                    "num_gpus",
                    f"whole GPUs for each task on nodes; job {quote(jobs.job_id[first])} asks for "
                    f"{jobs.num_gpus[first]:g} in {tasks[first]:g} tasks",
                    len(bad),
                    first + 1,
                    jobs.num_gpus[first],
                    unit="row",
                )
            ],
            "Share GPUs with placement='pool' (--placement pool), which has no node boundaries.",
        )


def _classes(
    jobs: Jobs,
    rows: np.ndarray,
    cluster: ClusterSpec,
    nodes: _Nodes,
    notes: list[str],
    *,
    units: int,
    as_pool: bool,
) -> tuple[np.ndarray, tuple[Demand, ...]]:
    """Return each flown job's class and the classes, numbered by their demands' order."""
    num_gpus = jobs.num_gpus[rows]
    gpus = np.round(num_gpus * units).astype(np.int64)
    vanishing = np.flatnonzero((num_gpus > 0) & (gpus == 0))
    if len(vanishing):
        job = jobs.job_id[rows[vanishing[0]]]
        rule = f"a share of at least {1 / units:g} GPU; job {quote(job)} asks for less"
        raise SchemaError(source_of(jobs.table), [Violation("num_gpus", rule, len(vanishing))])
    tasks = np.where(np.isnan(jobs.num_tasks[rows]), 0, jobs.num_tasks[rows]).astype(np.int64)
    task = np.where(tasks > 0, gpus // np.maximum(tasks, 1), 1)
    task = np.maximum(task, 1) if not as_pool else np.ones_like(gpus)
    cpus = np.zeros(len(rows), dtype=np.int64)
    if any(limit is not None for limit in nodes.cpu_limits):
        asked = jobs.num_cpus[rows]
        unknown = int(np.isnan(asked).sum())
        if unknown:
            notes.append(f"{unknown:,} jobs without a CPU request were given no CPU constraint.")
        cpus = np.round(np.nan_to_num(asked) * CPU_UNITS).astype(np.int64)
    kinds, kind = _acceptable(jobs, rows, cluster, notes)
    demand_of, first = _distinct(gpus, task, cpus, kind)
    demands = tuple(
        _demand(int(gpus[i]), int(task[i]), int(cpus[i]), int(kind[i]), kinds=kinds, nodes=nodes)
        for i in first
    )
    return demand_of, demands


def _distinct(*columns: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Number the distinct rows of integer columns in order of appearance.

    Returns:
        Each row's number, shape (rows,), and the first row of each number, shape (distinct,).
    """
    codes = np.zeros(len(columns[0]), dtype=np.int64)
    for column in columns:
        # Hashing one column at a time is linear; sorting whole rows is ten times slower.
        values = pa.array(column).dictionary_encode()
        pairs = codes * max(len(values.dictionary), 1) + values.indices.to_numpy()
        codes = pa.array(pairs).dictionary_encode().indices.to_numpy().astype(np.int64)
    first = np.full(int(codes.max(initial=-1)) + 1, len(codes), dtype=np.int64)
    np.minimum.at(first, codes, np.arange(len(codes)))
    return codes, first


def _acceptable(
    jobs: Jobs, rows: np.ndarray, cluster: ClusterSpec, notes: list[str]
) -> tuple[list[frozenset[str] | None], np.ndarray]:
    """Return the distinct sets of acceptable GPU types and each job's index into them."""
    asked = jobs.table["gpu_type"]
    sets: dict[frozenset[str] | None, int] = {None: 0}
    constrained = len(jobs) - asked.null_count
    if not cluster.gpu_types or not constrained:
        if constrained:
            notes.append(
                f"{constrained:,} jobs name a GPU type; the cluster tells no types apart, so these "
                "constraints were not applied."
            )
        return [None], np.zeros(len(rows), dtype=np.int64)
    encoded = asked.combine_chunks().dictionary_encode()
    numbers = []
    for text in encoded.dictionary.to_pylist():
        types = frozenset(part.strip() for part in text.split("|") if part.strip())
        numbers.append(sets.setdefault(types or None, len(sets)))
    numbers.append(sets[None])  # where a null's index points
    codes = encoded.indices.fill_null(len(numbers) - 1).to_numpy()
    return list(sets), np.array(numbers, dtype=np.int64)[codes[rows]]


def _demand(
    gpus: int,
    task: int,
    cpus: int,
    kind: int,
    *,
    kinds: Sequence[frozenset[str] | None],
    nodes: _Nodes,
) -> Demand:
    types = kinds[kind]
    serves = np.array([types is None or name in types for name in nodes.types], dtype=bool)
    allowed = EVERY_NODE
    if types is not None:
        allowed = sum(1 << int(node) for node in np.flatnonzero(serves))
    usable = np.where(serves, nodes.sizes - nodes.sizes % task, 0)
    positive = usable[usable > 0]
    return Demand(
        gpus=gpus,
        task=task,
        cpus=cpus,
        allowed=allowed,
        largest=int(usable.max(initial=0)),
        smallest=int(positive.min()) if len(positive) else 0,
        capacity=int(usable.sum()),
    )


def _impossible(demand: Demand, nodes: _Nodes, *, as_pool: bool) -> bool:
    """Return whether even the empty cluster could not hold the demand."""
    if demand.gpus == 0 and demand.cpus == 0:
        return False
    if not as_pool:
        return demand.gpus > demand.capacity
    # A gang does not span pools, because it does not span GPU types.
    return not any(
        demand.allowed >> pool & 1
        and demand.gpus <= size
        and (limit is None or demand.cpus <= limit)
        for pool, (size, limit) in enumerate(
            zip(nodes.sizes.tolist(), nodes.cpu_limits, strict=True)
        )
    )


def _oversize(
    jobs: Jobs, rows: np.ndarray, cluster: ClusterSpec, oversize: str, reasons: dict[int, str]
) -> None:
    if len(rows) == 0:
        return
    for row in rows.tolist():
        kind = jobs.gpu_type[row]
        of_type = f" of type {kind}" if kind else ""
        reasons[row] = (
            f"asks for {jobs.num_gpus[row]:g} GPUs{of_type}; the cluster cannot hold it: "
            f"{cluster.describe()}"
        )
    if oversize == "raise":
        first = int(rows.min())
        rule = f"a request the cluster can hold; job {quote(jobs.job_id[first])} {reasons[first]}"
        raise SchemaError(
            source_of(jobs.table),
            [Violation("num_gpus", rule, len(rows), first + 1, jobs.num_gpus[first], unit="row")],
            "Choose a larger cluster, or pass oversize='reject' (--oversize reject) to list such "
            "jobs as rejected.",
        )
