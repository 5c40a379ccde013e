"""Batsim: its workloads (JSON), and the ``jobs.csv`` of its results, which evalys reads too.

Formats: batsim.readthedocs.io/en/latest/input-workload.html and .../output-jobs.html. A resource
is taken as one GPU.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, Any

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from windtunnel.cluster.spec import ClusterSpec
from windtunnel.companions import HOLDING_COLUMNS, companion
from windtunnel.errors import SpecError, TraceError, nearest, quote
from windtunnel.traces.header import begun, header_has
from windtunnel.traces.interval_set import MAX_RESOURCES, count_of, parse_intervals
from windtunnel.traces.job_trace import job_trace
from windtunnel.traces.json_text import json_value
from windtunnel.traces.layout import Layout, Rows, number, seconds, text, words
from windtunnel.traces.readers import reader
from windtunnel.traces.source import plain_message, read_bytes, short_name, source_name
from windtunnel.traces.tabular import parse_table

if TYPE_CHECKING:
    from pathlib import Path

    from windtunnel.traces.tabular import TextTable
    from windtunnel.traces.trace import Trace

#: Batsim's word for how a job ended -> ours.
FINAL_STATES = {
    "COMPLETED_SUCCESSFULLY": "completed",
    "COMPLETED_FAILED": "failed",
    "COMPLETED_WALLTIME_REACHED": "timeout",
    "COMPLETED_KILLED": "cancelled",
    "REJECTED": "cancelled",
    "RUNNING": "running",
    "SUBMITTED": "pending",
    "NOT_SUBMITTED": "pending",
}
#: Profiles that say how long they run: before version 5 of Batsim, and since.
_DELAYS = ("delay", "DelayProfile")
_ONE_GPU = "A resource of Batsim is taken as one GPU."
_SHOWN = 5
#: Holdings are one row a job and resource; beyond this many they are left out, with a note.
_MAX_HOLDINGS = 20_000_000
#: The columns of ``jobs.csv``.
RESULTS = Layout(
    "batsim",
    columns={
        "job_id": text("job_id"),
        "submit_time": seconds("submission_time"),
        "start_time": seconds("starting_time"),
        "end_time": seconds("finish_time"),
        "duration": seconds("execution_time"),
        "estimate": seconds("requested_time", unknown=-1).optional,
        "num_gpus": number("requested_number_of_resources", "resources"),
        "status": words("final_state", FINAL_STATES).optional,
        "profile": text("profile").optional,
        "workload_name": text("workload_name").optional,
        "final_state": text("final_state").optional,
        "allocated_resources": text("allocated_resources").optional,
        "consumed_energy": number("consumed_energy", "joules", unknown=-1).optional,
        "metadata": text("metadata").optional,
    },
    ignored=("success", "waiting_time", "turnaround_time", "stretch"),
)


def _looks_batsim(head: bytes) -> bool:
    start = begun(head)
    if start.startswith(b"{"):
        return b'"nb_res"' in start or b'"subtime"' in start
    return header_has(start, "job_id", "submission_time", "requested_number_of_resources")


@reader("batsim", extensions=(".json", ".csv"), sniff=_looks_batsim)
def read_batsim(path: str | Path, *, bad_rows: str = "raise") -> Trace:
    """Read a workload of Batsim, or the jobs that a run of Batsim wrote.

    Of a workload, ``duration`` is the delay of the job's profile; of other profiles only a
    simulation of the platform tells it, so it is unknown. ``estimate`` is the walltime, the cluster
    a pool of ``nb_res`` resources. The profile's name is kept as ``profile``.

    Of ``jobs.csv``, ``num_gpus`` counts the allocated resources (before allocation: the requested
    ones), which are the ``holdings`` of the trace with the resource's number as node. A rejected
    job is ``cancelled`` and has no times; ``final_state`` keeps Batsim's word. Further columns:
    ``profile``, ``workload_name``, ``allocated_resources``, ``consumed_energy`` (J), ``metadata``.

    Args:
        path: plain or gzip, JSON or CSV; ``-`` = standard input.
        bad_rows: ``raise``, or ``drop``: leave out, counted, rows that break a rule.

    Raises:
        TraceError: neither of the two; names line and column, or the path in the JSON.
        SchemaError: rules of the schema are broken; rows of a workload are jobs of its list.
    """
    source_name(path)
    data = read_bytes(path)
    if begun(data).startswith((b"{", b"[")):
        return _workload(data, path, bad_rows)
    rows = RESULTS.rows(path, found=parse_table(data, source_name(path)))
    rows.note(_ONE_GPU)
    _results(rows)
    trace = rows.trace(bad_rows)
    holdings = _holdings(trace.jobs)
    if holdings is None and (pc.sum(trace.jobs["num_gpus"]).as_py() or 0) > _MAX_HOLDINGS:
        much = f"More than {_MAX_HOLDINGS:,} allocated resources: no table of holdings."
        about = replace(trace.metadata, notes=(*trace.metadata.notes, much))
        return replace(trace, metadata=about)
    return replace(trace, holdings=holdings)


#: A number of resources that can be counted; that it may not be negative is the schema's rule.
_Resources = Annotated[int, msgspec.Meta(ge=-(2**31), le=2**31 - 1)]


class _Job(msgspec.Struct):
    id: str | int
    subtime: float
    res: _Resources
    profile: str | int
    walltime: float | None = None


class _Profile(msgspec.Struct):
    type: str
    delay: float | None = None


class _Workload(msgspec.Struct):
    jobs: list[_Job]
    profiles: dict[str, _Profile]
    nb_res: int | None = None


def _workload(data: bytes, path: str | Path, bad_rows: str) -> Trace:
    """Return the trace of a workload."""
    file = source_name(path)
    plain = json_value(data, file)
    try:
        workload = msgspec.convert(plain, _Workload)
    except msgspec.ValidationError as error:
        raise TraceError(
            file,
            "a Batsim workload: {nb_res, jobs: [{id, subtime, res, profile}], profiles}",
            hint=f"{plain_message(error)}.",
        ) from error
    if not workload.jobs:
        raise TraceError(file, "at least one job", hint="The list of jobs is empty.")
    delays = [_delay(workload, job, number, file) for number, job in enumerate(workload.jobs, 1)]
    columns = {
        "job_id": pa.array([str(job.id) for job in workload.jobs]),
        "submit_time": pa.array([job.subtime for job in workload.jobs], pa.float64()),
        "duration": pa.array(delays, pa.float64()),
        "estimate": pa.array([_limit(job.walltime) for job in workload.jobs], pa.float64()),
        "num_gpus": pa.array([float(job.res) for job in workload.jobs], pa.float64()),
        "profile": pa.array([str(job.profile) for job in workload.jobs]),
    }
    cluster, doubts = _platform(workload.nb_res, short_name(path))
    return job_trace(
        path,
        columns,
        range(1, len(workload.jobs) + 1),
        bad_rows=bad_rows,
        notes=(_ONE_GPU, *_workload_notes(workload, delays), *_unread(plain["jobs"]), *doubts),
        counted="rows are jobs of the list",
        beside={"cluster": cluster},
    )


def _delay(workload: _Workload, job: _Job, number: int, file: str) -> float | None:
    """Return how long a job's profile runs, None where only a simulation tells."""
    name = str(job.profile)
    profile = workload.profiles.get(name)
    if profile is None:
        raise TraceError(
            file,
            "the name of one of the profiles",
            column="profile",
            value=name,
            hint=f"It is in job {number:,} of the list.{nearest(name, workload.profiles)}",
        )
    if profile.type not in _DELAYS:
        return None
    if profile.delay is None:
        raise TraceError(
            file, "a delay in seconds", column=f"profiles[{name}]", hint="It has no delay."
        )
    return profile.delay


