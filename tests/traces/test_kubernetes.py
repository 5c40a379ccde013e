"""Kueue workloads and plain Kubernetes objects."""

from __future__ import annotations

import copy
import gzip
import json
import re
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from windtunnel.companions import TASK_COLUMNS
from windtunnel.errors import SchemaError, TraceError, WindtunnelError
from windtunnel.traces.kubernetes.reader import read_kueue
from windtunnel.traces.kubernetes.resources import PodSpec, quantity
from windtunnel.traces.kubernetes.workload import Transition, rebuild
from windtunnel.traces.philly_raw import read_philly_raw
from windtunnel.traces.readers import reader_for, reader_named

if TYPE_CHECKING:
    from pathlib import Path

    from windtunnel.traces.trace import Trace

CREATED = "2025-10-06T12:00:00Z"


def at(seconds: int) -> str:
    """The time so many seconds after creation, as Kubernetes writes it."""
    return f"2025-10-06T{12 + seconds // 3600:02d}:{seconds // 60 % 60:02d}:{seconds % 60:02d}Z"


def condition(kind: str, seconds: int, reason: str = "", status: str = "True") -> dict[str, str]:
    return {"type": kind, "status": status, "reason": reason, "lastTransitionTime": at(seconds)}


def container(**requests: str) -> dict[str, Any]:
    named = {
        {"gpu": "nvidia.com/gpu", "mem": "memory"}.get(name, name): text
        for name, text in requests.items()
    }
    return {"name": "c", "resources": {"requests": named}}


def pod_set(count: int, *containers: dict[str, Any], name: str = "main") -> dict[str, Any]:
    return {"name": name, "count": count, "template": {"spec": {"containers": list(containers)}}}


def workload(
    name: str = "w",
    *conditions: dict[str, str],
    pods: list[dict[str, Any]] | None = None,
    admission: dict[str, Any] | None = None,
    spec: dict[str, Any] | None = None,
    status: dict[str, Any] | None = None,
    **metadata: Any,
) -> dict[str, Any]:
    meta = {"name": name, "namespace": "team", "uid": f"uid-{name}", "creationTimestamp": CREATED}
    return {
        "apiVersion": "kueue.x-k8s.io/v1beta1",
        "kind": "Workload",
        "metadata": meta | metadata,
        "spec": {
            "queueName": "local",
            "podSets": pods or [pod_set(1, container(cpu="1", mem="1Gi", gpu="1"))],
            **(spec or {}),
        },
        "status": {"conditions": list(conditions)}
        | ({"admission": admission} if admission else {})
        | (status or {}),
    }


def read(tmp_path: Path, *objects: dict[str, Any], **options: Any) -> Trace:
    path = tmp_path / "objects.json"
    path.write_text(json.dumps({"kind": "List", "apiVersion": "v1", "items": list(objects)}))
    return read_kueue(path, **options)


def job(tmp_path: Path, *objects: dict[str, Any], **options: Any) -> dict[str, Any]:
    """The one job of some objects, without what is unknown."""
    (row,) = read(tmp_path, *objects, **options).jobs.to_pylist()
    return {name: value for name, value in row.items() if value is not None}


FINISHED = (
    condition("QuotaReserved", 60),
    condition("Admitted", 60),
    condition("PodsReady", 130, "Started"),
    condition("Finished", 7330, "Succeeded"),
)
ADMISSION = {
    "clusterQueue": "cq",
    "podSetAssignments": [
        {"name": "main", "count": 4, "flavors": {"cpu": "any", "nvidia.com/gpu": "a100"}}
    ],
}


