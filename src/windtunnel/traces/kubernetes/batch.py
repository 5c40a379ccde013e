"""Plain Kubernetes: Job (batch/v1), Pod, and PodGroup (Volcano, coscheduling).

Fields: kubernetes.io/docs/reference/kubernetes-api/workload-resources; volcano.sh/docs/podgroup.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Generic, TypeVar

import msgspec

from windtunnel.traces.kubernetes.objects import Condition, Meta  # noqa: TC001 - msgspec reads them
from windtunnel.traces.kubernetes.resources import Count, Gang, PodSpec, Template, quantities
from windtunnel.traces.kubernetes.rows import JobRow, TaskRow, job_row

if TYPE_CHECKING:
    from windtunnel.traces.kubernetes.objects import Place, Version

_PHASES = {
    "Succeeded": "completed",
    "Failed": "failed",
    "Running": "running",
    "Pending": "pending",
    "Unknown": "unknown",
}
_GROUP_PHASES = {
    "Pending": "pending",
    "Inqueue": "pending",
    "PreScheduling": "pending",
    "Scheduling": "pending",
    "Scheduled": "running",
    "Running": "running",
    "Completed": "completed",
    "Finished": "completed",
    "Failed": "failed",
}
#: Why a pod failed, where its own or a condition's reason says more than "Failed".
_POD_REASONS = {
    "DeadlineExceeded": "timeout",
    "Evicted": "preempted",
    "Preempting": "preempted",
    "PreemptionByScheduler": "preempted",
    "NodeLost": "node_fail",
    "NodeShutdown": "node_fail",
    "Terminated": "node_fail",  # by the shutdown of its node
    "TerminationByKubelet": "node_fail",
    "DeletionByTaintManager": "node_fail",
    "DeletionByPodGC": "node_fail",
    "EvictionByEvictionAPI": "preempted",
    "OOMKilled": "out_of_memory",
}


class _Terminated(msgspec.Struct, rename="camel"):
    finished_at: str | None = None
    reason: str | None = None


class _ContainerState(msgspec.Struct):
    terminated: _Terminated | None = None


class _ContainerStatus(msgspec.Struct):
    state: _ContainerState | None = None


class _Status(msgspec.Struct, rename="camel"):
    """What a Pod, a Job or a PodGroup has become; each has some of these."""

    phase: str | None = None
    reason: str | None = None
    start_time: str | None = None
    completion_time: str | None = None
    conditions: list[Condition] | None = None
    container_statuses: list[_ContainerStatus] | None = None


class _JobSpec(msgspec.Struct, rename="camel"):
    template: Template
    parallelism: Count | None = None
    completions: Count | None = None
    active_deadline_seconds: Count | None = None


class _GroupSpec(msgspec.Struct, rename="camel"):
    min_member: Count | None = None
    queue: str | None = None
    min_resources: dict[str, str | int | float] | None = None


Spec = TypeVar("Spec")


class _Object(msgspec.Struct, Generic[Spec]):
    metadata: Meta
    spec: Spec
    status: _Status | None = None


def read_pod(version: Version, user_label: str | None) -> tuple[JobRow, TaskRow, list[str]]:
    """Return a pod as a job of its own and as a task, and the uids of what owns it.

    It runs from ``status.startTime`` to the last ``finishedAt`` of its containers.

    Raises:
        TraceError: a field is missing or not what it should be.
    """
    place = version.place
    pod = place.shaped(version.body, _Object[PodSpec], "Pod")
    status = pod.status or _Status()
    row = _row(pod.metadata, place, "Pod", user_label)
    row.add_gang(_gang(place, pod.spec, 1, row))
    row.priority = pod.spec.priority
    row.estimate = pod.spec.active_deadline_seconds
    row.start_time = place.instant(status.start_time, "status.startTime")
    ends = [
        place.instant(over.finished_at, "status.containerStatuses[].state.terminated.finishedAt")
        for over in _terminated(status)
    ]
    row.status = _PHASES.get(status.phase or "", "unknown")
    if row.status in {"completed", "failed"}:
        row.end_time = max((end for end in ends if end is not None), default=None)
    if row.status == "failed":
        row.status, row.reason = _why(status)
    _add_deletion(row, version, pod.metadata)
    row.add_span()
    task = TaskRow(
        task_id=row.job_id,
        job=row,
        node=pod.spec.node_name,
        start_time=row.start_time,
        end_time=row.end_time,
        status=row.status,
        num_gpus=row.num_gpus,
        num_cpus=row.num_cpus,
        mem_gib=row.mem_gib,
    )
    return row, task, pod.metadata.owner_uids


def _terminated(status: _Status) -> list[_Terminated]:
    states = [s.state for s in status.container_statuses or () if s.state is not None]
    return [state.terminated for state in states if state.terminated is not None]


def _why(status: _Status) -> tuple[str, str | None]:
    """Return why a pod failed, in our words and in Kubernetes'."""
    targets = [c.reason for c in status.conditions or () if c.type == "DisruptionTarget"]
    over = [end.reason for end in _terminated(status)]
    given = [reason for reason in (status.reason, *targets, *over) if reason]
    known = next((reason for reason in given if reason in _POD_REASONS), None)
    if known is not None:
        return _POD_REASONS[known], known
    return "failed", next(iter(given), None)


