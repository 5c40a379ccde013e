"""Slurm's jobs, as ``sacct --parsable2`` or ``--parsable`` prints them, or as JSON.

Columns are found by name. Rows of job steps are left out. Rules: docs/reference/sacct.md.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from windtunnel.traces.header import begun
from windtunnel.traces.job_trace import by_submission, counted, job_trace
from windtunnel.traces.readers import reader
from windtunnel.traces.sacct_clock import Times, job_times
from windtunnel.traces.sacct_table import SacctTable, looks_like_sacct, read_table, refuse_cut
from windtunnel.traces.sacct_usage import Usage, usage
from windtunnel.traces.sacct_words import (
    MAX_TASKS,
    NOTHING,
    STATES,
    elapsed,
    job_ids,
    minutes,
    seconds,
    state_word,
    time_limit,
)
from windtunnel.traces.slurm_json import looks_like_slurm_json, read_json
from windtunnel.traces.source import read_bytes, source_name

if TYPE_CHECKING:
    from pathlib import Path

    from windtunnel.traces.trace import Trace

#: These leave the queue without a run where their run time is 0, whatever Start says.
_LEFT_UNSTARTED = frozenset({"CANCELLED", "DEADLINE", "REVOKED"})


def _looks(head: bytes) -> bool:
    return looks_like_sacct(head) or looks_like_slurm_json(head)


@reader("sacct", extensions=(".sacct", ".psv", ".csv", ".json"), sniff=_looks)
def read_sacct(
    path: str | Path,
    *,
    zone: str | None = None,
    delimiter: str | None = None,
    bad_rows: str = "raise",
) -> Trace:
    """Read what ``sacct -P``, ``sacct --json`` or ``scontrol show job --json`` printed.

    ``vc`` is the account, else the partition; ``template`` the job's name; ``estimate`` the time
    limit. Kept as further columns: ``partition``, ``qos``, ``eligible_time``, ``nodelist``,
    ``reason``, ``num_nodes``, ``job_id_raw``, and ``state`` as Slurm names it.

    Args:
        path: plain or gzip file; ``-`` = standard input.
        zone: IANA zone of its wall-clock times; None = UTC, with a note. Seconds since 1970
            (``SLURM_TIME_FORMAT=%s``) need none; given, it is the zone of the site's hours of day.
        delimiter: what stands between fields; None = found in the header line.
        bad_rows: ``raise``, or ``drop``: leave out, counted, rows that break a rule.

    Raises:
        TraceError: not such a log; names line, column and value.
        SchemaError: rules of the schema are broken (a start before its submission).
        SpecError: no such zone.
    """
    file = source_name(path)
    data = read_bytes(path)
    is_json = begun(data)[:1] == b"{"
    text = read_json(data, file) if is_json else read_table(data, file, delimiter)
    refuse_cut(text)
    ids = _expanded(text)
    states = [state_word(cell) for cell in text.cells("state")]
    status = [STATES.get(word, "unknown") for word in states]
    given = usage(text)
    times = _times(text, states, status, zone or "UTC")
    known = times.submit[np.isfinite(times.submit)]
    epoch = float(known.min()) if len(known) else None
    table = _columns(text, times, given, status, epoch or 0.0).take(ids.rows)
    table = table.add_column(0, "job_id", pa.array(ids.names, pa.string()))
    lines = np.asarray(text.lines)[ids.rows]
    table, lines, _ = by_submission(table, lines)  # requeued records are numbered in this order
    named, repeated = _unique(table["job_id"].to_pylist())
    return job_trace(
        path,
        table.set_column(0, "job_id", pa.array(named, pa.string())),
        lines,
        bad_rows=bad_rows,
        notes=(
            *_notes_on_rows(text, ids, repeated),
            *_notes_on_times(times, status, zone),
            *_notes_on_usage(given, states),
        ),
        epoch=epoch,
        dropped={"row of a job step": text.steps, "repeated header line": text.headers},
        ids_unique=True,
        zone=zone or ("UTC" if times.walls else None),
    )


@dataclass(frozen=True)
class _Ids:
    """The jobs for which the rows stand.

    Attributes:
        names: id of each job.
        rows: the row of each job, int64.
        arrays: rows that stand for a list of waiting array tasks.
        cut: rows whose list of tasks Slurm has cut.
        components: rows of components of heterogeneous jobs.
    """

    names: list[str]
    rows: np.ndarray
    arrays: int
    cut: int
    components: int


def _expanded(text: SacctTable) -> _Ids:
    """Return one id for each job and each array task."""
    names: list[str] = []
    counts: list[int] = []
    arrays = cut = components = tasks = 0
    what = "a JobID as 17, 17_3, 17_[3-9%2] or 17+1"
    for row, cell in enumerate(text.cells("jobid")):
        try:
            these, is_cut = job_ids(cell)
        except ValueError as error:
            raise text.bad("jobid", row, what) from error
        names += these
        counts.append(len(these))
        arrays += "[" in cell
        cut += is_cut
        components += "+" in cell
        tasks += len(these) - 1
        if tasks > MAX_TASKS:
            raise text.bad("jobid", row, f"lists of at most {MAX_TASKS:,} array tasks in a log")
    rows = np.repeat(np.arange(len(counts)), counts)
    return _Ids(names, rows, arrays, cut, components)


def _unique(names: list[str]) -> tuple[list[str], int]:
    """Return ids with ``#2``, ``#3`` behind repeated ones, and how many were repeated."""
    seen: dict[str, int] = {}
    unique = []
    for name in names:
        seen[name] = seen.get(name, 0) + 1
        unique.append(name if seen[name] == 1 else f"{name}#{seen[name]}")
    return unique, len(names) - len(seen)


