"""Write a jobs table as an OpenDC workload, a folder with two Parquet files; we read it back.

Format: see `windtunnel.traces.opendc`. A task has one fragment: what it used, all the while.
"""

from __future__ import annotations

import os
import re
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from windtunnel import storage
from windtunnel.errors import SchemaError, TraceError, Violation, quote
from windtunnel.schema import as_jobs, source_of
from windtunnel.traces.order import by_submission

if TYPE_CHECKING:
    from windtunnel.traces.trace import TraceMetadata

TASKS_SCHEMA: pa.Schema = pa.schema(
    [
        pa.field("id", pa.int32(), nullable=False),
        pa.field("name", pa.string()),
        pa.field("submission_time", pa.int64(), nullable=False),
        pa.field("duration", pa.int64(), nullable=False),
        pa.field("cpu_count", pa.int32(), nullable=False),
        pa.field("cpu_capacity", pa.float64(), nullable=False),
        pa.field("mem_capacity", pa.int64(), nullable=False),
        pa.field("gpu_count", pa.int32()),
        pa.field("gpu_capacity", pa.float64()),
        pa.field("parents", pa.list_(pa.int32())),
        pa.field("children", pa.list_(pa.int32())),
        pa.field("nature", pa.string()),
        pa.field("deadline", pa.int64()),
    ]
)
FRAGMENTS_SCHEMA: pa.Schema = pa.schema(
    [
        pa.field("id", pa.int32(), nullable=False),
        pa.field("duration", pa.int64(), nullable=False),
        pa.field("cpu_usage", pa.float64(), nullable=False),
        pa.field("gpu_usage", pa.float64()),
    ]
)
#: MHz of a core and of a GPU where the jobs do not say.
ASSUMED_MHZ = 1000.0
_FILES = ("tasks.parquet", "fragments.parquet")
_MAX_ID = 2**31 - 1
_EXACT = 2**53
_NUMBER = re.compile(r"0|[1-9][0-9]{0,9}", re.ASCII)
_MIB_PER_GIB = 1024.0
_MS_PER_S = 1000.0
_CARRIED = {
    *("job_id", "submit_time", "duration", "num_gpus", "num_cpus", "mem_gib", "template"),
    *("cpu_capacity", "gpu_capacity", "cpu_usage", "gpu_usage", "num_fragments"),
    *("parents", "children", "nature", "deadline"),
}


def write_opendc(jobs: Any, folder: str | Path, *, metadata: TraceMetadata | None = None) -> int:
    """Write a jobs table as ``tasks.parquet`` and ``fragments.parquet`` in a folder.

    Rows are written in order of submission. Ids that are whole numbers below 2**31 are kept,
    others are numbered from 1 and become the tasks' names. `opendc_losses` says what is lost.

    Args:
        jobs: anything `windtunnel.schema.as_jobs` takes. ``cpu_capacity``, ``gpu_capacity``,
            ``cpu_usage`` and ``gpu_usage`` (MHz) are taken over where they are columns; else a
            core and a GPU have `ASSUMED_MHZ`, all of them in use.
        folder: is made where it is not there; both files appear, or none.
        metadata: gives the epoch; without it time 0 is written as 1970.

    Returns:
        How many jobs were written: those with a submission time and a duration.

    Raises:
        SchemaError: the table breaks the schema, or has a number that OpenDC's types cannot hold.
        TraceError: the folder cannot be written, or the epoch is no time.
    """
    table = as_jobs(jobs)
    _refuse(table)
    table, _, _ = by_submission(table.filter(_complete(table)), range(table.num_rows))
    tasks = _tasks(table, _epoch_ms(metadata))
    fragments = pa.table(
        {
            "id": tasks["id"],
            "duration": tasks["duration"],
            "cpu_usage": _filled(table, "cpu_usage", tasks["cpu_capacity"]),
            "gpu_usage": _filled(table, "gpu_usage", tasks["gpu_capacity"]),
        },
        schema=FRAGMENTS_SCHEMA,
    )
    _in_one_piece(Path(folder), dict(zip(_FILES, (tasks, fragments), strict=True)))
    return int(table.num_rows)


