"""The jobs of the PAI trace: one row a task, with what job, instances and group say of it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from windtunnel.traces.pai.joins import (
    STATUS,
    distinct_names,
    instances_of_tasks,
    status_word,
    unique,
)

if TYPE_CHECKING:
    from windtunnel.traces.pai.joins import Unique
    from windtunnel.traces.pai.store import Store

#: Columns behind the schema's own, in this order. Their meaning: `windtunnel.traces.pai`.
EXTRAS = (
    *("runtime", "wait_time", "plan_cpu", "plan_gpu", "plan_mem"),
    *("gpu_type_assigned", "pai_job", "inst_id"),
    *("instance_start", "instance_end", "task_end", "source_status"),
)


def named_tasks(store: Store) -> tuple[Any, Unique, int]:
    """Give each task its job id and the task that its instances are counted for.

    Args:
        store: has the table ``task``.

    Returns:
        The table ``named``: ``task`` (row of the task), ``job_id`` (unique), ``leader`` (row of
        the first task of the same two names); the tasks by their names; and how many job ids
        had to be numbered.
    """
    tasks = store.table("task")
    pairs = unique(store, tasks, "task_pairs", "job_name", "task_name")
    plain = tasks.select("row", job_id=tasks.job_name + "/" + tasks.task_name)
    renamed, count = distinct_names(store, plain, "job_id", "task_names")
    joined = plain.left_join(renamed, "row").drop("row_right")
    joined = joined.left_join(pairs.repeats, "row")
    named = joined.select(
        task=joined.row,
        job_id=joined.renamed.coalesce(joined.job_id),
        leader=joined["first"].coalesce(joined.row),
    )
    return store.keep("named", named), pairs, count


def jobs_of(store: Store, named: Any, jobs: Unique, groups: Unique) -> pa.Table:
    """Return the jobs in order of submission, unknown times last, ties in the file's order.

    Args:
        store: has the tables ``task`` and ``instance``.
        named: see `named_tasks`.
        jobs: the job table by job name.
        groups: the group table by instance id.

    Returns:
        Columns of the schema that the source knows, `EXTRAS`, and ``row`` (int64, place of the
        task in its file). ``start_time`` and ``end_time`` that contradict are not yet unknown.
    """
    import ibis

    t = store.table("task")
    t = t.left_join(named, t.row == named.task)
    job = jobs.table.select("job_name", "inst_id", job_user="user", has_job=ibis.literal(True))
    t = t.left_join(job, "job_name").drop("job_name_right")
    group = groups.table.select("inst_id", "group", "workload", "gpu_type_spec", group_user="user")
    t = t.left_join(group, "inst_id").drop("inst_id_right")
    told = instances_of_tasks(store.table("instance"))
    t = t.left_join(told, t.leader == told.task)
    user = t.job_user.coalesce(t.group_user)
    gang = t.inst_num.nullif(0)
    submit, end = t.start_time.nullif(0), t.end_time.nullif(0)
    word = t.status.coalesce(t.last_status)
    wide = t.select(
        row=t.row,
        job_id=t.job_id,
        submit_time=submit,
        start_time=t.first_start,
        end_time=end,
        duration=t.mean_run,
        num_gpus=gang * t.plan_gpu / 100,
        num_tasks=gang.cast("int32"),
        num_cpus=gang * t.plan_cpu / 100,
        mem_gib=gang * t.plan_mem,
        gpu_type=t.gpu_type_spec,
        user=user,
        workload=t.workload,
        template=t.group.coalesce(user),
        status=status_word(word),
        runtime=end - submit,
        wait_time=t.first_start - submit,
        plan_cpu=t.plan_cpu,
        plan_gpu=t.plan_gpu,
        plan_mem=t.plan_mem,
        gpu_type_assigned=t.gpu_type,
        pai_job=t.job_name,
        inst_id=t.inst_id,
        instance_start=t.first_start,
        instance_end=t.last_end,
        task_end=end,
        source_status=word,
    )
    with store.in_the_room():
        table: pa.Table = wide.order_by([ibis.asc("submit_time"), "row"]).to_pyarrow()
    return table


def consistent(table: pa.Table) -> tuple[pa.Table, tuple[str, ...]]:
    """Return the jobs without times that contradict each other, and notes that count them.

    A start before the submission, an end before the start or the submission, and a mean run time
    below 0 become unknown; the source's numbers stay in the columns behind.

    Args:
        table: see `jobs_of`.
    """
    submit, start, end, run = (
        np.asarray(table[name].to_numpy(), np.float64)
        for name in ("submit_time", "start_time", "end_time", "duration")
    )
    early_start = start < submit
    start = np.where(early_start, np.nan, start)
    early_end = (end < submit) | (end < start)
    end = np.where(early_end, np.nan, end)
    negative = run < 0
    run = np.where(negative, np.nan, run)
    for name, values in (("start_time", start), ("end_time", end), ("duration", run)):
        place = table.column_names.index(name)
        known = pa.array(values, pa.float64(), from_pandas=True)
        table = table.set_column(place, name, known)
    notes = (
        (early_start, "tasks start before they are submitted: their start_time is unknown."),
        (early_end, "tasks end before they are submitted or start: their end_time is unknown."),
        (negative, "tasks have a mean run time below 0: their duration is unknown."),
    )
    return table, tuple(f"{int(bad.sum()):,} {text}" for bad, text in notes if bad.any())


def gaps(table: pa.Table) -> tuple[str, ...]:
    """Return notes that count what the jobs lack.

    Args:
        table: the jobs with `EXTRAS`.
    """
    counts = (
        (table["submit_time"].null_count, "have no start_time in the task table: they stand last."),
        (
            table["duration"].null_count,
            "have no instance with start and end: they are in no statistics of durations.",
        ),
        (table["plan_gpu"].null_count, "have no plan_gpu: their GPUs are unknown."),
        (table["num_tasks"].null_count, "have no inst_num, or 0: their gang size is unknown."),
    )
    words = table["source_status"]
    strange = pc.and_(pc.equal(table["status"], "unknown"), pc.is_valid(words))
    odd = int(pc.sum(strange).as_py() or 0)
    notes = tuple(f"{count:,} tasks {text}" for count, text in counts if count)
    known = ", ".join(STATUS)
    strange_words = (
        f"{odd:,} tasks have a status other than {known}: it is read as unknown, and kept as "
        "source_status."
    )
    return (*notes, *(strange_words,) * bool(odd))
