"""What do tasks ask for, and what do they use?

"MLaaS in the Wild" (Weng et al., NSDI'22, section 4) and the PAI trace's analysis notebook. The
paper's instance is our task, its task our job. Whether one task uses more than it asked for is
`windtunnel.characterize.overuse`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from windtunnel.characterize.cdf import column_cdfs
from windtunnel.characterize.relation import (
    column_names,
    expanded_quantiles,
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


@dataclass(frozen=True)
class Resource:
    """Something that tasks ask for and use.

    Attributes:
        name: what it is called in results.
        unit: unit of both columns.
        asked: column of requests (tasks, jobs and nodes name it alike).
        used: column of the use, mean over the task's life.
    """

    name: str
    unit: str
    asked: str
    used: str


RESOURCES: tuple[Resource, ...] = (
    Resource("cpu", "cores", "num_cpus", "cpus_used"),
    Resource("gpu", "GPUs", "num_gpus", "gpus_used"),
    Resource("mem", "GiB", "mem_gib", "mem_used_gib"),
)
#: A request of more than so many times the median is large.
LARGE = 2.0
#: Points of the curves of requests and use: 0 and eighths of octaves from 1/128 to 16384. Requests
#: are few round numbers: between points farther apart their steps would look like slopes.
POINTS: tuple[float, ...] = (0.0, *(2.0 ** (k / 8) for k in range(-56, 113)))


def request_quantiles(asking: Relation) -> pa.Table:
    """Return what a task asks for: median, 95th percentile and share of large requests.

    Args:
        asking: a tasks table (`windtunnel.companions.TASK_COLUMNS`), or a jobs table: a job asks
            ``num_tasks`` times for a ``num_tasks``-th of its request, once where that is null.

    Returns:
        A row for each of `RESOURCES`: ``resource``, ``unit``, ``n`` (tasks asking for some of
        it), ``p50``, ``p95`` (of those; unit), ``p95_over_p50``, ``large_share`` (0..1, of
        requests above `LARGE` medians), ``none`` (tasks asking for 0 of it), ``left_out`` (rows of
        the table whose request is unknown) and ``why``. Numbers are null where n is 0.

    Raises:
        SchemaError: the table lacks a column.
    """
    import ibis
    import pyarrow as pa

    gangs = ("num_tasks",) if "num_tasks" in column_names(asking) else ()
    table = relation(asking, [*(resource.asked for resource in RESOURCES), *gangs])
    tasks = table.num_tasks.fill_null(1) if gangs else ibis.literal(1)
    out = []
    for resource in RESOURCES:
        each = table.select(asked=table[resource.asked] / tasks, times=tasks)
        kept, _, left_out = split_off(each, {f"no {resource.asked}": each.asked.isnull()})
        (zero,) = rows(kept.aggregate(none=kept.times.sum(where=kept.asked <= 0)))
        some = kept.filter(kept.asked > 0)
        n, (p50, p95) = expanded_quantiles(some, "asked", "times", (0.5, 0.95))
        above = None
        if p50 is not None:
            (found,) = rows(some.aggregate(above=some.times.sum(where=some.asked > LARGE * p50)))
            above = (found["above"] or 0) / n
        out.append(
            {
                "resource": resource.name,
                "unit": resource.unit,
                "n": n,
                "p50": p50,
                "p95": p95,
                "p95_over_p50": None if p50 is None or p95 is None else p95 / p50,
                "large_share": above,
                "none": zero["none"] or 0,
                "left_out": sum(left_out.values()),
                "why": why(left_out),
            }
        )
    names = "resource unit n p50 p95 p95_over_p50 large_share none left_out why"
    return pa.Table.from_pylist(out, schema=typed(names, "ttiffffiit"))


def request_use_cdfs(
    tasks: Relation, *, at: Sequence[float] = POINTS, gpu_memory: bool = True
) -> pa.Table:
    """Return the CDFs of what tasks ask for and of what they use.

    Args:
        at: points of the curves, in the unit of each resource.
        gpu_memory: add the use of GPU memory (GiB), which nobody asks for. The notebook's curve
            "Mem Usage" is this one.

    Returns:
        Columns ``resource``, ``kind`` (request, use), ``x``, ``count``, ``percent``, ``n``,
        ``left_out`` (tasks that lack the number), as `column_cdfs` returns them.

    Raises:
        SchemaError: the table lacks a column.
    """
    import pyarrow as pa

    curves = [
        (r.name, kind, column)
        for r in RESOURCES
        for kind, column in (("request", r.asked), ("use", r.used))
    ]
    if gpu_memory:
        curves.append(("gpu_mem", "use", "gpu_mem_used_gib"))
    table = relation(tasks, [column for *_, column in curves])
    found = column_cdfs(
        table,
        {column: table[column] for *_, column in curves},
        {column: at for *_, column in curves},
    )
    names = {column: (resource, kind) for resource, kind, column in curves}
    labels = [names[column] for column in found["value"].to_pylist()]
    heads = pa.table(
        {
            "resource": pa.array([resource for resource, _ in labels], pa.string()),
            "kind": pa.array([kind for _, kind in labels], pa.string()),
        }
    )
    for name in found.column_names[1:]:
        heads = heads.append_column(name, found[name])
    return heads
