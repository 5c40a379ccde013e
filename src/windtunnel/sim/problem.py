"""`Problem`: a jobs table and a cluster turned into the arrays both engines run on.

Jobs are renumbered by (submit_time, input order), so that one integer breaks every tie; jobs with
the same demand share a class, because what one of them cannot be given none of them can.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from windtunnel.cluster.devices import MILLI, DeviceDemand, DeviceNode, device_demand
from windtunnel.cluster.free import EVERY_NODE, Demand, FreeNodes, FreePool, FreeState
from windtunnel.cluster.free_devices import FreeDevices
from windtunnel.cluster.parts import nodes_of_types, restricted
from windtunnel.errors import SchemaError, SpecError, Violation, quote
from windtunnel.schema import source_of
from windtunnel.sim.demands import DeviceRules, acceptable, demands_on_devices, demands_on_gpus
from windtunnel.sim.device_requests import odd_shares
from windtunnel.sim.jobs import Jobs

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    import pyarrow as pa

    from windtunnel.cluster.spec import ClusterSpec
    from windtunnel.sim.topology_asks import Asks

_UNITS = {"num_cpus": "cores", "mem_gib": "GiB"}


@dataclass(frozen=True)
class Problem:
    """What an engine runs: m flown jobs in arrival order, on nodes, devices or pools.

    Attributes:
        jobs: the whole jobs table (n rows).
        rows: Int array (m,), table row of each flown job, by (submit_time, input order).
        submit: Float array (m,), s.
        duration: Float array (m,), s.
        estimate: Float array (m,), expected run time, s; NaN where it was not asked for.
        gpus: Int array (m,), GPU units asked for.
        demand_of: Int array (m,), class of each job.
        demands: the classes: `Demand`, or `DeviceDemand` where devices are modelled.
        sizes: Int array (nodes,), GPU units of each node (or pool).
        types: GPU type of each node (or pool); None = not distinguished.
        cpu_limits: thousandths of cores of each pool, None = not constrained.
        units: GPU units a GPU (1; `SHARE_UNITS` on a pool with fractional requests; `MILLI` on
            devices).
        is_pool: no node boundaries.
        devices: the nodes, where their devices, cores and memory are modelled; else empty.
        pooled: each node's GPUs are one pool of thousandths.
        reasons: table row -> why the job is not flown.
        notes: what was assumed, one sentence each.
        cluster: the cluster as it is described.
    """

    jobs: Jobs
    rows: np.ndarray
    submit: np.ndarray
    duration: np.ndarray
    estimate: np.ndarray
    gpus: np.ndarray
    demand_of: np.ndarray
    demands: tuple[Any, ...]
    sizes: np.ndarray
    types: tuple[str | None, ...]
    cpu_limits: tuple[int | None, ...]
    units: int
    is_pool: bool
    devices: tuple[DeviceNode, ...]
    pooled: bool
    reasons: dict[int, str]
    notes: tuple[str, ...]
    cluster: ClusterSpec | None = None

    @property
    def quota(self) -> int:
        """GPU units of the whole cluster."""
        return int(self.sizes.sum())

    def without(self, reasons: Mapping[int, str]) -> Problem:
        """Return the problem without some of the jobs to fly: arrival number -> why."""
        keep = np.ones(len(self.rows), dtype=bool)
        keep[list(reasons)] = False
        by_row = {int(self.rows[job]): reason for job, reason in reasons.items()}
        columns = ("rows", "submit", "duration", "estimate", "gpus", "demand_of")
        kept = {name: getattr(self, name)[keep] for name in columns}
        return replace(self, **kept, reasons={**self.reasons, **by_row})

    def demand(self, job: int) -> Any:
        """Return what a job asks for, by its arrival number."""
        return self.demands[self.demand_of[job]]

    def units_of(self, demand: Any, grant: int) -> int:
        """Return the GPU units of what jobs of a class are granted on a node, or in a pool."""
        if not self.devices or self.pooled:
            return grant
        return grant.bit_count() * int(demand.milli or MILLI)

    def on_types(self, demand: Any, types: Collection[str | None]) -> Any:
        """Return a demand that accepts some GPU types alone."""
        return self.on_nodes(demand, nodes_of_types(self.types, frozenset(types)))

    def on_nodes(self, demand: Any, nodes: int) -> Any:
        """Return a demand that accepts some nodes alone, given as a bitset."""
        return restricted(demand, self._empty, nodes)

    @cached_property
    def _empty(self) -> FreeState:
        """The free state of which only the sizes are looked at."""
        return self.free_state()

    def plain_demand(self, num_gpus: float) -> Demand | DeviceDemand:
        """Return the demand of so many GPUs of any type, as one gang that may split anywhere."""
        gpus = round(num_gpus * self.units)
        if self.devices:
            whole, part = divmod(gpus, MILLI)
            if part == 0:
                return device_demand(self.devices, count=max(whole, 1), gpus=min(whole, 1))
            return device_demand(self.devices, gpus=whole, milli=part, pooled=self.pooled)
        sizes = self.sizes.tolist()
        positive = [size for size in sizes if size > 0]
        return Demand(gpus, 1, 0, EVERY_NODE, max(sizes), min(positive), sum(sizes))

    def free_state(self) -> FreeState:
        """Return the cluster's free state with nothing running."""
        if self.devices:
            return FreeDevices(self.devices, pooled=self.pooled)
        if self.is_pool:
            return FreePool(self.sizes.tolist(), self.cpu_limits)
        return FreeNodes(self.sizes.tolist())


