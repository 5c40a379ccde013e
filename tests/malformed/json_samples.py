"""A small valid file of every format that is JSON or Parquet, and a twin."""

from __future__ import annotations

import io
import json
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from samples import (
    Sample,
    counting_json,
    reading_telemetry,
    reading_trace,
    uncountable,
)

from windtunnel.traces.trace import Trace, TraceMetadata
from windtunnel.traces.twin.fit import fit
from windtunnel.traces.twin.twin import to_json, to_toml


def _attempt(day: int, gpus: int, *, end: str | None = "10:00:00") -> dict[str, Any]:
    machines = [{"ip": f"m{day}", "gpus": [f"gpu{k}" for k in range(gpus)]}]
    return {
        "start_time": f"2017-10-{day:02d} 09:00:00",
        "end_time": None if end is None else f"2017-10-{day:02d} {end}",
        "detail": machines,
    }


def _philly_job(name: str, day: int, status: str, *attempts: dict[str, Any]) -> dict[str, Any]:
    return {
        "status": status,
        "vc": "ee9e8c",
        "jobid": name,
        "attempts": list(attempts),
        "submitted_time": f"2017-10-{day:02d} 08:00:00",
        "user": 'ü \\ "x"',
    }


_PHILLY = [
    _philly_job("application_1", 1, "Pass", _attempt(1, 1)),
    _philly_job("application_2", 2, "Failed", _attempt(2, 2), _attempt(3, 2, end="11:30:00")),
    _philly_job("application_3", 3, "Killed"),
    _philly_job("application_4", 4, "Pass", _attempt(4, 8, end=None)),
    _philly_job("application_5", 5, "Pass", _attempt(5, 0)),
    {**_philly_job("application_6", 6, "None", _attempt(6, 1)), "user": None, "vc": "None"},
]


def _time(minute: int) -> str:
    return f"2025-10-06T12:{minute:02d}:00Z"


def _condition(kind: str, minute: int, reason: str = "") -> dict[str, Any]:
    return {
        "type": kind,
        "status": "True",
        "reason": reason,
        "message": "größe",
        "lastTransitionTime": _time(minute),
    }


def _pod_spec(gpus: str) -> dict[str, Any]:
    asked = {"nvidia.com/gpu": gpus, "cpu": "500m", "memory": "1.5Gi"}
    return {"containers": [{"name": "c", "resources": {"requests": asked, "limits": {"cpu": 1}}}]}


def _object(kind: str, name: str, minute: int, **body: Any) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": kind,
        "metadata": {
            "name": name,
            "namespace": "team",
            "uid": f"uid-{name}",
            "creationTimestamp": _time(minute),
            "labels": {"user": "李雷"},
        },
        **body,
    }


def _workload(name: str, minute: int, *conditions: dict[str, Any]) -> dict[str, Any]:
    pods = {"name": "main", "count": 2, "template": {"spec": _pod_spec("4")}}
    flavors = {"nvidia.com/gpu": "a100"}
    admission = {
        "clusterQueue": "cq",
        "podSetAssignments": [{"name": "main", "count": 2, "flavors": flavors}],
    }
    return _object(
        "Workload",
        name,
        minute,
        spec={"queueName": "local", "priority": 7, "podSets": [pods]},
        status={"conditions": list(conditions), "admission": admission},
    )


_RAN = (_condition("Admitted", 10), _condition("PodsReady", 11, "Started"))
_KUEUE = {
    "apiVersion": "v1",
    "kind": "List",
    "items": [
        _workload("w1", 1, *_RAN, _condition("Finished", 20, "Succeeded")),
        _workload("w2", 2, *_RAN, _condition("Finished", 30, "Failed")),
        _workload("w3", 3, *_RAN),
        _workload("w4", 4, _condition("Evicted", 40, "Preempted")),
        _workload("w5", 5),
        _object("ConfigMap", "other", 6),
    ],
}
_BATCH = {
    "spec": {"parallelism": 2, "completions": 2, "template": {"spec": _pod_spec("1")}},
    "status": {
        "startTime": _time(5),
        "completionTime": _time(9),
        "succeeded": 2,
        "conditions": [_condition("Complete", 9)],
    },
}
_POD = {
    "spec": {**_pod_spec("1"), "nodeName": "n1"},
    "status": {"phase": "Running", "startTime": _time(8)},
}
_KUBERNETES = [
    _object("Job", "j1", 1, **_BATCH),
    _object("Job", "j2", 2, **_BATCH),
    _object("Pod", "p1", 3, **_POD),
    _object("Pod", "p2", 4, **_POD),
    _object("PodGroup", "g1", 5, spec={"minMember": 2}, status={"phase": "Running"}),
]
_WORKLOAD = {
    "nb_res": 64,
    "jobs": [
        {"id": "a", "subtime": 0, "walltime": 100, "res": 4, "profile": "p60"},
        {"id": 2, "subtime": 10.5, "walltime": -1, "res": 1, "profile": "p60"},
        {"id": "größe", "subtime": 20, "res": 64, "profile": "mpi"},
        {"id": "d", "subtime": 30, "walltime": 100, "res": 2, "profile": "p5"},
        {"id": "e", "subtime": 40, "walltime": 100, "res": 2, "profile": "p5", "more": [1]},
    ],
    "profiles": {
        "p60": {"type": "delay", "delay": 60},
        "p5": {"type": "delay", "delay": 5.5},
        "mpi": {"type": "parallel_homogeneous", "cpu": 1e9, "com": 0},
    },
}