def _limit(walltime: float | None) -> float | None:
    return None if walltime == -1 else walltime


def _workload_notes(workload: _Workload, delays: list[float | None]) -> list[str]:
    kinds: dict[str, int] = {}
    longer = 0
    for job, delay in zip(workload.jobs, delays, strict=True):
        limit = _limit(job.walltime)
        if delay is None:
            kind = workload.profiles[str(job.profile)].type
            kinds[kind] = kinds.get(kind, 0) + 1
        elif limit is not None and delay > limit:
            longer += 1
    notes = []
    if kinds:
        most = sorted(kinds.items(), key=lambda item: (-item[1], item[0]))
        shown = ", ".join(f"{quote(kind)} ({count:,})" for kind, count in most[:_SHOWN])
        notes.append(f"Jobs whose profile is no delay, so that their run time is unknown: {shown}.")
    if longer:
        notes.append(
            f"Jobs whose delay is longer than their walltime, at which Batsim stops them: "
            f"{longer:,} (duration is the delay)."
        )
    return notes


def _unread(jobs: list[dict[str, Any]]) -> list[str]:
    names = {name: None for job in jobs for name in job if name not in _Job.__struct_fields__}
    if not names:
        return []
    return [f"Fields of jobs that were not read: {', '.join(map(quote, list(names)[:_SHOWN]))}."]


