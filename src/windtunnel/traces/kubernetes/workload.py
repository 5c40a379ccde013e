"""Kueue's Workload: one job, with the runs that its versions tell.

Conditions and their reasons: kueue.sigs.k8s.io/docs/reference/kueue.v1beta1.

The runs of a Kueue workload, rebuilt from the conditions of all its versions.

An object keeps of each condition only the last transition: its earlier runs are in it no longer.
A watch log has every state, and so every admission and every eviction.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import msgspec

from windtunnel.traces.kubernetes.objects import Condition, Meta  # noqa: TC001 - msgspec reads them
from windtunnel.traces.kubernetes.resources import Count, Gang, Priority, Template
from windtunnel.traces.kubernetes.rows import JobRow, TaskRow, job_row

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from windtunnel.traces.kubernetes.objects import Place, Version

#: The order of what happens at one instant to a workload that does not run.
_ORDER = ("Admitted", "PodsReady", "Evicted", "Finished")
#: Conditions that `rebuild` reads.
READ = frozenset(_ORDER)
#: Reason of a run behind which another admission follows without an eviction between them.
NOT_SEEN = "eviction not in the file"


@dataclass(frozen=True)
class Transition:
    """A condition that became true.

    Attributes:
        time: when, UTC seconds since 1970.
        type: Admitted, PodsReady, Evicted or Finished.
        reason: the condition's reason.
    """

    time: float
    type: str
    reason: str


@dataclass
class Run:
    """One stay on GPUs.

    Attributes:
        admitted: when quota was given and all checks passed; None where only its end is known.
        ready: when all pods were ready; None = not known.
        end: when it was evicted or finished; None = it still runs, or nobody saw it end.
        reason: why it ended; empty = it still runs.
        evicted: it ended by an eviction.
    """

    admitted: float | None
    ready: float | None = None
    end: float | None = None
    reason: str = ""
    evicted: bool = False

    @property
    def start(self) -> float | None:
        """When all pods were ready, else when it was admitted."""
        return self.admitted if self.ready is None else self.ready

    @property
    def length(self) -> float | None:
        """Seconds from start to end, None where one of them is not known."""
        return None if self.end is None or self.start is None else self.end - self.start


def rebuild(transitions: Iterable[Transition]) -> list[Run]:
    """Return the runs that transitions tell, in order of time.

    ``PodsReady`` counts where it follows the admission; with the reason ``Recovered`` it tells
    when a pod came back, not when the run began. An eviction without an admission before it is a
    run of which only the end is known.

    Args:
        transitions: of all versions, in any order, repeated or not.
    """
    reasons = {(t.time, t.type): t.reason for t in transitions if t.type in READ}
    runs: list[Run] = []
    for time in sorted({time for time, _ in reasons}):
        kinds = [kind for kind in _ORDER if (time, kind) in reasons]
        if "Evicted" in kinds and _is_open(runs):  # a run ends before the next one begins
            kinds.sort(key=lambda kind: kind != "Evicted")
        for kind in kinds:
            _take(runs, kind, time, reasons[time, kind])
    return runs


def _is_open(runs: list[Run]) -> bool:
    return bool(runs) and not runs[-1].reason


def _take(runs: list[Run], kind: str, time: float, reason: str) -> None:
    """Let one transition happen."""
    if kind == "Admitted":
        if _is_open(runs):
            runs[-1].reason, runs[-1].evicted = NOT_SEEN, True
        runs.append(Run(time))
    elif kind == "PodsReady":
        if _is_open(runs) and runs[-1].ready is None and reason != "Recovered":
            runs[-1].ready = time
    elif _is_open(runs):
        runs[-1].end, runs[-1].reason = time, reason or kind
        runs[-1].evicted = kind == "Evicted"
    elif kind == "Evicted":
        runs.append(Run(None, end=time, reason=reason or kind, evicted=True))


_FINISHED = {
    "Succeeded": "completed",
    "JobFinished": "completed",  # before v0.7, for failures too: the message tells them apart
    "Failed": "failed",
    # Kueue gave up on the object, the program did not fail.
    "OutOfSync": "cancelled",
    "WorkloadSliceReplaced": "cancelled",
}
#: Why a workload was evicted. All but those that were deactivated wait in their queue again.
_EVICTED = {
    "Preempted": "preempted",
    "AdmissionCheck": "preempted",
    "ClusterQueueStopped": "preempted",
    "LocalQueueStopped": "preempted",
    "PodsReadyTimeout": "preempted",
    "NodeFailures": "node_fail",
    "Deactivated": "cancelled",
    "InactiveWorkload": "cancelled",  # what "Deactivated" was called before v0.9
    "DeactivatedDueToRequeuingLimitExceeded": "failed",
    "RequeuingLimitExceeded": "failed",
    "DeactivatedDueToMaximumExecutionTimeExceeded": "timeout",
    "MaximumExecutionTimeExceeded": "timeout",
    "DeactivatedDueToAdmissionCheck": "cancelled",
}
_LEFT_PREFIX = ("Deactivated", "Inactive", "RequeuingLimit", "MaximumExecution")


class _PodSet(msgspec.Struct):
    template: Template
    name: str = "main"
    count: Count = 1


class _Spec(msgspec.Struct, rename="camel"):
    pod_sets: list[_PodSet]
    queue_name: str | None = None
    priority: Priority | None = None
    maximum_execution_time_seconds: Count | None = None


class _Assignment(msgspec.Struct):
    name: str = "main"
    count: Count | None = None
    flavors: dict[str, str] | None = None


class _Admission(msgspec.Struct, rename="camel"):
    cluster_queue: str
    pod_set_assignments: list[_Assignment] | None = None


class _Evictions(msgspec.Struct):
    reason: str
    count: Count


class _Stats(msgspec.Struct):
    evictions: list[_Evictions] | None = None


class _Status(msgspec.Struct, rename="camel"):
    conditions: list[Condition] | None = None
    admission: _Admission | None = None
    scheduling_stats: _Stats | None = None


class _Workload(msgspec.Struct):
    metadata: Meta
    spec: _Spec
    status: _Status | None = None


@dataclass(frozen=True)
class SeenWorkload:
    """A workload of the file.

    Attributes:
        row: its job.
        runs: its runs, for `run_tasks`.
        owner_uids: uids of the objects for which it queues.
        strange: reasons that are not known.
        others: resources that count as no GPU, for a note.
        unseen: runs before evictions that the file does not tell.
    """

    row: JobRow
    runs: list[Run]
    owner_uids: list[str]
    strange: tuple[str, ...]
    others: frozenset[str]
    unseen: int


def read_workload(history: Sequence[Version], user_label: str | None) -> SeenWorkload:
    """Return what the versions of one workload tell.

    It starts when all its pods are ready (``PodsReady``), else when it is admitted; not when quota
    is reserved, which admission checks may follow. ``duration`` adds up its runs.

    Raises:
        TraceError: a field is missing or not what it should be; names object and path.
    """
    states = [v.place.shaped(v.body, _Workload, "Workload") for v in history]
    place, last = history[-1].place, states[-1]
    runs = rebuild(
        transition
        for version, state in zip(history, states, strict=True)
        for transition in _transitions(version.place, state)
    )
    meta = last.metadata
    row = job_row(meta, place, "Workload", user_label)
    row.priority = last.spec.priority
    row.estimate = last.spec.maximum_execution_time_seconds
    row.local_queue = last.spec.queue_name or None
    others = _add_requests(row, states, place)
    row.vc = row.cluster_queue or row.local_queue
    row.admitted_time = next((run.admitted for run in runs if run.admitted is not None), None)
    row.start_time = next((run.start for run in runs if run.start is not None), None)
    unseen = _add_evictions(row, states, runs)
    strange = _add_end(row, history[-1], last, runs)
    return SeenWorkload(row, runs, meta.owner_uids, strange, others, unseen)


def _transitions(place: Place, state: _Workload) -> list[Transition]:
    found = []
    for condition in _conditions(state).values():
        if condition.type in READ and condition.status == "True":
            column = f"status.conditions[{condition.type}].lastTransitionTime"
            time = place.instant(condition.last_transition_time, column)
            if time is None:
                raise place.error("a time", column=column)
            found.append(Transition(time, condition.type, condition.reason or ""))
    return found


def _conditions(state: _Workload) -> dict[str, Condition]:
    status = state.status
    return {c.type: c for c in (status.conditions if status else None) or ()}


def _add_requests(row: JobRow, states: Sequence[_Workload], place: Place) -> frozenset[str]:
    """Fill in what the workload asks for, as the last admission gave it to it."""
    admissions = [s.status.admission for s in states if s.status and s.status.admission]
    given: dict[str, _Assignment] = {}
    if admissions:
        row.cluster_queue = admissions[-1].cluster_queue
        given = {a.name: a for a in admissions[-1].pod_set_assignments or ()}
    gang = Gang()
    for pods in states[-1].spec.pod_sets:
        spec = pods.template.spec
        asked = place.amounts(spec.asked, f"spec.podSets[{pods.name}]")
        assigned = given.get(pods.name)
        count = pods.count if assigned is None or assigned.count is None else assigned.count
        flavors = (assigned.flavors if assigned else None) or {}
        gang.add(count, asked, spec.gpu_types(asked) | flavors)
    row.add_gang(gang)
    row.gpu_type = gang.gpu_type
    return frozenset(gang.others)


def _add_evictions(row: JobRow, states: Sequence[_Workload], runs: Sequence[Run]) -> int:
    """Count evictions as far as the file tells them; return how many runs it does not tell."""
    conditions = _conditions(states[-1])
    recorded: dict[str, int] = {}
    for state in states:
        stats = state.status.scheduling_stats if state.status else None
        sums: dict[str, int] = {}
        for entry in (stats.evictions if stats else None) or ():
            sums[entry.reason] = sums.get(entry.reason, 0) + entry.count
        recorded |= {reason: max(count, recorded.get(reason, 0)) for reason, count in sums.items()}
    over = [run for run in runs if run.evicted]
    row.num_evictions = max(
        len(over), sum(recorded.values()), int("Evicted" in conditions or "Requeued" in conditions)
    )
    row.num_preemptions = max(
        sum(run.reason == "Preempted" for run in over),
        recorded.get("Preempted", 0),
        int("Preempted" in conditions),
    )
    row.evicted_time = max((run.end for run in over if run.end is not None), default=None)
    return row.num_evictions - sum(run.length is not None for run in over)


def _add_end(row: JobRow, version: Version, state: _Workload, runs: list[Run]) -> tuple[str, ...]:
    """Fill in how it ended and how long it ran; return the reasons that are not known."""
    place = version.place
    strange: tuple[str, ...] = ()
    finished = _conditions(state).get("Finished")
    last = runs[-1] if runs else None
    if finished is not None and finished.status == "True":
        column = "status.conditions[Finished].lastTransitionTime"
        row.end_time = place.instant(finished.last_transition_time, column)
        row.reason = finished.reason
        row.status, strange = _finish(finished)
    elif version.deleted:
        column = "metadata.deletionTimestamp"
        row.end_time = place.instant(state.metadata.deletion_timestamp, column)
        row.status, row.reason = "cancelled", "Deleted"
        if last is not None and not last.reason:
            last.end, last.reason = row.end_time, "Deleted"
    elif last is not None and last.evicted:
        row.reason = last.reason
        row.status, strange = _eviction(last.reason)
        if last.reason.startswith(_LEFT_PREFIX):
            row.end_time = last.end
    else:
        row.status = "pending" if last is None else "running"
    lengths = [run.length for run in runs if run.length is not None]
    if lengths and row.status != "running":
        row.duration = sum(lengths)
    return strange


def _finish(condition: Condition) -> tuple[str, tuple[str, ...]]:
    reason = condition.reason or ""
    if reason == "JobFinished" and "fail" in (condition.message or "").lower():
        return "failed", ()
    status = _FINISHED.get(reason, "unknown")
    return status, (reason,) if reason not in _FINISHED else ()


def _eviction(reason: str) -> tuple[str, tuple[str, ...]]:
    if reason in _EVICTED:
        return _EVICTED[reason], ()
    if reason.startswith(_LEFT_PREFIX):
        return "cancelled", ()
    return "preempted", () if reason == NOT_SEEN else (reason,)


def run_tasks(seen: SeenWorkload) -> list[TaskRow]:
    """Return the runs of a workload whose start is known, as tasks ``job_id#1``, ``#2``, ..."""
    job = seen.row
    found = []
    for number, run in enumerate((run for run in seen.runs if run.start is not None), 1):
        status = _eviction(run.reason)[0] if run.evicted else job.status
        found.append(
            TaskRow(
                task_id=f"{job.job_id}#{number}",
                job=job,
                start_time=run.start,
                end_time=run.end,
                status=status if run.reason else "running",
                num_gpus=job.num_gpus,
                num_cpus=job.num_cpus,
                mem_gib=job.mem_gib,
            )
        )
    return found