def _times(text: SacctTable, states: list[str], status: list[str], zone: str) -> Times:
    raw = text.parsed("elapsedraw", seconds, "a whole number of seconds")
    clock = text.parsed("elapsed", elapsed, "a time as [D-]HH:MM:SS")
    run = np.array(
        [b if a is None else a for a, b in zip(raw, clock, strict=True)], dtype=np.float64
    )
    pending = np.array([word == "pending" for word in status])
    leaves = np.array([word in _LEFT_UNSTARTED for word in states])
    never_ran = (pending & ~(run > 0)) | (leaves & (run == 0))
    still_runs = np.array([word in {"running", "pending"} for word in status])
    return job_times(text, run, zone=zone, never_ran=never_ran, still_runs=still_runs)


def _columns(
    text: SacctTable, times: Times, given: Usage, status: list[str], zero: float
) -> pa.Table:
    """Return the schema's columns but for the ids, and the log's own behind them."""
    limits = zip(
        text.parsed("timelimit", time_limit, "a time limit as 30, 12:00:00 or 2-00:00:00"),
        text.parsed("timelimitraw", minutes, "a whole number of minutes"),
        strict=True,
    )
    accounts, partitions = _text(text, "account"), _text(text, "partition")

    def since(moments: np.ndarray) -> pa.Array:
        return pa.array(moments - zero, pa.float64(), from_pandas=True)

    table = pa.table(
        {
            "submit_time": since(times.submit),
            "start_time": since(times.start),
            "end_time": since(times.end),
            "duration": pa.array(times.elapsed, pa.float64(), from_pandas=True),
            "estimate": pa.array([b if a is None else a for a, b in limits], pa.float64()),
            "num_gpus": pa.array(given.gpus, pa.float64()),
            "num_cpus": pa.array(given.cpus, pa.float64()),
            "mem_gib": pa.array(given.mem_gib, pa.float64()),
            "gpu_type": pa.array(given.gpu_types, pa.string()),
            "user": pa.array(_text(text, "user"), pa.string()),
            "vc": pa.array(
                [a or b for a, b in zip(accounts, partitions, strict=True)], pa.string()
            ),
            "template": pa.array([cell or None for cell in text.cells("jobname")], pa.string()),
            "status": pa.array(status, pa.string()),
            "priority": pa.array(text.parsed("priority", seconds, "a whole number"), pa.float64()),
            "partition": pa.array(partitions, pa.string()),
            "qos": pa.array(_text(text, "qos"), pa.string()),
            "eligible_time": since(times.eligible),
            "nodelist": pa.array(_text(text, "nodelist"), pa.string()),
            "reason": pa.array(_text(text, "reason"), pa.string()),
            "num_nodes": pa.array(given.nodes, pa.int64()),
            "state": pa.array(_text(text, "state"), pa.string()),
            "job_id_raw": pa.array(_text(text, "jobidraw"), pa.string()),
        }
    )
    if any(given.licenses):
        table = table.append_column("licenses", pa.array(given.licenses, pa.string()))
    return table


def _text(text: SacctTable, name: str) -> list[str | None]:
    return [None if cell.lower() in NOTHING else cell for cell in text.cells(name)]


def _notes_on_rows(text: SacctTable, ids: _Ids, repeated: int) -> list[str]:
    tasks = len(ids.names) - len(text.lines) + ids.arrays
    return counted(
        (
            (text.rejoined, "Job names that held separators, joined again"),
            (ids.arrays, "Rows that list array tasks (each task is a job and counts as read)"),
            (tasks if ids.arrays else 0, "Array tasks in those lists"),
            (ids.cut, "Lists of array tasks that Slurm has cut (SLURM_BITSTR_LEN)"),
            (ids.components, "Components of heterogeneous jobs, each a job of its own"),
            (repeated, "Records of requeued jobs, called JobID#2, JobID#3, ..."),
        )
    )


def _notes_on_times(times: Times, status: list[str], zone: str | None) -> list[str]:
    notes = []
    if times.walls and zone is None:
        notes.append("Times are local without a zone; they were read as UTC (zone= says another).")
    return notes + counted(
        (
            (
                times.ambiguous,
                "Times in a repeated hour of autumn (first pass, unless shown to be the second)",
            ),
            (times.corrected, "Ends that disagree with the run time (start + run time was taken)"),
            (status.count("running"), "Rows of jobs still running (duration is the time so far)"),
            (status.count("pending"), "Rows of jobs still pending (no start, duration 0)"),
            (int(np.isnan(times.submit).sum()), "Rows without a submission time (they stand last)"),
        )
    )


def _notes_on_usage(given: Usage, states: list[str]) -> list[str]:
    strange = sorted({word for word in states if word not in STATES})
    shown = ", ".join(ascii(word[:40]) for word in strange[:5])
    unknown = sum(word not in STATES for word in states)
    return counted(
        (
            (unknown, f"Rows of a state that is not known ({shown}), status unknown"),
            (given.parts, "Rows with parts of GPUs (shard, mps), which do not count as GPUs"),
            (given.mixed, "Rows with GPUs of several types (gpu_type names all)"),
            (
                given.per_node,
                "Rows with GPUs given per node (before Slurm 20.11), times their nodes",
            ),
        )
    )
