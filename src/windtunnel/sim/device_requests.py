"""From a jobs table to what its jobs ask of devices: demand classes and a target workload."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from windtunnel.cluster.devices import CORE_UNITS, MIB, MILLI, device_demand
from windtunnel.errors import SchemaError, SpecError, Violation, quote
from windtunnel.schema import source_of
from windtunnel.sim.fragmentation import Shape, target_workload
from windtunnel.sim.jobs import Jobs

if TYPE_CHECKING:
    from collections.abc import Sequence

    import pyarrow as pa

    from windtunnel.cluster.devices import DeviceDemand, DeviceNode
    from windtunnel.sim.fragmentation import TargetWorkload

#: What to do with a job whose number of GPUs is unknown.
INCOMPLETE: tuple[str, ...] = ("raise", "reject")


@dataclass(frozen=True)
class Requests:
    """What jobs ask for.

    Attributes:
        rows: Int array (m,), table row of each job that takes part, in the table's order.
        columns: Int array (m, 5): tasks of the gang; and of one task whole GPUs, thousandths of a
            shared GPU, thousandths of cores, MiB.
        types: acceptable GPU types as they stand in the table; None = any; m of them.
        rejected: reason -> number of jobs that take no part.
        notes: what was assumed, one sentence each.
    """

    rows: np.ndarray
    columns: np.ndarray
    types: tuple[str | None, ...]
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

    def demands(self, nodes: Sequence[DeviceNode]) -> tuple[np.ndarray, tuple[DeviceDemand, ...]]:
        """Return each job's class, Int array (m,), and the classes, in order of appearance."""
        numbers: dict[tuple[object, ...], int] = {}
        demands = []
        kinds = np.empty(len(self.rows), dtype=np.int64)
        for job, (request, types) in enumerate(zip(self.columns.tolist(), self.types, strict=True)):
            key = (*request, types)
            if key not in numbers:
                numbers[key] = len(numbers)
                count, gpus, milli, cores, mem = request
                demands.append(
                    device_demand(
                        nodes,
                        count=count,
                        gpus=gpus,
                        milli=milli,
                        cores=cores,
                        mem=mem,
                        types=_type_set(types),
                    )
                )
            kinds[job] = numbers[key]
        return kinds, tuple(demands)

    def workload(self) -> TargetWorkload:
        """Return the target workload that these jobs' tasks stand for.

        Raises:
            SpecError: there are no jobs.
        """
        return target_workload(
            (Shape(cores, MILLI if gpus else milli, gpus or int(milli > 0), types or ""), count)
            for (count, gpus, milli, cores, _), types in zip(
                self.columns.tolist(), self.types, strict=True
            )
        )


def device_requests(table: pa.Table, *, incomplete: str = "raise") -> Requests:
    """Return what the jobs of a table ask of nodes with devices.

    GPUs are divided evenly among a job's tasks; where the number of tasks is unknown, a job of
    several whole GPUs has one task a GPU, any other job one task. Shares are rounded to thousandths
    of a GPU, cores to thousandths, memory to MiB. Unknown cores or memory are no constraint.

    Args:
        table: jobs table.
        incomplete: a job whose number of GPUs is unknown: ``raise``, or ``reject`` it.

    Raises:
        SchemaError: a job's GPUs are unknown, or its tasks ask for more than one GPU with a share.
        SpecError: ``incomplete`` is unknown.
    """
    if incomplete not in INCOMPLETE:
        raise SpecError.unknown("incomplete", incomplete, INCOMPLETE)
    jobs = Jobs(table)
    unknown = np.isnan(jobs.num_gpus)
    if unknown.any() and incomplete == "raise":
        raise _refusal(
            jobs,
            np.flatnonzero(unknown),
            "a known number of GPUs",
            "Pass incomplete='reject' (--incomplete reject) to leave such jobs out.",
        )
    rows = np.flatnonzero(~unknown)
    gpus = jobs.num_gpus[rows]
    tasks = jobs.num_tasks[rows]
    whole = (gpus > 1) & (gpus == np.floor(gpus))
    tasks = np.where(tasks >= 1, tasks, np.where(whole, gpus, 1.0))
    each = gpus / tasks
    milli = np.round(each * MILLI).astype(np.int64)
    _refuse_odd_shares(jobs, rows, each, milli)
    cores, no_cores = _of_a_task(jobs.num_cpus[rows], tasks, CORE_UNITS)
    mem, no_mem = _of_a_task(jobs.mem_gib[rows], tasks, MIB)
    notes = [
        f"{count:,} jobs without a request for {what} were given none."
        for count, what in ((no_cores, "CPU cores"), (no_mem, "memory"))
        if count
    ]
    columns = np.stack(
        [tasks.astype(np.int64), milli // MILLI, milli % MILLI, cores, mem], axis=1
    ).astype(np.int64)
    names = table["gpu_type"].to_pylist()
    rejected = {"num_gpus unknown": int(unknown.sum())} if unknown.any() else {}
    return Requests(rows, columns, tuple(names[row] for row in rows), rejected, tuple(notes))


def _of_a_task(asked: np.ndarray, tasks: np.ndarray, unit: int) -> tuple[np.ndarray, int]:
    """Return what one task asks for in whole units, and how many jobs do not say."""
    unknown = np.isnan(asked)
    each = np.where(unknown, 0.0, asked) / tasks * unit
    return np.round(each).astype(np.int64), int(unknown.sum())


def _refuse_odd_shares(jobs: Jobs, rows: np.ndarray, each: np.ndarray, milli: np.ndarray) -> None:
    odd = ((milli > MILLI) & (milli % MILLI != 0)) | ((each > 0) & (milli == 0))
    if odd.any():
        raise _refusal(
            jobs,
            rows[odd],
            f"whole GPUs for each task, or one share of a GPU of at least 1/{MILLI}",
            "A task cannot put GPUs together from shares of several devices.",
        )


def _refusal(jobs: Jobs, rows: np.ndarray, rule: str, hint: str) -> SchemaError:
    first = int(rows[0])
    rule = f"{rule}; job {quote(jobs.job_id[first])} differs"
    value = float(jobs.num_gpus[first])
    violation = Violation("num_gpus", rule, len(rows), first + 1, value, unit="row")
    return SchemaError(source_of(jobs.table), [violation], hint)


def _type_set(types: str | None) -> frozenset[str] | None:
    parts = frozenset(part.strip() for part in (types or "").split("|") if part.strip())
    return parts or None
