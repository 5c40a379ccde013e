"""Write a jobs table as a Standard Workload Format 2.2 log; `windtunnel.traces.swf` reads it.

One GPU is written as one processor. SWF knows whole numbers only: times are rounded to whole
seconds, names are numbered, and jobs with a fraction of a GPU are refused.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import numpy as np

from windtunnel.traces.job_trace import counted
from windtunnel.traces.outgoing import Outgoing, is_fraction
from windtunnel.traces.source import escaped
from windtunnel.traces.swf import SWF
from windtunnel.traces.target import write_lines
from windtunnel.traces.writers import writer

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    import pyarrow as pa

    from windtunnel.cluster.spec import ClusterSpec
    from windtunnel.traces.trace import Trace, TraceMetadata

_KIB_PER_GIB = 1024**2
_UNKNOWN = -1
#: What SWF cannot tell apart from "failed" is written as that.
_STATUS = {
    "completed": 1,
    "failed": 0,
    "timeout": 0,
    "node_fail": 0,
    "out_of_memory": 0,
    "preempted": 0,
    "cancelled": 5,
}
_MERGED = ("timeout", "node_fail", "out_of_memory", "preempted")
_UNSTARTED = ("cancelled", "pending")
_NUMBER = re.compile(r"0|[1-9][0-9]{0,17}", re.ASCII)
#: Columns whose cells are names, with their plural; SWF numbers them.
_NAMES = {"user": "users", "group": "groups", "template": "executables", "vc": "queues"}
_NAMES["partition"] = "partitions"
_EXACT = 2**53


def write_swf(
    jobs: Any,
    path: str | Path,
    *,
    metadata: TraceMetadata | None = None,
    cluster: ClusterSpec | None = None,
) -> None:
    """Write a jobs table as an SWF log, gzipped where the name ends in ``.gz``.

    Rows are written in order of submission. Ids that are whole numbers are kept, others are
    numbered from 1; so are users, queues, executables, groups and partitions, column by column.
    The header says what was numbered or rounded (`swf_losses`).

    Args:
        metadata: gives ``UnixStartTime``, ``TimeZoneString`` and ``Acknowledge``.
        cluster: gives ``MaxProcs`` and ``MaxNodes``; else those of a log that was read as SWF.

    Raises:
        SchemaError: the table breaks the schema, has a fraction of a GPU or a time that SWF
            cannot hold.
        TraceError: the file cannot be written.
    """
    given = _outgoing(jobs)
    given.check_plain()
    _refuse(given)
    given = given.in_order()
    header = [
        *_header(given, metadata, cluster),
        *(f"Note: {loss}" for loss in swf_losses(given.jobs)),
    ]
    fields = [np.char.mod("%d", column).tolist() for column in _fields(given)]
    write_lines(
        path,
        [*(f"; {text}" for text in header), *(" ".join(row) for row in zip(*fields, strict=True))],
    )


def _outgoing(jobs: Any) -> Outgoing:
    return Outgoing(jobs, "SWF", {*SWF.columns, "end_time"})


def swf_losses(jobs: pa.Table) -> tuple[str, ...]:
    """Return what of a jobs table SWF cannot hold, one sentence each."""
    given = _outgoing(jobs)
    losses = given.lost_columns()
    if not _are_numbers(given.cells("job_id")):
        losses.append("The job ids are not numbers: jobs are numbered from 1.")
    for name, plural in _NAMES.items():
        if not _are_numbers(given.cells(name)):
            losses.append(f"The {plural} are not numbers: they are numbered as they appear.")
    start, run, end = map(given.floats, ("start_time", "duration", "end_time"))
    times = (given.floats("submit_time"), start, run, given.floats("estimate"))
    cancelled, status = given.status == "cancelled", given.status
    memory, each = given.floats("mem_gib"), _kib_each(given)
    changes = (
        (
            np.any([is_fraction(time) for time in times], axis=0),
            "had times with fractions of a second, which are rounded",
        ),
        (
            np.isin(status, _MERGED),
            "ended by timeout, node failure, lack of memory or preemption: failed",
        ),
        (
            np.abs(start + run - end) >= 1,
            "ended at another time than start + run time (which SWF holds alone)",
        ),
        (
            ~np.isin(status, ("", *_STATUS)),
            "still run or wait, or have an unknown status: written as -1",
        ),
        (
            np.isnan(end) & ~np.isnan(start + run),
            "have no end (SWF tells it by start + run time)",
        ),
        (
            np.isnan(run) & ~np.isnan(end - start),
            "have no run time, which is written as end - start",
        ),
        (
            cancelled & np.isnan(run) & np.isnan(end) & ~np.isnan(start),
            "were cancelled after a start without a run time, which read as never started",
        ),
        (
            ~np.isnan(memory) & np.isnan(each),
            "have memory and no GPUs, which SWF cannot tell as memory a processor",
        ),
        (
            is_fraction(each),
            "have memory with fractions of a KiB a processor, which are rounded",
        ),
    )
    return (*losses, *counted((mask, f"Jobs that {what}") for mask, what in changes))


def _refuse(given: Outgoing) -> None:
    """Refuse what cannot be written as whole numbers from 0.

    Raises:
        SchemaError: lists everything at once.
    """
    gpus, submit = given.floats("num_gpus"), given.floats("submit_time")
    whole = ("submit_time", "start_time", "duration", "estimate", "num_gpus")
    # SWF tells memory in KiB a processor: what fits as GiB may not fit so.
    much = _kib_each(given) >= _EXACT
    given.refuse(
        [
            ("num_gpus", "a whole number: SWF counts processors", is_fraction(gpus)),
            ("submit_time", "a time from 0 on, as SWF needs", submit < 0),
            *((n, "a number below 2**53", np.abs(given.floats(n)) >= _EXACT) for n in whole),
            ("mem_gib", "less than 2**53 KiB a processor", much),
        ]
    )


def _header(
    given: Outgoing, metadata: TraceMetadata | None, cluster: ClusterSpec | None
) -> list[str]:
    """Return the header's lines, without the comment mark."""
    known = {"Version": "2.2", "MaxJobs": str(len(given)), "MaxRecords": str(len(given))}
    if metadata is not None:
        kept = metadata.settings
        known |= {key: str(kept[key]) for key in ("MaxNodes", "MaxProcs") if key in kept}
        if metadata.licence:
            known["Acknowledge"] = metadata.licence
        if metadata.zero is not None:
            known["UnixStartTime"] = str(round(metadata.zero))
        if metadata.zone is not None:
            known["TimeZoneString"] = metadata.zone
    if cluster is not None:
        known["MaxProcs"] = str(cluster.num_gpus)
        known.pop("MaxNodes", None)
        if not cluster.is_pool:
            known["MaxNodes"] = str(cluster.num_nodes)
    queues = given.cells("vc")
    lines = [f"{key}: {escaped(value)}" for key, value in known.items()]
    if not _are_numbers(queues):
        names = {name: None for name in queues if name is not None}
        lines += [f"Queue: {number} {escaped(name)}" for number, name in enumerate(names, 1)]
    return lines