def _series(gpu: int) -> dict[str, Any]:
    labels = {"__name__": "DCGM_FI_DEV_GPU_UTIL", "gpu": str(gpu), "Hostname": "knoten-ü"}
    points = [[1759752300 + 60.5 * k, str(10 * gpu + k)] for k in range(3)]
    return {"metric": labels, "values": points}


_PROMETHEUS = {
    "status": "success",
    "data": {"resultType": "matrix", "result": [_series(0), _series(1)]},
}


def _json(name: str, file: str, tree: Any, records: int, of: Any, **more: Any) -> Sample:
    defaults: dict[str, Any] = {
        "name": name,
        "file": file,
        "data": json.dumps(tree, ensure_ascii=False, indent=1).encode(),
        "records": records,
        "read": reading_trace(name.partition(" ")[0]),
        "count": counting_json(of),
        "tree": json.loads(json.dumps(tree)),  # nothing in it stands twice
    }
    return Sample(**defaults | more)


def _objects(value: Any) -> int:
    items = value.get("items") if isinstance(value, dict) else value
    return sum(map(_objects, items)) if isinstance(items, list) else 1


def _count_values(data: bytes) -> int | None:
    """Count JSON values one behind the other; items of a list are values."""
    decoder = json.JSONDecoder()
    total = place = 0
    try:
        text = data.decode("utf-8-sig")
        while text[place:].strip(" \t\r\n"):
            place += len(text[place:]) - len(text[place:].lstrip(" \t\r\n"))
            value, place = decoder.raw_decode(text, place)
            total += _objects(value)
    except (ValueError, RecursionError):
        return None
    return total


def json_samples() -> list[Sample]:
    """Return the samples of JSON."""
    watched = "".join(json.dumps(value, ensure_ascii=False) + "\n" for value in _KUBERNETES)
    points = {"read": reading_telemetry("prometheus-json")}
    return [
        _json("philly-raw", "cluster_job_log.json", _PHILLY, 6, len,
              ids=tuple(job["jobid"] for job in _PHILLY)),
        _json("kueue", "workloads.json", _KUEUE, 6, _objects, count=_count_values,
              ids=("team/w1", "team/w2", "team/w3", "team/w4", "team/w5", "")),
        _json("kubernetes", "objects.json", _KUBERNETES, 5, _objects, count=_count_values,
              ids=("team/j1", "team/j2", "team/p1", "team/p2", "team/g1")),
        Sample("kubernetes lines", "objects.jsonl", watched.encode(), 5,
               reading_trace("kubernetes"), _count_values),
        _json("batsim workload", "workload.json", _WORKLOAD, 5, lambda v: len(v["jobs"]),
              ids=("a", "2", "größe", "d", "e")),
        _json("prometheus-json", "answer.json", _PROMETHEUS, 6,
              lambda v: sum(len(s["values"]) for s in v["data"]["result"]), **points),
    ]  # fmt: skip


def packed(table: pa.Table) -> bytes:
    """Return a table as Parquet."""
    buffer = io.BytesIO()
    pq.write_table(table, buffer)
    return buffer.getvalue()


def _count_parquet(data: bytes) -> int | None:
    try:
        return int(pq.ParquetFile(pa.BufferReader(data)).metadata.num_rows)
    except (pa.ArrowException, OSError):
        return None


