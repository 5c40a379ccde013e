"""The work of `pai_windtunnel` in pandas, the way the trace's notebook goes about it.

Usage: python pai_pandas.py FOLDER
"""

from __future__ import annotations

import json
import sys

import pandas as pd

COLUMNS = {
    "pai_job_table": "job_name inst_id user status start_time end_time",
    "pai_task_table": "job_name task_name inst_num status start_time end_time plan_cpu plan_mem "
    "plan_gpu gpu_type",
    "pai_instance_table": "job_name task_name inst_name worker_name inst_id status start_time "
    "end_time machine",
    "pai_sensor_table": "job_name task_name worker_name inst_id machine gpu_name cpu_usage "
    "gpu_wrk_util avg_mem max_mem avg_gpu_wrk_mem max_gpu_wrk_mem read write read_count "
    "write_count",
    "pai_group_tag_table": "inst_id user gpu_type_spec group workload",
    "pai_machine_spec": "machine gpu_type cap_cpu cap_mem cap_gpu",
    "pai_machine_metric": "worker_name machine start_time end_time machine_cpu_iowait "
    "machine_cpu_kernel machine_cpu_usr machine_gpu machine_load_1 machine_net_receive "
    "machine_num_worker machine_cpu",
}
#: What is left out of a table as soon as it is read: other tables tell the same.
UNREAD = {
    "pai_job_table": ["status", "start_time", "end_time"],
    "pai_instance_table": ["inst_id"],
    "pai_sensor_table": ["job_name", "task_name", "inst_id", "machine"],
    "pai_group_tag_table": ["user"],
    "pai_machine_metric": ["machine", "start_time", "end_time"],
}
LEVELS = (0.5, 0.9, 0.99)
GANGS = (2, 10, 100)
TASK = ["job_name", "task_name"]


def table(folder: str, name: str) -> pd.DataFrame:
    """Return one table."""
    columns = COLUMNS[name].split()
    kept = [column for column in columns if column not in UNREAD.get(name, ())]
    return pd.read_csv(f"{folder}/{name}.csv", header=None, names=columns, usecols=kept)


def by_task(instances: pd.DataFrame) -> pd.DataFrame:
    """Return what the instances of each task say together."""
    began = instances[instances.start_time > 0].groupby(TASK).start_time.min()
    both = instances[(instances.start_time > 0) & (instances.end_time > 0)]
    ran = (both.end_time - both.start_time).groupby([both.job_name, both.task_name]).mean()
    last = instances.groupby(TASK).status.max()
    return last.to_frame("status_i").join(began.rename("start_i")).join(ran.rename("run_i"))


def jobs(folder: str, instances: pd.DataFrame) -> pd.DataFrame:
    """Return the tasks with their jobs, groups and instances."""
    frame = table(folder, "pai_task_table").drop_duplicates(TASK)
    frame = frame.merge(table(folder, "pai_job_table"), on="job_name", how="left")
    frame = frame.merge(by_task(instances), on=TASK, how="left")
    frame = frame.merge(table(folder, "pai_group_tag_table"), on="inst_id", how="left")
    frame["group"] = frame.group.fillna(frame.user)
    frame["start_time"] = frame.start_time.where(frame.start_time > 0)
    frame["wait"] = (frame.start_i - frame.start_time).where(frame.start_i >= frame.start_time)
    frame["num_gpus"] = frame.inst_num * frame.plan_gpu / 100
    return frame.sort_values("start_time", kind="stable")


def figures(folder: str) -> dict[str, float]:
    """Return the figures that `pai_windtunnel.figures` returns too."""
    instances = table(folder, "pai_instance_table")
    dfa = jobs(folder, instances)
    held = dfa.num_gpus * dfa.run_i
    by_user = held.groupby(dfa.user).sum().sort_values(ascending=False)
    sizes = pd.cut(dfa.num_gpus, [-1, 0, 0.999999, 1, 2, 4, 8, 16, 32, 64, 1e9])
    sized = held.groupby(sizes, observed=True, dropna=False).agg(["sum", "size"])
    dfw = instances.sort_values(["status", "start_time", "end_time"])
    dfw = dfw.drop_duplicates("worker_name", keep="last")
    plans = dfa[[*TASK, "plan_cpu", "plan_gpu", "plan_mem"]]
    dfw = dfw.merge(plans, on=TASK, how="left")
    machines = table(folder, "pai_machine_spec").drop_duplicates("machine")
    dfw = dfw.merge(machines, on="machine", how="left")
    dfw = dfw.merge(table(folder, "pai_sensor_table"), on="worker_name", how="left")
    dfw = dfw.merge(table(folder, "pai_machine_metric"), on="worker_name", how="left")
    per_user = dfa.groupby("user").size()
    return {
        "tasks": len(dfa),
        "gpu tasks": int((dfa.num_gpus > 0).sum()),
        "gpu time": held.sum(),
        "duration avg": dfa.run_i.mean(),
        **{f"duration p{q * 100:.0f}": dfa.run_i.quantile(q) for q in LEVELS},
        "wait avg": dfa.wait.mean(),
        **{f"wait p{q * 100:.0f}": dfa.wait.quantile(q) for q in LEVELS},
        "largest user": by_user.iloc[0] / held.sum(),
        "in size classes": int(sized["size"].sum()),
        **{f"gang {k}": dfa.inst_num[dfa.inst_num >= k].sum() / dfa.inst_num.sum() for k in GANGS},
        **{f"per user {q}": per_user.quantile(q) for q in LEVELS},
        "instances": len(instances),
        "measured": int(dfw.cpu_usage.notna().sum()),
        "more cpus": _share_above(dfw.cpu_usage, dfw.plan_cpu),
        "more gpus": _share_above(dfw.gpu_wrk_util, dfw.plan_gpu),
        "more memory": _share_above(dfw.avg_mem, dfw.plan_mem),
        **{f"cpus used {q}": dfw.cpu_usage.quantile(q) / 100 for q in LEVELS},
        **{f"cpus asked {q}": dfw.plan_cpu.quantile(q) / 100 for q in LEVELS},
        **{f"machine cpu {q}": dfw.machine_cpu.quantile(q) for q in LEVELS},
    }


def _share_above(used: pd.Series, asked: pd.Series) -> float:
    """Return the share of rows that use more than they asked for, of those that have both."""
    known = used.notna() & asked.notna()
    return float((used[known] > asked[known]).mean())


if __name__ == "__main__":
    sys.stdout.write(json.dumps(figures(sys.argv[1]), default=float))
