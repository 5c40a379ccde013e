"""Write a jobs table as a Standard Workload Format 2.2 log; `windtunnel.traces.swf` reads it.

One GPU is written as one processor. SWF knows whole numbers only: times are rounded to whole
seconds, names are numbered, and jobs with a fraction of a GPU are refused.
"""

from __future__ import annotations

import gzip
import re
from datetime import datetime
from typing import TYPE_CHECKING, Any

import numpy as np

from windtunnel.errors import SchemaError, Violation, quote
from windtunnel.schema import BY_NAME, as_jobs, source_of
from windtunnel.traces.carried import check_carried
from windtunnel.traces.native import in_one_piece
from windtunnel.traces.order import by_submission

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    import pyarrow as pa

    from windtunnel.cluster.spec import ClusterSpec
    from windtunnel.traces.trace import TraceMetadata

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
_UNSTARTED = ("cancelled", "pending")
_NUMBER = re.compile(r"0|[1-9][0-9]{0,17}", re.ASCII)
#: Columns whose cells are names, with their plural; SWF numbers them.
_NAMES = {"user": "users", "group": "groups", "template": "executables", "vc": "queues"}
_NAMES["partition"] = "partitions"
_CARRIED = {
    *("job_id", "submit_time", "start_time", "end_time", "duration", "estimate", "num_gpus"),
    *("mem_gib", "status", "preceding_job", "think_time", *_NAMES),
}
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
        jobs: anything `windtunnel.schema.as_jobs` takes.
        path: the file; it appears whole or not at all.
        metadata: gives ``UnixStartTime``, ``TimeZoneString`` and ``Acknowledge``.
        cluster: gives ``MaxProcs`` and ``MaxNodes``; else those of a log that was read as SWF.

    Raises:
        SchemaError: the table breaks the schema, has a fraction of a GPU or a time that SWF
            cannot hold.
        TraceError: the file cannot be written.
    """
    table = as_jobs(jobs)
    check_carried(table, _CARRIED, "SWF")
    _refuse(table)
    table, _, _ = by_submission(table, range(table.num_rows))
    losses = swf_losses(table)
    header = [*_header(table, metadata, cluster), *(f"Note: {loss}" for loss in losses)]
    fields = [np.char.mod("%d", column) for column in _fields(table)]
    rows = [" ".join(row) for row in zip(*(f.tolist() for f in fields), strict=True)]
    lines = [*(f"; {text}" for text in header), *rows]
    data = ("\n".join(lines) + "\n").encode()
    packed = gzip.compress(data, 6, mtime=0) if str(path).endswith(".gz") else data

    def write(temporary: Path) -> None:
        temporary.write_bytes(packed)

    in_one_piece(path, write)


def swf_losses(jobs: pa.Table) -> tuple[str, ...]:
    """Return what of a jobs table SWF cannot hold, one sentence each."""
    losses = []
    left_out = [
        field.name
        for field in jobs.schema
        if field.name not in _CARRIED and jobs[field.name].null_count < jobs.num_rows
    ]
    if left_out:
        losses.append(f"Columns that SWF does not have: {', '.join(map(quote, left_out))}.")
    if not _are_numbers(jobs["job_id"].to_pylist()):
        losses.append("The job ids are not numbers: jobs are numbered from 1.")
    for name, plural in _NAMES.items():
        if name in jobs.column_names and not _are_numbers(jobs[name].to_pylist()):
            losses.append(f"The {plural} are not numbers: they are numbered as they appear.")
    times = [_floats(jobs, name) for name in ("submit_time", "start_time", "duration", "estimate")]
    rounded = np.any([np.isfinite(t) & (t != np.rint(t)) for t in times], axis=0)
    start, run, end = (_floats(jobs, name) for name in ("start_time", "duration", "end_time"))
    cancelled = np.array([s == "cancelled" for s in jobs["status"].to_pylist()], dtype=bool)
    memory, each = _floats(jobs, "mem_gib"), _kib_each(jobs)
    for count, what in (
        (int(rounded.sum()), "had times with fractions of a second, which are rounded"),
        (_merged(jobs), "ended by timeout, node failure, lack of memory or preemption: failed"),
        (_bent(jobs), "ended at another time than start + run time (which SWF holds alone)"),
        (_open(jobs), "still run or wait, or have an unknown status: written as -1"),
        (
            int((np.isnan(end) & ~np.isnan(start + run)).sum()),
            "have no end (SWF tells it by start + run time)",
        ),
        (
            int((np.isnan(run) & ~np.isnan(end - start)).sum()),
            "have no run time, which is written as end - start",
        ),
        (
            int((cancelled & np.isnan(run) & np.isnan(end) & ~np.isnan(start)).sum()),
            "were cancelled after a start without a run time, which read as never started",
        ),
        (
            int((~np.isnan(memory) & np.isnan(each)).sum()),
            "have memory and no GPUs, which SWF cannot tell as memory a processor",
        ),
        (
            int((np.isfinite(each) & (each != np.rint(each))).sum()),
            "have memory with fractions of a KiB a processor, which are rounded",
        ),
    ):
        if count:
            losses.append(f"Jobs that {what}: {count:,}.")
    return tuple(losses)


def _merged(jobs: pa.Table) -> int:
    lost = ("timeout", "node_fail", "out_of_memory", "preempted")
    return sum(status in lost for status in jobs["status"].to_pylist())


def _bent(jobs: pa.Table) -> int:
    start, run, end = (_floats(jobs, name) for name in ("start_time", "duration", "end_time"))
    return int((np.abs(start + run - end) >= 1).sum())


def _open(jobs: pa.Table) -> int:
    return sum(s is not None and s not in _STATUS for s in jobs["status"].to_pylist())


def _refuse(jobs: pa.Table) -> None:
    """Refuse what cannot be written as whole numbers from 0.

    Raises:
        SchemaError: lists everything at once.
    """
    found = []
    gpus, submit = _floats(jobs, "num_gpus"), _floats(jobs, "submit_time")
    checks = [
        ("num_gpus", "a whole number: SWF counts processors", gpus != np.rint(gpus)),
        ("submit_time", "a time from 0 on, as SWF needs", submit < 0),
    ]
    checks += [
        (name, "a number below 2**53", np.abs(_floats(jobs, name)) >= _EXACT)
        for name in ("submit_time", "start_time", "duration", "estimate", "num_gpus")
    ]
    # SWF tells memory in KiB a processor: what fits as GiB may not fit so.
    much = _kib_each(jobs) >= _EXACT
    checks.append(("mem_gib", "less than 2**53 KiB a processor", much))
    for name, rule, bad in checks:
        known = bad & ~np.isnan(_floats(jobs, name))
        if known.any():
            row = int(known.argmax())
            value = jobs[name][row].as_py()
            found.append(Violation(name, rule, int(known.sum()), row + 1, value, unit="row"))
    if found:
        raise SchemaError(f"{source_of(jobs)} as SWF", found)


def _header(
    jobs: pa.Table, metadata: TraceMetadata | None, cluster: ClusterSpec | None
) -> list[str]:
    """Return the header's lines, without the comment mark."""
    known = {"Version": "2.2", "MaxJobs": str(jobs.num_rows), "MaxRecords": str(jobs.num_rows)}
    if metadata is not None:
        kept = metadata.settings
        known |= {key: str(kept[key]) for key in ("MaxNodes", "MaxProcs") if key in kept}
        if metadata.licence:
            known["Acknowledge"] = metadata.licence
        if metadata.epoch is not None:
            known["UnixStartTime"] = str(round(datetime.fromisoformat(metadata.epoch).timestamp()))
        if metadata.zone is not None:
            known["TimeZoneString"] = metadata.zone
    if cluster is not None:
        known["MaxProcs"] = str(cluster.num_gpus)
        known.pop("MaxNodes", None)
        if not cluster.is_pool:
            known["MaxNodes"] = str(cluster.num_nodes)
    queues = jobs["vc"].to_pylist()
    lines = [f"{key}: {_one_line(value)}" for key, value in known.items()]
    if not _are_numbers(queues):
        names = {name: None for name in queues if name is not None}
        lines += [f"Queue: {number} {_one_line(name)}" for number, name in enumerate(names, 1)]
    return lines