def test_a_finished_workload(tmp_path: Path) -> None:
    pods = [pod_set(4, container(cpu="500m", mem="1536Mi", gpu="8"), container(cpu="2"))]
    row = job(
        tmp_path,
        workload(
            "w",
            *FINISHED,
            pods=pods,
            admission=ADMISSION,
            spec={"priority": 7, "maximumExecutionTimeSeconds": 9000},
            labels={"user": "ann"},
            ownerReferences=[{"kind": "Job", "name": "train", "uid": "j1"}],
        ),
    )
    assert row == {
        "job_id": "team/w",
        "submit_time": 0.0,
        "start_time": 130.0,
        "end_time": 7330.0,
        "duration": 7200.0,
        "estimate": 9000.0,
        "num_gpus": 32.0,
        "num_tasks": 4,
        "num_cpus": 10.0,
        "mem_gib": 6.0,
        "gpu_type": "a100",
        "user": "ann",
        "vc": "cq",
        "template": "train",
        "status": "completed",
        "priority": 7.0,
        "kind": "Workload",
        "uid": "uid-w",
        "local_queue": "local",
        "cluster_queue": "cq",
        "reason": "Succeeded",
        "num_mig": 0.0,
        "num_pods": 4,
        "admitted_time": 60.0,
        "num_evictions": 0,
        "num_preemptions": 0,
    }


@pytest.mark.parametrize(
    ("conditions", "status", "times"),
    [
        ((), "pending", (None, None, None)),
        ([condition("QuotaReserved", 60)], "pending", (None, None, None)),
        ([condition("QuotaReserved", 60, status="False")], "pending", (None, None, None)),
        ([condition("Admitted", 60)], "running", (60.0, None, None)),
        ([condition("Admitted", 60), condition("PodsReady", 70)], "running", (70.0, None, None)),
        (
            [condition("Admitted", 60), condition("PodsReady", 90, "Recovered")],
            "running",
            (60.0, None, None),
        ),
        (
            [condition("Admitted", 60), condition("PodsReady", 50, status="False")],
            "running",
            (60.0, None, None),
        ),
        ([*FINISHED[:3], condition("Finished", 140, "Failed")], "failed", (130.0, 140.0, 10.0)),
        ([*FINISHED[:2], condition("Finished", 70, "OutOfSync")], "cancelled", (60.0, 70.0, 10.0)),
        ([*FINISHED[:2], condition("Finished", 70, "Odd")], "unknown", (60.0, 70.0, 10.0)),
        ([condition("Finished", 70, "Succeeded")], "completed", (None, 70.0, None)),
        ([condition("Evicted", 70, "NodeFailures")], "node_fail", (None, None, None)),
        ([condition("Evicted", 70, "Deactivated")], "cancelled", (None, 70.0, None)),
        (
            [condition("Evicted", 70, "DeactivatedDueToMaximumExecutionTimeExceeded")],
            "timeout",
            (None, 70.0, None),
        ),
        ([condition("Evicted", 70, "New", "False"), *FINISHED], "completed", (130.0, 7330.0, 7200)),
    ],
)
def test_states(
    tmp_path: Path, conditions: list[dict[str, str]], status: str, times: tuple[float | None, ...]
) -> None:
    row = job(tmp_path, workload("w", *conditions))
    assert row["status"] == status
    assert tuple(row.get(n) for n in ("start_time", "end_time", "duration")) == times


def test_unknown_reasons_are_noted(tmp_path: Path) -> None:
    trace = read(tmp_path, workload("w", *FINISHED[:2], condition("Finished", 70, "Odd")))
    assert any("'Odd'" in note for note in trace.metadata.notes)


def test_what_the_old_reason_hides_stands_in_the_message(tmp_path: Path) -> None:
    for message, status in (("Job finished successfully", "completed"), ("Job failed", "failed")):
        over = condition("Finished", 70, "JobFinished") | {"message": message}
        assert job(tmp_path, workload("w", *FINISHED[:2], over))["status"] == status