def _fields(given: Outgoing) -> list[np.ndarray]:
    """Return the eighteen fields, int64, shape (rows,) each."""
    unknown = np.full(len(given), _UNKNOWN, np.int64)
    submit, start, last, gpus, estimate = (
        _integers(given.floats(name))
        for name in ("submit_time", "start_time", "end_time", "num_gpus", "estimate")
    )
    # Of a job cancelled in the queue the wait says when it left, as long as no run time is known.
    duration = given.floats("duration")
    run = _integers(
        np.where(np.isnan(duration), np.rint(given.floats("end_time")) - start, duration)
    )
    run[(start < 0) & np.isnan(duration)] = _UNKNOWN
    in_queue = (start < 0) & (run < 0) & (given.status == "cancelled")
    left = np.where(in_queue, last, start)
    wait = np.where((left >= 0) & (submit >= 0), left - submit, _UNKNOWN)
    waits = np.isin(given.status, _UNSTARTED) & (start < 0)
    codes = np.array([_STATUS.get(word, _UNKNOWN) for word in given.status], dtype=np.int64)
    ids = given.cells("job_id")
    keep = _are_numbers(ids)
    return [
        np.array(ids if keep else range(1, len(ids) + 1), dtype=np.int64),
        submit,
        wait,
        run,
        np.where(waits, _UNKNOWN, gpus),
        unknown,
        unknown,
        gpus,
        estimate,
        _integers(_kib_each(given)),
        codes,
        *(_numbered(given.cells(n)) for n in ("user", "group", "template", "vc", "partition")),
        _extra(given.cells("preceding_job")) if keep else unknown,
        _extra(given.cells("think_time")),
    ]


def _kib_each(given: Outgoing) -> np.ndarray:
    """Return the memory of one processor in KiB, NaN = unknown, or there is no processor."""
    gpus = np.rint(given.floats("num_gpus"))
    with np.errstate(over="ignore"):  # infinite then, which is refused
        kib: np.ndarray = given.floats("mem_gib") * _KIB_PER_GIB
        return kib / np.where(gpus > 0, gpus, np.nan)


def _integers(values: np.ndarray) -> np.ndarray:
    """Return numbers rounded to int64, NaN as -1."""
    return np.where(np.isnan(values), _UNKNOWN, np.rint(values)).astype(np.int64)


def _are_numbers(cells: Sequence[Any]) -> bool:
    """Return whether all cells are whole numbers as SWF writes them, or unknown."""
    return all(cell is None or _NUMBER.fullmatch(str(cell)) for cell in cells)


def _numbered(cells: Sequence[Any]) -> np.ndarray:
    """Return names as numbers: their own, else from 1 as they appear; -1 unknown."""
    if _are_numbers(cells):
        return np.array([_UNKNOWN if c is None else int(c) for c in cells], dtype=np.int64)
    names = dict.fromkeys(cell for cell in cells if cell is not None)
    numbers = {name: number for number, name in enumerate(names, 1)}
    return np.array([numbers.get(cell, _UNKNOWN) for cell in cells], dtype=np.int64)


def _extra(cells: Sequence[Any]) -> np.ndarray:
    """Return an extra column that SWF has, where its cells are whole numbers; else unknown."""
    texts = [re.sub(r"\.0*$", "", str(cell)) for cell in cells]
    return np.array([int(t) if _NUMBER.fullmatch(t) else _UNKNOWN for t in texts], dtype=np.int64)


@writer("swf", (".swf",))
def _swf(trace: Trace, path: Path) -> tuple[str, ...]:
    write_swf(trace.jobs, path, metadata=trace.metadata, cluster=trace.cluster)
    return swf_losses(trace.jobs)
