"""The jobs of the PAI trace: one row a task, with what job, instances and group say of it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from windtunnel.traces.pai import hashing
from windtunnel.traces.pai.joins import STATUS, alike, numbered, place_in, status_words
from windtunnel.traces.pai.spool import index_of, looked_up

if TYPE_CHECKING:
    from windtunnel.traces.pai.instances import TaskAggregates
    from windtunnel.traces.pai.joins import Alike

#: Columns behind the schema's own, in this order. Their meaning: `windtunnel.traces.pai`.
EXTRAS = (
    *("runtime", "wait_time", "plan_cpu", "plan_gpu", "plan_mem"),
    *("gpu_type_assigned", "pai_job", "inst_id"),
    *("instance_start", "instance_end", "task_end", "source_status"),
)


def repeats_of(keys: pa.Array) -> Alike:
    """Return the rows whose key an earlier row has.

    Args:
        keys: text; a row without one is nobody's repeat.
    """
    rows = np.flatnonzero(keys.is_valid().to_numpy(zero_copy_only=False))
    known = keys.drop_null() if keys.null_count else keys
    found = alike(rows, hashing.hashes(known), lambda some: keys.take(pa.array(some)))
    return found.repeats()


@dataclass(frozen=True)
class Named:
    """The tasks with their names; shape (tasks,) each.

    Attributes:
        tasks: the task table.
        job_id: unique.
        leader: row of the first task of the same two names, int64.
        renumbered: how many job ids had to be numbered.
    """

    tasks: pa.Table
    job_id: pa.Array
    leader: np.ndarray
    renumbered: int

    def keys(self) -> pa.Table:
        """Return ``job_name``, ``task_name`` and ``row`` of the leaders."""
        rows = np.flatnonzero(self.leader == np.arange(len(self.leader)))
        table = self.tasks.select(["job_name", "task_name"])
        if len(rows) < len(self.leader):
            table = table.take(pa.array(rows))
        return table.append_column("row", pa.array(rows.astype(np.int32)))


def named_tasks(tasks: pa.Table) -> Named:
    """Give each task its job id and the task that its instances are counted for.

    Args:
        tasks: the task table, each column in one piece.
    """
    job, task = (tasks[name].combine_chunks() for name in ("job_name", "task_name"))
    plain = pc.binary_join_element_wise(job, task, "/")
    repeats = repeats_of(plain)
    leader = np.arange(len(plain))
    if not len(repeats):
        return Named(tasks, plain, leader, 0)
    # Different pairs may make one id (a/b + c, a + b/c): only rows of one id can be of one pair.
    rows = np.union1d(repeats.rows, repeats.first)
    pairs = [column.take(pa.array(rows)) for column in (job, task)]
    first: dict[tuple[str, str], int] = {}
    for row, pair in zip(
        rows.tolist(), zip(*(p.to_pylist() for p in pairs), strict=True), strict=True
    ):
        leader[row] = first.setdefault(pair, row)

    def meets(names: pa.Array) -> bool:
        return bool(pc.any(pc.is_in(plain, value_set=names)).as_py())

    new = numbered(plain.take(pa.array(repeats.rows)), repeats.nth, meets)
    renamed = np.zeros(len(plain), bool)
    renamed[repeats.rows] = True
    job_id = pc.replace_with_mask(plain, pa.array(renamed), new)
    return Named(tasks, job_id, leader, len(repeats))


@dataclass(frozen=True)
class Links:
    """Which rows of the job and the group tag table belong to which.

    Attributes:
        job: row of each task's job, int32, shape (tasks,); -1 = none.
        group: row of each job's group, int32, shape (jobs,); -1 = none.
        of_task: row of each task's group, int32, shape (tasks,); -1 = none.
    """

    job: np.ndarray
    group: np.ndarray
    of_task: np.ndarray


def links_of(tasks: pa.Table, jobs: pa.Table, groups: pa.Table) -> Links:
    """Find the job and the group of each task: the first row of their key.

    Args:
        jobs: the job table, by ``job_name``.
        groups: the group tag table, by ``inst_id``.
    """
    job = place_in(tasks["job_name"].combine_chunks(), jobs["job_name"].combine_chunks())
    group = place_in(jobs["inst_id"].combine_chunks(), groups["inst_id"].combine_chunks())
    return Links(job, group, np.append(group, np.int32(-1))[job])


def jobs_of(  # noqa: PLR0917 - the tables that make it
    named: Named,
    jobs: pa.Table,
    groups: pa.Table,
    links: Links,
    by_task: TaskAggregates,
    words: list[str],
) -> tuple[pa.Table, np.ndarray]:
    """Return the jobs in order of submission, unknown times last, ties in the file's order.

    Args:
        by_task: what the instances say, by the rows of the leaders.

    Returns:
        Columns of the schema that the source knows, and `EXTRAS`; and the row of each job in the
        task table, int64. ``start_time`` and ``end_time`` that contradict are not yet unknown.
    """
    tasks = named.tasks
    submit = _past_zero(tasks, "start_time")
    order = np.argsort(submit, kind="stable")  # NaN last
    submit = submit[order]
    leader = named.leader[order]
    task, job, group = (index_of(p) for p in (order, links.job[order], links.of_task[order]))
    end = _past_zero(tasks, "end_time")[order]
    gang = _past_zero(tasks, "inst_num")[order]
    start = by_task.first_start[leader]
    user = pc.coalesce(_taken(jobs, "user", job), _taken(groups, "user", group))
    last = looked_up(index_of(by_task.last_status[leader]), pa.array(words, pa.string()))
    word = pc.coalesce(_taken(tasks, "status", task), last.cast(pa.string()))
    plans = {name: _taken(tasks, name, task) for name in ("plan_cpu", "plan_gpu", "plan_mem")}
    with np.errstate(over="ignore"):  # infinite then, which the schema refuses
        gpus, cpus, memory = (gang * _floats(plans[f"plan_{of}"]) for of in ("gpu", "cpu", "mem"))
    columns = {
        "job_id": named.job_id.take(task),
        "submit_time": submit,
        "start_time": start,
        "end_time": end,
        "duration": by_task.mean_run[leader],
        "num_gpus": gpus / 100,
        "num_tasks": pa.array(gang, from_pandas=True).cast(pa.int32()),
        "num_cpus": cpus / 100,
        "mem_gib": memory,
        "gpu_type": _taken(groups, "gpu_type_spec", group),
        "user": user,
        "workload": _taken(groups, "workload", group),
        "template": pc.coalesce(_taken(groups, "group", group), user),
        "status": _our_words(word),
        "runtime": end - submit,
        "wait_time": start - submit,
        **plans,
        "gpu_type_assigned": _taken(tasks, "gpu_type", task),
        "pai_job": _taken(tasks, "job_name", task),
        "inst_id": _taken(jobs, "inst_id", job),
        "instance_start": start,
        "instance_end": by_task.last_end[leader],
        "task_end": end,
        "source_status": word,
    }
    arrays = {
        name: pa.array(values, from_pandas=True) if isinstance(values, np.ndarray) else values
        for name, values in columns.items()
    }
    return pa.table(arrays), order


def _past_zero(table: pa.Table, name: str) -> np.ndarray:
    """Return a column as float64, shape (rows,); NaN = unknown, as 0 is."""
    values = _floats(table[name])
    return np.where(values == 0, np.nan, values)


def _floats(column: pa.Array | pa.ChunkedArray) -> np.ndarray:
    """Return a column as float64, shape (rows,); NaN = unknown."""
    values: np.ndarray = column.to_numpy(zero_copy_only=False)
    return values


def _taken(table: pa.Table, name: str, index: pa.Array) -> pa.Array:
    """Return a column at some rows; null where the row is."""
    return table[name].combine_chunks().take(index)


def _our_words(words: pa.Array) -> pa.Array:
    """Return status words of the source in the schema's."""
    coded = words.dictionary_encode()
    ours = pa.array(status_words(coded.dictionary.to_pylist()), pa.string())
    return ours.take(coded.indices)


def consistent(table: pa.Table) -> tuple[pa.Table, tuple[str, ...]]:
    """Return the jobs without times that contradict each other, and notes that count them.

    A start before the submission, an end before the start or the submission, and a mean run time
    below 0 become unknown; the source's numbers stay in the columns behind.
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