def test_a_preempted_workload_in_a_snapshot(tmp_path: Path) -> None:
    """It has only the last transition of each condition: when it ran first is not in it."""
    seen = workload(
        "w",
        condition("QuotaReserved", 65, "Pending", "False"),
        condition("Admitted", 65, "NoReservation", "False"),
        condition("Evicted", 60, "Preempted"),
        condition("Preempted", 60, "InCohortReclamation"),
        condition("Requeued", 65, "Preempted"),
        status={"schedulingStats": {"evictions": [
            {"reason": "Preempted", "underlyingCause": "a", "count": 2},
            {"reason": "Preempted", "underlyingCause": "b", "count": 1},
            {"reason": "PodsReadyTimeout", "underlyingCause": "", "count": 4},
        ]}},
    )  # fmt: skip
    trace = read(tmp_path, seen)
    (row,) = trace.jobs.to_pylist()
    assert (row["status"], row["reason"], row["evicted_time"]) == ("preempted", "Preempted", 60.0)
    assert (row["start_time"], row["end_time"], row["duration"]) == (None, None, None)
    assert (row["num_evictions"], row["num_preemptions"]) == (7, 3)
    assert row["vc"] == "local"
    assert trace.tasks is None
    assert any("watch log" in note for note in trace.metadata.notes)


#: A workload that is preempted once, and twice admitted: its states as a watch sees them.
HISTORY = (
    (condition("Admitted", 60), condition("PodsReady", 70, "Started")),
    (
        condition("Admitted", 60),
        condition("PodsReady", 70, "Started"),
        condition("Evicted", 100, "Preempted"),
        condition("Preempted", 100, "InClusterQueue"),
    ),
    (
        condition("Admitted", 101, "NoReservation", "False"),
        condition("PodsReady", 101, "WaitForStart", "False"),
        condition("Evicted", 100, "Preempted"),
        condition("Requeued", 101, "Preempted"),
    ),
    (condition("Admitted", 200), condition("Evicted", 200, "QuotaReserved", "False")),
    (
        condition("Admitted", 200),
        condition("PodsReady", 230, "Started"),
        condition("Evicted", 200, "QuotaReserved", "False"),
        condition("Finished", 300, "Succeeded"),
    ),
)


@pytest.mark.parametrize("how", ["lines", "pretty", "events", "list"])
def test_a_watch_log_tells_every_run(tmp_path: Path, how: str) -> None:
    states = [workload("w", *conditions) for conditions in HISTORY]
    if how == "events":
        states = [{"type": "MODIFIED", "object": state} for state in states]
        states.insert(0, {"type": "BOOKMARK", "object": {"kind": "Workload", "metadata": {}}})
    if how == "list":
        text = json.dumps(states)
    else:
        text = "\n".join(json.dumps(s, indent=4 if how == "pretty" else None) for s in states)
    path = tmp_path / "log.jsonl"
    path.write_text(text)
    trace = read_kueue(path)
    (row,) = trace.jobs.to_pylist()
    assert (row["start_time"], row["end_time"], row["duration"]) == (70.0, 300.0, 100.0)
    assert (row["status"], row["num_evictions"], row["num_preemptions"]) == ("completed", 1, 1)
    assert (row["admitted_time"], row["evicted_time"]) == (60.0, 100.0)
    assert trace.metadata.rows_read == len(states)
    assert trace.metadata.dropped["earlier version of the same object"] == 4
    assert trace.metadata.rows_read == 1 + sum(trace.metadata.dropped.values())
    assert trace.tasks is not None
    assert trace.tasks.column_names == [column.name for column in TASK_COLUMNS]
    names = ("task_id", "job_id", "start_time", "end_time", "status", "num_gpus")
    assert trace.tasks.select(names).to_pylist() == [
        dict(zip(names, ("team/w#1", "team/w", 70.0, 100.0, "preempted", 1.0), strict=True)),
        dict(zip(names, ("team/w#2", "team/w", 230.0, 300.0, "completed", 1.0), strict=True)),
    ]


def test_a_deleted_object_ends(tmp_path: Path) -> None:
    gone = workload("w", condition("Admitted", 60), deletionTimestamp=at(90))
    row = job(tmp_path, {"type": "DELETED", "object": gone})
    assert (row["status"], row["end_time"], row["duration"]) == ("cancelled", 90.0, 30.0)
    still = job(tmp_path, gone)
    assert (still["status"], still.get("end_time")) == ("running", None)


@st.composite
def histories(draw: st.DrawFn) -> list[tuple[int, int, int]]:
    """Runs as (admitted, ready, end), one after the other; at one instant they may touch."""
    runs, now = [], 0
    for _ in range(draw(st.integers(1, 6))):
        admitted = now + draw(st.integers(0, 3))
        ready = admitted + draw(st.integers(0, 3))
        now = ready + draw(st.integers(1, 3))
        runs.append((admitted, ready, now))
    return runs


