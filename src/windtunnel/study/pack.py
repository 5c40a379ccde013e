"""`pack`: fill a cluster with jobs until far more has arrived than fits, and see what is left over.

The Monte-Carlo experiment of Weng et al., "Beware of Fragmentation", ATC'23, section 6: the jobs of
a trace in random order, more drawn from the same trace until what has arrived is ``target`` times
the cluster's GPUs; each goes where the placement says, or nowhere, once and for all; nothing
departs. Allocation and fragmentation are followed against the arrived demand.

For each seed, ``numpy.random.default_rng(seed)`` draws, in this order: the order of the jobs
(``permutation(m)``); the further jobs, one by one (``integers(m)``), until the next one's share of
*each* GPU would pass the target, as published (how many GPUs it asks for is not multiplied in), or,
where the trace alone is above the target, the position of the next job to leave out
(``integers(left)``) until it is not; and the order of the nodes (``permutation(nodes)``), by which
ties are broken. The last one is the public simulator's: it puts a number of a random permutation,
drawn anew for each seed, before every node's name.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from windtunnel import schema
from windtunnel.checked import checked_choice, checked_number
from windtunnel.cluster.devices import MILLI, DeviceNode, device_nodes
from windtunnel.cluster.parse import parse_cluster
from windtunnel.errors import SpecError
from windtunnel.placements.catalogue import scored_placement
from windtunnel.placements.scored_catalogue import resolve_scored
from windtunnel.sim.device_requests import device_requests
from windtunnel.sim.fragmentation import CAUSES, workload_of
from windtunnel.site.scheduler import UNFIT
from windtunnel.study.filling import fill
from windtunnel.study.worker_processes import WorkerProcesses

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from concurrent.futures import Executor

    from windtunnel.cluster.devices import DeviceDemand
    from windtunnel.cluster.spec import ClusterSpec
    from windtunnel.placements.scored import ScoredPlacement
    from windtunnel.sim.device_requests import Requests
from windtunnel.sim.fragmentation import TargetWorkload

#: How the order of nodes that breaks ties is made.
NODE_ORDERS: tuple[str, ...] = ("shuffled", "name", "index")
#: Seeds of the published tables: ten from here on.
FIRST_SEED = 42
#: What a table of results measures, in order of its columns.
MEASURES: tuple[str, ...] = (
    *("allocation_percent", "frag_ratio_percent", "frag_amount_percent"),
    *(f"{cause}_percent" for cause in CAUSES),
    *("unallocated_gpus", "nodes_touched", "gpus_touched"),
)
_SERVED = CAUSES.index("q3")


@dataclass(frozen=True)
class PackOptions:
    """The options of a packing experiment; see `pack` for each of them."""

    target: float = 1.3
    only_gpu_nodes: bool = True
    node_order: str = "shuffled"
    scores: str = "integer"
    gang: str = "node"
    incomplete: str = "raise"


@dataclass(frozen=True)
class PackResult:
    """What a packing experiment found.

    Attributes:
        table: a row a placement, seed and percent of arrived demand: ``placement``, ``seed``,
            ``arrived_percent`` (GPU demand arrived, in percent of the cluster's GPUs, rounded),
            ``num_arrivals`` (jobs that arrived at that percent), and the mean over these of
            `MEASURES`: GPUs allocated, in percent of all; fragments in percent of the free GPUs,
            and of all GPUs; free GPUs by cause, in percent of the free ones; GPUs not allocated;
            nodes that run anything, and GPUs of these.
        runs: a row a placement and seed: ``placement``, ``seed``, ``num_jobs`` (arrivals),
            ``num_failed``, ``arrived_percent``, ``allocation_percent`` and ``unallocated_gpus`` at
            the end (of the last arrival, not of a percent).
        settings: how it was made.
        rejected: reason -> number of the trace's jobs that took no part.
        notes: what was assumed, one sentence each.
    """

    table: pa.Table
    runs: pa.Table
    settings: dict[str, Any]
    rejected: dict[str, int]
    notes: tuple[str, ...]

    def summary(self) -> pa.Table:
        """Return means over seeds.

        Returns:
            A row a placement and percent: ``placement``, ``arrived_percent``, ``num_seeds``, and
            for every measure its mean, under its own name, and its standard deviation over seeds,
            ``<measure>_sd`` (sample; null for one seed). Unknown values (a share of the free GPUs
            where none is free) are left out.
        """
        rows: list[dict[str, Any]] = []
        columns = {name: self.table[name].to_numpy() for name in ("arrived_percent", *MEASURES)}
        names = np.array(self.table["placement"].to_pylist(), dtype=object)
        for placement in dict.fromkeys(names.tolist()):
            mine = names == placement
            for percent in np.unique(columns["arrived_percent"][mine]).tolist():
                here = mine & (columns["arrived_percent"] == percent)
                row: dict[str, Any] = {"placement": placement, "arrived_percent": percent}
                row["num_seeds"] = int(here.sum())
                for name in MEASURES:
                    row |= _mean_and_sd(name, columns[name][here])
                rows.append(row)
        return pa.Table.from_pylist(rows, schema=_summary_schema())

    def at(self, placement: str, percent: int) -> dict[str, Any]:
        """Return the summary's row of a placement at a percent of arrived demand.

        Raises:
            SpecError: there is no such row.
        """
        for row in self.summary().to_pylist():
            if (row["placement"], row["arrived_percent"]) == (placement, percent):
                return dict(row)
        raise SpecError("at", f"nothing arrived at {percent} % under {placement!r}")


def pack(
    jobs: Any,
    cluster: ClusterSpec | str,
    placements: Iterable[str] = ("fgd",),
    *,
    seeds: int | Iterable[int] = 10,
    names: Sequence[str] | None = None,
    processes: int = 1,
    executor: Executor | None = None,
    on_done: Callable[[str], None] | None = None,
    **options: Any,
) -> PackResult:
    """Fill a cluster with a trace's jobs under several placements, over several seeds.

    Args:
        jobs: a jobs table, or whatever `windtunnel.simulate` takes; times are not looked at.
        cluster: the nodes; a string is read as on the command line.
        placements: names of scored placements.
        seeds: the seeds, or how many: so many from `FIRST_SEED` on.
        names: the nodes' names, in the cluster's order; None = numbered.
        processes: how many processes share the runs; 1 = this one.
        executor: where to run instead.
        on_done: called with a text after each run.
        options: ``target``: GPU demand that arrives, as a share of the cluster's GPUs;
            ``only_gpu_nodes``: leave nodes without GPUs out (the published experiment does);
            ``node_order``: what breaks ties between nodes that score the same: ``shuffled`` (a
            random order a seed, as published), ``name`` or ``index``; ``scores`` and ``gang``: see
            `windtunnel.placements.scored`; ``incomplete``: a job whose number of GPUs is unknown:
            ``raise``, or ``reject`` it.

    Raises:
        SchemaError: the jobs break the schema, or ask for what devices cannot give.
        SpecError: an option or name is unknown or out of range.

    >>> jobs = {"submit_time": [0, 0], "duration": [1, 1], "num_gpus": [1.0, 1.0]}
    >>> found = pack(jobs, "1x2", ["best_fit"], seeds=1, target=1.0)
    >>> found.runs["allocation_percent"].to_pylist()
    [100.0]
    """
    chosen = list(placements)
    settings = PackOptions(**options)
    _check(chosen, settings)
    spec = parse_cluster(cluster) if isinstance(cluster, str) else cluster
    nodes = device_nodes(spec, names)
    if settings.only_gpu_nodes:
        nodes = tuple(node for node in nodes if node.gpus)
    requests = device_requests(schema.as_jobs(jobs), incomplete=settings.incomplete)
    if requests.milli.sum() == 0:
        raise SpecError("jobs", "no job asks for GPUs; expected some, to fill the cluster with.")
    runs = [(name, seed) for name in chosen for seed in _seeds(seeds)]
    trial = Trial(requests, nodes, settings, *requests.demands(nodes), workload_of(requests))
    tables, ends = [], []
    for (name, seed), (rows, end) in zip(
        runs, _results(trial, runs, processes, executor), strict=True
    ):
        tables.append(rows)
        ends.append(end)
        if on_done is not None:
            on_done(f"{name}, seed {seed}")
    return PackResult(
        pa.concat_tables(tables),
        pa.Table.from_pylist(ends),
        {"placements": chosen, "seeds": [s for _, s in runs[: len(runs) // len(chosen)]]}
        | {key: getattr(settings, key) for key in PackOptions.__dataclass_fields__}
        | {"num_nodes": len(nodes), "num_gpus": sum(node.gpus for node in nodes)},
        requests.rejected,
        (*requests.notes, *_left_out(spec, nodes)),
    )


@dataclass(frozen=True)
class Trial:
    """What all runs of an experiment share.

    Attributes:
        requests: what the trace's jobs ask for.
        nodes: the cluster.
        options: how it is filled.
        kinds: Int array, demand class of each of the trace's jobs.
        demands: the demand classes.
        workload: the target workload that they stand for.
    """

    requests: Requests
    nodes: tuple[DeviceNode, ...]
    options: PackOptions
    kinds: np.ndarray
    demands: tuple[DeviceDemand, ...]
    workload: TargetWorkload

    def run(self, name: str, seed: int) -> tuple[pa.Table, dict[str, Any]]:
        """Fill the cluster once; return rows of `PackResult.table`, and one of ``runs``."""
        jobs, ranks = arrivals(self.requests, self.nodes, self.options.target, seed)
        nodes, ties = _ordered(self.nodes, ranks, self.options.node_order)
        placement = self._placement(name, seed, ties)
        filling = fill(nodes, self.demands, self.kinds[jobs], placement)
        placement.check()
        capacity = sum(node.gpus for node in nodes) * MILLI
        used = np.cumsum(np.where(filling.placed, self.requests.milli[jobs], 0))
        causes = filling.causes(self.workload) / self.workload.total
        measured = _measured(used, causes, filling.touched(), capacity)
        arrived = np.cumsum(self.requests.milli[jobs]) / capacity * 100
        rows = _by_percent(arrived, measured)
        count = len(rows["num_arrivals"])
        labels = {"placement": [name] * count, "seed": np.full(count, seed, dtype=np.int64)}
        end = {
            "placement": name,
            "seed": seed,
            "num_jobs": len(jobs),
            "num_failed": int((~filling.placed).sum()),
            "arrived_percent": float(arrived[-1]),
            "allocation_percent": float(measured["allocation_percent"][-1]),
            "unallocated_gpus": float(measured["unallocated_gpus"][-1]),
        }
        return pa.table({**labels, **rows}), end

    def _placement(self, name: str, seed: int, ties: str) -> ScoredPlacement:
        kind = scored_placement(name)
        own = kind.own_ties
        return resolve_scored(
            kind,
            scores=self.options.scores,
            ties=own if own == "random" else ties,
            gang=self.options.gang,
            seed=seed,
            workload=self.workload,
        )


def arrivals(
    requests: Requests, nodes: Sequence[DeviceNode], target: float, seed: int
) -> tuple[np.ndarray, np.ndarray]:
    """Return which jobs arrive, in order, and a random order of the nodes.

    Returns:
        Int array (arrivals,) of indices into ``requests``; Int array (nodes,), each node's place.

    Raises:
        SpecError: no job is left below the target.
    """
    rng = np.random.default_rng(seed)
    milli, each = requests.milli, requests.milli_per_gpu
    count = len(milli)
    jobs = rng.permutation(count).tolist()
    limit = target * sum(node.gpus for node in nodes) * MILLI
    total = int(milli.sum())
    if total < limit:
        while True:
            job = int(rng.integers(count))
            if total + int(each[job]) > limit:
                break
            total += int(milli[job])
            jobs.append(job)
    while total > limit and jobs:
        total -= int(milli[jobs.pop(int(rng.integers(len(jobs))))])
    if not jobs:
        raise SpecError(
            "target",
            f"found {target:g}, {limit / MILLI:g} GPUs here; with seed {seed} no job is left that "
            "asks for so few. Expected a larger target, or a larger cluster.",
        )
    return np.array(jobs, dtype=np.int64), rng.permutation(len(nodes))


def _ordered(
    nodes: tuple[DeviceNode, ...], ranks: np.ndarray, order: str
) -> tuple[tuple[DeviceNode, ...], str]:
    """Return the nodes, and what breaks ties between them."""
    if order != "shuffled":
        return nodes, order
    width = len(str(len(nodes)))
    pairs = zip(nodes, ranks.tolist(), strict=True)
    return tuple(replace(n, name=f"{rank:0{width}d}-{n.name}") for n, rank in pairs), "name"


def _measured(
    used: np.ndarray, causes: np.ndarray, touched: tuple[np.ndarray, np.ndarray], capacity: int
) -> dict[str, np.ndarray]:
    """Return every measure after each arrival, Float arrays (arrivals,), in order of `MEASURES`."""
    idle = capacity - used
    fragments = causes.sum(axis=1) - causes[:, _SERVED]
    share = np.full(len(used), np.nan)
    some = idle > 0

    def of_idle(milli: np.ndarray) -> np.ndarray:
        result = share.copy()
        result[some] = milli[some] / idle[some] * 100
        return result

    columns = [used / capacity * 100, of_idle(fragments), fragments / capacity * 100]
    columns += [of_idle(causes[:, cause]) for cause in range(len(CAUSES))]
    columns += [idle / MILLI, *(number.astype(float) for number in touched)]
    return dict(zip(MEASURES, columns, strict=True))


def _by_percent(arrived: np.ndarray, measured: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Return the mean of each measure over the arrivals that round to one percent."""
    percent, group = np.unique(np.rint(arrived).astype(np.int64), return_inverse=True)
    counts = np.bincount(group)
    rows = {"arrived_percent": percent, "num_arrivals": counts}
    for name, values in measured.items():
        known = ~np.isnan(values)
        sums = np.bincount(group, weights=np.where(known, values, 0.0))
        number = np.bincount(group, weights=known)
        rows[name] = np.divide(sums, number, out=np.full(len(counts), np.nan), where=number > 0)
    return rows


def _results(
    trial: Trial, runs: list[tuple[str, int]], processes: int, executor: Executor | None
) -> Iterable[tuple[pa.Table, dict[str, Any]]]:
    """Yield the runs' results, in order."""
    if executor is None and processes == 1:
        yield from (trial.run(*run) for run in runs)
        return
    if executor is not None:
        yield from executor.map(trial.run, *zip(*runs, strict=True))
        return
    with WorkerProcesses(min(processes, len(runs))) as workers:
        yield from workers.map(trial.run, *zip(*runs, strict=True))


def _seeds(seeds: int | Iterable[int]) -> list[int]:
    if isinstance(seeds, int):
        found = list(range(FIRST_SEED, FIRST_SEED + seeds))
    else:
        found = [int(seed) for seed in seeds]
    if not found or len(set(found)) < len(found) or min(found) < 0:
        raise SpecError("seeds", f"found {found}; expected at least one, each once, 0 or more")
    return found


def _check(placements: list[str], options: PackOptions) -> None:
    for name in placements:
        scored_placement(name)
    if not placements or len(set(placements)) < len(placements):
        raise SpecError("placements", f"found {placements}; expected at least one, each once")
    checked_choice("incomplete", options.incomplete, UNFIT)
    checked_choice("node_order", options.node_order, NODE_ORDERS)
    checked_number("target", options.target, "a share of 0 to 100, as 1.3", above=0, most=100)


def _left_out(spec: ClusterSpec, nodes: Sequence[DeviceNode]) -> list[str]:
    left = spec.num_nodes - len(nodes)
    return [f"{left:,} nodes without GPUs were left out."] if left else []


def _mean_and_sd(name: str, values: np.ndarray) -> dict[str, float | None]:
    known = values[~np.isnan(values)]
    return {
        name: float(known.mean()) if len(known) else None,
        f"{name}_sd": float(known.std(ddof=1)) if len(known) > 1 else None,
    }


def _summary_schema() -> pa.Schema:
    fields: list[tuple[str, pa.DataType]] = [
        ("placement", pa.string()),
        ("arrived_percent", pa.int64()),
        ("num_seeds", pa.int64()),
    ]
    for name in MEASURES:
        fields += [(name, pa.float64()), (f"{name}_sd", pa.float64())]
    return pa.schema(fields)
