"""Read a PAI folder and say what it looks like; prints the figures as JSON.

Usage: python pai_windtunnel.py FOLDER
"""

from __future__ import annotations

import json
import re
import sys
from typing import TYPE_CHECKING, Any

import ibis

import windtunnel as wt
from windtunnel.characterize import overview, shares

if TYPE_CHECKING:
    from windtunnel.traces.trace import Trace

LEVELS = (0.5, 0.9, 0.99)
PERCENTS = (50, 90, 95, 99)
GANGS = (2, 10, 100)
FACTS = ("duration", "wait", "num_gpus")
#: What the reader counts and says in its notes -> how the note goes on behind the number.
CHECKS = {
    "tasks of the same names": "tasks have the names of an earlier one",
    "workers of several instances": "instances share their worker",
    "instances ending before they start": "instances end before they start",
    "instances of odd status": "instances have a status other than",
    "tasks starting before submission": "tasks start before they are submitted",
    "tasks ending before submission or start": "tasks end before they are submitted or start",
    "tasks without submission": "tasks have no start_time",
    "tasks without run time": "tasks have no instance with start and end",
}
_KEYED = ("pai_job_table", "pai_group_tag_table", "pai_machine_spec")
_USAGE = ("pai_sensor_table", "pai_machine_metric")
#: The same for the tables that `CHECKS` does not look at.
CHECKS_OF_JOINS = {
    **{f"repeats in {name}": f"rows of {name} repeat the key" for name in _KEYED},
    **{f"repeats in {name}": f"rows of {name} repeat a worker" for name in _USAGE},
    **{f"strays in {name}": f"rows of {name} belong to no instance" for name in _USAGE},
    "tasks without job": "tasks have no row in the job table",
    "jobs without task": "rows of the job table have no task",
    "groups without job": "rows of the group tag table belong to no job",
    "instances of unknown machines": "instances name a machine without specification",
}


def figures(folder: str) -> dict[str, float]:
    """Return the figures that `pai_pandas.figures` returns too."""
    trace = wt.open_trace(folder)
    seen = overview(trace.jobs)
    by_user = shares(trace.jobs, "user")
    by_size = shares(trace.jobs, "num_gpus")
    gangs = ibis.memtable(trace.jobs.select(["num_tasks", "user"]))
    per_user = gangs.group_by("user").aggregate(tasks=gangs.count())
    tasks = trace.tasks
    return {
        **noted(trace, CHECKS | CHECKS_OF_JOINS),
        **of_jobs(trace, seen),
        "users": seen["num_users"],
        "largest user": by_user["gpu_time_share"][0].as_py(),
        "in size classes": sum(by_size["num_jobs"].to_pylist()),
        **one_row(gangs.aggregate(**{f"gang {k}": in_gangs(gangs, k) for k in GANGS})),
        **one_row(
            per_user.aggregate(**{f"per user {q}": per_user.tasks.quantile(q) for q in LEVELS})
        ),
        **one_row(
            tasks.aggregate(
                instances=tasks.count(),
                measured=tasks.cpus_used.count(),
                **{"more cpus": (tasks.cpus_used > tasks.num_cpus).mean()},
                **{"more gpus": (tasks.gpus_used > tasks.num_gpus).mean()},
                **{"more memory": (tasks.mem_used_gib > tasks.mem_gib).mean()},
            )
        ),
        **levels(tasks.cpus_used, "cpus used"),
        **levels(tasks.num_cpus, "cpus asked"),
        **levels(tasks.machine_cpu, "machine cpu"),
    }


def noted(trace: Trace, checks: dict[str, str]) -> dict[str, float]:
    """Return the numbers before texts in the notes; 0 = no note has the text."""
    found = {}
    for name, text in checks.items():
        matches = (re.match(rf"([\d,]+) {re.escape(text)}", n) for n in trace.metadata.notes)
        found[name] = next((int(m[1].replace(",", "")) for m in matches if m), 0)
    return found


def of_jobs(trace: Trace, seen: dict[str, Any]) -> dict[str, float]:
    """Return what the jobs are like, from `overview` and two columns."""
    missing = seen["missing"]
    keys = ("n", "avg", *(f"p{percent}" for percent in PERCENTS), "max")
    asked = ibis.memtable(trace.jobs.select(["status", "instance_end"]))
    return {
        "tasks": seen["num_jobs"],
        "gpu tasks": seen["num_gpu_jobs"],
        "gpu time": seen["gpu_time"],
        "gpu time n": seen["gpu_time_n"],
        **{f"{fact} {key}": seen[fact][key] for fact in FACTS for key in keys},
        "first submit": seen["first_submit"],
        "last submit": seen["last_submit"],
        "lack start": missing["start_time"],
        "lack inst_num": missing["num_tasks"],
        "lack status": missing["status"],
        **one_row(
            asked.aggregate(
                **{"completed tasks": (asked.status == "completed").sum()},
                **{"last end of instances": asked.instance_end.mean()},
            )
        ),
    }


def levels(column: ibis.Value, name: str) -> dict[str, float]:
    """Return the quantiles of a column."""
    found = column.quantile(LEVELS).to_pyarrow().as_py()
    return {f"{name} {q}": value for q, value in zip(LEVELS, found, strict=True)}


def in_gangs(gangs: ibis.Table, size: int) -> ibis.Value:
    """Return the share of the instances in gangs of at least this size."""
    return gangs.num_tasks.sum(where=gangs.num_tasks >= size) / gangs.num_tasks.sum()


def one_row(expression: ibis.Table) -> dict[str, float]:
    (row,) = expression.to_pyarrow().to_pylist()
    return row


if __name__ == "__main__":
    sys.stdout.write(json.dumps(figures(sys.argv[1])))
