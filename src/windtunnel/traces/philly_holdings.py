"""Philly's attempts: which job had which GPUs when.

A job of the Philly log runs in attempts, each with its start, its end and the GPUs of each machine
(``detail: [{ip, gpus: []}]``). An attempt is a holding of each of its GPUs.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from windtunnel.companions import HOLDING_COLUMNS, companion
from windtunnel.errors import TraceError
from windtunnel.traces.wallclock import OddTimeError, read_times, second_pass, to_utc

if TYPE_CHECKING:
    from collections.abc import Sequence

#: What the log writes where it knows nothing, beside null.
UNKNOWN: tuple[str, ...] = ("", "None")
_NO_START = "attempts have no start: they hold nothing."
_NO_END = "attempts have no end though another follows: they hold nothing."
_BACKWARDS = "attempts end before they start: they hold nothing."
_NO_MACHINE = (
    "attempts name a machine or a GPU that is no text or none at all: that part is left out."
)


def clock(
    texts: Sequence[str | None], column: str, file: str, records: np.ndarray | None = None
) -> np.ndarray:
    """Return wall-clock times as seconds since 1970 of that clock, NaN = unknown.

    Args:
        texts: cells as in the log, shape (n,).
        records: record of the list that each is in, from 1; None = one each.

    Raises:
        TraceError: one is not a time; names the record.
    """
    cells = [None if t is None or t in UNKNOWN else t for t in texts]
    try:
        return read_times(pa.array(cells, pa.string()))
    except OddTimeError as error:
        record = error.row + 1 if records is None else int(records[error.row])
        raise TraceError(
            file,
            "a time as YYYY-MM-DD HH:MM:SS without a zone",
            column=column,
            value=cells[error.row],
            hint=f"It is in record {record:,} of the list.",
        ) from error


def not_before(local: np.ndarray, earlier: np.ndarray, zone: str) -> tuple[np.ndarray, np.ndarray]:
    """Return UTC instants of ``local``, in the second pass where the first precedes ``earlier``.

    Args:
        local: wall-clock seconds, shape (n,), NaN = unknown.
        earlier: UTC seconds, shape (n,), NaN = nothing is known.
        zone: IANA zone of the clock.

    Returns:
        UTC seconds, and which times are ambiguous.
    """
    instants, ambiguous = to_utc(local, zone)
    late = ambiguous & (instants < earlier)
    return np.where(late, second_pass(local, zone), instants), ambiguous


def attempt_holdings(
    jobs: Sequence[Any], submit: np.ndarray, epoch: float, zone: str, file: str
) -> tuple[pa.Table, tuple[str, ...]]:
    """Return what the attempts held.

    A last attempt without an end holds still (null). An attempt without a start, without an end
    though another follows, or that ends before it starts, holds nothing; notes count them.

    Args:
        jobs: records with ``jobid`` and ``attempts``, each with ``start_time``, ``end_time`` and
            ``detail``.
        submit: UTC seconds of each job's submission, shape (jobs,), NaN = unknown.
        epoch: UTC seconds of time 0.
        zone: IANA zone of the log's times.

    Returns:
        Table of `HOLDING_COLUMNS`, in the log's order, and ``attempt`` int64 (from 1, within the
        job) behind them; and notes.

    Raises:
        TraceError: a time is none; names the record.
    """
    owners = np.repeat(np.arange(len(jobs)), [len(job.attempts or ()) for job in jobs])
    attempts = [attempt for job in jobs for attempt in job.attempts or ()]
    first = np.searchsorted(owners, owners, side="left")
    ordinal = np.arange(len(owners)) - first
    is_last = np.ones(len(owners), bool)
    is_last[:-1] = owners[1:] != owners[:-1]
    start, end = _instants(attempts, owners, ordinal, submit, zone=zone, file=file)
    reasons = (
        (np.isnan(start), _NO_START),
        (np.isnan(end) & ~is_last & ~np.isnan(start), _NO_END),
        (end < start, _BACKWARDS),
    )
    notes = [f"{int(mask.sum()):,} {text}" for mask, text in reasons if mask.any()]
    good = ~np.any([mask for mask, _ in reasons], axis=0)
    rows: list[tuple[int, str, str]] = []
    odd = 0
    for place in np.flatnonzero(good).tolist():
        found, complete = _devices(attempts[place])
        rows += [(place, node, gpu) for node, gpu in found]
        odd += not complete
    if odd:
        notes.append(f"{odd:,} {_NO_MACHINE}")
    places = np.array([row[0] for row in rows], np.int64)
    ids = pa.array([job.jobid for job in jobs], pa.string())
    table = companion(
        HOLDING_COLUMNS,
        {
            "job_id": ids.take(pa.array(owners[places])),
            "node": pa.array([row[1] for row in rows], pa.string()),
            "gpu": pa.array([row[2] for row in rows], pa.string()),
            "start_time": pa.array(start[places] - epoch),
            "end_time": pa.array(end[places] - epoch, from_pandas=True),
            "attempt": pa.array(ordinal[places] + 1),
        },
    )
    return table, tuple(notes)


def _instants(
    attempts: Sequence[Any],
    owners: np.ndarray,
    ordinal: np.ndarray,
    submit: np.ndarray,
    *,
    zone: str,
    file: str,
) -> tuple[np.ndarray, np.ndarray]:
    """Return UTC seconds of starts and ends, each not before what is known to precede it."""
    start_local = clock([a.start_time for a in attempts], "start_time", file, owners + 1)
    end_local = clock([a.end_time for a in attempts], "end_time", file, owners + 1)
    start, end = np.full(len(attempts), np.nan), np.full(len(attempts), np.nan)
    latest = submit.astype(np.float64)
    for number in range(int(ordinal.max(initial=-1)) + 1):
        these = np.flatnonzero(ordinal == number)
        job = owners[these]
        start[these] = not_before(start_local[these], latest[job], zone)[0]
        latest[job] = np.fmax(latest[job], start[these])
        end[these] = not_before(end_local[these], latest[job], zone)[0]
        latest[job] = np.fmax(latest[job], end[these])
    return start, end


def _devices(attempt: Any) -> tuple[list[tuple[str, str]], bool]:
    """Return (machine, GPU) of an attempt, and whether all that it names could be."""
    found, complete = [], True
    for part in attempt.detail or ():
        if not part.ip or not all(part.gpus or ()):
            complete = False
        if part.ip:
            found += [(part.ip, gpu) for gpu in part.gpus or () if gpu]
    return found, complete
