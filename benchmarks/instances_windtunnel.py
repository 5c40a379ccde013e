"""Read the task and instance tables of PAI, check and describe them; prints figures as JSON.

Usage: python instances_windtunnel.py FOLDER
"""

from __future__ import annotations

import json
import re
import sys

import ibis
from pai_windtunnel import GANGS, in_gangs, levels, one_row

import windtunnel as wt
from windtunnel.characterize import overview, shares

#: What the reader counts and says in its notes -> how the note goes on behind the number.
CHECKS = {
    "tasks of the same names": "tasks have the names of an earlier one",
    "workers of several instances": "instances share their worker",
    "instances without task": "instances have no task in the task table",
    "instances ending before they start": "instances end before they start",
    "instances of odd status": "instances have a status other than",
    "tasks starting before submission": "tasks start before they are submitted",
    "tasks ending before submission or start": "tasks end before they are submitted or start",
    "tasks without submission": "tasks have no start_time",
    "tasks without run time": "tasks have no instance with start and end",
}


def figures(folder: str) -> dict[str, float]:
    """Return the figures that `instances_pandas.figures` returns too."""
    trace = wt.open_trace(folder)
    seen = overview(trace.jobs)
    by_size = shares(trace.jobs, "num_gpus")
    gangs = ibis.memtable(trace.jobs.select(["num_tasks"]))
    tasks = trace.tasks
    return {
        **{name: _noted(trace.metadata.notes, text) for name, text in CHECKS.items()},
        "tasks": seen["num_jobs"],
        "gpu tasks": seen["num_gpu_jobs"],
        "gpu time": seen["gpu_time"],
        **{f"duration {p}": seen["duration"][p] for p in ("avg", "p50", "p90", "p99")},
        **{f"wait {p}": seen["wait"][p] for p in ("avg", "p50", "p90", "p99")},
        "in size classes": sum(by_size["num_jobs"].to_pylist()),
        **one_row(gangs.aggregate(**{f"gang {k}": in_gangs(gangs, k) for k in GANGS})),
        **one_row(
            tasks.aggregate(
                instances=tasks.count(),
                completed=(tasks.status == "completed").sum(),
                machines=tasks.node.nunique(),
                **{"mean run": (tasks.end_time - tasks.start_time).mean()},
            )
        ),
        **levels(tasks.num_cpus, "cpus asked"),
    }


def _noted(notes: tuple[str, ...], text: str) -> int:
    """Return the number before a text in the notes; 0 = no note has it."""
    found = (re.match(rf"([\d,]+) {re.escape(text)}", note) for note in notes)
    return next((int(match[1].replace(",", "")) for match in found if match), 0)


if __name__ == "__main__":
    sys.stdout.write(json.dumps(figures(sys.argv[1])))