def _one_line(text: str) -> str:
    return "".join(c if c.isprintable() else ascii(c)[1:-1] for c in text)


def _fields(jobs: pa.Table) -> list[np.ndarray]:
    """Return the eighteen fields, int64, shape (rows,) each."""
    unknown = np.full(jobs.num_rows, _UNKNOWN, np.int64)
    submit, start = _whole(jobs, "submit_time"), _whole(jobs, "start_time")
    status = jobs["status"].to_pylist()
    # Of a job cancelled in the queue the wait says when it left, as long as no run time is told.
    run = _floats(jobs, "duration")
    run = _integers(np.where(np.isnan(run), np.rint(_floats(jobs, "end_time")) - start, run))
    run[(start < 0) & np.isnan(_floats(jobs, "duration"))] = _UNKNOWN
    in_queue = (start < 0) & (run < 0)
    in_queue &= np.array([word == "cancelled" for word in status], dtype=bool)
    left = np.where(in_queue, _whole(jobs, "end_time"), start)
    wait = np.where((left >= 0) & (submit >= 0), left - submit, _UNKNOWN)
    gpus = _whole(jobs, "num_gpus")
    waits = np.array([word in _UNSTARTED for word in status], dtype=bool) & (start < 0)
    each = _kib_each(jobs)
    codes = np.array([_STATUS.get(word, _UNKNOWN) for word in status], dtype=np.int64)
    numbered = {name: _numbered(jobs, name) for name in _NAMES}
    ids = jobs["job_id"].to_pylist()
    keep = _are_numbers(ids)
    number = np.array(ids if keep else range(1, len(ids) + 1), dtype=np.int64)
    return [
        number,
        submit,
        wait,
        run,
        np.where(waits, _UNKNOWN, gpus),
        unknown,
        unknown,
        gpus,
        _whole(jobs, "estimate"),
        _integers(each),
        codes,
        numbered["user"],
        numbered["group"],
        numbered["template"],
        numbered["vc"],
        numbered["partition"],
        _extra(jobs, "preceding_job") if keep else unknown,
        _extra(jobs, "think_time"),
    ]


