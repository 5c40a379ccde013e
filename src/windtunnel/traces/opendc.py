"""OpenDC workloads: ``tasks.parquet``, and ``fragments.parquet`` beside it.

A task is a job; its fragments say how much of its CPUs and GPUs it used, one after the other.
Times are milliseconds (submission: since 1970, UTC), capacities MHz of all cores together, memory
MiB. The documentation (opendc.org/docs/documentation/Input/Workload) says MB for memory, while the
traces that are in use count 1024 MiB to the GiB. Columns and older names of them: the reader of
OpenDC itself (atlarge-research/opendc, opendc-trace-api, formats/workload).
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from windtunnel.companions import TASK_COLUMNS, companion
from windtunnel.errors import TraceError, quote
from windtunnel.traces.header import header_has
from windtunnel.traces.job_trace import counted, job_trace
from windtunnel.traces.native import read_native
from windtunnel.traces.opendc_table import MillisTable, open_table
from windtunnel.traces.readers import reader
from windtunnel.traces.source import STDIN

if TYPE_CHECKING:
    from windtunnel.traces.trace import Trace

#: Our name of a column -> the names under which OpenDC has had it.
_TASKS = {
    "id": ("id",),
    "name": ("name",),
    "submission_time": ("submission_time", "submissionTime"),
    "duration": ("duration",),
    "cpu_count": ("cpu_count", "maxCores"),
    "cpu_capacity": ("cpu_capacity",),
    "mem_capacity": ("mem_capacity", "requiredMemory"),
    "gpu_count": ("gpu_count", "gpuMaxCores"),
    "gpu_capacity": ("gpu_capacity",),
    "gpu_mem_capacity": ("gpu_mem_capacity",),
    "parents": ("parents",),
    "children": ("children",),
    "nature": ("nature",),
    "deferrable": ("deferrable",),
    "deadline": ("deadline",),
    "num_fragments": ("num_fragments",),
    "host": ("host",),
}
_FRAGMENTS: dict[str, tuple[str, ...]] = {
    name: (name,) for name in ("id", "duration", "cpu_usage", "gpu_usage")
}
_MIB_PER_GIB = 1024.0
_MS_PER_S = 1000.0
_PARQUET_MAGIC = b"PAR1"
_FILES = ("tasks.parquet", "tasks.csv")


def _looks_opendc(head: bytes) -> bool:
    # What a Parquet file holds stands at its end; read_opendc looks there.
    if head.startswith(_PARQUET_MAGIC):
        return True
    return any(header_has(head, "id", name, "duration", without=("job_id",)) for name in (
        "submission_time", "submissionTime"
    ))  # fmt: skip


def _is_workload(names: frozenset[str]) -> bool:
    return any(name in names for name in _FILES)


@reader(
    "opendc",
    extensions=("tasks.parquet", ".csv"),
    sniff=_looks_opendc,
    sniff_folder=_is_workload,
)
def read_opendc(
    path: str | Path, *, fragments: str | Path | None = None, bad_rows: str = "raise"
) -> Trace:
    """Read the tasks of an OpenDC workload, and how much they used.

    ``job_id`` is the task's id, ``template`` its name; a task without ``gpu_count`` has 0 GPUs, as
    in OpenDC. Kept as further columns: ``cpu_capacity`` and ``gpu_capacity`` (MHz),
    ``gpu_mem_capacity``, ``parents`` and ``children`` (ids joined by ``|``), ``nature``,
    ``deferrable``, ``deadline`` (s since the epoch), ``host``; of the fragments ``cpu_usage`` and
    ``gpu_usage`` (MHz, mean over their time) and ``num_fragments``. With fragments, ``Trace.tasks``
    has the cores and GPUs in use. A workload says when tasks are submitted, not when they start.

    A Parquet file called ``...tasks.parquet`` that holds a jobs table of our own is read as that.

    Args:
        path: the tasks, Parquet or CSV, or the folder with ``tasks.parquet``; ``-`` = CSV on
            standard input.
        fragments: the fragments; None = the file beside the tasks whose name has ``fragments``
            in place of ``tasks``, where it is there.
        bad_rows: ``raise``, or ``drop``: leave out, counted, rows that break a rule.

    Raises:
        TraceError: a file is not such a table; names row and column.
        SchemaError: rules of the schema are broken.
    """
    tasks_path = _tasks_file(path)
    tasks = open_table(tasks_path, _TASKS)
    if "submit_time" in tasks.names and not tasks.has("submission_time"):
        ours: Trace = read_native(tasks_path, bad_rows=bad_rows)
        return ours
    columns, epoch = _columns(tasks)
    found = fragments if fragments is not None else _beside(tasks_path)
    usage = None if found is None else _usage(open_table(found, _FRAGMENTS))
    notes = [] if found is None else [f"Fragments are from {Path(found).name}."]
    if usage is not None:
        more, told = _joined(columns, usage)
        columns |= more
        notes += told
    if tasks.unread:
        notes.append(f"Columns that were not read: {', '.join(map(quote, tasks.unread))}.")
    trace = job_trace(
        tasks_path, columns, tasks.lines, bad_rows=bad_rows, notes=notes, epoch=epoch, zone="UTC"
    )
    return trace if usage is None else replace(trace, tasks=_tasks(trace.jobs))


def _tasks_file(path: str | Path) -> str | Path:
    """Return the file of tasks: the path, or the one in the folder.

    Raises:
        TraceError: it is a folder without one.
    """
    if str(path) == STDIN or not Path(path).is_dir():
        return path
    found = next((Path(path) / name for name in _FILES if (Path(path) / name).is_file()), None)
    if found is None:
        raise TraceError(str(path), f"a folder with {' or '.join(_FILES)} in it")
    return found


def _beside(path: str | Path) -> Path | None:
    """Return the file of fragments that belongs to a file of tasks, where it is there."""
    name = Path(path).name
    if str(path) == STDIN or "tasks" not in name:
        return None
    found = Path(path).with_name(name.replace("tasks", "fragments"))
    return found if found.is_file() else None


def _columns(tasks: MillisTable) -> tuple[dict[str, Any], float | None]:
    """Return the columns of jobs, and the epoch in UTC seconds.

    Raises:
        TraceError: a column is missing, or a cell is not what it should be.
    """
    tasks.require("id", "submission_time", "duration")
    submitted = tasks.numbers("submission_time", what="milliseconds since 1970")
    first = pc.min(submitted.filter(pc.is_finite(submitted))).as_py()
    deadline = tasks.numbers("deadline", what="milliseconds since 1970")
    deadline = pc.if_else(pc.less(deadline, 0), pa.scalar(None, pa.float64()), deadline)
    gpus = tasks.numbers("gpu_count", what="a number of GPUs")
    zero = first or 0.0
    columns = {
        "job_id": tasks.words("id"),
        "submit_time": pc.divide(pc.subtract(submitted, zero), _MS_PER_S),
        "duration": pc.divide(tasks.numbers("duration", what="milliseconds"), _MS_PER_S),
        "num_gpus": pc.fill_null(gpus, 0.0),
        "num_cpus": tasks.numbers("cpu_count", what="a number of cores"),
        "mem_gib": pc.divide(tasks.numbers("mem_capacity", what="MiB"), _MIB_PER_GIB),
        "template": tasks.words("name"),
        "cpu_capacity": tasks.numbers("cpu_capacity", what="MHz"),
        "gpu_capacity": tasks.numbers("gpu_capacity", what="MHz"),
        "parents": tasks.words("parents"),
        "children": tasks.words("children"),
        "nature": tasks.words("nature"),
        "deadline": pc.divide(pc.subtract(deadline, zero), _MS_PER_S),
    }
    if tasks.has("gpu_mem_capacity"):
        columns["gpu_mem_capacity"] = tasks.numbers("gpu_mem_capacity", what="a number")
    for name in ("deferrable", "host"):
        if tasks.has(name):
            columns[name] = tasks.words(name)
    return columns, None if first is None else first / _MS_PER_S


def _usage(fragments: MillisTable) -> pa.Table:
    """Return what the fragments of each task add up to.

    Returns:
        One row a task: ``id``; ``seconds``; ``cpu_usage`` and ``gpu_usage``, means over time, MHz;
        ``num_fragments``.

    Raises:
        TraceError: a column is missing, or a cell is not what it should be.
    """
    fragments.require("id", "duration", "cpu_usage")
    length = fragments.numbers("duration", what="milliseconds")
    cpu, gpu = (fragments.numbers(f"{kind}_usage", what="MHz") for kind in ("cpu", "gpu"))
    table = pa.table(
        {
            "id": fragments.words("id"),
            "ms": length,
            "cpu": cpu,
            "gpu": gpu,
            "cpu_work": pc.multiply(cpu, length),
            "gpu_work": pc.multiply(gpu, length),
        }
    )
    asked = [("ms", "sum"), ("ms", "count"), ("cpu_work", "sum"), ("gpu_work", "sum")]
    asked += [(kind, figure) for kind in ("cpu", "gpu") for figure in ("min", "max")]
    sums = table.group_by("id", use_threads=False).aggregate(asked)
    return pa.table(
        {
            "id": sums["id"],
            "seconds": pc.divide(sums["ms_sum"], _MS_PER_S),
            "cpu_usage": _mean(sums, "cpu"),
            "gpu_usage": _mean(sums, "gpu"),
            "num_fragments": sums["ms_count"],
        }
    )


def _mean(sums: pa.Table, kind: str) -> Any:
    """Return the mean over time; of fragments that are alike exactly their value."""
    least, most = sums[f"{kind}_min"], sums[f"{kind}_max"]
    total = pc.if_else(pc.greater(sums["ms_sum"], 0), sums["ms_sum"], None)
    return pc.if_else(pc.equal(least, most), least, pc.divide(sums[f"{kind}_work_sum"], total))


def _joined(columns: dict[str, Any], usage: pa.Table) -> tuple[dict[str, Any], list[str]]:
    """Return the usage of each task in the tasks' order, and what to tell about it."""
    row = pc.index_in(columns["job_id"], value_set=usage["id"].combine_chunks())
    seconds = usage["seconds"].take(row)
    differing = pc.greater(pc.abs(pc.subtract(seconds, columns["duration"])), 0.0005)
    unknown = pc.invert(pc.is_in(usage["id"], value_set=_one(columns["job_id"])))
    strays = pc.sum(usage["num_fragments"].filter(unknown)).as_py()
    notes = counted(
        (
            (row.null_count, "Tasks without a fragment, which OpenDC leaves out"),
            (
                pc.sum(differing).as_py() or 0,
                "Tasks whose fragments take another time than their duration (duration is kept)",
            ),
            (strays or 0, "Fragments of no task"),
        )
    )
    names = ("cpu_usage", "gpu_usage", "num_fragments")
    return {name: usage[name].take(row) for name in names}, notes


def _one(values: Any) -> pa.Array:
    return values.combine_chunks() if isinstance(values, pa.ChunkedArray) else values


def _tasks(jobs: pa.Table) -> pa.Table:
    """Return the tasks with what they used, in cores and GPUs."""

    def used(kind: str) -> pa.Array:
        count, capacity, usage = (
            np.asarray(jobs[name].cast(pa.float64()).to_numpy(), dtype=np.float64)
            for name in (f"num_{kind}s", f"{kind}_capacity", f"{kind}_usage")
        )
        with np.errstate(invalid="ignore"):  # infinite of infinite: unknown
            share = usage / np.where(capacity > 0, capacity, np.nan)
        return pa.array(share * count, pa.float64(), from_pandas=True)

    columns = {
        "task_id": jobs["job_id"],
        "job_id": jobs["job_id"],
        "num_gpus": jobs["num_gpus"],
        "num_cpus": jobs["num_cpus"],
        "mem_gib": jobs["mem_gib"],
        "gpus_used": used("gpu"),
        "cpus_used": used("cpu"),
    }
    if "host" in jobs.column_names:
        columns["node"] = jobs["host"]
    return companion(TASK_COLUMNS, columns)
