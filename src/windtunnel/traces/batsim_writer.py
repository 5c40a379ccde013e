"""Write a jobs table as Batsim's ``jobs.csv``, which our reader reads back, and evalys.

Format: batsim.readthedocs.io/en/latest/output-jobs.html. One GPU is written as one resource.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from windtunnel.errors import SchemaError, Violation
from windtunnel.schema import as_jobs
from windtunnel.traces.batsim import FINAL_STATES, RESULTS
from windtunnel.traces.interval_set import (
    MAX_RESOURCES,
    format_intervals,
    number_resources,
    parse_intervals,
)
from windtunnel.traces.job_trace import counted
from windtunnel.traces.outgoing import Outgoing, is_fraction
from windtunnel.traces.target import write_lines
from windtunnel.traces.writers import writer

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from windtunnel.traces.trace import Trace

COLUMNS: tuple[str, ...] = (
    *("job_id", "workload_name", "profile", "submission_time", "requested_number_of_resources"),
    *("requested_time", "success", "final_state", "starting_time", "execution_time"),
    *("finish_time", "waiting_time", "turnaround_time", "stretch", "allocated_resources"),
    *("consumed_energy", "metadata"),
)
#: Of several words that mean one of our states the first; what has none of its own is merged.
_STATES = {ours: word for word, ours in reversed(FINAL_STATES.items())} | {
    "node_fail": "COMPLETED_FAILED",
    "out_of_memory": "COMPLETED_FAILED",
    "preempted": "COMPLETED_KILLED",
}
_MERGED = ("node_fail", "out_of_memory", "preempted", "unknown")
_OVER = ("completed", "failed", "node_fail", "out_of_memory", "timeout", "cancelled", "preempted")
#: What a run of the simulator says of a job -> our status, and Batsim's word.
_FLOWN = {
    "finished": ("completed", "COMPLETED_SUCCESSFULLY"),
    "running": ("running", "RUNNING"),
    "waiting": ("pending", "SUBMITTED"),
    "not_submitted": ("pending", "NOT_SUBMITTED"),
    "rejected": ("cancelled", "REJECTED"),
}
_WORKLOAD = "w0"
_MUST_QUOTE = frozenset(',"\r\n')


def write_batsim(jobs: Any, path: str | Path) -> None:
    """Write a jobs table as ``jobs.csv``, gzipped where the name ends in ``.gz``.

    Rows are written in order of submission. Where no column ``allocated_resources`` says
    which resources a job had, each job gets the lowest numbers that are free from its start to its
    end (`batsim_losses` tells).

    Args:
        jobs: anything `windtunnel.schema.as_jobs` takes: recorded times, or those of a run
            (`flown`). Needed are start_time, end_time (or duration) and num_gpus of each job that
            ran; columns of `windtunnel.traces.batsim.read_batsim` are taken over.

    Raises:
        SchemaError: the table breaks the schema, or has a fraction of a GPU.
        TraceError: the file cannot be written.
    """
    given = _outgoing(jobs)
    given.check_plain()
    gpus = given.floats("num_gpus")
    most = f"at most {MAX_RESOURCES:,} GPUs of a job: each is listed"
    given.refuse(
        [
            ("num_gpus", "a whole number: Batsim counts resources", is_fraction(gpus)),
            ("num_gpus", most, np.isfinite(gpus) & (gpus > MAX_RESOURCES)),
        ]
    )
    columns = _columns(given.in_order())
    rows = zip(*(columns[name] for name in COLUMNS), strict=True)
    write_lines(path, [",".join(COLUMNS), *(",".join(map(_cell, row)) for row in rows)])


def _outgoing(jobs: Any) -> Outgoing:
    return Outgoing(jobs, "Batsim", RESULTS.columns)


def flown(jobs: Any, outcome: pa.Table) -> pa.Table:
    """Return a jobs table with the times of a run in place of the recorded ones.

    Args:
        outcome: ``job_id``, ``start_time``, ``end_time``, ``run_time`` and ``status`` of each job
            (`windtunnel.sim.outcome.Outcome.table`), in the same order.

    Returns:
        The jobs; ``duration`` is the time on GPUs. ``final_state`` holds Batsim's word, and
        columns of the recorded run that no longer hold are gone.

    Raises:
        SchemaError: the two tables are not of the same jobs.
    """
    table = as_jobs(jobs)
    if not table["job_id"].equals(outcome["job_id"].cast(pa.string())):
        raise SchemaError("outcome", [Violation("job_id", "the ids of the jobs, in their order")])
    status = outcome["status"].to_pylist()
    ran = pc.is_valid(outcome["start_time"])
    nothing = pa.scalar(None, pa.float64())
    values = {
        "start_time": outcome["start_time"],
        "end_time": outcome["end_time"],
        "duration": pc.if_else(ran, outcome["run_time"], nothing),
        "status": pa.array([_FLOWN[word][0] for word in status], pa.string()),
    }
    for name, column in values.items():
        table = table.set_column(table.column_names.index(name), name, column)
    gone = {"final_state", "allocated_resources", "consumed_energy"} & set(table.column_names)
    table = table.drop_columns(sorted(gone))
    words = pa.array([_FLOWN[word][1] for word in status], pa.string())
    return as_jobs(table.append_column("final_state", words))


def batsim_losses(jobs: pa.Table) -> tuple[str, ...]:
    """Return what of a jobs table ``jobs.csv`` cannot hold, one sentence each."""
    given = _outgoing(jobs)
    losses = given.lost_columns()
    if given.has("start_time") and not given.has("allocated_resources"):
        losses.append(
            "Which GPUs a job had is not known: resources are numbered here, the lowest that are "
            "free from its start to its end."
        )
    start, run, end = map(given.floats, ("start_time", "duration", "end_time"))
    changes = (
        (
            np.isin(given.status, _MERGED),
            (
                "Jobs that ended by node failure or lack of memory (failed), by preemption "
                "(killed), or in an unknown state (no state)"
            ),
        ),
        (
            np.isnan(end) & ~np.isnan(start + run) & np.isin(given.status, _OVER),
            "Jobs without an end, which is written as start + run time",
        ),
        (
            np.isnan(start) & ~np.isin(given.status, ("cancelled", "pending")),
            (
                "Jobs without a recorded start, which evalys cannot draw (simulate the trace to "
                "give them one)"
            ),
        ),
    )
    return (*losses, *counted(changes))


def _columns(given: Outgoing) -> dict[str, Sequence[Any]]:
    """Return the columns of the file; None and NaN = an empty cell."""
    submit, start, run, last, limit = map(
        given.floats, ("submit_time", "start_time", "duration", "end_time", "estimate")
    )
    lacks_end = np.isnan(last) & np.isin(given.status, _OVER)
    with np.errstate(over="ignore"):  # infinite then
        end = np.where(lacks_end, start + run, last)
        turnaround = end - submit
        stretch = turnaround / np.where(run > 0, run, np.nan)
    started = ~np.isnan(start)
    state = list(map(_state, given.cells("status"), started, given.cells("final_state")))
    workload = [name or _WORKLOAD for name in given.cells("workload_name")]
    profiles = zip(given.cells("profile"), run.tolist(), strict=True)
    return {
        "job_id": _ids(given.cells("job_id"), workload),
        "workload_name": workload,
        "profile": [_number(length) if name is None else name for name, length in profiles],
        "submission_time": submit.tolist(),
        "requested_number_of_resources": given.cells("num_gpus"),
        "requested_time": np.where(np.isnan(limit), -1.0, limit).tolist(),
        "success": [None if not s else float(s == "COMPLETED_SUCCESSFULLY") for s in state],
        "final_state": state,
        "starting_time": start.tolist(),
        "execution_time": run.tolist(),
        "finish_time": end.tolist(),
        "waiting_time": (start - submit).tolist(),
        "turnaround_time": turnaround.tolist(),
        "stretch": stretch.tolist(),
        "allocated_resources": _resources(given, start, end),
        "consumed_energy": [-1.0 if j is None else j for j in given.cells("consumed_energy")],
        "metadata": given.cells("metadata"),
    }


def _state(status: str | None, started: np.bool_, final_state: str | None) -> str | None:
    """Return Batsim's word; the one that a file of Batsim had where it still means the same."""
    if final_state is not None and FINAL_STATES.get(final_state) == status:
        return final_state
    if status == "cancelled" and not started:
        return "REJECTED"
    return _STATES.get(status or "")


