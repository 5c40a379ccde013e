"""Microsoft Philly, the original ``cluster_job_log`` (JSON).

A list of ``{status, vc, jobid, user, submitted_time, attempts: [{start_time, end_time, detail:
[{ip, gpus: []}]}]}``; times are Pacific wall-clock times ``YYYY-mm-dd HH:MM:SS``; ``None``, an
empty text and null mean unknown. Semantics of the trace's own notebook (msr-fiddle/philly-traces,
``analysis/``): the GPUs are those of the first attempt, a job runs from the start of its first
attempt to the end of its last.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from windtunnel.errors import TraceError
from windtunnel.traces.header import begun
from windtunnel.traces.job_trace import job_trace
from windtunnel.traces.json_text import broken_json, json_bytes
from windtunnel.traces.philly import ZONE
from windtunnel.traces.philly_holdings import UNKNOWN, attempt_holdings, clock, not_before
from windtunnel.traces.readers import reader
from windtunnel.traces.source import plain_message, read_bytes, source_name
from windtunnel.traces.wallclock import repeated_hour_note, to_utc

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from windtunnel.traces.trace import Trace

_STATUS = {"Pass": "completed", "Killed": "cancelled", "Failed": "failed"}


class _Node(msgspec.Struct):
    ip: str | None = None
    gpus: list[str] | None = None


class _Attempt(msgspec.Struct):
    start_time: str | None = None
    end_time: str | None = None
    detail: list[_Node] | None = None


class _Job(msgspec.Struct):
    jobid: str | None
    submitted_time: str | None
    attempts: list[_Attempt] | None
    status: str | None = None
    vc: str | None = None
    user: str | None = None


def _looks_raw(head: bytes) -> bool:
    start = begun(head)
    return start.startswith(b"[") and (b'"attempts"' in start or b'"jobid"' in start)


@reader("philly-raw", extensions=(".json", "cluster_job_log"), sniff=_looks_raw)
def read_philly_raw(path: str | Path, *, zone: str = ZONE) -> Trace:
    """Read the original Philly job log.

    ``holdings`` has every attempt's GPUs, with the attempt's number (`philly_holdings`). A job
    whose last attempt has no end is ``running``. A job without attempts keeps its status
    and has no GPUs, start or duration. ``num_attempts`` and ``num_nodes`` (nodes of the first
    attempt) are kept as further columns. A time in autumn's repeated hour is read as the first
    pass, or as the second where the first would lie before the job's preceding time.

    Args:
        path: plain or gzip JSON; ``-`` = standard input.
        zone: IANA zone of its times.

    Raises:
        TraceError: not JSON (says where it breaks off), or not of this shape.
        SchemaError: rules of the schema are broken; rows are records of the list, from 1.
        SpecError: no such zone.
    """
    file = source_name(path)
    jobs = _decoded(read_bytes(path), file)
    table, epoch, submit, ambiguous = _columns(jobs, file, zone)
    holdings, lost = attempt_holdings(jobs, submit, epoch or 0.0, zone, file)
    notes = [repeated_hour_note(ambiguous, zone)]
    for count, text in (
        (sum(not job.attempts for job in jobs), "jobs have no attempt: GPUs and times unknown."),
        (table["submit_time"].null_count, "jobs have no submission time: they stand last."),
    ):
        if count:
            notes.append(f"{count:,} {text}")
    return job_trace(
        path,
        table,
        range(1, len(jobs) + 1),
        bad_rows="raise",
        notes=(*notes, *lost),
        epoch=epoch,
        counted="rows are records of the list",
        beside={"holdings": holdings},
        licence="CC BY 4.0 (msr-fiddle/philly-traces)",
        zone=zone,
    )


def _decoded(data: bytes, file: str) -> list[_Job]:
    """Return the records."""
    data = json_bytes(data, file)
    try:
        jobs = msgspec.json.decode(data, type=list[_Job])
    except msgspec.ValidationError as error:
        raise TraceError(
            file,
            "a Philly job log: a list of {jobid, submitted_time, attempts, ...}",
            hint=f"{plain_message(error)}.",
        ) from error
    except (msgspec.DecodeError, RecursionError) as error:
        raise broken_json(data, file, error) from error
    if not jobs:
        raise TraceError(file, "at least one job", hint="The list is empty.")
    return jobs


def _columns(
    jobs: Sequence[_Job], file: str, zone: str
) -> tuple[pa.Table, float | None, np.ndarray, int]:
    """Return the schema's columns, epoch and submissions in UTC seconds, and ambiguous times.

    The last is how many of submissions, first starts and last ends stand in the repeated hour.
    """
    firsts = [job.attempts[0] if job.attempts else _Attempt() for job in jobs]
    lasts = [job.attempts[-1] if job.attempts else _Attempt() for job in jobs]
    submit_local = clock([job.submitted_time for job in jobs], "submitted_time", file)
    start_local = clock([a.start_time for a in firsts], "start_time", file)
    end_local = clock([a.end_time for a in lasts], "end_time", file)
    submit, in_submit = to_utc(submit_local, zone)
    start, in_start = not_before(start_local, submit, zone)
    end, in_end = not_before(end_local, np.fmax(start, submit), zone)
    known = submit[np.isfinite(submit)]
    epoch = float(known.min()) if len(known) else None
    zero = epoch or 0.0
    running = np.array([bool(job.attempts) for job in jobs]) & np.isnan(end_local)
    gpus = [
        sum(len(node.gpus or ()) for node in a.detail) if a.detail is not None else None
        for a in firsts
    ]
    status = [
        "running" if runs else _status(job, row, file)
        for row, (job, runs) in enumerate(zip(jobs, running.tolist(), strict=True), 1)
    ]
    table = pa.table(
        {
            "job_id": _words(jobs, lambda job: job.jobid),
            "submit_time": pa.array(submit - zero, from_pandas=True),
            "start_time": pa.array(start - zero, from_pandas=True),
            "end_time": pa.array(end - zero, from_pandas=True),
            "duration": pa.array(end - start, from_pandas=True),
            "num_gpus": pa.array(gpus, pa.float64()),
            "user": _words(jobs, lambda job: job.user),
            "vc": _words(jobs, lambda job: job.vc),
            "status": pa.array(status, pa.string()),
            "num_attempts": pa.array([len(job.attempts or ()) for job in jobs], pa.int64()),
            "num_nodes": pa.array(
                [None if a.detail is None else len(a.detail) for a in firsts], pa.int64()
            ),
        }
    )
    return table, epoch, submit, int(in_submit.sum() + in_start.sum() + in_end.sum())


def _status(job: _Job, row: int, file: str) -> str | None:
    if job.status is None or job.status in UNKNOWN:
        return None
    if job.status not in _STATUS:
        raise TraceError(
            file,
            f"one of {', '.join(_STATUS)}",
            column="status",
            value=job.status,
            hint=f"It is in record {row:,} of the list.",
        )
    return _STATUS[job.status]


def _words(jobs: Sequence[_Job], get: Callable[[Any], str | None]) -> pa.Array:
    words = pa.array([get(job) for job in jobs], pa.string())
    unknown = pc.is_in(words, value_set=pa.array(UNKNOWN))
    return pc.if_else(unknown, pa.scalar(None, pa.string()), words)
