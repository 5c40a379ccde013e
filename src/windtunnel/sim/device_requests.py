"""From a jobs table to what its jobs ask of nodes with devices: demand classes."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from windtunnel.cluster.demand_classes import device_demands
from windtunnel.cluster.devices import CORE_UNITS, MIB, MILLI
from windtunnel.cluster.topology.node_tree import fewest_pods
from windtunnel.errors import SchemaError, Violation, quote
from windtunnel.schema import source_of
from windtunnel.sim.jobs import Jobs

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import ArrayLike

    from windtunnel.cluster.devices import DeviceDemand, DeviceNode
    from windtunnel.cluster.topology.request import TopologyRequest

#: What floats may leave of a unit when they are divided.
_ROUNDING = 1e-6


@dataclass(frozen=True)
class Requests:
    """What jobs ask for.

    Attributes:
        rows: Int array (m,), table row of each job that takes part.
        columns: Int array (m, 5): tasks of the gang; and of one task whole GPUs, thousandths of a
            shared GPU, thousandths of cores, MiB.
        types: the distinct texts of acceptable GPU types, as they stand in the table; None = any.
        type_of: Int array (m,), each job's index into ``types``.
        rejected: reason -> number of jobs that take no part.
        notes: what was assumed, one sentence each.
    """

    rows: np.ndarray
    columns: np.ndarray
    types: tuple[str | None, ...]
    type_of: np.ndarray
    rejected: dict[str, int]
    notes: tuple[str, ...]

    @property
    def milli(self) -> np.ndarray:
        """GPU milli of each whole job, Int array (m,)."""
        count, whole, part = self.columns[:, 0], self.columns[:, 1], self.columns[:, 2]
        return np.asarray(count * (whole * MILLI + part))

    @property
    def milli_per_gpu(self) -> np.ndarray:
        """Thousandths that a job asks of each GPU, Int array (m,): 1000 where whole GPUs."""
        whole, part = self.columns[:, 1], self.columns[:, 2]
        return np.where(whole > 0, MILLI, part)

    def demands(
        self,
        nodes: Sequence[DeviceNode],
        *,
        pooled: bool = False,
        bind_cpu_tasks: bool = False,
        asked: np.ndarray | None = None,
        levels: Sequence[TopologyRequest | None] = (None,),
    ) -> tuple[np.ndarray, tuple[DeviceDemand, ...]]:
        """Return each job's class, Int array (m,), and the classes, in order of appearance.

        ``asked``: Int array (m,), which of the ``levels``, requests of those of a tree, each job
        asks for; None = the first.
        """
        asked = np.zeros(len(self.rows), dtype=np.int64) if asked is None else asked
        kinds, first = distinct_rows(*self.columns.T, self.type_of, asked)
        demands = device_demands(
            nodes,
            self.columns[first],
            [type_set(text) for text in self.types],
            self.type_of[first],
            pooled=pooled,
            bind_cpu_tasks=bind_cpu_tasks,
        )
        chosen = zip(demands, asked[first].tolist(), strict=True)
        return kinds, tuple(
            demand if levels[of] is None else replace(demand, topology=levels[of])
            for demand, of in chosen
        )

    def shapes(self) -> list[tuple[int, int, int, int, str, int]]:
        """Return (cores, whole GPUs, milli, MiB, types, tasks) of each distinct job's tasks."""
        kinds, first = distinct_rows(*self.columns.T, self.type_of)
        jobs = np.bincount(kinds, minlength=len(first)).tolist()
        return [
            (cores, gpus, milli, mem, self.types[kind] or "", count * number)
            for (count, gpus, milli, cores, mem), kind, number in zip(
                self.columns[first].tolist(), self.type_of[first].tolist(), jobs, strict=True
            )
        ]


def device_requests(table: pa.Table, *, incomplete: str = "raise") -> Requests:
    """Return what the jobs of a table ask of nodes with devices.

    Args:
        table: jobs table.
        incomplete: a job whose number of GPUs is unknown: ``raise``, or ``reject`` it.

    Raises:
        SchemaError: a job's GPUs are unknown, or its tasks ask for more than one GPU with a share.
    """
    jobs = Jobs(table)
    unknown = np.isnan(jobs.num_gpus)
    if unknown.any() and incomplete == "raise":
        raise _refusal(
            jobs,
            np.flatnonzero(unknown),
            "a known number of GPUs",
            "Pass incomplete='reject' (--incomplete reject) to leave such jobs out.",
        )
    found = requests_of(jobs, np.flatnonzero(~unknown))
    rejected = {"num_gpus unknown": int(unknown.sum())} if unknown.any() else {}
    return replace(found, rejected=rejected)