def _floats(jobs: pa.Table, name: str) -> np.ndarray:
    """Return a column as float64, null as NaN."""
    values = jobs[name].cast(BY_NAME[name].type).to_numpy()
    return np.asarray(values, dtype=np.float64)


def _kib_each(jobs: pa.Table) -> np.ndarray:
    """Return the memory of one processor in KiB, NaN = unknown, or there is no processor."""
    gpus = np.rint(_floats(jobs, "num_gpus"))
    with np.errstate(over="ignore"):  # infinite then, which is refused
        kib: np.ndarray = _floats(jobs, "mem_gib") * _KIB_PER_GIB
        return kib / np.where(gpus > 0, gpus, np.nan)


def _whole(jobs: pa.Table, name: str) -> np.ndarray:
    return _integers(_floats(jobs, name))


def _integers(values: np.ndarray) -> np.ndarray:
    """Return numbers rounded to int64, NaN as -1."""
    return np.where(np.isnan(values), _UNKNOWN, np.rint(values)).astype(np.int64)


def _are_numbers(cells: Sequence[Any]) -> bool:
    """Return whether all cells are whole numbers as SWF writes them, or unknown."""
    return all(cell is None or _NUMBER.fullmatch(str(cell)) for cell in cells)


def _numbered(jobs: pa.Table, name: str) -> np.ndarray:
    """Return a column of names as numbers: their own, else from 1 as they appear; -1 unknown."""
    if name not in jobs.column_names:
        return np.full(jobs.num_rows, _UNKNOWN, np.int64)
    cells = jobs[name].to_pylist()
    if _are_numbers(cells):
        return np.array([_UNKNOWN if c is None else int(c) for c in cells], dtype=np.int64)
    numbers = {
        cell: i for i, cell in enumerate(dict.fromkeys(c for c in cells if c is not None), 1)
    }
    return np.array([numbers.get(cell, _UNKNOWN) for cell in cells], dtype=np.int64)


def _extra(jobs: pa.Table, name: str) -> np.ndarray:
    """Return an extra column that SWF has, where its cells are whole numbers; else unknown."""
    if name not in jobs.column_names:
        return np.full(jobs.num_rows, _UNKNOWN, np.int64)
    cells = [re.sub(r"\.0*$", "", str(cell)) for cell in jobs[name].to_pylist()]
    return np.array([int(c) if _NUMBER.fullmatch(c) else _UNKNOWN for c in cells], dtype=np.int64)