@given(runs=histories(), finishes=st.booleans(), seed=st.randoms(use_true_random=False))
def test_runs_are_rebuilt_whatever_the_order_of_transitions(
    runs: list[tuple[int, int, int]],
    finishes: bool,  # noqa: FBT001
    seed: Any,
) -> None:
    transitions = []
    for number, (admitted, ready, end) in enumerate(runs):
        last = "Finished" if finishes and number == len(runs) - 1 else "Evicted"
        transitions += [
            Transition(admitted, "Admitted", ""),
            Transition(ready, "PodsReady", "Started"),
            Transition(end, last, "Preempted"),
        ]
    transitions *= 2
    seed.shuffle(transitions)
    found = rebuild(transitions)
    assert [(run.admitted, run.ready, run.end) for run in found] == runs
    assert [run.evicted for run in found] == [True] * (len(runs) - 1) + [not finishes]


def test_an_admission_after_an_unseen_eviction() -> None:
    first, second = rebuild([Transition(1, "Admitted", ""), Transition(5, "Admitted", "")])
    assert (first.length, first.evicted, second.reason) == (None, True, "")
    lone, after = rebuild([Transition(3, "Evicted", "Preempted"), Transition(5, "Admitted", "")])
    assert (lone.start, lone.end, after.admitted) == (None, 3, 5)


UNITS = {
    "": 1, "m": Fraction(1, 1000), "k": 10**3, "M": 10**6, "G": 10**9, "T": 10**12,
    "Ki": 2**10, "Mi": 2**20, "Gi": 2**30, "Ti": 2**40, "e2": 100, "E-1": Fraction(1, 10),
}  # fmt: skip


@given(whole=st.integers(0, 10**6), part=st.integers(0, 999), unit=st.sampled_from(list(UNITS)))
def test_quantities_are_exact(whole: int, part: int, unit: str) -> None:
    assert Fraction(quantity(f"{whole}.{part:03d}{unit}")) == Fraction(
        whole * 1000 + part, 1000
    ) * Fraction(UNITS[unit])


@pytest.mark.parametrize("text", ["x", "1KiB", "-1", "1e999", "Gi", "1 Gi", "1K", "NaN", "1.2.3"])
def test_what_is_no_quantity_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=re.escape(text)):
        quantity(text)


@pytest.mark.parametrize("priority", [2**31, -(2**31) - 1, 2**63, 10**400])
def test_a_priority_beyond_32_bits_is_refused(tmp_path: Path, priority: int) -> None:
    with pytest.raises(TraceError, match="priority"):
        read(tmp_path, workload(spec={"priority": priority}))


def test_init_containers_sidecars_overhead_and_limits() -> None:
    """By hand: containers 3 + 1, sidecar 1 = 5; second init 6 + sidecar 1 = 7; overhead 1 = 8."""
    spec = msgspec.convert(
        {
            "containers": [container(cpu="3", gpu="2"), container(cpu="1")],
            "initContainers": [
                container(cpu="4", gpu="1"),
                container(cpu="1") | {"restartPolicy": "Always"},
                container(cpu="6", mem="1Ki"),
            ],
            "overhead": {"cpu": "1"},
        },
        PodSpec,
    )
    assert spec.asked() == {"cpu": 8, "nvidia.com/gpu": 2, "memory": 1024}
    limited = msgspec.convert(
        {"containers": [{"resources": {"limits": {"cpu": 2, "amd.com/gpu": 4}}}]}, PodSpec
    )
    assert limited.asked() == {"cpu": 2, "amd.com/gpu": 4}
    whole = msgspec.convert(
        {"containers": [container(cpu="3")], "resources": {"requests": {"cpu": "2"}}}, PodSpec
    )
    assert whole.asked() == {"cpu": 2}