def requests_of(
    jobs: Jobs,
    rows: np.ndarray,
    *,
    pooled: bool = False,
    constrained: tuple[bool, bool] = (True, True),
    largest: int = 1,
) -> Requests:
    """Return what some jobs ask of nodes with devices.

    GPUs are divided evenly among a job's tasks; where the number of tasks is unknown, a job of
    several whole GPUs has one task a GPU, or as few tasks as ``largest`` allows; any other job has
    one. A task's share is rounded down to thousandths of a GPU, its cores to thousandths, its
    memory to MiB, so that all tasks together never ask for more than the job. Unknown cores or
    memory are no constraint.

    Args:
        jobs: the jobs.
        rows: Int array (m,), the rows of those that take part; their GPUs are known.
        pooled: a task may put GPUs together from shares of several devices of a node.
        constrained: whether cores, and memory, are limited anywhere; they are not looked at else.
        largest: most GPUs of a task where the number of tasks is unknown.

    Raises:
        SchemaError: a task asks for more than one GPU with a share, and the nodes are not pooled;
            or for less than a thousandth.
    """
    tasks, milli = _tasks_and_milli(jobs, rows, largest)
    odd = odd_shares(jobs, rows, pooled=pooled)
    if odd.any():
        raise _refusal(
            jobs,
            rows[odd],
            f"whole GPUs for each task, or one share of a GPU of at least 1/{MILLI}",
            "A task cannot put GPUs together from shares of several devices, unless a node's GPUs "
            "are taken as one pool: sharing='pooled' (--sharing pooled). Or pass oversize='reject' "
            "(--oversize reject) to list such jobs as rejected.",
        )
    nothing = np.zeros(len(rows), dtype=np.int64)
    cores, no_cores = (
        _of_a_task(jobs.num_cpus[rows], tasks, CORE_UNITS) if constrained[0] else (nothing, 0)
    )
    mem, no_mem = _of_a_task(jobs.mem_gib[rows], tasks, MIB) if constrained[1] else (nothing, 0)
    notes = [
        f"{count:,} jobs without a request for {what} were given none."
        for count, what in ((no_cores, "CPU cores"), (no_mem, "memory"))
        if count
    ]
    columns = np.stack(
        [tasks.astype(np.int64), milli // MILLI, milli % MILLI, cores, mem], axis=1
    ).astype(np.int64)
    texts, type_of = type_texts(jobs, rows)
    return Requests(rows, columns, texts, type_of, {}, tuple(notes))


def type_texts(jobs: Jobs, rows: np.ndarray) -> tuple[tuple[str | None, ...], np.ndarray]:
    """Return the distinct texts of acceptable GPU types, and each row's index into them.

    Returns:
        The texts, None (any) among them; Int array (m,).
    """
    encoded = jobs.table["gpu_type"].combine_chunks().dictionary_encode()
    texts = (*encoded.dictionary.to_pylist(), None)
    codes = encoded.indices.fill_null(len(texts) - 1).to_numpy()
    return texts, np.asarray(codes, dtype=np.int64)[rows]


def type_set(text: str | None) -> frozenset[str] | None:
    """Return the acceptable GPU types of a text that joins them by ``|``; None = any."""
    return frozenset(part.strip() for part in (text or "").split("|") if part.strip()) or None


def distinct_rows(*columns: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
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


def _of_a_task(asked: np.ndarray, tasks: np.ndarray, unit: int) -> tuple[np.ndarray, int]:
    """Return what one task asks for in whole units, and how many jobs do not say."""
    unknown = np.isnan(asked)
    each = np.where(unknown, 0.0, asked) / tasks * unit
    return rounded_down(each), int(unknown.sum())


def rounded_down(units: ArrayLike) -> np.ndarray:
    """Return whole units, Int array; what a division left just below one is one."""
    return np.floor(np.asarray(units) + _ROUNDING).astype(np.int64)


def odd_shares(jobs: Jobs, rows: np.ndarray, *, pooled: bool) -> np.ndarray:
    """Return which jobs ask for what devices cannot give, Bool array (m,).

    That is less than a thousandth of a GPU for a task; or, where the nodes are not pooled, more
    than one GPU that are not whole ones.
    """
    _, milli = _tasks_and_milli(jobs, rows)
    odd: np.ndarray = (jobs.num_gpus[rows] > 0) & (milli == 0)
    return odd if pooled else odd | ((milli > MILLI) & (milli % MILLI != 0))


def _tasks_and_milli(
    jobs: Jobs, rows: np.ndarray, largest: int = 1
) -> tuple[np.ndarray, np.ndarray]:
    """Return tasks of each job, and thousandths of GPUs of one task."""
    gpus, tasks = jobs.num_gpus[rows], jobs.num_tasks[rows]
    whole = (gpus > 1) & (gpus == np.floor(gpus))
    sizes, of = np.unique(np.where(whole, gpus, 1.0), return_inverse=True)
    fewest = np.array([fewest_pods(int(size), largest) for size in sizes], dtype=float)
    tasks = np.where(tasks >= 1, tasks, fewest[of])
    return tasks, rounded_down(gpus / tasks * MILLI)


def _refusal(jobs: Jobs, rows: np.ndarray, rule: str, hint: str) -> SchemaError:
    first = int(rows[0])
    rule = f"{rule}; job {quote(jobs.job_id[first])} differs"
    value = float(jobs.num_gpus[first])
    violation = Violation("num_gpus", rule, len(rows), first + 1, value, unit="row")
    return SchemaError(source_of(jobs.table), [violation], hint)
