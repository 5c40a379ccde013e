"""Write a jobs table as an OpenDC workload, a folder with two Parquet files; we read it back.

Format: see `windtunnel.traces.opendc`. A task has one fragment: what it used, all the while.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from windtunnel.errors import SchemaError, TraceError, Violation
from windtunnel.schema import source_of
from windtunnel.traces.job_trace import counted
from windtunnel.traces.outgoing import Outgoing, is_fraction
from windtunnel.traces.target import in_one_piece
from windtunnel.traces.writers import Written, writer

if TYPE_CHECKING:
    from pathlib import Path

    from windtunnel.traces.trace import Trace, TraceMetadata

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
    given = _outgoing(jobs)
    _refuse(given)
    given = _outgoing(given.jobs.filter(_complete(given.jobs))).in_order()
    tasks = _tasks(given, _epoch_ms(metadata))
    fragments = pa.table(
        {
            "id": tasks["id"],
            "duration": tasks["duration"],
            "cpu_usage": _filled(given, "cpu_usage", tasks["cpu_capacity"]),
            "gpu_usage": _filled(given, "gpu_usage", tasks["gpu_capacity"]),
        },
        schema=FRAGMENTS_SCHEMA,
    )
    with in_one_piece(folder, folder=True) as temporary:
        for name, table in zip(_FILES, (tasks, fragments), strict=True):
            with (temporary / name).open("wb") as raw:
                pq.write_table(table, raw, compression="zstd")
    return len(given)


def _outgoing(jobs: Any) -> Outgoing:
    return Outgoing(jobs, "OpenDC", _CARRIED)


def opendc_losses(jobs: pa.Table, *, metadata: TraceMetadata | None = None) -> tuple[str, ...]:
    """Return what of a jobs table an OpenDC workload cannot hold, one sentence each."""
    given = _outgoing(jobs)
    losses = given.lost_columns()
    if metadata is None or metadata.epoch is None:
        losses.append("The epoch is not known: time 0 is written as 1970-01-01.")
    if not _are_ids(given.cells("job_id")):
        losses.append(
            "The job ids are not numbers: tasks are numbered from 1 and have the ids as names; "
            "templates, parents and children are left out."
        )
    if "cpu_capacity" not in jobs.column_names or "gpu_capacity" not in jobs.column_names:
        losses.append(
            f"Clock speeds and usage are not known: {ASSUMED_MHZ:,.0f} MHz a core and a GPU were "
            "taken, all in use."
        )
    whole = _outgoing(jobs.filter(_complete(jobs)))
    times = [whole.floats(name) * _MS_PER_S for name in ("submit_time", "duration")]
    counts = [np.nan_to_num(whole.floats(name)) for name in ("num_gpus", "num_cpus")]
    mib = whole.floats("mem_gib") * _MIB_PER_GIB
    amounts = (whole.floats("num_gpus"), whole.floats("num_cpus"), mib)
    changes = (
        (len(given) - len(whole), "Jobs without a submission time or a duration, left out"),
        (
            np.any([np.rint(t) / _MS_PER_S != t / _MS_PER_S for t in times], axis=0),
            "Jobs with times finer than a millisecond, which are rounded",
        ),
        (
            np.any([np.ceil(count) != count for count in counts], axis=0),
            "Jobs with a fraction of a GPU or core, whose count is rounded up",
        ),
        (is_fraction(mib), "Jobs with memory finer than a MiB, which is rounded"),
        (
            np.any(np.isnan(amounts), axis=0),
            "Jobs of unknown GPUs, cores or memory, written as 0",
        ),
        (
            whole.floats("num_fragments") > 1,
            "Jobs with several fragments, written as one of the same mean",
        ),
    )
    return (*losses, *counted(changes))


def _complete(jobs: pa.Table) -> Any:
    return pc.and_(pc.is_valid(jobs["submit_time"]), pc.is_valid(jobs["duration"]))


def _refuse(given: Outgoing) -> None:
    """Refuse numbers that do not fit."""
    if not pc.any(_complete(given.jobs)).as_py():
        rule = "a submission time and a duration in at least one row, as OpenDC needs both"
        raise SchemaError(f"{source_of(given.jobs)} as OpenDC", [Violation("duration", rule)])
    limits = {"submit_time": _EXACT / 1e4, "duration": _EXACT / 1e4, "mem_gib": _EXACT / 1024}
    limits |= {"num_gpus": float(_MAX_ID), "num_cpus": float(_MAX_ID), "deadline": _EXACT / 1e4}
    given.refuse(
        (
            name,
            f"a number of at most {most:.6g}, as OpenDC's types hold",
            np.abs(np.nan_to_num(given.floats(name))) > most,
        )
        for name, most in limits.items()
    )


def _tasks(given: Outgoing, epoch_ms: int) -> pa.Table:
    ids = given.cells("job_id")
    keep = _are_ids(ids)
    gpus, cpus = given.floats("num_gpus"), given.floats("num_cpus")
    numbers = list(map(int, ids)) if keep else list(range(1, len(ids) + 1))
    columns = {
        "id": pa.array(numbers, pa.int32()),
        "name": given.jobs["template" if keep else "job_id"],
        "submission_time": _milliseconds(given, "submit_time", epoch_ms),
        "duration": _milliseconds(given, "duration", 0),
        "cpu_count": pa.array(np.ceil(np.nan_to_num(cpus)).astype(np.int32)),
        "cpu_capacity": _filled(given, "cpu_capacity", np.nan_to_num(cpus) * ASSUMED_MHZ),
        "mem_capacity": pa.array(
            np.rint(np.nan_to_num(given.floats("mem_gib")) * _MIB_PER_GIB).astype(np.int64)
        ),
        "gpu_count": pa.array(np.ceil(np.nan_to_num(gpus)).astype(np.int32)),
        "gpu_capacity": _filled(given, "gpu_capacity", np.nan_to_num(gpus) * ASSUMED_MHZ),
        "parents": _relations(given, "parents", keep=keep),
        "children": _relations(given, "children", keep=keep),
        "nature": pa.array(given.cells("nature"), pa.string()),
        "deadline": _milliseconds(given, "deadline", epoch_ms),
    }
    return pa.table(columns, schema=TASKS_SCHEMA)


def _filled(given: Outgoing, name: str, instead: Any) -> pa.Array:
    """Return a column of numbers, its unknown values taken from ``instead``."""
    values = given.floats(name)
    return pa.array(np.where(np.isnan(values), np.asarray(instead, dtype=np.float64), values))


def _milliseconds(given: Outgoing, name: str, zero: int) -> pa.Array:
    """Return seconds since the epoch as whole milliseconds behind ``zero``, null kept."""
    seconds = given.floats(name)
    ms = np.rint(np.nan_to_num(seconds) * _MS_PER_S).astype(np.int64) + zero
    return pa.array(ms, mask=np.isnan(seconds))


def _relations(given: Outgoing, name: str, *, keep: bool) -> pa.Array:
    """Return ids joined by ``|`` as lists; null where ids were not kept or are no numbers."""
    split = [None if c is None or not keep else str(c).split("|") for c in given.cells(name)]
    lists = [None if ids is None or not _are_ids(ids) else list(map(int, ids)) for ids in split]
    return pa.array(lists, pa.list_(pa.int32()))


def _are_ids(cells: list[str]) -> bool:
    """Return whether all cells are whole numbers that fit OpenDC's ids."""
    return all(_NUMBER.fullmatch(cell) and int(cell) <= _MAX_ID for cell in cells)


def _epoch_ms(metadata: TraceMetadata | None) -> int:
    """Return the epoch in whole milliseconds since 1970."""
    if metadata is None:
        return 0
    try:
        return round((metadata.zero or 0.0) * _MS_PER_S)
    except (ValueError, OverflowError) as error:
        raise TraceError(
            metadata.source, "an epoch as ISO 8601 text", value=metadata.epoch
        ) from error


@writer("opendc", files=_FILES)
def _opendc(trace: Trace, path: Path) -> Written:
    rows = write_opendc(trace.jobs, path, metadata=trace.metadata)
    return Written(rows, opendc_losses(trace.jobs, metadata=trace.metadata))