def opendc_losses(jobs: pa.Table, *, metadata: TraceMetadata | None = None) -> tuple[str, ...]:
    """Return what of a jobs table an OpenDC workload cannot hold, one sentence each."""
    losses = []
    left_out = [
        field.name
        for field in jobs.schema
        if field.name not in _CARRIED and jobs[field.name].null_count < jobs.num_rows
    ]
    if left_out:
        losses.append(f"Columns that OpenDC does not have: {', '.join(map(quote, left_out))}.")
    if metadata is None or metadata.epoch is None:
        losses.append("The epoch is not known: time 0 is written as 1970-01-01.")
    if not _are_ids(jobs["job_id"].to_pylist()):
        losses.append(
            "The job ids are not numbers: tasks are numbered from 1 and have the ids as names; "
            "templates, parents and children are left out."
        )
    if "cpu_capacity" not in jobs.column_names or "gpu_capacity" not in jobs.column_names:
        losses.append(
            f"Clock speeds and usage are not known: {ASSUMED_MHZ:,.0f} MHz a core and a GPU were "
            "taken, all in use."
        )
    counted = _counted(jobs)
    return (*losses, *(f"{words}: {count:,}." for words, count in counted.items() if count))


def _counted(jobs: pa.Table) -> dict[str, int]:
    """Return what is rounded, unknown or merged, and in how many jobs."""
    whole = jobs.filter(_complete(jobs))
    times = [_floats(whole, name) for name in ("submit_time", "duration")]
    rounded = np.any([np.rint(t * _MS_PER_S) / _MS_PER_S != t for t in times], axis=0)
    gpus, cpus = _floats(whole, "num_gpus"), _floats(whole, "num_cpus")
    mib = _floats(whole, "mem_gib") * _MIB_PER_GIB
    merged = 0
    if "num_fragments" in whole.column_names:
        merged = int(np.nansum(_floats(whole, "num_fragments") > 1))
    unknown = np.isnan(gpus) | np.isnan(cpus) | np.isnan(mib)
    parts = [np.ceil(counts) != counts for counts in (np.nan_to_num(gpus), np.nan_to_num(cpus))]
    fine = np.nan_to_num(mib)
    return {
        "Jobs without a submission time or a duration, left out": jobs.num_rows - whole.num_rows,
        "Jobs with times finer than a millisecond, which are rounded": int(rounded.sum()),
        "Jobs with a fraction of a GPU or core, whose count is rounded up": int(
            np.any(parts, axis=0).sum()
        ),
        "Jobs with memory finer than a MiB, which is rounded": int((np.rint(fine) != fine).sum()),
        "Jobs of unknown GPUs, cores or memory, written as 0": int(unknown.sum()),
        "Jobs with several fragments, written as one of the same mean": merged,
    }


def _complete(jobs: pa.Table) -> Any:
    return pc.and_(pc.is_valid(jobs["submit_time"]), pc.is_valid(jobs["duration"]))


def _refuse(jobs: pa.Table) -> None:
    """Refuse numbers that do not fit.

    Raises:
        SchemaError: lists everything at once; no job has both a submission time and a duration.
    """
    if not pc.any(_complete(jobs)).as_py():
        rule = "a submission time and a duration in at least one row, as OpenDC needs both"
        raise SchemaError(f"{source_of(jobs)} for OpenDC", [Violation("duration", rule)])
    limits = {"submit_time": _EXACT / 1e4, "duration": _EXACT / 1e4, "mem_gib": _EXACT / 1024}
    limits |= {"num_gpus": float(_MAX_ID), "num_cpus": float(_MAX_ID), "deadline": _EXACT / 1e4}
    found = []
    for name, limit in limits.items():
        values = _floats(jobs, name)
        bad = np.abs(np.nan_to_num(values)) > limit
        if bad.any():
            row = int(bad.argmax())
            rule = f"a number of at most {limit:.6g}, as OpenDC's types hold"
            value = float(values[row])
            found.append(Violation(name, rule, int(bad.sum()), row + 1, value, unit="row"))
    if found:
        raise SchemaError(f"{source_of(jobs)} for OpenDC", found)


