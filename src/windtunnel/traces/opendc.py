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
from windtunnel.errors import TraceError
from windtunnel.traces.header import header_has
from windtunnel.traces.job_trace import counted
from windtunnel.traces.layout import Layout, Rows, number, text
from windtunnel.traces.native import read_native
from windtunnel.traces.parquet import MAGIC, read_parquet
from windtunnel.traces.readers import reader
from windtunnel.traces.source import STDIN, read_bytes, read_head, source_name
from windtunnel.traces.tabular import TextTable, parse_table, typed_rows

if TYPE_CHECKING:
    from windtunnel.traces.trace import Trace

#: Names that columns have had before -> those that they have now.
_OLDER = {
    "submissionTime": "submission_time",
    "maxCores": "cpu_count",
    "requiredMemory": "mem_capacity",
    "gpuMaxCores": "gpu_count",
}
_SINCE_1970 = "milliseconds since 1970"
_TASKS = Layout(
    "opendc",
    columns={
        "job_id": text("id"),
        "submit_time": number("submission_time", _SINCE_1970),
        "duration": number("duration", "milliseconds", per=1000),
        "num_gpus": number("gpu_count", "GPUs").optional,
        "num_cpus": number("cpu_count", "cores").optional,
        "mem_gib": number("mem_capacity", "MiB", per=1024).optional,
        "template": text("name").optional,
        "cpu_capacity": number("cpu_capacity", "MHz").optional,
        "gpu_capacity": number("gpu_capacity", "MHz").optional,
        "parents": text("parents").optional,
        "children": text("children").optional,
        "nature": text("nature").optional,
        "deadline": number("deadline", _SINCE_1970).optional,
        "gpu_mem_capacity": number("gpu_mem_capacity").optional,
        "deferrable": text("deferrable").optional,
        "host": text("host").optional,
    },
    ignored=("num_fragments",),
)
_FRAGMENTS = Layout(
    "fragments",
    columns={
        "id": text("id"),
        "ms": number("duration", "milliseconds"),
        "cpu": number("cpu_usage", "MHz"),
        "gpu": number("gpu_usage", "MHz").optional,
    },
)
_MS_PER_S = 1000.0
_FILES = ("tasks.parquet", "tasks.csv")


def _looks_opendc(head: bytes) -> bool:
    # What a Parquet file holds stands at its end; read_opendc looks there.
    if head.startswith(MAGIC):
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
    found = _opened(tasks_path)
    if found.has("submit_time") and not found.has("submission_time"):
        ours: Trace = read_native(tasks_path, bad_rows=bad_rows)
        return ours
    rows = _TASKS.rows(tasks_path, found=found)
    _place(rows)
    beside = fragments if fragments is not None else _beside(tasks_path)
    if beside is None:
        return rows.trace(bad_rows)
    rows.note(f"Fragments are from {Path(beside).name}.")
    _add_usage(rows, _usage(_FRAGMENTS.rows(beside, found=_opened(beside))))
    trace = rows.trace(bad_rows)
    return replace(trace, tasks=_tasks(trace.jobs))


def _opened(path: str | Path) -> TextTable:
    """Return a table, Parquet or CSV, under the names that its columns have now."""
    file = source_name(path)
    if str(path) != STDIN and read_head(path, len(MAGIC)) == MAGIC:
        found = typed_rows(_in_milliseconds(read_parquet(path, file)), file)
    elif str(path).endswith(".parquet"):
        read_bytes(path)  # says what is wrong with the file, if it cannot be read at all
        raise TraceError(file, "a whole Parquet file", hint="It is cut or of another format.")
    else:
        found = parse_table(read_bytes(path), file)
    names = found.table.column_names
    now = [_OLDER[n] if n in _OLDER and _OLDER[n] not in names else n for n in names]
    return replace(found, table=found.table.rename_columns(now))


def _in_milliseconds(table: pa.Table) -> pa.Table:
    """Return a table with milliseconds since 1970 for instants."""
    for place, field in enumerate(table.schema):
        if pa.types.is_timestamp(field.type):
            rounded = table.column(place).cast(pa.timestamp("ms", field.type.tz), safe=False)
            table = table.set_column(place, field.name, rounded.cast(pa.int64()))
    return table


def _tasks_file(path: str | Path) -> str | Path:
    """Return the file of tasks: the path, or the one in the folder."""
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


def _place(rows: Rows) -> None:
    """Put times, milliseconds since 1970, as seconds behind the first submission."""
    submitted = rows["submit_time"]
    zero = pc.min(submitted.filter(pc.is_finite(submitted))).as_py()
    rows.epoch, rows.zone = None if zero is None else zero / _MS_PER_S, "UTC"
    times = {"submit_time": submitted}
    if "deadline" in rows:
        times["deadline"] = pc.if_else(pc.less(rows["deadline"], 0), None, rows["deadline"])
    for name, ms in times.items():
        rows[name] = pc.divide(pc.subtract(ms, zero or 0.0), _MS_PER_S)
    rows["num_gpus"] = pc.fill_null(rows["num_gpus"], 0.0)


def _usage(fragments: Rows) -> pa.Table:
    """Return what the fragments of each task add up to.

    Returns:
        One row a task: ``id``; ``seconds``; ``cpu_usage`` and ``gpu_usage``, means over time, MHz;
        ``num_fragments``.
    """
    fragments.setdefault("gpu", pa.nulls(fragments.count, pa.float64()))
    table = pa.table(dict(fragments))
    for kind in ("cpu", "gpu"):
        table = table.append_column(f"{kind}_work", pc.multiply(table[kind], table["ms"]))
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


def _add_usage(rows: Rows, usage: pa.Table) -> None:
    """Add what each task used, and tell what is odd about it."""
    row = pc.index_in(rows["job_id"], value_set=usage["id"].combine_chunks())
    seconds = usage["seconds"].take(row)
    differing = pc.greater(pc.abs(pc.subtract(seconds, rows["duration"])), 0.0005)
    unknown = pc.invert(pc.is_in(usage["id"], value_set=_one(rows["job_id"])))
    strays = pc.sum(usage["num_fragments"].filter(unknown)).as_py()
    rows.note(
        *counted(
            (
                (row.null_count, "Tasks without a fragment, which OpenDC leaves out"),
                (
                    pc.sum(differing).as_py() or 0,
                    "Tasks whose fragments take another time than their duration, which is kept",
                ),
                (strays or 0, "Fragments of no task"),
            )
        )
    )
    rows |= {name: usage[name].take(row) for name in ("cpu_usage", "gpu_usage", "num_fragments")}


def _one(values: Any) -> pa.Array:
    return values.combine_chunks() if isinstance(values, pa.ChunkedArray) else values


def _tasks(jobs: pa.Table) -> pa.Table:
    """Return the tasks with what they used, in cores and GPUs."""

    def used(kind: str) -> pa.Array:
        names = (f"num_{kind}s", f"{kind}_capacity", f"{kind}_usage")
        if names[1] not in jobs.column_names:
            return pa.nulls(jobs.num_rows, pa.float64())
        count, capacity, usage = (
            np.asarray(jobs[name].cast(pa.float64()).to_numpy(), dtype=np.float64) for name in names
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