def _platform(resources: int | None, name: str) -> tuple[ClusterSpec | None, tuple[str, ...]]:
    if resources is None:
        return None, ()
    try:
        return ClusterSpec.pool(resources, name=name), ()
    except SpecError:
        return None, (f"nb_res {resources:,} is not a number of resources: cluster unknown.",)


def _results(rows: Rows) -> None:
    """Work out what the columns of a ``jobs.csv`` do not say alone.

    Raises:
        TraceError: a cell is not what it should be.
    """
    if not rows.text.has("final_state"):  # as before version 2 of Batsim
        succeeded = words("success", {"1": "completed", "0": "failed"})
        rows["status"] = rows.cells("status", succeeded)
    counts = _counted(rows.text, rows.get("allocated_resources"))
    if differing := rows.differing(counts, "num_gpus"):
        rows.note(
            f"Jobs that were allocated another number of resources than they requested: "
            f"{differing:,} (num_gpus is the allocated)."
        )
    rows["num_gpus"] = pc.coalesce(counts, rows["num_gpus"])
    workloads, ids = rows.get("workload_name"), rows["job_id"]
    if workloads is not None and pc.count_distinct(workloads, mode="all").as_py() > 1:
        # Ids stand behind their workload's name, as in Batsim, where there are several.
        named = pc.binary_join_element_wise(workloads, ids, "!")
        rows["job_id"] = pc.if_else(pc.is_valid(workloads), named, ids)


def _counted(text: TextTable, sets: Any) -> pa.Array:
    """Return how many resources each set has, float64, null = none is known."""
    known: dict[str, int] = {}
    counts: list[int | None] = []
    for row, cell in enumerate([None] * text.num_rows if sets is None else sets.to_pylist()):
        if cell is None or not cell.strip():
            counts.append(None)
            continue
        if cell not in known:
            try:
                known[cell] = count_of(parse_intervals(cell))
            except ValueError as error:
                raise TraceError(
                    text.file,
                    f"an interval set such as 0-7 12, of at most {MAX_RESOURCES:,} resources",
                    row=int(text.lines[row]),
                    column="allocated_resources",
                    value=cell,
                ) from error
        counts.append(known[cell])
    return pa.array(counts, pa.float64())


def _holdings(jobs: pa.Table) -> pa.Table | None:
    """Return which job had which resource when, None where nothing is known or far too much."""
    if "allocated_resources" not in jobs.column_names:
        return None
    sets = pc.utf8_trim_whitespace(jobs["allocated_resources"])
    known = pc.and_(pc.not_equal(sets, ""), pc.is_valid(jobs["start_time"]))
    spans = [parse_intervals(cell) for cell in sets.filter(known).to_pylist()]
    counts = [count_of(intervals) for intervals in spans]
    if not spans or sum(counts) > _MAX_HOLDINGS:
        return None
    numbers = [np.arange(low, high + 1) for intervals in spans for low, high in intervals]
    held = jobs.select(["job_id", "start_time", "end_time"]).filter(known)
    each = held.take(pa.array(np.repeat(np.arange(len(counts)), counts)))
    return companion(
        HOLDING_COLUMNS,
        {
            "node": pa.array(np.concatenate(numbers)).cast(pa.string()),
            **{name: each[name] for name in each.column_names},
        },
    )