def test_a_launcher_without_gpus_is_no_task(tmp_path: Path) -> None:
    pods = [
        pod_set(1, container(cpu="1"), name="launcher"),
        pod_set(4, container(cpu="8", gpu="8"), name="worker"),
    ]
    row = job(tmp_path, workload("w", pods=pods))
    assert (row["num_gpus"], row["num_tasks"], row["num_pods"], row["num_cpus"]) == (32, 4, 5, 33)
    row = job(tmp_path, workload("w", pods=[pod_set(3, container(cpu="1"))]))
    assert (row["num_gpus"], row["num_tasks"]) == (0.0, 3)


def test_partial_admission_counts_what_was_assigned(tmp_path: Path) -> None:
    pods = [pod_set(10, container(gpu="2"))]
    row = job(tmp_path, workload("w", *FINISHED, pods=pods, admission=ADMISSION))
    assert (row["num_gpus"], row["num_tasks"]) == (8.0, 4)


def test_slices_other_vendors_and_selected_types(tmp_path: Path) -> None:
    mixed = container(gpu="1", **{"nvidia.com/mig-1g.10gb": "2", "nvidia.com/gpu.shared": "3"})
    pods = [pod_set(2, mixed, container(**{"amd.com/gpu": "1"}))]
    pods[0]["template"]["spec"]["nodeSelector"] = {"nvidia.com/gpu.product": "H100"}
    trace = read(tmp_path, workload("w", pods=pods))
    (row,) = trace.jobs.to_pylist()
    assert (row["num_gpus"], row["num_mig"], row["gpu_type"]) == (4.0, 4.0, "H100")
    assert any("'nvidia.com/gpu.shared'" in note for note in trace.metadata.notes)
    two = copy.deepcopy(ADMISSION)
    two["podSetAssignments"][0]["flavors"] |= {"amd.com/gpu": "mi300"}
    assert job(tmp_path, workload("w", pods=pods, admission=two))["gpu_type"] == "a100|H100|mi300"


def test_one_name_twice_is_distinguished_by_uid(tmp_path: Path) -> None:
    trace = read(tmp_path, workload("w", uid="u1"), workload("v"), workload("w", uid="u2"))
    assert trace.jobs["job_id"].to_pylist() == ["team/w/u1", "team/v", "team/w/u2"]
    assert any("uid" in note for note in trace.metadata.notes)


def test_the_user_comes_from_the_label_that_is_named(tmp_path: Path) -> None:
    seen = workload("w", labels={"user": "ann"}, annotations={"site/who": "bob"})
    assert job(tmp_path, seen)["user"] == "ann"
    assert job(tmp_path, seen, user_label="site/who")["user"] == "bob"
    assert "user" not in job(tmp_path, seen, user_label="other")


def pod(name: str, phase: str, **more: Any) -> dict[str, Any]:
    spec = more.pop("spec", {})
    meta = more.pop("metadata", {})
    return {
        "kind": "Pod",
        "apiVersion": "v1",
        "metadata": {
            "name": name, "namespace": "team", "uid": f"uid-{name}", "creationTimestamp": CREATED,
        } | meta,
        "spec": {"containers": [container(cpu="4", mem="8Gi", gpu="2")], "nodeName": "n1"} | spec,
        "status": {"phase": phase, "startTime": at(10)} | more,
    }  # fmt: skip


def ended(seconds: int, reason: str = "Completed") -> dict[str, Any]:
    return {"state": {"terminated": {"finishedAt": at(seconds), "reason": reason}}}


def test_pods(tmp_path: Path) -> None:
    done = pod("a", "Succeeded", containerStatuses=[ended(50), ended(70)])
    trace = read(tmp_path, done, pod("b", "Running"), pod("c", "Pending", startTime=None))
    jobs = trace.jobs.to_pylist()
    assert [row["status"] for row in jobs] == ["completed", "running", "pending"]
    assert [row["start_time"] for row in jobs] == [10.0, 10.0, None]
    assert [row["end_time"] for row in jobs] == [70.0, None, None]
    assert (jobs[0]["duration"], jobs[0]["num_gpus"], jobs[0]["vc"]) == (60.0, 2.0, "team")
    assert trace.tasks is not None
    assert trace.tasks["node"].to_pylist() == ["n1"] * 3
    assert trace.tasks["job_id"].to_pylist() == ["team/a", "team/b", "team/c"]


