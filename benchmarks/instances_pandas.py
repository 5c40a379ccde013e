"""The work of `instances_windtunnel` in pandas: the same questions, and the same checks.

Usage: python instances_pandas.py FOLDER
"""

from __future__ import annotations

import json
import sys

import pandas as pd
from pai_pandas import (
    GANGS,
    LEVELS,
    TASK,
    by_task,
    checks,
    checks_of_jobs,
    distributions,
    table,
    with_times,
)


def figures(folder: str) -> dict[str, float]:
    """Return the figures that `instances_windtunnel.figures` returns too."""
    instances = table(folder, "pai_instance_table")
    tasks = table(folder, "pai_task_table")
    found = checks(instances, tasks)
    tasks = tasks.drop_duplicates(TASK)
    dfa = with_times(tasks.merge(by_task(instances), on=TASK, how="left"))
    held = dfa.num_gpus * dfa.run_i
    sizes = pd.cut(dfa.num_gpus, [-1, 0, 0.999999, 1, 2, 4, 8, 16, 32, 64, 1e9])
    sized = held.groupby(sizes, observed=True, dropna=False).agg(["sum", "size"])
    asked = instances[TASK].merge(tasks[[*TASK, "plan_cpu"]], on=TASK, how="left", indicator="side")
    both = (instances.start_time > 0) & (instances.end_time > 0)
    return {
        **found,
        **checks_of_jobs(dfa),
        **distributions(dfa),
        "instances without task": int((asked.side == "left_only").sum()),
        "tasks": len(dfa),
        "gpu tasks": int((dfa.num_gpus > 0).sum()),
        "gpu time": held.sum(),
        "in size classes": int(sized["size"].sum()),
        **{f"gang {k}": dfa.inst_num[dfa.inst_num >= k].sum() / dfa.inst_num.sum() for k in GANGS},
        "instances": len(instances),
        "completed": int((instances.status == "Terminated").sum()),
        "machines": instances.machine.nunique(),
        "mean run": (instances.end_time - instances.start_time)[both].mean(),
        **{f"cpus asked {q}": asked.plan_cpu.quantile(q) / 100 for q in LEVELS},
    }


if __name__ == "__main__":
    sys.stdout.write(json.dumps(figures(sys.argv[1]), default=float))
