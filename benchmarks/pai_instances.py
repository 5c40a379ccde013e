"""A folder shaped like the PAI v2020 release: seven header-less tables, seeded, streamed to disk.

Row counts, name lengths and shares follow the published facts (MLaaS in the Wild, NSDI'22, and the
repository's README): names of jobs and machines have 24 hexadecimal digits, those of instances,
workers and instance ids 60; times are whole seconds written with ``.0``; 85 % of the instances
are in gangs; two fifths of the workers have sensors. Values are drawn, not copied.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pcsv

if TYPE_CHECKING:
    from pathlib import Path

_HEX = np.frombuffer(b"0123456789abcdef", np.uint8)
_STATUSES = ("Terminated", "Failed", "Running", "Waiting")
_ROLES = ("worker", "tensorflow", "ps", "PyTorchWorker", "chief", "evaluator", "xComputeWorker")
_TYPES = ("MISC", "T4", "P100", "V100", "V100M32")
#: Machines of the release: type, how many, cores, memory (GB), GPUs.
_MACHINES = (
    ("MISC", 280, 96, 512, 8),
    ("P100", 798, 64, 512, 2),
    ("T4", 497, 96, 512, 2),
    ("V100", 104, 96, 512, 8),
    ("V100M32", 135, 96, 384, 8),
    ("CPU", 83, 96, 512, 0),
)
_SPAN_S = 62 * 86_400
_TASKS_AT_ONCE = 50_000


@dataclass(frozen=True)
class Size:
    """How many rows to make at scale 1: those of the release."""

    tasks: int = 1_260_000
    instances: int = 7_500_000
    sensors: int = 3_000_000

    def scaled(self, scale: float) -> Size:
        """Return the same shape with fewer rows."""
        return Size(*(max(1000, int(n * scale)) for n in vars(self).values()))


def write_folder(folder: Path, size: Size, *, seed: int = 0) -> dict[str, int]:
    """Write the seven tables as ``<table>.csv`` without headers.

    Args:
        folder: an empty folder.
        size: how many rows.
        seed: of every draw.

    Returns:
        table -> rows written.
    """
    rng = np.random.default_rng(seed)
    gangs = _gangs(rng, size)
    machines = names(rng, sum(row[1] for row in _MACHINES), 24)
    tables = {name: _Table(folder / f"{name}.csv") for name in _TABLES}
    tables["pai_machine_spec"].add(
        machines, *(_repeated([row[i] for row in _MACHINES]) for i in (0, 2, 3, 4))
    )
    users = names(rng, 1_300, 12)
    chance = size.sensors / int(gangs.sum())
    for first in range(0, len(gangs), _TASKS_AT_ONCE):
        _write_chunk(rng, tables, gangs[first : first + _TASKS_AT_ONCE], machines, users, chance)
    for table in tables.values():
        table.close()
    return {name: table.rows for name, table in tables.items()}


_TABLES = (
    *("pai_job_table", "pai_task_table", "pai_instance_table", "pai_sensor_table"),
    *("pai_group_tag_table", "pai_machine_spec", "pai_machine_metric"),
)


class _Table:
    """One header-less CSV, written column block by column block."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._writer: pcsv.CSVWriter | None = None
        self.rows = 0

    def add(self, *columns: pa.Array) -> None:
        """Append rows."""
        batch = pa.record_batch(list(columns), names=[f"c{i}" for i in range(len(columns))])
        if self._writer is None:
            options = pcsv.WriteOptions(include_header=False, quoting_style="none")
            self._writer = pcsv.CSVWriter(self._path, batch.schema, write_options=options)
        self._writer.write(batch)
        self.rows += batch.num_rows

    def close(self) -> None:
        """Finish the file."""
        if self._writer is not None:
            self._writer.close()


def names(rng: np.random.Generator, count: int, digits: int) -> pa.Array:
    """Return random hexadecimal names, shape (count,)."""
    text = _HEX[rng.integers(0, 16, count * digits, dtype=np.uint8)]
    offsets = np.arange(0, count * digits + 1, digits, dtype=np.int32)
    return pa.Array.from_buffers(
        pa.string(), count, [None, pa.py_buffer(offsets), pa.py_buffer(text)]
    )


def _repeated(values: list[object]) -> pa.Array:
    """Return a column of the machine table: each type's value for each of its machines."""
    return pa.array([v for v, row in zip(values, _MACHINES, strict=True) for _ in range(row[1])])


def _gangs(rng: np.random.Generator, size: Size) -> np.ndarray:
    """Return instances a task, shape (tasks,): 15 % of the instances alone, a heavy tail."""
    single = min(int(0.15 * size.instances), size.tasks - 1)
    weight = rng.pareto(0.9, size.tasks - single).clip(0, 1200)
    spare = size.instances - single - 2 * len(weight)
    extra = np.floor(weight * spare / weight.sum()).astype(np.int64)
    extra[: spare - int(extra.sum())] += 1
    gangs = np.concatenate([np.ones(single, np.int64), 2 + extra])
    return rng.permutation(gangs)