@pytest.mark.parametrize(
    ("more", "status"),
    [
        ({}, "failed"),
        ({"reason": "DeadlineExceeded"}, "timeout"),
        ({"reason": "Evicted"}, "preempted"),
        ({"reason": "NodeLost"}, "node_fail"),
        ({"containerStatuses": [ended(50), ended(60, "OOMKilled")]}, "out_of_memory"),
        ({"containerStatuses": [ended(50, "Error")]}, "failed"),
        (
            {"conditions": [condition("DisruptionTarget", 50, "PreemptionByScheduler")]},
            "preempted",
        ),
    ],
)
def test_why_pods_failed(tmp_path: Path, more: dict[str, Any], status: str) -> None:
    assert job(tmp_path, pod("a", "Failed", **more))["status"] == status


def batch(name: str, spec: dict[str, Any], status: dict[str, Any], **meta: Any) -> dict[str, Any]:
    template = {"spec": {"containers": [container(gpu="4")]}}
    return {
        "kind": "Job",
        "apiVersion": "batch/v1",
        "metadata": {"name": name, "uid": f"uid-{name}", "creationTimestamp": CREATED} | meta,
        "spec": {"template": template} | spec,
        "status": status,
    }


@pytest.mark.parametrize(
    ("spec", "status", "expected"),
    [
        ({}, {}, ("pending", 1, None, None)),
        (
            {"parallelism": 8, "completions": 2},
            {"startTime": at(5), "completionTime": at(25), "conditions": [
                condition("Complete", 26)]},
            ("completed", 2, 5.0, 25.0),
        ),
        (
            {"parallelism": 3},
            {"startTime": at(5), "conditions": [condition("Failed", 26, "BackoffLimitExceeded")]},
            ("failed", 3, 5.0, 26.0),
        ),
        (
            {},
            {"startTime": at(5), "conditions": [condition("Failed", 26, "DeadlineExceeded")]},
            ("timeout", 1, 5.0, 26.0),
        ),
        ({}, {"startTime": at(5)}, ("running", 1, 5.0, None)),
        ({}, {"conditions": [condition("Suspended", 1)]}, ("pending", 1, None, None)),
    ],
)  # fmt: skip
def test_batch_jobs(
    tmp_path: Path, spec: dict[str, Any], status: dict[str, Any], expected: tuple[Any, ...]
) -> None:
    row = job(tmp_path, batch("j", spec, status))
    found = tuple(row.get(n) for n in ("status", "num_tasks", "start_time", "end_time"))
    assert found == expected
    assert row["num_gpus"] == 4.0 * row["num_tasks"]


def test_pod_groups(tmp_path: Path) -> None:
    group = {
        "kind": "PodGroup",
        "metadata": {"name": "g", "namespace": "team", "creationTimestamp": CREATED},
        "spec": {"minMember": 4, "queue": "q", "minResources": {"nvidia.com/gpu": "32"}},
        "status": {"phase": "Running", "conditions": [condition("Scheduled", 30)]},
    }
    row = job(tmp_path, group)
    assert (row["num_gpus"], row["num_tasks"], row["vc"]) == (32.0, 4, "q")
    assert (row["status"], row["start_time"]) == ("running", 30.0)


def owned(kind: str, name: str) -> dict[str, Any]:
    return {"ownerReferences": [{"kind": kind, "name": name, "uid": f"uid-{name}"}]}


