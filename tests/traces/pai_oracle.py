"""The joins of the PAI trace again, in plain Python over dictionaries, for small tables."""

from __future__ import annotations

from collections import Counter, defaultdict
from typing import Any

from pai_tables import COLUMNS

Row = dict[str, Any]
_STATUS = {"Terminated": "completed", "Failed": "failed", "Running": "running"}
_TEXT = frozenset(
    (
        *("job_name", "task_name", "inst_name", "worker_name", "inst_id", "user", "status"),
        *("gpu_type", "machine", "gpu_name", "gpu_type_spec", "group", "workload"),
    )
)


def parse(name: str, lines: list[str]) -> list[Row]:
    """Return records as dictionaries: text or float, None = empty."""
    columns = COLUMNS[name].split()
    return [
        {
            column: None if cell == "" else cell if column in _TEXT else float(cell)
            for column, cell in zip(columns, line.split(","), strict=True)
        }
        for line in lines
    ]


def status(word: str | None) -> str | None:
    """Return a status in our words."""
    if word is None:
        return None
    return "pending" if word == "Waiting" else _STATUS.get(word, "unknown")


def firsts(rows: list[Row], key: str) -> dict[str, Row]:
    """Return the first row of each key."""
    found: dict[str, Row] = {}
    for row in rows:
        if row[key] is not None:
            found.setdefault(row[key], row)
    return found


def numbered(names: list[str]) -> list[str]:
    """Return names made unique, for names that hold no mark."""
    seen: Counter[str] = Counter()
    result = []
    for name in names:
        seen[name] += 1
        result.append(name if seen[name] == 1 else f"{name}#{seen[name]}")
    return result


def known(value: float | None) -> float | None:
    """Return a time, None where it is 0."""
    return value or None


def less(a: float | None, b: float | None) -> bool:
    """Return whether both are known and a is the smaller one."""
    return a is not None and b is not None and a < b


def jobs(tables: dict[str, list[Row]]) -> list[Row]:
    """Return the jobs table's rows in order."""
    job_of = firsts(tables["pai_job_table"], "job_name")
    group_of = firsts(tables["pai_group_tag_table"], "inst_id")
    parts = defaultdict(list)
    for row in tables["pai_instance_table"]:
        parts[row["job_name"], row["task_name"]].append(row)
    tasks = tables["pai_task_table"]
    ids = numbered([f"{t['job_name']}/{t['task_name']}" for t in tasks])
    result = []
    for task, job_id in zip(tasks, ids, strict=True):
        own = parts[task["job_name"], task["task_name"]]
        job = job_of.get(task["job_name"], {})
        group = group_of.get(job.get("inst_id"), {})
        starts = [i["start_time"] for i in own if i["start_time"]]
        ends = [i["end_time"] for i in own if i["end_time"]]
        runs = [i["end_time"] - i["start_time"] for i in own if i["start_time"] and i["end_time"]]
        submit, end = known(task["start_time"]), known(task["end_time"])
        first = min(starts, default=None)
        start = None if less(first, submit) else first
        run = sum(runs) / len(runs) if runs else None
        user = job.get("user") or group.get("user")
        gang = task["inst_num"] or None
        word = task["status"] or max((i["status"] for i in own if i["status"]), default=None)

        def of_gang(plan: float | None, unit: float, gang: float | None = gang) -> float | None:
            return None if gang is None or plan is None else gang * plan / unit

        result.append(
            {
                "job_id": job_id,
                "submit_time": submit,
                "start_time": start,
                "end_time": None if less(end, submit) or less(end, start) else end,
                "duration": None if run is not None and run < 0 else run,
                "num_gpus": of_gang(task["plan_gpu"], 100),
                "num_tasks": gang,
                "num_cpus": of_gang(task["plan_cpu"], 100),
                "mem_gib": of_gang(task["plan_mem"], 1),
                "gpu_type": group.get("gpu_type_spec"),
                "user": user,
                "workload": group.get("workload"),
                "template": group.get("group") or user,
                "status": status(word),
                "runtime": None if end is None or submit is None else end - submit,
                "wait_time": None if first is None or submit is None else first - submit,
                "gpu_type_assigned": task["gpu_type"],
                "pai_job": task["job_name"],
                "inst_id": job.get("inst_id"),
                "instance_start": first,
                "instance_end": max(ends, default=None),
                "task_end": end,
            }
        )
    return sorted(result, key=lambda r: (r["submit_time"] is None, r["submit_time"] or 0))


def _rank(row: Row, place: int) -> tuple[Any, ...]:
    """Return the key that the notebook sorts by: unknown values last, ties in file order."""
    order = (row["status"], row["start_time"], row["end_time"])
    return (*((value is None, value if value is not None else 0) for value in order), place)


def counted(instances: list[Row]) -> dict[str, int]:
    """Return the place of the instance that counts for each worker."""
    by_worker = defaultdict(list)
    for place, row in enumerate(instances):
        if row["worker_name"] is not None:
            by_worker[row["worker_name"]].append(place)
    return {
        worker: max(places, key=lambda p: _rank(instances[p], p))
        for worker, places in by_worker.items()
    }


def tasks(tables: dict[str, list[Row]]) -> list[Row]:
    """Return the tasks' rows, in the order of the instance table."""
    task_of: dict[tuple[str, str], Row] = {}
    for task in tables["pai_task_table"]:
        task_of.setdefault((task["job_name"], task["task_name"]), task)
    machine_of = firsts(tables["pai_machine_spec"], "machine")
    sensor_of = firsts(tables["pai_sensor_table"], "worker_name")
    metric_of = firsts(tables["pai_machine_metric"], "worker_name")
    instances = tables["pai_instance_table"]
    counts = counted(instances)
    names = [
        i["worker_name"] or i["inst_name"] or f"instance {place}"
        for place, i in enumerate(instances, 1)
    ]
    result = []
    for place, (row, name) in enumerate(zip(instances, numbered(names), strict=True)):
        counts_here = counts.get(row["worker_name"]) == place
        sensor = sensor_of.get(row["worker_name"], {}) if counts_here else {}
        metric = metric_of.get(row["worker_name"], {}) if counts_here else {}
        task = task_of.get((row["job_name"], row["task_name"]), {})

        def part(source: Row, column: str, unit: float) -> float | None:
            return None if source.get(column) is None else source[column] / unit

        result.append(
            {
                "task_id": name,
                **{key: row[key] for key in ("worker_name", "inst_name", "inst_id")},
                "job_id": f"{row['job_name'] or ''}/{row['task_name'] or ''}",
                "node": row["machine"],
                "gpu": sensor.get("gpu_name"),
                "start_time": known(row["start_time"]),
                "end_time": known(row["end_time"]),
                "status": status(row["status"]),
                "num_gpus": part(task, "plan_gpu", 100),
                "num_cpus": part(task, "plan_cpu", 100),
                "mem_gib": part(task, "plan_mem", 1),
                "gpus_used": part(sensor, "gpu_wrk_util", 100),
                "cpus_used": part(sensor, "cpu_usage", 100),
                "mem_used_gib": part(sensor, "avg_mem", 1),
                "gpu_mem_used_gib": part(sensor, "avg_gpu_wrk_mem", 1),
                "worker_name": row["worker_name"],
                "node_gpu_type": machine_of.get(row["machine"], {}).get("gpu_type"),
                "max_mem": sensor.get("max_mem"),
                "write_count": sensor.get("write_count"),
                "machine_cpu": metric.get("machine_cpu"),
            }
        )
    return result