def _tasks(jobs: pa.Table, epoch_ms: int) -> pa.Table:
    ids = jobs["job_id"].to_pylist()
    keep = _are_ids(ids)
    gpus, cpus = _floats(jobs, "num_gpus"), _floats(jobs, "num_cpus")
    numbers = list(map(int, ids)) if keep else list(range(1, len(ids) + 1))
    columns = {
        "id": pa.array(numbers, pa.int32()),
        "name": jobs["template"] if keep else jobs["job_id"],
        "submission_time": _milliseconds(jobs, "submit_time", epoch_ms),
        "duration": _milliseconds(jobs, "duration", 0),
        "cpu_count": pa.array(np.ceil(np.nan_to_num(cpus)).astype(np.int32)),
        "cpu_capacity": _filled(jobs, "cpu_capacity", np.nan_to_num(cpus) * ASSUMED_MHZ),
        "mem_capacity": pa.array(
            np.rint(np.nan_to_num(_floats(jobs, "mem_gib")) * _MIB_PER_GIB).astype(np.int64)
        ),
        "gpu_count": pa.array(np.ceil(np.nan_to_num(gpus)).astype(np.int32)),
        "gpu_capacity": _filled(jobs, "gpu_capacity", np.nan_to_num(gpus) * ASSUMED_MHZ),
        "parents": _relations(jobs, "parents", keep=keep),
        "children": _relations(jobs, "children", keep=keep),
        "nature": _column(jobs, "nature", pa.string()),
        "deadline": _milliseconds(jobs, "deadline", epoch_ms),
    }
    return pa.table(columns, schema=TASKS_SCHEMA)


def _floats(jobs: pa.Table, name: str) -> np.ndarray:
    """Return a column as float64, null as NaN; all NaN where it is not there."""
    values = _column(jobs, name, pa.float64())
    return np.asarray(values.to_numpy(zero_copy_only=False), dtype=np.float64)


def _column(jobs: pa.Table, name: str, kind: pa.DataType) -> pa.Array:
    if name not in jobs.column_names:
        return pa.nulls(jobs.num_rows, kind)
    try:
        values = jobs[name].cast(kind)
    except pa.ArrowException as error:
        rule = f"values of type {kind} ({error})"
        raise SchemaError(f"{source_of(jobs)} for OpenDC", [Violation(name, rule)]) from error
    return values.combine_chunks()


def _filled(jobs: pa.Table, name: str, instead: Any) -> pa.Array:
    """Return a column of numbers, its unknown values taken from ``instead``."""
    given = _floats(jobs, name)
    return pa.array(np.where(np.isnan(given), np.asarray(instead, dtype=np.float64), given))


def _milliseconds(jobs: pa.Table, name: str, zero: int) -> pa.Array:
    """Return seconds since the epoch as whole milliseconds behind ``zero``, null kept."""
    seconds = _floats(jobs, name)
    unknown = np.isnan(seconds)
    ms = np.rint(np.nan_to_num(seconds) * _MS_PER_S).astype(np.int64) + zero
    return pa.array(ms, mask=unknown)


def _relations(jobs: pa.Table, name: str, *, keep: bool) -> pa.Array:
    """Return ids joined by ``|`` as lists; null where ids were not kept or are no numbers."""
    cells = _column(jobs, name, pa.string()).to_pylist()
    split = [None if cell is None or not keep else cell.split("|") for cell in cells]
    lists = [None if ids is None or not _are_ids(ids) else list(map(int, ids)) for ids in split]
    return pa.array(lists, pa.list_(pa.int32()))


def _are_ids(cells: list[str]) -> bool:
    """Return whether all cells are whole numbers that fit OpenDC's ids."""
    return all(_NUMBER.fullmatch(cell) and int(cell) <= _MAX_ID for cell in cells)


def _epoch_ms(metadata: TraceMetadata | None) -> int:
    """Return the epoch in whole milliseconds since 1970.

    Raises:
        TraceError: it is no time.
    """
    if metadata is None or metadata.epoch is None:
        return 0
    try:
        return round(datetime.fromisoformat(metadata.epoch).timestamp() * _MS_PER_S)
    except (ValueError, OverflowError) as error:
        raise TraceError(
            metadata.source, "an epoch as ISO 8601 text", value=metadata.epoch
        ) from error


def _in_one_piece(folder: Path, tables: dict[str, pa.Table]) -> None:
    """Write all tables, then put them in place.

    Raises:
        TraceError: the folder cannot be written.
    """
    try:
        with storage.replacing_folder(folder) as temporary:
            for name, table in tables.items():
                with (temporary / name).open("wb") as raw:
                    pq.write_table(table, raw, compression="zstd")
    except OSError as error:
        reason = os.strerror(error.errno) if error.errno else str(error)
        raise TraceError(
            str(folder), "a folder that can be written to", hint=f"The system says: {reason}."
        ) from error