def test_each_thing_is_one_job_in_a_mixed_list(tmp_path: Path) -> None:
    """A workload stands for its Job, the Job for its pods; what is no work is counted."""
    trace = read(
        tmp_path,
        pod("p1", "Running", metadata=owned("Job", "j")),
        pod("p2", "Running", metadata=owned("Job", "lone")),
        pod("p3", "Running"),
        batch("j", {}, {}),
        batch("lone", {}, {}),
        workload("w", **owned("Job", "j")),
        {"kind": "Service", "metadata": {"name": "s"}},
        {"kind": "Service", "metadata": {"name": "t"}},
        {"kind": "\x1b[31m", "metadata": {"name": "t"}},
    )
    assert sorted(trace.jobs["job_id"].to_pylist()) == ["lone", "team/p3", "team/w"]
    assert trace.metadata.dropped == {
        "object of kind Service": 2,
        "nameless kind": 1,
        "Job of a Workload of the file": 1,
        "Pod of a Workload of the file (a row of the tasks)": 1,
        "Pod of a Job of the file (a row of the tasks)": 1,
    }
    assert trace.metadata.rows_read == 9
    assert trace.tasks is not None
    assert trace.tasks.select(["task_id", "job_id"]).to_pylist() == [
        {"task_id": "team/p1", "job_id": "team/w"},
        {"task_id": "team/p2", "job_id": "lone"},
        {"task_id": "team/p3", "job_id": "team/p3"},
    ]


@pytest.mark.parametrize("shape", ["one", "items", "typed list", "array"])
def test_every_way_to_hold_objects(tmp_path: Path, shape: str) -> None:
    seen = workload("w", *FINISHED)
    kindless = {name: value for name, value in seen.items() if name != "kind"}
    text = json.dumps(
        {
            "one": seen,
            "items": {"items": [kindless]},
            "typed list": {"kind": "WorkloadList", "items": [kindless]},
            "array": [seen],
        }[shape]
    )
    path = tmp_path / "o.json.gz"
    path.write_bytes(gzip.compress(text.encode()))
    assert read_kueue(path).jobs["job_id"].to_pylist() == ["team/w"]


def test_the_content_tells_the_format(tmp_path: Path) -> None:
    head = json.dumps(workload("w")).encode()
    for name in ("a.json", "a.jsonl", "a", "a.json.gz"):
        assert reader_for(tmp_path / name, head).read is read_kueue
    philly = b'[{"status": "Pass", "vc": "v", "jobid": "a", "attempts": []}]'
    assert reader_for(tmp_path / "a.json", philly).read is read_philly_raw
    assert reader_named("kubernetes").read is read_kueue


GOOD = workload("w", *FINISHED, admission=ADMISSION)


