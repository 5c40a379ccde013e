"""Read the task and instance tables of PAI, check and describe them; prints figures as JSON.

Usage: python instances_windtunnel.py FOLDER
"""

from __future__ import annotations

import json
import sys

import ibis
from pai_windtunnel import CHECKS, GANGS, in_gangs, levels, noted, of_jobs, one_row

import windtunnel as wt
from windtunnel.characterize import overview, shares


def figures(folder: str) -> dict[str, float]:
    """Return the figures that `instances_pandas.figures` returns too."""
    trace = wt.open_trace(folder)
    seen = overview(trace.jobs)
    by_size = shares(trace.jobs, "num_gpus")
    gangs = ibis.memtable(trace.jobs.select(["num_tasks"]))
    tasks = trace.tasks
    return {
        **noted(
            trace, CHECKS | {"instances without task": "instances have no task in the task table"}
        ),
        **of_jobs(trace, seen),
        "in size classes": sum(by_size["num_jobs"].to_pylist()),
        **one_row(gangs.aggregate(**{f"gang {k}": in_gangs(gangs, k) for k in GANGS})),
        **one_row(
            tasks.aggregate(
                instances=tasks.count(),
                completed=(tasks.status == "completed").sum(),
                **{"mean run": (tasks.end_time - tasks.start_time).mean()},
            )
        ),
        # DuckDB would copy all the columns aside to count distinct values beside other sums.
        **one_row(tasks.aggregate(machines=tasks.node.nunique())),
        **levels(tasks.num_cpus, "cpus asked"),
    }


if __name__ == "__main__":
    sys.stdout.write(json.dumps(figures(sys.argv[1])))
