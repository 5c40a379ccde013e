"""Read a PAI folder and say what it looks like; prints the figures as JSON.

Usage: python pai_windtunnel.py FOLDER
"""

from __future__ import annotations

import json
import sys

import ibis

import windtunnel as wt
from windtunnel.characterize import overview, shares

LEVELS = (0.5, 0.9, 0.99)
GANGS = (2, 10, 100)


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
        "tasks": seen["num_jobs"],
        "gpu tasks": seen["num_gpu_jobs"],
        "gpu time": seen["gpu_time"],
        **{f"duration {p}": seen["duration"][p] for p in ("avg", "p50", "p90", "p99")},
        **{f"wait {p}": seen["wait"][p] for p in ("avg", "p50", "p90", "p99")},
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