def build(
    table: pa.Table,
    cluster: ClusterSpec,
    *,
    as_pool: bool,
    devices: DeviceRules | None = None,
    bind_types: Collection[str] | None = None,
    estimates: str | None = None,
    oversize: str = "raise",
    incomplete: str = "raise",
    asks: Asks | None = None,
) -> Problem:
    """Turn a validated jobs table and a cluster into a `Problem`.

    Args:
        table: jobs table.
        cluster: the cluster.
        as_pool: ignore node boundaries.
        devices: model the nodes' devices, cores and memory; None = whole GPUs of nodes.
        bind_types: the GPU types that bind the jobs that name them; None = all of them.
        estimates: ``recorded``, ``perfect`` or a column of the table (s, known for every job) where
            the run plans with expected ends; None = it does not.
        oversize: what to do with a job larger than the cluster: ``raise``, or ``reject`` it into
            the outcome.
        incomplete: the same for a job whose submit time, duration or GPUs are unknown.
        asks: the tree in which jobs are placed, and what they ask of it; None = there is none.

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
    rows = np.flatnonzero(known)
    rows = rows[np.argsort(jobs.submit_time[rows], kind="stable")]
    if devices is not None and oversize == "reject":
        odd = odd_shares(jobs, rows, pooled=devices.pooled)
        for row in rows[odd].tolist():
            reasons[row] = f"asks for {jobs.num_gpus[row]:g} GPUs, which devices cannot give"
        rows = rows[~odd]
    types = acceptable(jobs, rows, cluster, bind_types, notes)
    if devices is not None and not as_pool:
        asked = demands_on_devices(jobs, rows, cluster, types, devices, asks=asks)
    else:
        asked = demands_on_gpus(jobs, rows, cluster, types, as_pool=as_pool, asks=asks)
    notes += asked.notes
    demand_of, demands = asked.demand_of, asked.demands
    flown = ~asked.too_large[demand_of] if len(demands) else np.ones(0, dtype=bool)
    beside = () if devices is None else devices.limits(cluster)
    _oversize(jobs, rows[~flown], cluster, oversize, reasons, beside=beside)
    rows, demand_of = rows[flown], demand_of[flown]
    gpus = np.array(asked.gpus, dtype=np.int64)
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
        sizes=asked.sizes,
        types=asked.types,
        cpu_limits=asked.cpu_limits,
        units=asked.units,
        is_pool=as_pool,
        devices=asked.devices,
        pooled=bool(asked.devices) and devices is not None and devices.pooled,
        reasons=reasons,
        notes=tuple(notes),
        cluster=cluster,
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
        if any(one.count == len(jobs.submit_time) for one in violations):
            hint = "No job has one: the trace can be described (windtunnel describe), not flown."
        raise SchemaError(source_of(jobs.table), violations, hint)
    return reasons


def _estimates(jobs: Jobs, rows: np.ndarray, estimates: str | None, notes: list[str]) -> np.ndarray:
    """Return the expected run time of each flown job, NaN where nothing plans with it."""
    if estimates is None:
        return np.full(len(rows), np.nan)
    if estimates == "perfect":
        durations: np.ndarray = jobs.duration[rows]
        return durations
    if estimates != "recorded":
        planned: np.ndarray = getattr(jobs, estimates)[rows]
        return planned
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


def _oversize(
    jobs: Jobs,
    rows: np.ndarray,
    cluster: ClusterSpec,
    oversize: str,
    reasons: dict[int, str],
    *,
    beside: Sequence[str],
) -> None:
    """Write down why jobs that are too large take no part, or refuse them.

    ``beside``: the columns that limit jobs besides GPUs.
    """
    if len(rows) == 0:
        return
    for row in rows.tolist():
        kind = jobs.gpu_type[row]
        of_type = f" of type {kind}" if kind else ""
        words = jobs.topology[row] if "topology" in jobs.table.column_names else None
        of_type += f" as {words}" if words else ""
        asked = {name: float(getattr(jobs, name)[row]) for name in beside}
        more = [f"{asked[name]:g} {_UNITS[name]}" for name in beside if asked[name] > 0]
        reasons[row] = (
            f"asks for {', '.join([f'{jobs.num_gpus[row]:g} GPUs{of_type}', *more])}; "
            "the cluster cannot hold it: "
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