def _parquet(name: str, file: str, table: pa.Table, **more: Any) -> Sample:
    defaults: dict[str, Any] = {
        "name": f"{name} parquet",
        "file": file,
        "data": packed(table),
        "records": table.num_rows,
        "read": reading_trace(name),
        "count": _count_parquet,
        "table": table,
    }
    return Sample(**defaults | more)


def parquet_samples() -> list[Sample]:
    """Return the samples of Parquet."""
    numbers = np.arange(6)
    names = [f"j{k}" for k in numbers]
    jobs = pa.table(
        {
            "job_id": names,
            "submit_time": pa.array(10.0 * numbers),
            "duration": pa.array([60.0, 61.0, 62.0, None, 64.0, 65.0]),
            "num_gpus": pa.array([1, 2, 4, 8, 1, 1], pa.int64()),
            "user": pa.array(["ü", "b", None, "ü", "b", "c"]).dictionary_encode(),
            "extra": pa.array([[1], [], None, [2, 3], [4], [5]], pa.list_(pa.int64())),
        }
    )
    tasks = pa.table(
        {
            "id": pa.array(numbers + 1, pa.int32()),
            "submission_time": pa.array(1759752000000 + 60000 * numbers, pa.int64()),
            "duration": pa.array(60000 + 1000 * numbers, pa.int64()),
            "cpu_count": pa.array(numbers + 1, pa.int32()),
            "cpu_capacity": pa.array(2800.0 * (numbers + 1)),
            "mem_capacity": pa.array(1024 * (numbers + 1), pa.int64()),
            "gpu_count": pa.array([1, None, 2, 4, 8, 1], pa.int32()),
            "parents": pa.array([[], [1], [1, 2], None, [], []], pa.list_(pa.int32())),
            "name": pa.array(["größe", None, "c", "d", "e", "f"]),
        }
    )
    requests = pa.table(
        {
            "gmt_create": [f"2024-06-01 00:00:{k:02d}" for k in numbers],
            "predict_type": pa.array(["TXT2IMG"] * 6).dictionary_encode(),
            "predict_status": ["SUCCEED", "FAILED", "PENDING", "SUCCEED", "SUCCEED", "SUCCEED"],
            "exec_time_seconds": pa.array([4.5, 0.5, 0.0, 9.25, 1.0, 2.0]),
            "groupId": pa.array([1, 2, None, 1, 1, 2], pa.int64()),
        }
    )
    container = pa.table(
        {
            "timestamp_anon": pa.array(60 * numbers, pa.int64()),
            "container_ip": ["10.0.0.1", "10.0.0.2", None, "10.0.0.1", "10.0.0.2", "ü"],
            "value": pa.array([0.5, 0.25, None, 1.0, 2.0, 3.0]),
        }
    )
    return [
        _parquet("native", "jobs.parquet", jobs, ids=tuple(names)),
        _parquet("opendc", "tasks.parquet", tasks, ids=tuple("123456")),
        _parquet("genai", "requests.parquet", requests,
                 ids=tuple(f"genai-{k + 1}" for k in numbers)),
        _parquet("genai-telemetry", "gpu_util_anon.parquet", container,
                 read=reading_telemetry("genai")),
    ]  # fmt: skip


def twin_samples() -> list[Sample]:
    """Return a twin as TOML and as JSON; its jobs are drawn, so nobody can count them in it."""
    rng = np.random.default_rng(7)
    count = 60
    submit = np.sort(rng.uniform(0, 6e5, count))
    length = rng.lognormal(6, 1, count)
    jobs = pa.table(
        {
            "job_id": [f"j{k}" for k in range(count)],
            "submit_time": submit,
            "start_time": submit + 5.0,
            "end_time": submit + 5.0 + length,
            "duration": length,
            "num_gpus": rng.choice([1.0, 2.0, 8.0], count),
            "user": rng.choice(["a", "b", "c"], count),
            "status": rng.choice(["completed", "failed"], count),
        }
    )
    from windtunnel.schema import conform

    trace = Trace(conform(jobs), TraceMetadata("t", "t.csv", rows_read=count))
    twin = fit(trace)
    text, as_json = to_toml(twin).encode(), to_json(twin).encode()
    read = reading_trace("twin", jobs=40)
    return [
        Sample("twin toml", "t.twin.toml", text, 40, read, uncountable, cost=50),
        Sample("twin json", "t.twin.json", as_json, 40, read, uncountable,
               tree=json.loads(as_json), cost=50),
    ]  # fmt: skip
