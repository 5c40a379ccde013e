"""What jobs ask of a cluster and what it has, in one unit: pools, whole GPUs of nodes, or devices.

Jobs with the same demand share a class, because what one of them cannot be given none of them can.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from windtunnel.cluster.devices import CORE_UNITS, MILLI, DeviceDemand, DeviceNode, device_nodes
from windtunnel.cluster.free import EVERY_NODE, Demand
from windtunnel.cluster.free_devices import FreeDevices
from windtunnel.cluster.gpu_types import spelling, spelt
from windtunnel.cluster.topology.node_tree import fewest_pods
from windtunnel.errors import SchemaError, SpecError, Violation, quote
from windtunnel.schema import source_of
from windtunnel.sim.device_requests import distinct_rows, requests_of, type_set, type_texts
from windtunnel.sim.jobs import Jobs

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    import pyarrow as pa

    from windtunnel.cluster.spec import ClusterSpec
    from windtunnel.sim.topology_asks import Asks

#: GPU units a GPU where requests are fractional: shares are exact to a millionth.
SHARE_UNITS = 1_000_000


@dataclass(frozen=True)
class DeviceRules:
    """How jobs use nodes with real GPU devices (`windtunnel.cluster.devices`).

    Attributes:
        pooled: a node's GPUs are one pool of thousandths.
        resources: cores and memory constrain, too, where both cluster and job state them.
        bind_cpu_tasks: GPU types bind tasks without GPUs, too.
        one_rack: a job must fit one rack.
    """

    pooled: bool = False
    resources: bool = True
    bind_cpu_tasks: bool = False
    one_rack: bool = False

    def limits(self, cluster: ClusterSpec) -> tuple[str, ...]:
        """Return the columns of jobs that constrain them besides GPUs: the cluster states those."""
        return _stated(cluster) if self.resources else ()


@dataclass(frozen=True)
class _Nodes:
    sizes: np.ndarray
    types: list[str | None]
    cpu_limits: tuple[int | None, ...]


@dataclass(frozen=True)
class Types:
    """The distinct texts of acceptable GPU types (None = any), and each flown job's among them."""

    texts: tuple[str | None, ...]
    of: np.ndarray


@dataclass(frozen=True)
class Demands:
    """What the jobs ask for in units of the cluster, and what it has; see `Problem`."""

    demand_of: np.ndarray
    demands: tuple[Any, ...]
    gpus: list[int]
    too_large: np.ndarray
    sizes: np.ndarray
    types: tuple[str | None, ...]
    cpu_limits: tuple[int | None, ...]
    units: int
    devices: tuple[DeviceNode, ...] = ()
    notes: tuple[str, ...] = ()


def needs_devices(table: pa.Table, cluster: ClusterSpec, *, resources: bool) -> bool:
    """Return whether the jobs ask for what whole GPUs of nodes cannot tell."""
    jobs = Jobs(table)
    gpus = np.nan_to_num(jobs.num_gpus)
    tasks = np.where(jobs.num_tasks >= 1, jobs.num_tasks, 1.0)
    share = gpus / tasks
    if ((gpus != np.floor(gpus)) | (share != np.floor(share))).any():
        return True
    return resources and any((getattr(jobs, name) > 0).any() for name in _stated(cluster))


def _stated(cluster: ClusterSpec) -> tuple[str, ...]:
    """Return the jobs' columns that nodes of a cluster say how much they have of, but for GPUs."""
    said = {
        "num_cpus": any(kind.cpus is not None for kind in cluster.node_types),
        "mem_gib": any(kind.mem_gib is not None for kind in cluster.node_types),
    }
    return tuple(name for name, is_said in said.items() if is_said)


def _binding(
    bind_types: Collection[str], cluster: ClusterSpec, texts: Sequence[str | None]
) -> set[str]:
    """Return the types that are to bind, spelt as the cluster or the jobs spell them.

    Raises:
        SpecError: one is neither's; where the cluster tells no types apart, any may be named.
    """
    known = set(cluster.gpu_types)
    for text in texts if known else ():
        known |= type_set(text) or set()
    found = {spelt(name, spelling(known, cluster.aliases)) for name in bind_types}
    for name in found if known else ():
        if name not in known:
            raise SpecError.unknown("bind_types", name, known)
    return found


def binding_sets(
    texts: Sequence[str | None], cluster: ClusterSpec, bind_types: Collection[str] | None
) -> list[frozenset[str] | None]:
    """Return the GPU types that each text (`type_texts`) binds its jobs to; None = they run on any.

    Args:
        texts: types joined by ``|``, or None.
        cluster: where the jobs run.
        bind_types: the types that bind; None = all of them.

    Raises:
        SpecError: a type that is to bind is neither the cluster's nor any job's.
    """
    sets = [type_set(text) for text in texts]
    if bind_types is None:
        return sets
    binding = _binding(bind_types, cluster, texts)
    return [types if types is not None and types & binding else None for types in sets]


