"""The tasks of PAI's jobs: when each ran, what it asked for and what it used."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from windtunnel.companions import TASK_COLUMNS, companion

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from windtunnel.traces.synthetic.draw_request import DrawRequest
    from windtunnel.traces.synthetic.request_facts import TaskUse

_STREAMS = ("run", "cpu", "gpu", "mem")
#: Children of the seed that the jobs have (there are fewer).
_OTHERS = 16
#: Jobs are turned into tasks so many at a time: one chunk of the table each.
_JOBS_A_CHUNK = 200_000
#: A task's run time is within this of the mean of its job's, relative (modelled).
_SPREAD = 0.2
#: Log-normal spread of what is used below the request, its median, and the mean excess (modelled).
_SIGMA = 1.2
_MEDIAN = 0.2
_EXCESS = 0.5


def tasks_of(jobs: pa.Table, use: TaskUse, request: DrawRequest) -> pa.Table:
    """Return the tasks of all jobs, in the jobs' order, with the columns of `TASK_COLUMNS`.

    The mean run time of a job's tasks is the job's. Of the tasks with a run time exactly the
    published shares use more than they asked for. Nodes are unknown.

    Args:
        jobs: the jobs table, with the plans of one task.
        use: shares of the tasks that use more than they asked for.
        request: what was asked for: its seed is this table's too.
    """
    streams = request.streams(_STREAMS, skip=_OTHERS)
    tasks = jobs["num_tasks"].to_numpy()
    timed = np.repeat(jobs["duration"].is_valid().to_numpy(), tasks)
    on_gpu = timed & np.repeat(jobs["num_gpus"].to_numpy() > 0, tasks)
    ratios = {
        "cpus_used": _ratios(timed, use.cpu_over, 0.0, streams["cpu"]),
        "gpus_used": _ratios(on_gpu, use.gpu_over, use.gpu_idle, streams["gpu"]),
        "mem_used_gib": _ratios(timed, use.mem_over, 0.0, streams["mem"]),
    }
    offsets = np.concatenate([[0], np.cumsum(tasks)])
    chunks = []
    for first in range(0, jobs.num_rows, _JOBS_A_CHUNK):
        part = jobs.slice(first, _JOBS_A_CHUNK)
        inside = slice(int(offsets[first]), int(offsets[first + part.num_rows]))
        here = {name: values[inside] for name, values in ratios.items()}
        chunks.append(_chunk(part, here, streams["run"]))
    return pa.concat_tables(chunks)


def _ratios(
    known: NDArray[np.bool_], over: float, idle: float, rng: np.random.Generator
) -> NDArray[np.float64]:
    """Return what each task used over what it asked for, NaN where unknown, shape (tasks,).

    Args:
        known: tasks whose use is known, shape (tasks,).
        over: share of them that use more than they asked for, met to the task.
        idle: share of them that use nothing.
    """
    ratio = np.full(len(known), np.nan)
    those = rng.permutation(np.flatnonzero(known))
    more, none = round(over * len(those)), round(idle * len(those))
    ratio[those[:more]] = 1.0 + np.maximum(rng.exponential(_EXCESS, more), 1e-6)
    ratio[those[more : more + none]] = 0.0
    rest = len(those) - more - none
    below = np.exp(rng.normal(np.log(_MEDIAN), _SIGMA, rest))
    # What is above the request is folded back below it: used = asked / excess.
    ratio[those[more + none :]] = np.where(below > 1.0, 1.0 / below, below)
    return ratio


def _chunk(
    jobs: pa.Table, ratios: dict[str, NDArray[np.float64]], rng: np.random.Generator
) -> pa.Table:
    """Return the tasks of some jobs."""
    tasks = jobs["num_tasks"].to_numpy()
    job = np.repeat(np.arange(jobs.num_rows), tasks)
    first = np.cumsum(tasks) - tasks
    number = np.arange(len(job)) - first[job] + 1
    off = rng.uniform(-_SPREAD, _SPREAD, len(job))
    off -= (np.add.reduceat(off, first) / tasks)[job]
    duration = jobs["duration"].to_numpy()[job] * (1.0 + off)
    start = jobs["start_time"].to_numpy()[job]
    asked = {
        name: (jobs[name].to_numpy() / tasks)[job] for name in ("num_gpus", "num_cpus", "mem_gib")
    }
    used = {
        "gpus_used": ratios["gpus_used"] * asked["num_gpus"],
        "cpus_used": ratios["cpus_used"] * asked["num_cpus"],
        "mem_used_gib": ratios["mem_used_gib"] * asked["mem_gib"],
    }
    ids = jobs["job_id"].combine_chunks().take(pa.array(job))
    numbers = pa.array(number).cast(pa.string())
    return companion(
        TASK_COLUMNS,
        {
            "task_id": pc.binary_join_element_wise(ids, numbers, "/"),
            "job_id": ids,
            "start_time": pa.array(start, from_pandas=True),
            "end_time": pa.array(start + duration, from_pandas=True),
            "status": jobs["status"].combine_chunks().take(pa.array(job)),
            **{name: pa.array(values) for name, values in asked.items()},
            **{name: pa.array(values, from_pandas=True) for name, values in used.items()},
        },
    )