def changed(path: str, value: Any) -> dict[str, Any]:
    """GOOD with one field changed, named as ``spec.podSets.0.count``."""
    body: Any = copy.deepcopy(GOOD)
    *above, last = path.split(".")
    inner = body
    for step in above:
        inner = inner[int(step) if step.isdigit() else step]
    inner[int(last) if last.isdigit() else last] = value
    return dict(body)


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (changed("metadata.creationTimestamp", "noon"), "'noon'; expected a time.*object 1"),
        (changed("metadata.creationTimestamp", "2025-02-30T00:00:00Z"), "expected a time"),
        (changed("metadata.name", 5), r"Expected `str`.*\$\.metadata\.name"),
        (changed("spec.podSets.0.count", "4"), r"podSets\[0\]\.count"),
        (changed("spec.podSets.0.template.spec.containers.0.resources.requests.cpu", "1X"),
         r"podSets\[main\].*'1X'; expected quantities"),
        (changed("status.conditions.1.lastTransitionTime", None), r"conditions\[Admitted\]"),
        (changed("spec.podSets.0.count", -1), r">= 0.*podSets\[0\]\.count"),
        (changed("spec.podSets.0.count", 2**31), r"<= 2147483647.*podSets\[0\]\.count"),
        (changed("spec", {}), "podSets"),
        ({"kind": "Service", "metadata": {"name": "s"}}, "at least one Kubernetes object.*Service"),
        ({"traceEvents": []}, "at least one Kubernetes object"),
    ],
)  # fmt: skip
def test_bad_objects(tmp_path: Path, body: dict[str, Any], message: str) -> None:
    with pytest.raises(TraceError, match=message) as caught:
        read(tmp_path, body)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "empty"),
        ("  \n", "blank lines"),
        ("[]", "at least one"),
        ('{"items": []}', "at least one"),
        ("[1]", "expected Kubernetes objects"),
        ("[[[[[[[[]]]]]]]]", "expected Kubernetes objects"),
        (json.dumps(GOOD)[:-9], "line 1: expected valid JSON.*cut"),
        (json.dumps(GOOD) + "\n" + json.dumps(GOOD)[:50], "line 2: expected valid JSON.*cut"),
        (json.dumps(GOOD) + "\nNaN", "NaN is no JSON"),
        (json.dumps(GOOD).replace("local", "\\ud800"), "line 1: expected valid JSON.*surrogate"),
        (json.dumps(GOOD) * 2 + '\n"\\ud800"', "line 2: expected valid JSON"),
        ("[" * 100_000, "valid JSON"),
    ],
)
def test_bad_files(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "o.json"
    path.write_text(text)
    with pytest.raises(TraceError, match=message):
        read_kueue(path)


def test_an_impossible_order_of_times_breaks_the_schema(tmp_path: Path) -> None:
    early = workload("w", *FINISHED, creationTimestamp="2025-10-06T13:00:00Z")
    with pytest.raises(SchemaError, match="start_time >= submit_time"):
        read(tmp_path, early)
    trace = read(tmp_path, early, workload("v", *FINISHED), bad_rows="drop")
    assert trace.jobs["job_id"].to_pylist() == ["team/v"]
    assert trace.metadata.rows_read == 2
    assert sum(trace.metadata.dropped.values()) == 1
    assert trace.tasks is not None
    assert trace.tasks["job_id"].to_pylist() == ["team/v"]


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(
    where=st.integers(0, 5000),
    kind=st.sampled_from(["cut", "drop", "byte", "null", "number", "list"]),
)
def test_mutated_files_give_a_trace_or_one_clear_error(
    tmp_path: Path, where: int, kind: str
) -> None:
    objects = [GOOD, pod("a", "Failed"), batch("j", {}, {"startTime": at(5)})]
    text = json.dumps({"kind": "List", "items": objects}, indent=1)
    at_ = where % len(text)
    values = [m.span() for m in re.finditer(r'(?<=: )("[^"\n]*"|[0-9]+)', text)]
    low, high = values[where % len(values)]
    text = {
        "cut": text[:at_],
        "drop": text[:at_] + text[at_ + 1 :],
        "byte": text[:at_] + "\0" + text[at_:],
        "null": text[:low] + "null" + text[high:],
        "number": text[:low] + "-7" + text[high:],
        "list": text[:low] + "[]" + text[high:],
    }[kind]
    path = tmp_path / "o.json"
    path.write_text(text)
    try:
        trace = read_kueue(path)
    except WindtunnelError as error:
        assert str(path) in str(error)  # noqa: PT017 - one of two lawful ends
        return
    assert trace.metadata.rows_read == trace.jobs.num_rows + sum(trace.metadata.dropped.values())


@pytest.mark.data
def test_the_reference_sample(data_dir: Path) -> None:
    trace = read_kueue(data_dir / "formats" / "kueue_workloads.json")
    jobs = trace.jobs.to_pydict()
    assert jobs["job_id"] == ["team-nlp/job-ok", "team-nlp/job-preempted", "team-nlp/job-pending"]
    assert jobs["status"] == ["completed", "preempted", "pending"]
    assert jobs["num_gpus"] == [32.0, 4.0, 128.0]
    assert jobs["num_tasks"] == [4, 1, 16]
    assert jobs["num_cpus"] == [48.0, 12.0, 192.0]
    assert jobs["mem_gib"] == [480.0, 120.0, 1920.0]
    assert jobs["submit_time"] == [0.0, 600.0, 1200.0]
    assert (jobs["start_time"][0], jobs["end_time"][0], jobs["duration"][0]) == (250, 7450, 7200)
    assert jobs["gpu_type"] == ["a100", None, None]
    assert jobs["vc"] == ["cq-research", "lq-nlp", "lq-nlp"]
    assert jobs["priority"] == [100.0, 0.0, 0.0]
    assert jobs["num_preemptions"] == [0, 1, 0]
    assert trace.metadata.epoch == "2025-10-06T12:00:00+00:00"