def acceptable(
    jobs: Jobs,
    rows: np.ndarray,
    cluster: ClusterSpec,
    bind_types: Collection[str] | None,
    notes: list[str],
) -> Types:
    """Return which GPU types each job accepts, equal sets under one number.

    Raises:
        SpecError: a type that is to bind is neither the cluster's nor any job's.
    """
    texts, codes = type_texts(jobs, rows)
    sets = binding_sets(texts, cluster, bind_types)
    constrained = len(jobs) - jobs.table["gpu_type"].null_count
    if not cluster.gpu_types or not constrained:
        if bind_types is not None:
            why = "no job names a GPU type" if cluster.gpu_types else "the cluster has none to name"
            notes.append(f"bind_types (--bind-types) made no difference: {why}.")
        if constrained:
            notes.append(
                f"{constrained:,} jobs name a GPU type; the cluster tells no types apart, so these "
                "constraints were not applied."
            )
        return Types((None,), np.zeros(len(rows), dtype=np.int64))
    kept: dict[frozenset[str] | None, int] = {None: 0}
    kept_texts: list[str | None] = [None]
    numbers = []
    for text, types in zip(texts, sets, strict=True):
        if types not in kept:
            kept[types] = len(kept_texts)
            kept_texts.append(text)
        numbers.append(kept[types])
    of = np.array(numbers, dtype=np.int64)[codes]
    if bind_types is not None:
        let_go = int((np.array(numbers)[codes] == 0).sum() - (codes == len(texts) - 1).sum())
        if let_go:
            notes.append(f"{let_go:,} jobs name a GPU type that was not to bind them.")
    return Types(tuple(kept_texts), of)


def demands_on_devices(
    jobs: Jobs,
    rows: np.ndarray,
    cluster: ClusterSpec,
    types: Types,
    rules: DeviceRules,
    *,
    asks: Asks | None = None,
) -> Demands:
    """Return what the jobs ask of nodes with devices.

    Args:
        jobs: the jobs.
        rows: Int array (m,), rows of those to fly, in order of arrival.
        cluster: nodes.
        types: the GPU types that these jobs accept.
        rules: how devices are shared, and what else constrains.
        asks: the tree in which jobs are placed, and what they ask of it; None = there is none.

    Raises:
        SchemaError: a job asks for what devices cannot give.
        SpecError: a node has more devices than can be distinguished.
    """
    nodes = device_nodes(cluster)
    limits = rules.limits(cluster)
    constrained = "num_cpus" in limits, "mem_gib" in limits
    largest = 1 if asks is None else max((node.gpus for node in nodes), default=1)
    requests = requests_of(
        jobs, rows, pooled=rules.pooled, constrained=constrained, largest=largest
    )
    requests = replace(requests, types=types.texts, type_of=types.of)
    tasks = requests.columns[:, 0]
    asked = None if asks is None else asks.of(jobs, rows, jobs.num_gpus[rows], tasks)
    demand_of, demands = requests.demands(
        nodes,
        pooled=rules.pooled,
        bind_cpu_tasks=rules.bind_cpu_tasks,
        asked=asked,
        levels=(None,) if asks is None else asks.requests,
    )
    return Demands(
        demand_of=demand_of,
        demands=demands,
        gpus=[d.count * d.amount for d in demands],
        too_large=_too_large(demands, nodes, rules, asks),
        sizes=np.array([node.gpus for node in nodes], dtype=np.int64) * MILLI,
        types=tuple(node.gpu_type for node in nodes),
        cpu_limits=(None,) * len(nodes),
        units=MILLI,
        devices=nodes,
        notes=(*requests.notes, *(() if asks is None else asks.notes)),
    )


def _too_large(
    demands: Sequence[DeviceDemand],
    nodes: tuple[DeviceNode, ...],
    rules: DeviceRules,
    asks: Asks | None,
) -> np.ndarray:
    """Return which gangs the empty cluster does not hold; in one rack, or its tree, if it must."""
    free = FreeDevices(nodes, pooled=rules.pooled)

    def is_held(demand: DeviceDemand) -> bool:
        if asks is None and not rules.one_rack:
            return demand.count <= demand.capacity
        fitting = np.array([free.fitting(node, demand) for node in range(len(nodes))], np.int64)
        if asks is not None:
            return asks.tree.place(fitting, demand.count, demand.topology) is not None
        return any(int(fitting[list(rack)].sum()) >= demand.count for rack in free.racks)

    return np.array([not d.is_nothing and not is_held(d) for d in demands], dtype=bool)


