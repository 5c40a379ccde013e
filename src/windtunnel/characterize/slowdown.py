"""Do tasks run longer on nodes whose CPUs are busy?

"MLaaS in the Wild" (Weng et al., NSDI'22, section 6): half of the delayed instances ran on machines
above 24 % CPU utilisation, and no such link was found for GPUs. The definition here: a task is
*delayed* when its run time is more than ``delayed`` times the median run time of the completed
tasks of its recurring group (its job's ``template``); with 1, half of each group at most. A group
recurs when it has at least ``min_jobs`` jobs with such a task.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from windtunnel.characterize.cdf import column_cdfs
from windtunnel.characterize.relation import (
    LeftOut,
    column_names,
    relation,
    rows,
    split_off,
    typed,
    why,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    import pyarrow as pa

    from windtunnel.companions import Relation

#: Mean state of a task's node over the task's life, percent, as the PAI reader keeps it.
NODE_CPU, NODE_GPU = "machine_cpu", "machine_gpu"
#: Jobs that make a group recurring: those of the paper's count of recurring tasks.
MIN_JOBS = 5
#: A task is delayed above so many medians of its group.
DELAYED = 1.0
#: CPU utilisation (percent) of the paper's claim.
BUSY_CPU = 24.0
#: Metrics of `node_load_cdfs`, in percent; ``network`` is in Gbit/s.
LOADS: tuple[str, ...] = (
    *("machine_cpu", "machine_cpu_usr", "machine_cpu_kernel", "machine_cpu_iowait"),
    "machine_gpu",
)
#: Points of those curves: percent, and Gbit/s by half octaves from 2^-10 to 8192.
PERCENTS: tuple[float, ...] = tuple(float(x) for x in range(101))
RATES: tuple[float, ...] = (0.0, *(2.0 ** (k / 2) for k in range(-20, 27)))


def slowdown_by_load(
    tasks: Relation,
    jobs: Relation,
    *,
    delayed: float = DELAYED,
    min_jobs: int = MIN_JOBS,
    busy: float = BUSY_CPU,
) -> pa.Table:
    """Return how busy the nodes of delayed tasks were, beside those of the others.

    Args:
        tasks: a tasks table (`windtunnel.companions.TASK_COLUMNS`) with `NODE_CPU`, and with
            `NODE_GPU` where the GPUs are asked about too.
        jobs: the jobs table: ``job_id`` and ``template``.
        delayed: a task is delayed above so many medians of its group.
        min_jobs: jobs that make a group recurring.
        busy: percent of utilisation; a node above it is busy.

    Returns:
        A row for each of ``metric`` (machine_cpu, then machine_gpu where the table has it) and
        ``tasks`` (delayed, others): ``n`` (tasks of the kind whose node's metric is known),
        ``p25``, ``p50``, ``p75`` (percent), ``busy_share`` (of n, on nodes above ``busy``; 0..1),
        all null where n is 0; ``unknown`` (tasks of the kind without the metric), ``groups``
        (recurring groups), ``left_out`` (tasks in neither kind) and ``why``.

    Raises:
        SchemaError: a table lacks a column.
    """
    import pyarrow as pa

    metrics = [NODE_CPU, *([NODE_GPU] if NODE_GPU in column_names(tasks) else [])]
    compared, groups, left_out = _compared(tasks, jobs, metrics, delayed, min_jobs)
    asked: dict[str, Any] = {"total": compared.count()}
    for metric in metrics:
        value = compared[metric]
        asked[f"{metric}_n"] = value.count()
        asked[f"{metric}_above"] = compared.count(where=value > busy)
        asked |= {f"{metric}_p{p}": value.quantile(p / 100) for p in (25, 50, 75)}
    found = {row["late"]: row for row in rows(compared.group_by("late").aggregate(**asked))}
    empty = {
        name: 0 if name == "total" or name.endswith(("_n", "_above")) else None for name in asked
    }
    out = []
    for metric in metrics:
        for late, label in ((True, "delayed"), (False, "others")):
            row = found.get(late, empty)
            n = row[f"{metric}_n"]
            out.append(
                {
                    "metric": metric,
                    "tasks": label,
                    "n": n,
                    **{f"p{p}": row[f"{metric}_p{p}"] for p in (25, 50, 75)},
                    "busy_share": row[f"{metric}_above"] / n if n else None,
                    "unknown": row["total"] - n,
                    "groups": groups,
                    "left_out": sum(left_out.values()),
                    "why": why(left_out),
                }
            )
    names = "metric tasks n p25 p50 p75 busy_share unknown groups left_out why"
    return pa.Table.from_pylist(out, schema=typed(names, "ttiffffiiit"))


def _compared(
    tasks: Relation, jobs: Relation, metrics: list[str], delayed: float, min_jobs: int
) -> tuple[Any, int, LeftOut]:
    """Return the completed tasks of recurring groups with ``late``, the groups, the rest."""
    ran = relation(tasks, ("job_id", "start_time", "end_time", "status", *metrics))
    named = relation(jobs, ("job_id", "template"))
    named = named.select(named_job=named.job_id, template=named.template)
    joined = ran.left_join(named, ran.job_id == named.named_job)
    timed, _, left_out = split_off(
        joined.mutate(run_time=joined.end_time - joined.start_time),
        {
            "job not in the jobs table": joined.named_job.isnull(),
            "no template": joined.template.isnull(),
            "not completed": joined.status.isnull() | (joined.status != "completed"),
            "no run time": (joined.end_time - joined.start_time).isnull(),
            "ends before it starts": joined.end_time < joined.start_time,
        },
    )
    per_group = timed.group_by("template").aggregate(
        jobs=timed.job_id.nunique(), median=timed.run_time.quantile(0.5)
    )
    recurring = per_group.filter(per_group.jobs >= min_jobs)
    (count,) = rows(recurring.aggregate(groups=recurring.count()))
    recurring = recurring.select(group=recurring.template, median=recurring.median)
    grouped = timed.left_join(recurring, timed.template == recurring.group)
    kept, _, single = split_off(
        grouped, {f"group of fewer than {min_jobs} jobs": grouped.group.isnull()}
    )
    late = kept.mutate(late=kept.run_time > delayed * kept.median)
    return late, count["groups"], left_out | single


def node_load_cdfs(
    tasks: Relation, *, at: Sequence[float] = PERCENTS, rates: Sequence[float] = RATES
) -> pa.Table:
    """Return the CDFs of the state of the nodes that tasks ran on, and of what tasks read.

    Each task counts once, with the mean over its life. ``network`` is 8 x ``read`` / 2^30, the
    notebook's figure 8 (Gbit/s where ``read`` is in bytes/s).

    Args:
        tasks: a tasks table; of `LOADS` and ``read``, the columns that it has are drawn.
        at: points of the percentages.
        rates: points of the network rate.

    Returns:
        Columns ``value`` (metric), ``x``, ``count``, ``percent``, ``n``, ``left_out``, as
        `windtunnel.characterize.cdf.column_cdfs` returns them; no row where the table has
        none of the columns.
    """
    has = column_names(tasks)
    loads = [name for name in LOADS if name in has]
    network = ["read"] if "read" in has else []
    table = relation(tasks, [*loads, *network] or ["task_id"])
    values = {name: table[name] for name in loads}
    points = dict.fromkeys(loads, at)
    if network:
        values["network"] = 8 * table.read / 2**30
        points["network"] = rates
    return column_cdfs(table, values, points)
