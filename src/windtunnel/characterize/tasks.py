"""Who asks for how much, and when? Shares of the request classes, users, and the week's rhythm.

"MLaaS in the Wild" (Weng et al., NSDI'22, sections 3 and 4) and the PAI trace's analysis notebook,
figures 2 to 5. Waits and run times by class, gangs and recurrence are questions about jobs:
`windtunnel.characterize.cdf`, `.spread`, `.waits`, `.gangs`, `.recurrence`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from windtunnel.characterize.arrivals import LABELS, exposure, label_of
from windtunnel.characterize.cdf import count_cdf, curves
from windtunnel.characterize.clock import HOUR
from windtunnel.characterize.grids import POWERS_DURATION, checked_grid
from windtunnel.characterize.instants import span_of
from windtunnel.characterize.population import as_one_group, grouped_table, population
from windtunnel.characterize.relation import column_names, relation, rows, split_off, typed, why
from windtunnel.characterize.requests import RESOURCES

if TYPE_CHECKING:
    from collections.abc import Sequence

    import pyarrow as pa

    from windtunnel.companions import Relation

#: Jobs a user submits: points of the curve.
PER_USER: tuple[int, ...] = (1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 10_000, 100_000)
#: The type of the GPUs that a job was given, where a source tells it beside what it accepts.
ASSIGNED = "gpu_type_assigned"
_RESOURCES = {resource.name: resource.asked for resource in RESOURCES}


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
    names = "num_jobs job_share num_tasks task_share n left_out unsized"
    return grouped_table(found, by, typed(names, "ififiii"))


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
    (counts,) = rows(
        table.aggregate(
            jobs=table.count(where=table.asked & table.user.notnull()),
            left_out=table.count(where=table.asked & table.user.isnull()),
            unsized=table.count(where=~table.asked),
        )
    )
    named = table.filter(table.asked & table.user.notnull())
    users = as_one_group(named.group_by("user").aggregate(jobs=named.count()))
    found = curves(users, users.jobs, None, grid, None).select(["x", "count", "percent", "n"])
    for name, count in counts.items():
        found = found.append_column(name, pa.array([count] * len(grid), pa.int64()))
    return found


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
        sums = {name: kept[column].sum() for name, column in _RESOURCES.items()}
        hour_of_week = label_of(span.clock.local_of(kept[time]), "hour_of_week", [])
        keyed = kept.mutate(hour_of_week=hour_of_week)
        found = {
            row["hour_of_week"]: row
            for row in rows(keyed.group_by("hour_of_week").aggregate(count=keyed.count(), **sums))
        }
        shown = exposure(span, "hour_of_week", LABELS["hour_of_week"], []) / HOUR
        for label, hours in enumerate(shown.tolist()):
            row = found.get(label, {})
            if hours:
                out.append(_hour(label, hours, row) | {"n": n, "left_out": sum(left_out.values())})
    for row in out:
        row["why"] = why(left_out)
    names = "hour_of_week hours count rate cpu gpu mem n left_out why"
    return pa.Table.from_pylist(out, schema=typed(names, "ififfffiit"))


def _hour(label: int, hours: float, row: dict[str, Any]) -> dict[str, Any]:
    count = row.get("count", 0)
    asked = {name: (row.get(name) or 0.0) / hours for name in _RESOURCES}
    return {"hour_of_week": label, "hours": hours, "count": count, "rate": count / hours, **asked}
