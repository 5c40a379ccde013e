"""The work of `instances_windtunnel` in pandas: the same questions, and the same checks.

Usage: python instances_pandas.py FOLDER
"""

from __future__ import annotations

import json
import sys

import pandas as pd
from pai_pandas import GANGS, LEVELS, TASK, by_task, table

STATUSES = ("Terminated", "Failed", "Running", "Waiting")


def figures(folder: str) -> dict[str, float]:
    """Return the figures that `instances_windtunnel.figures` returns too."""
    instances = table(folder, "pai_instance_table")
    tasks = table(folder, "pai_task_table")
    check_numbers(instances, ["start_time", "end_time"])
    check_numbers(tasks, ["inst_num", "start_time", "end_time", "plan_cpu", "plan_gpu", "plan_mem"])
    found = checks(instances, tasks)
    tasks = tasks.drop_duplicates(TASK)
    dfa = tasks.merge(by_task(instances), on=TASK, how="left")
    dfa["submit"] = dfa.start_time.where(dfa.start_time > 0)
    dfa["end"] = dfa.end_time.where(dfa.end_time > 0)
    dfa = dfa.sort_values("submit", kind="stable")
    early = dfa.start_i < dfa.submit
    start = dfa.start_i.where(~early)
    dfa["wait"] = start - dfa.submit
    dfa["num_gpus"] = dfa.inst_num * dfa.plan_gpu / 100
    held = dfa.num_gpus * dfa.run_i
    sizes = pd.cut(dfa.num_gpus, [-1, 0, 0.999999, 1, 2, 4, 8, 16, 32, 64, 1e9])
    sized = held.groupby(sizes, observed=True, dropna=False).agg(["sum", "size"])
    asked = instances[TASK].merge(tasks[[*TASK, "plan_cpu"]], on=TASK, how="left", indicator="side")
    both = (instances.start_time > 0) & (instances.end_time > 0)
    return {
        **found,
        "instances without task": int((asked.side == "left_only").sum()),
        "tasks starting before submission": int(early.sum()),
        "tasks ending before submission or start": int(
            ((dfa.end < dfa.submit) | (dfa.end < start)).sum()
        ),
        "tasks without submission": int(dfa.submit.isna().sum()),
        "tasks without run time": int(dfa.run_i.isna().sum()),
        "tasks": len(dfa),
        "gpu tasks": int((dfa.num_gpus > 0).sum()),
        "gpu time": held.sum(),
        "duration avg": dfa.run_i.mean(),
        **{f"duration p{q * 100:.0f}": dfa.run_i.quantile(q) for q in LEVELS},
        "wait avg": dfa.wait.mean(),
        **{f"wait p{q * 100:.0f}": dfa.wait.quantile(q) for q in LEVELS},
        "in size classes": int(sized["size"].sum()),
        **{f"gang {k}": dfa.inst_num[dfa.inst_num >= k].sum() / dfa.inst_num.sum() for k in GANGS},
        "instances": len(instances),
        "completed": int((instances.status == "Terminated").sum()),
        "machines": instances.machine.nunique(),
        "mean run": (instances.end_time - instances.start_time)[both].mean(),
        **{f"cpus asked {q}": asked.plan_cpu.quantile(q) / 100 for q in LEVELS},
    }


def check_numbers(frame: pd.DataFrame, columns: list[str]) -> None:
    """Check that numbers are finite and not below 0, as far as they are known."""
    for column in columns:
        known = frame[column].dropna()
        assert known.between(0, sys.float_info.max).all(), column


def checks(instances: pd.DataFrame, tasks: pd.DataFrame) -> dict[str, float]:
    """Return how many rows of the tables repeat names or make no sense."""
    names = instances.worker_name.fillna(instances.inst_name)
    backwards = (instances.end_time < instances.start_time) & (instances.end_time > 0)
    return {
        "tasks of the same names": int(tasks.duplicated(TASK).sum()),
        "workers of several instances": int(names.duplicated().sum()),
        "instances ending before they start": int(backwards.sum()),
        "instances of odd status": int(
            (instances.status.notna() & ~instances.status.isin(STATUSES)).sum()
        ),
    }


if __name__ == "__main__":
    sys.stdout.write(json.dumps(figures(sys.argv[1]), default=float))