def _ids(ids: list[str], workloads: list[str]) -> list[str]:
    """Return the ids; without the workload's name where the reader put it before them."""
    if len(set(workloads)) == 1:
        return ids
    pairs = zip(ids, workloads, strict=True)
    return [name.removeprefix(f"{workload}!") for name, workload in pairs]


def _resources(given: Outgoing, start: np.ndarray, end: np.ndarray) -> list[str | None]:
    """Return each job's interval set."""
    if given.has("allocated_resources"):
        cells = (str(cell or "") for cell in given.cells("allocated_resources"))
        return [_canonical(cell) if cell.strip() else None for cell in cells]
    gpus = given.floats("num_gpus")
    ran = np.flatnonzero(~np.isnan(start) & (gpus > 0))
    until = np.where(np.isnan(end), np.inf, end)
    stays = zip(
        start[ran].tolist(), until[ran].tolist(), gpus[ran].astype(int).tolist(), strict=True
    )
    sets: list[str | None] = [None] * len(given)
    for row, numbers in zip(ran.tolist(), number_resources(list(stays)), strict=True):
        sets[row] = format_intervals(numbers)
    return sets


def _canonical(cell: str) -> str:
    """Return an interval set in its canonical form."""
    try:
        spans = parse_intervals(cell)
    except ValueError as error:
        found = Violation("allocated_resources", "interval sets such as 0-7 12", 1, value=cell)
        raise SchemaError("jobs as Batsim", [found]) from error
    return " ".join(str(low) if low == high else f"{low}-{high}" for low, high in spans)


def _cell(value: str | float | None) -> str:
    if not isinstance(value, str):
        return _number(value) or ""
    if value and not _MUST_QUOTE.intersection(value):
        return value
    doubled = value.replace('"', '""')
    return f'"{doubled}"'


def _number(value: float | None) -> str | None:
    """Return a number so that it reads back exactly, ``3600`` rather than ``3600.0``."""
    if value is None or math.isnan(value):
        return None
    return repr(float(value)).removesuffix(".0")


@writer("batsim", dates=False, holdings="allocated_resources")
def _batsim(trace: Trace, path: Path) -> tuple[str, ...]:
    write_batsim(trace.jobs, path)
    return batsim_losses(trace.jobs)
