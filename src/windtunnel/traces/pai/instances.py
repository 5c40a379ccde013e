"""The instances of the PAI trace, with what was measured of them: the tasks of the jobs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from windtunnel.companions import TASK_COLUMNS
from windtunnel.traces.pai.joins import (
    STATUS,
    distinct_names,
    last_of_each_worker,
    status_word,
    unique,
)
from windtunnel.traces.pai.tables import METRICS

if TYPE_CHECKING:
    from windtunnel.traces.pai.store import Store

#: What each row of the parsed instances becomes: names of the task only where it has none.
LOAD_INSTANCES = """
    SELECT batches.row, named.task,
           CASE WHEN named.task IS NULL THEN batches.job_name END AS job_name,
           CASE WHEN named.task IS NULL THEN batches.task_name END AS task_name,
           inst_name, worker_name, batches.status, batches.start_time, batches.end_time, machine
    FROM batches LEFT JOIN task_keys AS named USING (job_name, task_name)
"""
#: Sensor columns that have no place of their own among `TASK_COLUMNS`.
_SENSOR_EXTRAS = ("max_mem", "max_gpu_wrk_mem", "read", "write", "read_count", "write_count")


@dataclass(frozen=True)
class Measured:
    """What is left of a table of measurements when each instance has its row.

    Attributes:
        repeats: rows left out because an earlier one has the same worker.
        strays: rows whose worker is no instance's.
    """

    repeats: int
    strays: int


def measured(store: Store, name: str, counted: Any) -> Measured:
    """Give each row of ``sensor`` or ``metric`` to the instance of its worker.

    What was measured then stands in ``sensor_of`` or ``metric_of``, with ``instance`` (its row).

    Args:
        store: has the table.
        name: of the table.
        counted: the instances that count, one a worker (`last_of_each_worker`).
    """
    table = store.table(name)
    found = unique(store, table, f"{name}_repeats", "worker_name")
    rows = found.table.select("worker_name", measured="row")
    pairs = counted.inner_join(rows, "worker_name").select(instance="row", measured="measured")
    # First the rows' numbers alone: names and measurements together would not fit in memory.
    links = store.keep(f"{name}_links", pairs)
    given = links.inner_join(table, links.measured == table.row)
    store.keep(f"{name}_of", given.drop("measured", "row", "worker_name"))
    alone = store.count(table) - found.count - store.count(links)
    store.drop(name, f"{name}_links")
    return Measured(found.count, alone)


@dataclass(frozen=True)
class Workers:
    """The instances by their workers.

    Attributes:
        counted: the instances that usage is counted for, one a worker.
        left_out: instances of a worker that has another one that counts.
        renamed: instances whose task id was numbered, ``row`` and ``renamed``.
    """

    counted: Any
    left_out: int
    renamed: Any


def workers(store: Store) -> Workers:
    """Find the workers of several instances, and which of the instances counts.

    Args:
        store: has the table ``instance``.
    """
    instances = store.table("instance")
    named = instances.select("row", task_id=_task_id(instances))
    renamed, count = distinct_names(store, named, "task_id", "instance_names")
    if not count:
        return Workers(instances, 0, renamed)
    names = named.semi_join(renamed, "row").select(worker_name="task_id").distinct()
    several = instances.semi_join(names, "worker_name")
    losers = several.anti_join(last_of_each_worker(several), "row").select("row")
    kept = store.keep("workers_left_out", losers)
    return Workers(instances.anti_join(kept, "row"), store.count(kept), renamed)


def _task_id(instances: Any) -> Any:
    """Return the name of a task: worker, else instance, else its place in the file, from 1."""
    place = (instances.row + 1).cast("string")
    return instances.worker_name.coalesce(instances.inst_name, "instance " + place)


def tasks_of(store: Store, named: Any, renamed: Any, machines: Any) -> Any:
    """Return the tasks as a table of the database: `TASK_COLUMNS`, then the source's others.

    It is a view: a query joins only rows, by their numbers, and reads only what it asks for.

    Args:
        store: has ``task``, ``instance``, ``sensor_of`` and ``metric_of``.
        named: see `windtunnel.traces.pai.jobs.named_tasks`.
        renamed: see `Workers`.
        machines: the machine table, each machine once.
    """
    i = store.table("instance")
    plans = store.table("task").select("row", "plan_cpu", "plan_gpu", "plan_mem")
    asked = named.inner_join(plans, named.task == plans.row).drop("row", "leader")
    i = i.left_join(store.keep("asked", asked), "task").drop("task_right")
    i = i.left_join(renamed, "row").drop("row_right")
    types = machines.select("machine", node_gpu_type="gpu_type")
    i = i.left_join(types, "machine").drop("machine_right")
    for name in ("sensor_of", "metric_of"):
        rows = store.table(name)
        i = i.left_join(rows, i.row == rows.instance).drop("instance")
    ours = {
        "task_id": i.renamed.coalesce(_task_id(i)),
        "job_id": i.job_id.coalesce(i.job_name.coalesce("") + "/" + i.task_name.coalesce("")),
        "node": i.machine,
        "gpu": i.gpu_name,
        "start_time": i.start_time.nullif(0),
        "end_time": i.end_time.nullif(0),
        "status": status_word(i.status),
        "num_gpus": i.plan_gpu / 100,
        "num_cpus": i.plan_cpu / 100,
        "mem_gib": i.plan_mem,
        "gpus_used": i.gpu_wrk_util / 100,
        "cpus_used": i.cpu_usage / 100,
        "mem_used_gib": i.avg_mem,
        "gpu_mem_used_gib": i.avg_gpu_wrk_mem,
    }
    view = i.select(
        **{column.name: ours[column.name] for column in TASK_COLUMNS},
        **{name: i[name] for name in ("inst_name", "worker_name", "node_gpu_type")},
        **{name: i[name] for name in (*_SENSOR_EXTRAS, *METRICS)},
    )
    return store.view("tasks", view)


def strays(store: Store, machines: Any | None) -> list[tuple[int, str]]:
    """Return how many instances lack what, and in words.

    Args:
        store: has the table ``instance``.
        machines: the machine table, each machine once; None where it is missing.
    """
    i = store.table("instance")
    backwards = i.filter((i.end_time < i.start_time) & (i.end_time > 0))
    odd = i.filter(i.status.notnull() & ~i.status.isin(list(STATUS)))
    words = f"instances have a status other than {', '.join(STATUS)}: it is read as unknown."
    counts = [
        (store.count(odd), words),
        (store.count(i.filter(i.task.isnull())), "instances have no task in the task table."),
        (store.count(backwards), "instances end before they start; they stay as they are."),
    ]
    if machines is not None:
        strange = i.filter(i.machine.notnull()).anti_join(machines, "machine")
        counts.append((store.count(strange), "instances name a machine without specification."))
    return counts
