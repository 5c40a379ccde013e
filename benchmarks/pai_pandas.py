"""The work of `pai_windtunnel` in pandas, the way the trace's notebook goes about it.

The reader checks what it reads and counts what does not fit, so this does too: without, the two
would not do the same work.

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
#: Text that is left out of a table as it is read: other tables tell the same.
UNREAD = {
    "pai_job_table": ["status"],
    "pai_instance_table": ["inst_id"],
    "pai_sensor_table": ["job_name", "task_name", "inst_id", "machine"],
    "pai_machine_metric": ["machine"],
}
#: Numbers that are checked and then left out: other tables tell the same.
UNUSED = {
    "pai_job_table": ["start_time", "end_time"],
    "pai_machine_metric": ["start_time", "end_time"],
}
#: Numbers that may not be below 0.
AMOUNTS = ["start_time", "end_time", "inst_num", "plan_cpu", "plan_gpu", "plan_mem"]
STATUSES = ("Terminated", "Failed", "Running", "Waiting")
LEVELS = (0.5, 0.9, 0.99)
PERCENTS = (50, 90, 95, 99)
GANGS = (2, 10, 100)
KEYS = {
    "pai_job_table": "job_name",
    "pai_group_tag_table": "inst_id",
    "pai_machine_spec": "machine",
}
TASK = ["job_name", "task_name"]


def table(folder: str, name: str) -> pd.DataFrame:
    """Return one table, its numbers checked."""
    columns = COLUMNS[name].split()
    kept = [column for column in columns if column not in UNREAD.get(name, ())]
    frame = pd.read_csv(f"{folder}/{name}.csv", header=None, names=columns, usecols=kept)
    for column in frame.select_dtypes("number"):
        known = frame[column].dropna()
        least = 0 if column in AMOUNTS else -sys.float_info.max
        assert known.between(least, sys.float_info.max).all(), column
    return frame.drop(columns=UNUSED.get(name, []))


def by_task(instances: pd.DataFrame) -> pd.DataFrame:
    """Return what the instances of each task say together."""
    began = instances[instances.start_time > 0].groupby(TASK).start_time.min()
    ended = instances[instances.end_time > 0].groupby(TASK).end_time.max()
    both = instances[(instances.start_time > 0) & (instances.end_time > 0)]
    ran = (both.end_time - both.start_time).groupby([both.job_name, both.task_name]).mean()
    last = instances.groupby(TASK).status.max()
    starts = last.to_frame("status_i").join(began.rename("start_i"))
    return starts.join(ended.rename("end_i")).join(ran.rename("run_i"))


def with_times(frame: pd.DataFrame) -> pd.DataFrame:
    """Return tasks with their instances: sorted, with ids, known times, waits and GPUs."""
    frame["job_id"] = frame.job_name + "/" + frame.task_name
    frame["status"] = frame.status.fillna(frame.status_i)
    frame["submit"] = frame.start_time.where(frame.start_time > 0)
    frame["end"] = frame.end_time.where(frame.end_time > 0)
    frame["early"] = frame.start_i < frame.submit
    frame["start"] = frame.start_i.where(~frame.early)
    frame["wait"] = frame.start - frame.submit
    frame["num_gpus"] = frame.inst_num * frame.plan_gpu / 100
    return frame.sort_values("submit", kind="stable")


def jobs(
    tasks: pd.DataFrame, job: pd.DataFrame, group: pd.DataFrame, instances: pd.DataFrame
) -> tuple[pd.DataFrame, dict[str, float]]:
    """Return the tasks with their jobs, groups and instances; and how many rows match nothing."""
    linked = job.merge(group.drop(columns="user"), on="inst_id", how="left", indicator="grouped")
    frame = tasks.merge(linked, on="job_name", how="left", indicator="known")
    named = frame.job_name[frame.known == "both"].nunique()
    grouped = linked.inst_id[linked.grouped == "both"].nunique()
    found = {
        "tasks without job": int((frame.known == "left_only").sum()),
        "jobs without task": len(job) - named,
        "groups without job": len(group) - grouped,
    }
    frame = frame.merge(by_task(instances), on=TASK, how="left")
    frame["group"] = frame.group.fillna(frame.user)
    return with_times(frame), found


def checks(instances: pd.DataFrame, tasks: pd.DataFrame) -> dict[str, float]:
    """Return how many rows of the two tables repeat names or make no sense."""
    assert tasks.job_name.notna().all()
    assert tasks.task_name.notna().all()
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


def checks_of_jobs(dfa: pd.DataFrame) -> dict[str, float]:
    """Return how many tasks lack something or contradict themselves, and how they ended."""
    assert dfa.job_id.is_unique
    late = (dfa.end < dfa.submit) | (dfa.end < dfa.start)
    return {
        "tasks starting before submission": int(dfa.early.sum()),
        "tasks ending before submission or start": int(late.sum()),
        "tasks without submission": int(dfa.submit.isna().sum()),
        "tasks without run time": int(dfa.run_i.isna().sum()),
        "completed tasks": int((dfa.status == "Terminated").sum()),
        "last end of instances": dfa.end_i.mean(),
    }


def distributions(dfa: pd.DataFrame) -> dict[str, float]:
    """Return how run times, waits and sizes are distributed, and who is of unknown what."""
    found: dict[str, float] = {"gpu time n": int((dfa.num_gpus * dfa.run_i).count())}
    for name, column in (("duration", dfa.run_i), ("wait", dfa.wait), ("num_gpus", dfa.num_gpus)):
        found[f"{name} n"] = int(column.count())
        found[f"{name} avg"] = column.mean()
        found[f"{name} max"] = column.max()
        for percent in PERCENTS:
            found[f"{name} p{percent}"] = column.quantile(percent / 100)
    return {
        **found,
        "first submit": dfa.submit.min(),
        "last submit": dfa.submit.max(),
        **{f"lack {name}": int(dfa[name].isna().sum()) for name in ("start", "inst_num", "status")},
    }


def firsts(frame: pd.DataFrame, key: str) -> tuple[pd.DataFrame, int]:
    """Return the first row of each key, and how many rows repeat one."""
    again = frame.duplicated(key) & frame[key].notna()
    return frame[~again], int(again.sum())


def figures(folder: str) -> dict[str, float]:
    """Return the figures that `pai_windtunnel.figures` returns too."""
    instances = table(folder, "pai_instance_table")
    tasks = table(folder, "pai_task_table")
    found = checks(instances, tasks)
    keyed = {}
    for name, key in KEYS.items():
        keyed[name], found[f"repeats in {name}"] = firsts(table(folder, name), key)
    job, group = keyed["pai_job_table"], keyed["pai_group_tag_table"]
    machines = keyed["pai_machine_spec"]
    dfa, unmatched = jobs(tasks.drop_duplicates(TASK), job, group, instances)
    strange = ~instances.machine.isin(machines.machine)
    found |= unmatched | {"instances of unknown machines": int(strange.sum())}
    held = dfa.num_gpus * dfa.run_i
    by_user = held.groupby(dfa.user).sum().sort_values(ascending=False)
    sizes = pd.cut(dfa.num_gpus, [-1, 0, 0.999999, 1, 2, 4, 8, 16, 32, 64, 1e9])
    sized = held.groupby(sizes, observed=True, dropna=False).agg(["sum", "size"])
    dfw = instances.sort_values(["status", "start_time", "end_time"])
    dfw = dfw.drop_duplicates("worker_name", keep="last")
    plans = dfa[[*TASK, "plan_cpu", "plan_gpu", "plan_mem"]]
    dfw = dfw.merge(plans, on=TASK, how="left")
    dfw = dfw.merge(machines, on="machine", how="left")
    for name in ("pai_sensor_table", "pai_machine_metric"):
        usage, found[f"repeats in {name}"] = firsts(table(folder, name), "worker_name")
        dfw = dfw.merge(usage, on="worker_name", how="left", indicator=f"in {name}")
        found[f"strays in {name}"] = len(usage) - int((dfw[f"in {name}"] == "both").sum())
    per_user = dfa.groupby("user").size()
    return {
        **found,
        **checks_of_jobs(dfa),
        **distributions(dfa),
        "tasks": len(dfa),
        "gpu tasks": int((dfa.num_gpus > 0).sum()),
        "gpu time": held.sum(),
        "users": dfa.user.nunique(),
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