def read_job(version: Version, user_label: str | None) -> tuple[JobRow, list[str]]:
    """Return a batch Job, and the uids of what owns it.

    The gang is its ``parallelism``, but no more than its ``completions``. It ends with its
    condition Complete or Failed.

    Raises:
        TraceError: a field is missing or not what it should be.
    """
    place = version.place
    job = place.shaped(version.body, _Object[_JobSpec], "Job")
    status = job.status or _Status()
    row = _row(job.metadata, place, "Job", user_label)
    pods = 1 if job.spec.parallelism is None else job.spec.parallelism
    if job.spec.completions is not None:
        pods = min(pods, job.spec.completions)
    row.add_gang(_gang(place, job.spec.template.spec, pods, row))
    row.priority = job.spec.template.spec.priority
    row.estimate = job.spec.active_deadline_seconds
    row.start_time = place.instant(status.start_time, "status.startTime")
    row.status = "pending" if row.start_time is None else "running"
    true = {c.type: c for c in status.conditions or () if c.status == "True"}
    if "Complete" in true or "Failed" in true:
        over = true.get("Complete") or true["Failed"]
        column = f"status.conditions[{over.type}].lastTransitionTime"
        row.status = "completed" if over.type == "Complete" else "failed"
        row.reason = over.reason if over.type == "Failed" else None
        if over.reason == "DeadlineExceeded":
            row.status = "timeout"
        row.end_time = place.instant(status.completion_time or over.last_transition_time, column)
    elif "Suspended" in true:
        row.status = "pending"
    _add_deletion(row, version, job.metadata)
    row.add_span()
    return row, job.metadata.owner_uids


def read_group(version: Version, user_label: str | None) -> tuple[JobRow, list[str]]:
    """Return a PodGroup, and the uids of what owns it.

    ``num_tasks`` is ``minMember``, what it asks for ``minResources``. It starts with its condition
    Scheduled; when it ended is not in it.

    Raises:
        TraceError: a field is missing or not what it should be.
    """
    place = version.place
    group = place.shaped(version.body, _Object[_GroupSpec], "PodGroup")
    row = _row(group.metadata, place, "PodGroup", user_label)
    if group.spec.min_resources is not None:
        gang, asked = Gang(), group.spec.min_resources
        gang.add(1, place.amounts(lambda: quantities(asked), "spec.minResources"), {})
        row.add_gang(gang)
    row.num_tasks = row.num_pods = group.spec.min_member or None
    row.vc = row.local_queue = group.spec.queue
    status = group.status or _Status()
    row.status = _GROUP_PHASES.get(status.phase or "", "unknown")
    for condition in status.conditions or ():
        if condition.type == "Scheduled" and condition.status == "True":
            column = "status.conditions[Scheduled].lastTransitionTime"
            row.start_time = place.instant(condition.last_transition_time, column)
    _add_deletion(row, version, group.metadata)
    return row, group.metadata.owner_uids


def _row(meta: Meta, place: Place, kind: str, user_label: str | None) -> JobRow:
    row = job_row(meta, place, kind, user_label)
    row.vc = meta.namespace
    return row


def _gang(place: Place, spec: PodSpec, count: int, row: JobRow) -> Gang:
    """Return what ``count`` pods ask for, and fill in the type that they select."""
    asked = place.amounts(spec.asked, "spec resources")
    gang = Gang()
    gang.add(count, asked, spec.gpu_types(asked))
    row.gpu_type = gang.gpu_type
    return gang


def _add_deletion(row: JobRow, version: Version, meta: Meta) -> None:
    """Mark as cancelled what was deleted before it ended."""
    if version.deleted and row.status in {"running", "pending", "unknown"}:
        row.status, row.reason = "cancelled", "Deleted"
        if row.end_time is None:
            row.end_time = version.place.instant(
                meta.deletion_timestamp, "metadata.deletionTimestamp"
            )
