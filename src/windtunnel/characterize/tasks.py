"""Who asks for how much, and when? Shares of the request classes, users, and the week's rhythm.

"MLaaS in the Wild" (Weng et al., NSDI'22, sections 3 and 4) and the PAI trace's analysis notebook,
figures 2 to 5. Waits and run times by class, gangs and recurrence are questions about jobs:
`windtunnel.characterize.cdf`, `.spread`, `.waits`, `.gangs`, `.recurrence`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from windtunnel.characterize.arrivals import exposure
from windtunnel.characterize.cdf import count_cdf
from windtunnel.characterize.clock import HOUR
from windtunnel.characterize.grids import POWERS_DURATION, checked_grid, interval
from windtunnel.characterize.instants import span_of
from windtunnel.characterize.population import grouped_table, population
from windtunnel.characterize.relation import column_names, relation, rows, split_off, why

if TYPE_CHECKING:
    from collections.abc import Sequence

    import pyarrow as pa

    from windtunnel.companions import Relation

#: Jobs a user submits: points of the curve.
PER_USER: tuple[int, ...] = (1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 10_000, 100_000)
#: The type of the GPUs that a job was given, where a source tells it beside what it accepts.
ASSIGNED = "gpu_type_assigned"
#: Hours of a week, from Monday 00:00.
WEEK = 168
#: Day 0 (1970-01-01) was a Thursday.
_THURSDAY = 3
_RESOURCES = {"cpu": "num_cpus", "gpu": "num_gpus", "mem": "mem_gib"}


def class_shares(jobs: Relation, *, by: str = "sharing") -> pa.Table:
    """Return the share of GPU jobs, and of their tasks, in each class.

    Returns:
        A row a class, in order: the column named as ``by``, ``num_jobs``, ``job_share`` (0..1),
        ``num_tasks`` (an unknown gang counts as one), ``task_share`` (0..1), ``n`` (jobs of all
        classes), ``left_out`` (0: a job without the property is in the class ``(none)``),
        ``unsized`` (jobs of unknown GPU count, which may belong here).

    Raises:
        SpecError: an argument names nothing known.
        SchemaError: the table lacks a column.
    """
    import pyarrow as pa

    table = population(jobs, ("num_tasks",), where="gpu", by=by)
    tasks = table.asked.ifelse(table.fact_0.fill_null(1.0), 0.0)
    sums = table.group_by(["place", "label"]).aggregate(
        num_jobs=table.count(where=table.asked),
        num_tasks=tasks.sum(),
        unsized=table.count(where=~table.asked),
    )
    found = rows(sums)
    n, total = (sum(row[name] for row in found) for name in ("num_jobs", "num_tasks"))
    for row in found:
        row["job_share"] = row["num_jobs"] / n if n else None
        row["task_share"] = row["num_tasks"] / total if total else None
        row |= {"num_tasks": int(row["num_tasks"]), "n": n, "left_out": 0}
    whole, real = pa.int64(), pa.float64()
    columns = {
        "num_jobs": whole,
        "job_share": real,
        "num_tasks": whole,
        "task_share": real,
        **dict.fromkeys(("n", "left_out", "unsized"), whole),
    }
    return grouped_table(found, by, columns)


def jobs_per_user(
    jobs: Relation, at: Sequence[float] = PER_USER, *, where: str = "all"
) -> pa.Table:
    """Return how many users submit at most so many jobs.

    Args:
        at: rising numbers of jobs x.

    Returns:
        Columns ``x``, ``count`` (users with <= x jobs), ``percent`` (of n; null where n is 0),
        ``n`` (users), ``jobs`` (theirs), ``left_out`` (jobs without a user), ``unsized``.

    Raises:
        SpecError: an argument names nothing known, or the points do not rise.
        SchemaError: the table lacks a column.
    """
    import pyarrow as pa

    grid = checked_grid(at)
    table = population(jobs, (), where=where, columns=("user",))
    (rest,) = rows(
        table.aggregate(
            left_out=table.count(where=table.asked & table.user.isnull()),
            unsized=table.count(where=~table.asked),
        )
    )
    named = table.filter(table.asked & table.user.notnull())
    counts = named.group_by("user").aggregate(jobs=named.count())
    keyed = counts.mutate(place=interval(counts.jobs, grid))
    per_place = keyed.group_by("place").aggregate(users=keyed.count(), jobs=keyed.jobs.sum())
    amounts, submitted = np.zeros(len(grid) + 1, dtype=np.int64), 0
    for row in rows(per_place):
        amounts[row["place"]] = row["users"]
        submitted += row["jobs"]
    reached = np.cumsum(amounts)
    n, points = int(reached[-1]), len(grid)
    percent = (100.0 * reached[:-1] / n).tolist() if n else [None] * points
    counted = {"n": n, "jobs": submitted, **rest}
    return pa.table(
        {
            "x": pa.array(grid, pa.float64()),
            "count": pa.array(reached[:-1], pa.int64()),
            "percent": pa.array(percent, pa.float64()),
            **{name: pa.array([value] * points, pa.int64()) for name, value in counted.items()},
        }
    )


def run_times_by_type(jobs: Relation, at: Sequence[float] = POWERS_DURATION) -> pa.Table:
    """Return the CDF of the run times of the jobs that ended well, by the type of their GPUs.

    The type is the one assigned (`ASSIGNED`) where the table has it, else the one accepted. The
    notebook's figure 5 draws the PAI tasks that ended as Terminated.

    Args:
        at: rising points, s.

    Returns:
        What `windtunnel.characterize.cdf.count_cdf` returns, and ``other_status`` (jobs of
        another or no status, with or without GPUs).

    Raises:
        SpecError: an argument names nothing known, or the points do not rise.
        SchemaError: the table lacks a column.
    """
    import pyarrow as pa

    table = relation(jobs, column_names(jobs))
    asked = (table.status == "completed").fill_null(False)
    (others,) = rows(table.aggregate(n=table.count(where=~asked)))
    by = ASSIGNED if ASSIGNED in column_names(jobs) else "gpu_type"
    found = count_cdf(table.filter(asked), "duration", at, by=by)
    return found.append_column("other_status", pa.array([others["n"]] * found.num_rows, pa.int64()))


def requests_over_week(
    asking: Relation,
    *,
    epoch: str | None = None,
    zone: str | None = None,
    time: str = "submit_time",
) -> pa.Table:
    """Return what is asked for in each hour of the week, per such hour of the trace.

    Args:
        asking: a jobs table, or a tasks table with ``time="start_time"``.
        time: the column that says when it was asked for, s.

    Returns:
        A row an hour of the week that the trace has, in order: ``hour_of_week`` (0 = Monday
        00:00), ``hours`` (how long the clock showed this one, from the beginning of the hour of the
        first row to the end of that of the last: two for one that is repeated where the clock is
        set back), ``count`` (rows in them), then per hour ``rate`` (rows),
        ``cpu`` (cores), ``gpu`` (GPUs) and ``mem`` (GiB) asked for, unknown requests adding
        nothing; ``n`` (rows in the answer), ``left_out`` and ``why``.

    Raises:
        SchemaError: the table lacks a column.
        SpecError: no such epoch or zone.
    """
    import pyarrow as pa

    table = relation(asking, (time, *_RESOURCES.values()))
    kept, n, left_out = split_off(table, {f"no {time}": table[time].isnull()})
    span = span_of(kept.mutate(time=kept[time]), epoch, zone, step=HOUR)
    out: list[dict[str, Any]] = []
    if span is not None:
        hour = (span.clock.local_of(kept[time]) / HOUR).floor().cast("int64")
        week = (hour + _THURSDAY * 24) % WEEK
        sums = {name: kept[column].sum() for name, column in _RESOURCES.items()}
        keyed = kept.mutate(hour_of_week=(week + WEEK) % WEEK)
        found = {
            row["hour_of_week"]: row
            for row in rows(keyed.group_by("hour_of_week").aggregate(count=keyed.count(), **sums))
        }
        shown = exposure(span, "hour_of_week", WEEK, []) / HOUR
        for label, hours in enumerate(shown.tolist()):
            row = found.get(label, {})
            if hours:
                out.append(_hour(label, hours, row) | {"n": n, "left_out": sum(left_out.values())})
    for row in out:
        row["why"] = why(left_out)
    whole, real = pa.int64(), pa.float64()
    types = (whole, real, whole, real, real, real, real, whole, whole, pa.string())
    names = ("hour_of_week", "hours", "count", "rate", *_RESOURCES, "n", "left_out", "why")
    return pa.Table.from_pylist(out, schema=pa.schema(list(zip(names, types, strict=True))))


def _hour(label: int, hours: float, row: dict[str, Any]) -> dict[str, Any]:
    count = row.get("count", 0)
    asked = {name: (row.get(name) or 0.0) / hours for name in _RESOURCES}
    return {"hour_of_week": label, "hours": hours, "count": count, "rate": count / hours, **asked}