def demands_on_gpus(
    jobs: Jobs,
    rows: np.ndarray,
    cluster: ClusterSpec,
    types: Types,
    *,
    as_pool: bool,
    asks: Asks | None = None,
) -> Demands:
    """Return what the jobs ask of pools, or of whole GPUs of nodes.

    ``as_pool``: node boundaries are ignored; the rest as of `demands_on_devices`.

    Raises:
        SchemaError: a job asks for less of a GPU than can be counted.
    """
    num_gpus = jobs.num_gpus[rows]
    fractional = bool((num_gpus != np.floor(num_gpus)).any())
    units = SHARE_UNITS if as_pool and fractional else 1
    nodes = _pools(cluster, units) if as_pool else _nodes(cluster)
    gpus = np.round(num_gpus * units).astype(np.int64)
    vanishing = np.flatnonzero((num_gpus > 0) & (gpus == 0))
    if len(vanishing):
        job = jobs.job_id[rows[vanishing[0]]]
        rule = f"a share of at least {1 / units:g} GPU; job {quote(job)} asks for less"
        raise SchemaError(source_of(jobs.table), [Violation("num_gpus", rule, len(vanishing))])
    task = np.ones_like(gpus) if as_pool else _gpus_of_a_task(gpus, jobs.num_tasks[rows])
    cpus, notes = _cores(jobs.num_cpus[rows], nodes)
    columns = [gpus, task, cpus, types.of]
    pods = of = np.zeros_like(gpus)
    if asks is not None:
        pods = _pods(gpus, jobs.num_tasks[rows], int(nodes.sizes.max(initial=0)))
        of = asks.of(jobs, rows, gpus, pods)
        columns += [pods, of]
    demand_of, first = distinct_rows(*columns)
    sets = [type_set(text) for text in types.texts]
    demands = tuple(
        replace(
            _demand(int(gpus[i]), int(task[i]), int(cpus[i]), sets[types.of[i]], nodes),
            pods=int(pods[i]),
            topology=None if asks is None else asks.requests[of[i]],
        )
        for i in first
    )
    if asks is None or asks.in_pieces:
        too_large = [_impossible(d, nodes, as_pool=as_pool) for d in demands]
    else:
        too_large = [asks.tree.place_gpus(nodes.sizes, d) is None for d in demands]
    return Demands(
        demand_of=demand_of,
        demands=demands,
        gpus=[d.gpus for d in demands],
        too_large=np.array(too_large, dtype=bool),
        sizes=nodes.sizes,
        types=tuple(nodes.types),
        cpu_limits=nodes.cpu_limits,
        units=units,
        notes=notes if asks is None else tuple(asks.notes),
    )


def _pods(gpus: np.ndarray, num_tasks: np.ndarray, largest: int) -> np.ndarray:
    """Return each job's pods: its tasks where they share its GPUs evenly, else as few as can be."""
    tasks = np.nan_to_num(num_tasks).astype(np.int64)
    known = {int(of): fewest_pods(int(of), largest) for of in np.unique(gpus)}
    whole = (tasks > 0) & (gpus % np.maximum(tasks, 1) == 0) & (gpus >= tasks)
    return np.where(whole, tasks, np.array([known[of] for of in gpus.tolist()], np.int64))


def _gpus_of_a_task(gpus: np.ndarray, num_tasks: np.ndarray) -> np.ndarray:
    """Return whole GPUs a task, at least 1; a gang of unknown tasks may split anywhere."""
    tasks = np.where(np.isnan(num_tasks), 0, num_tasks).astype(np.int64)
    return np.maximum(np.where(tasks > 0, gpus // np.maximum(tasks, 1), 1), 1)


def _cores(asked: np.ndarray, nodes: _Nodes) -> tuple[np.ndarray, tuple[str, ...]]:
    """Return what each job asks for in thousandths of cores, 0 where nothing limits, and notes."""
    if all(limit is None for limit in nodes.cpu_limits):
        return np.zeros(len(asked), dtype=np.int64), ()
    unknown = int(np.isnan(asked).sum())
    note = f"{unknown:,} jobs without a CPU request were given no CPU constraint."
    return np.round(np.nan_to_num(asked) * CORE_UNITS).astype(np.int64), (note,) * (unknown > 0)


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
    limits = tuple(None if c is None else round(c * CORE_UNITS) for c in cpus.values())
    sizes = np.array(list(totals.values()), dtype=np.int64) * units
    return _Nodes(sizes, list(totals), limits)


def _demand(gpus: int, task: int, cpus: int, types: frozenset[str] | None, nodes: _Nodes) -> Demand:
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
    if demand.is_nothing:
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
