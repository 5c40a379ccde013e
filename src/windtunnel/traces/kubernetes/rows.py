"""Rows of jobs and of tasks, as the readers of Kubernetes objects fill them.

Times in rows are UTC seconds since 1970; the tables have them since the trace's epoch.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from windtunnel.companions import TASK_COLUMNS, companion

if TYPE_CHECKING:
    from collections.abc import Sequence

    from windtunnel.traces.kubernetes.objects import Meta, Place
    from windtunnel.traces.kubernetes.resources import Gang

#: Labels and annotations that name a job's user, the first that is there.
_USER_KEYS = (
    "user",
    "username",
    "owner",
    "submitter",
    "hub.jupyter.org/username",
    "app.kubernetes.io/created-by",
)
_TIMES = (
    *("submit_time", "start_time", "end_time"),
    *("admitted_time", "evicted_time"),
)
#: Types of columns by the annotation of the field.
_TYPES = {"str": pa.string(), "int": pa.int64(), "float": pa.float64()}


@dataclass(kw_only=True)
class JobRow:
    """One job: the columns of the jobs table that Kubernetes knows, and the extras.

    Attributes:
        job_id: namespace/name; see `unique_ids`.
        number: which object of the file it is, from 1.
        num_mig: slices of GPUs (MIG), which ``num_gpus`` leaves out.
        num_pods: all pods, those without a GPU too.
        reason: why it ended, was evicted or failed, in Kubernetes' words.
        admitted_time: when Kueue admitted it first.
        evicted_time: when Kueue evicted it last.
        num_evictions: how often it was evicted, for whatever reason.
        num_preemptions: how often it was preempted.
    """

    job_id: str
    number: int
    submit_time: float | None = None
    start_time: float | None = None
    end_time: float | None = None
    duration: float | None = None
    estimate: float | None = None
    num_gpus: float | None = None
    num_tasks: int | None = None
    num_cpus: float | None = None
    mem_gib: float | None = None
    gpu_type: str | None = None
    user: str | None = None
    vc: str | None = None
    template: str | None = None
    status: str = "unknown"
    priority: float | None = None
    kind: str = ""
    uid: str | None = None
    local_queue: str | None = None
    cluster_queue: str | None = None
    reason: str | None = None
    num_mig: float | None = None
    num_pods: int | None = None
    admitted_time: float | None = None
    evicted_time: float | None = None
    num_evictions: int | None = None
    num_preemptions: int | None = None

    def add_gang(self, gang: Gang) -> None:
        """Take over what the job's pods ask for together."""
        self.num_gpus, self.num_mig = gang.gpus, gang.mig
        self.num_cpus, self.mem_gib = gang.cpus, gang.mem_gib
        self.num_tasks, self.num_pods = gang.tasks, gang.pods

    def add_span(self) -> None:
        """Make the duration the time from start to end."""
        if self.start_time is not None and self.end_time is not None:
            self.duration = self.end_time - self.start_time


@dataclass(kw_only=True)
class TaskRow:
    """One pod of a job, or one run of a workload; columns of `windtunnel.companions.TASK_COLUMNS`.

    Attributes:
        job: the row of the job that it belongs to.
    """

    task_id: str
    job: JobRow
    node: str | None = None
    start_time: float | None = None
    end_time: float | None = None
    status: str = "unknown"
    num_gpus: float | None = None
    num_cpus: float | None = None
    mem_gib: float | None = None


def job_row(meta: Meta, place: Place, kind: str, user_label: str | None) -> JobRow:
    """Return the row of an object with what its metadata tell; see `user_of`."""
    return JobRow(
        job_id=meta.full_name,
        number=place.number,
        submit_time=place.instant(meta.creation_timestamp, "metadata.creationTimestamp"),
        user=user_of(meta, user_label),
        template=meta.owner,
        kind=kind,
        uid=meta.uid,
    )


def user_of(meta: Meta, key: str | None) -> str | None:
    """Return the user that labels or annotations name.

    Args:
        meta: the object's metadata.
        key: the label or annotation to look at; None = the usual ones.
    """
    for words in (meta.labels or {}, meta.annotations or {}):
        for name in _USER_KEYS if key is None else (key,):
            if words.get(name):
                return words[name]
    return None


def unique_ids(rows: Sequence[JobRow]) -> int:
    """Put the uid (else the object's number) behind ids that stand for several objects.

    Returns:
        How many rows were renamed.
    """
    counts: dict[str, int] = {}
    for row in rows:
        counts[row.job_id] = counts.get(row.job_id, 0) + 1
    renamed = [row for row in rows if counts[row.job_id] > 1]
    for row in renamed:
        row.job_id = f"{row.job_id}/{row.uid or row.number}"
    return len(renamed)


def jobs_table(rows: Sequence[JobRow], epoch: float | None) -> pa.Table:
    """Return the rows as an Arrow table, times since the epoch (None = 1970)."""
    return pa.table(_columns(JobRow, rows, "number", epoch))


def tasks_table(rows: Sequence[TaskRow], epoch: float | None) -> pa.Table | None:
    """Return the tasks as `windtunnel.companions.TASK_COLUMNS`, None where there is none."""
    if not rows:
        return None
    ids = {"job_id": pa.array([row.job.job_id for row in rows], pa.string())}
    return companion(TASK_COLUMNS, ids | _columns(TaskRow, rows, "job", epoch))


def _columns(
    kind: type[JobRow | TaskRow], rows: Sequence[Any], without: str, epoch: float | None
) -> dict[str, pa.Array]:
    """Return the fields of rows as columns, but for one."""
    columns = {}
    for field in fields(kind):
        if field.name != without:
            values = [getattr(row, field.name) for row in rows]
            if field.name in _TIMES:
                values = [None if value is None else value - (epoch or 0.0) for value in values]
            columns[field.name] = pa.array(values, _TYPES[str(field.type).partition(" ")[0]])
    return columns