def _write_chunk(
    rng: np.random.Generator,
    tables: dict[str, _Table],
    gangs: np.ndarray,
    machines: pa.Array,
    users: pa.Array,
    chance: float,
) -> None:
    """Write some tasks with their jobs, instances, groups and sensors."""
    count = len(gangs)
    job_of = np.minimum(np.cumsum(rng.random(count) < 0.84), count - 1)
    job_of -= job_of[0]
    jobs = int(job_of[-1]) + 1
    job_names, inst_ids = names(rng, jobs, 24), names(rng, jobs, 60)
    owners = users.take(pa.array((1_300 * rng.random(jobs) ** 3).astype(np.int64)))
    job_start = np.sort(rng.integers(600_000, _SPAN_S, jobs)).astype(float)
    start = job_start[job_of] + rng.integers(0, 5, count)
    wait = np.floor(rng.lognormal(2.2, 2.0, count))
    run = np.ceil(rng.lognormal(6.2, 1.8, count)).clip(1, 626_371)
    status = rng.choice(4, count, p=[0.66, 0.28, 0.04, 0.02])
    job_end = np.zeros(jobs)
    np.maximum.at(job_end, job_of, start + wait + run)
    tables["pai_job_table"].add(
        job_names, inst_ids, owners, _words(rng.choice(4, jobs, p=[0.7, 0.25, 0.04, 0.01])),
        seconds(job_start), seconds(job_end),
    )  # fmt: skip
    tagged = rng.random(jobs) < 0.9
    groups = jobs // 12 + 1
    spec = rng.choice(len(_TYPES) + 1, jobs, p=[0.02, 0.1, 0.02, 0.03, 0.03, 0.8])
    tables["pai_group_tag_table"].add(
        *(
            column.filter(pa.array(tagged))
            for column in (
                inst_ids, owners, pa.array([*_TYPES, None]).take(pa.array(spec)),
                names(rng, groups, 24).take(pa.array(rng.integers(0, groups, jobs))),
                pa.array(["bert", "ctr", "graphlearn", None]).take(
                    pa.array(rng.choice(4, jobs, p=[0.03, 0.03, 0.03, 0.91]))
                ),
            )
        )
    )  # fmt: skip
    # The second task of a job has another role than the first.
    place = _ordinal(job_of)
    role = (rng.integers(0, 3, jobs)[job_of] + place) % len(_ROLES)
    roles = [f"{name}{again or ''}" for again in range(9) for name in _ROLES]
    task_names = pa.array(roles).take(pa.array(role + place // len(_ROLES) * len(_ROLES)))
    task_jobs = job_names.take(pa.array(job_of))
    gpu = rng.choice([0.0, 25.0, 50.0, 100.0, 200.0], count, p=[0.18, 0.3, 0.1, 0.4, 0.02])
    kind = rng.choice(5, count, p=[0.67, 0.215, 0.07, 0.025, 0.02])
    tables["pai_task_table"].add(
        task_jobs, task_names, seconds(gangs.astype(float)), _words(status), seconds(start),
        seconds(np.where(status == 0, start + wait + run, 0.0)),
        decimals(rng.choice([100.0, 600.0, 800.0, 1200.0], count)),
        decimals(rng.choice([8.0, 29.296875, 59.0], count)),
        pc.if_else(pa.array(gpu > 0), decimals(gpu), pa.scalar(None, pa.string())),
        pa.array(_TYPES).take(pa.array(kind)),
    )  # fmt: skip
    task_of = np.repeat(np.arange(count), gangs)
    total = len(task_of)
    workers = names(rng, total, 60)
    inst_start = np.where(status[task_of] < 3, start[task_of] + wait[task_of], 0.0)
    inst_start += np.where(inst_start > 0, rng.integers(0, 9, total), 0)
    inst_end = np.where(status[task_of] < 2, inst_start + run[task_of], 0.0)
    where = machines.take(pa.array(rng.integers(0, len(machines), total)))
    to_task = pa.array(task_of)
    common = (task_jobs.take(to_task), task_names.take(to_task))
    of_job = inst_ids.take(pa.array(job_of[task_of]))
    tables["pai_instance_table"].add(
        *common, names(rng, total, 60), workers, of_job, _words(status[task_of]),
        seconds(inst_start), seconds(inst_end), where,
    )  # fmt: skip
    kept = pa.array(np.flatnonzero(rng.random(total) < chance))
    used = len(kept)
    gpu_name = pa.array([f"/dev/nvidia{i}" for i in range(8)])
    tables["pai_sensor_table"].add(
        *(c.take(kept) for c in (*common, workers, of_job, where)),
        gpu_name.take(pa.array(rng.integers(0, 8, used))),
        *(decimals(rng.lognormal(mean, 1.5, used)) for mean in (4, 1, 1, 1.5, 0, 0.3)),
        *(seconds(np.floor(rng.lognormal(mean, 2, used))) for mean in (18, 16, 9, 8)),
    )
    watched = kept.take(pa.array(np.flatnonzero(rng.random(used) < 0.66)))
    tables["pai_machine_metric"].add(
        workers.take(watched), where.take(watched),
        seconds(inst_start[watched.to_numpy()]), seconds(inst_end[watched.to_numpy()]),
        *(decimals(rng.lognormal(1, 1, len(watched))) for _ in range(8)),
    )  # fmt: skip


def _ordinal(groups: np.ndarray) -> np.ndarray:
    """Return each row's place among the rows of its (contiguous) group, from 0."""
    first = np.searchsorted(groups, groups)
    return np.arange(len(groups)) - first


def _words(codes: np.ndarray) -> pa.Array:
    return pa.array(_STATUSES).take(pa.array(codes))


def seconds(values: np.ndarray) -> pa.Array:
    """Return whole numbers as the release writes them: with one decimal."""
    whole = pa.array(values.astype(np.int64)).cast(pa.string())
    return pc.binary_join_element_wise(whole, "0", ".")


def decimals(values: np.ndarray) -> pa.Array:
    """Return numbers as text with all the digits that float64 needs."""
    return pa.array(values).cast(pa.string())
