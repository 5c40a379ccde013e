"""Kueue workloads, and plain Kubernetes jobs and pods, as ``kubectl get -o json`` prints them.

Kinds that are read: Workload (kueue.x-k8s.io), Job (batch), Pod and PodGroup (Volcano, or the
coscheduling plugin); others are counted. Times are UTC.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from windtunnel.errors import quote
from windtunnel.traces.header import begun
from windtunnel.traces.job_trace import counted, job_trace
from windtunnel.traces.json_text import json_values
from windtunnel.traces.kubernetes.batch import read_group, read_job, read_pod
from windtunnel.traces.kubernetes.objects import Objects, sort_objects
from windtunnel.traces.kubernetes.rows import JobRow, TaskRow, jobs_table, tasks_table, unique_ids
from windtunnel.traces.kubernetes.workload import SeenWorkload, read_workload, run_tasks
from windtunnel.traces.readers import reader
from windtunnel.traces.source import read_bytes, source_name

if TYPE_CHECKING:
    from pathlib import Path

    from windtunnel.traces.trace import Trace

_KINDS = ("Workload", "PodGroup", "Job", "Pod")
_STRANGE_SHOWN = 5


def _looks_kube(head: bytes) -> bool:
    start = begun(head)
    named = b'"apiVersion"' in start or (b'"kind"' in start and b'"metadata"' in start)
    return start.startswith((b"{", b"[")) and named


@reader("kubernetes")
@reader("kueue", extensions=(".json", ".jsonl", ".ndjson"), sniff=_looks_kube)
def read_kueue(
    path: str | Path, *, user_label: str | None = None, bad_rows: str = "raise"
) -> Trace:
    """Read Kubernetes objects: one, a List, or what a watch printed.

    A Workload becomes one job. ``start_time`` is when all its pods were ready (``PodsReady``), else
    when it was admitted; ``end_time`` when it finished; ``duration`` the sum of its runs. An object
    keeps the last transition of each condition only; a watch log (``kubectl get workloads -w -o
    json``) keeps all, and then each run between an admission and an eviction is a row of
    ``Trace.tasks``. ``vc`` is the ClusterQueue, before admission the LocalQueue, for other kinds
    the namespace; ``gpu_type`` the flavour that was assigned, else the type that the pods select.
    ``num_gpus`` counts ``*/gpu``; slices (``nvidia.com/mig-*``) are in ``num_mig``. ``num_tasks``
    counts the pods that ask for GPUs, or all where none does; ``num_pods`` counts all.

    A Job, PodGroup or Pod is a job where no Workload (or Job) of the file stands for it; pods are
    rows of ``Trace.tasks``, with their nodes. Further columns: ``kind``, ``uid``, ``local_queue``,
    ``cluster_queue``, ``reason``, ``num_mig``, ``num_pods``, ``admitted_time``, ``evicted_time``,
    ``num_evictions``, ``num_preemptions``.

    Args:
        path: plain or gzip JSON; ``-`` = standard input.
        user_label: label or annotation that names a job's user; None = the usual ones.
        bad_rows: ``raise``, or ``drop``: leave out, counted, rows that break a rule.

    Raises:
        TraceError: not JSON, not such objects, or a field that is not what it should be; names the
            object and the field.
        SchemaError: rules of the schema are broken (a start before its submission); rows are
            objects of the file.
    """
    file = source_name(path)
    objects = sort_objects(json_values(read_bytes(path), file), file, _KINDS)
    found = _rows(objects, user_label)
    renamed = unique_ids(found.rows)
    known = [row.submit_time for row in found.rows if row.submit_time is not None]
    epoch = min(known, default=None)
    trace = job_trace(
        path,
        jobs_table(found.rows, epoch),
        [row.number for row in found.rows],
        bad_rows=bad_rows,
        notes=_notes(found, renamed, len(known)),
        epoch=epoch,
        counted="rows are objects of the file",
        dropped=objects.dropped,
        zone="UTC",
    )
    ids = trace.jobs["job_id"].to_pylist()
    return replace(trace, tasks=tasks_table(_kept(found, ids), epoch))


@dataclass
class _Found:
    """The rows of a file."""

    rows: list[JobRow] = field(default_factory=list)
    pods: list[TaskRow] = field(default_factory=list)
    workloads: list[SeenWorkload] = field(default_factory=list)
    #: uid of an object -> the row that stands for it.
    covered: dict[str, JobRow] = field(default_factory=dict)

    def row_of(self, row: JobRow, owners: list[str]) -> JobRow | None:
        """Return the row that stands for an object already, if one does."""
        uids = [row.uid, *owners]
        return next((self.covered[uid] for uid in uids if uid in self.covered), None)

    def add(self, row: JobRow, *uids: str) -> None:
        """Add a job that stands for the objects of these uids, too."""
        self.rows.append(row)
        for uid in (row.uid, *uids):
            if uid is not None:
                self.covered.setdefault(uid, row)


def _rows(objects: Objects, user_label: str | None) -> _Found:
    """Return jobs and pods, each object once: Workload before PodGroup before Job before Pod."""
    found = _Found()
    for history in objects.histories["Workload"]:
        seen = read_workload(history, user_label)
        found.workloads.append(seen)
        found.add(seen.row, *seen.owner_uids)
    for history in objects.histories["PodGroup"]:
        row, owners = read_group(history[-1], user_label)
        above = found.row_of(row, owners)
        if above is None:
            found.add(row, *owners)
        else:
            objects.drop(f"PodGroup of a {above.kind} of the file")
    for history in objects.histories["Job"]:
        row, owners = read_job(history[-1], user_label)
        above = found.row_of(row, owners)
        if above is None:
            found.add(row)
            continue
        objects.drop(f"Job of a {above.kind} of the file")
        if row.uid is not None:  # its pods name the Job as their owner
            found.covered[row.uid] = above
    for history in objects.histories["Pod"]:
        row, task, owners = read_pod(history[-1], user_label)
        above = found.row_of(row, owners)
        if above is None:
            found.add(row)
        else:
            objects.drop(f"Pod of a {above.kind} of the file (a row of the tasks)")
            task.job = above
        found.pods.append(task)
    return found


def _kept(found: _Found, ids: list[str]) -> list[TaskRow]:
    """Return the pods, and the runs of the workloads whose pods are not there."""
    jobs = set(ids)
    shown = {id(task.job) for task in found.pods}
    runs = [run for seen in found.workloads if id(seen.row) not in shown for run in run_tasks(seen)]
    return [task for task in (*found.pods, *runs) if task.job.job_id in jobs]


def _notes(found: _Found, renamed: int, known: int) -> tuple[str, ...]:
    strange: dict[str, int] = {}
    others: set[str] = set()
    for seen in found.workloads:
        others |= seen.others
        for reason in seen.strange:
            strange[reason] = strange.get(reason, 0) + 1
    shown = ", ".join(quote(reason) for reason in list(strange)[:_STRANGE_SHOWN])
    uncounted = ", ".join(quote(name) for name in sorted(others)[:_STRANGE_SHOWN])
    unseen = sum(seen.unseen > 0 for seen in found.workloads)
    counts = (
        (unseen, "Workloads with evicted runs that the file does not tell (a watch log does)"),
        (sum(strange.values()), f"Workloads that ended for a reason that is not known ({shown})"),
        (
            sum(bool(row.num_mig) for row in found.rows),
            "Jobs that ask for slices of GPUs, which are in num_mig and not in num_gpus",
        ),
        (len(others), f"Resources that count as no GPU ({uncounted})"),
        (renamed, "Objects of one name, distinguished by their uid"),
        (len(found.rows) - known, "Objects without a creation time (they stand last)"),
    )
    return tuple(counted(counts))
