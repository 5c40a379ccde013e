"""How large are the gangs? Jobs, and the tasks in them, by the tasks that a job starts at once.

The PAI analysis (Weng et al., NSDI'22, figure 2): 85 % of the instances belong to a gang of two or
more.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from windtunnel.characterize.grids import at_least, checked_steps
from windtunnel.characterize.population import population
from windtunnel.characterize.relation import relation, rows

if TYPE_CHECKING:
    from collections.abc import Sequence

    import pyarrow as pa

    from windtunnel.companions import Relation

#: Gang sizes of a curve.
SIZES: tuple[int, ...] = (1, 2, 4, 5, 8, 10, 16, 20, 32, 50, 64, 100, 128, 200, 256, 400, 512, 600)


def gang_sizes(jobs: Relation, at: Sequence[int] = SIZES, *, where: str = "all") -> pa.Table:
    """Return the share of jobs, and of tasks, in gangs of at least k tasks.

    Args:
        jobs: a jobs table (`windtunnel.schema`); ``num_tasks`` is the size of a gang.
        at: the sizes k, rising, from 1.

    Returns:
        One row a k: ``size`` (k), ``num_jobs`` (of at least k tasks), ``job_share`` (0..1 of n),
        ``num_tasks`` (theirs), ``task_share`` (0..1 of all tasks), ``n`` (jobs of known gang
        size), ``tasks`` (all of theirs), ``left_out`` (jobs of unknown gang size), ``unsized``
        (jobs of unknown GPU count). Shares are null where n is 0.

    Raises:
        SpecError: ``where`` is unknown, or ``at`` does not rise.
    """
    table = population(jobs, ("num_tasks",), where=where)
    sums = table.group_by("fact_0").aggregate(count=table.asked.sum(), unsized=(~table.asked).sum())
    found = rows(sums)
    known = [(int(row["fact_0"]), row["count"]) for row in found if row["fact_0"] is not None]
    left_out = sum(row["count"] for row in found if row["fact_0"] is None)
    return _ladder(known, at, left_out, sum(row["unsized"] for row in found))


def gangs_of_tasks(tasks: Relation, at: Sequence[int] = SIZES) -> pa.Table:
    """Return what `gang_sizes` returns, with the tasks counted that a job really has.

    Args:
        at: the sizes k, rising, from 1.

    Returns:
        As `gang_sizes`; ``left_out`` are tasks that name no job, ``unsized`` is 0.

    Raises:
        SpecError: ``at`` does not rise.
    """
    table = relation(tasks, ("job_id",))
    sizes = table.group_by("job_id").aggregate(size=table.count())
    named = sizes.mutate(named=sizes.job_id.notnull())
    found = rows(named.group_by(["named", "size"]).aggregate(count=named.count()))
    known = [(row["size"], row["count"]) for row in found if row["named"]]
    left_out = sum(row["size"] * row["count"] for row in found if not row["named"])
    return _ladder(known, at, left_out, 0)


def _ladder(
    known: Sequence[tuple[int, int]], at: Sequence[int], left_out: int, unsized: int
) -> pa.Table:
    import pyarrow as pa

    steps = checked_steps(at)
    jobs, tasks = at_least(known, steps)
    n = sum(count for _, count in known)
    total = sum(size * count for size, count in known)
    rest = {"n": n, "tasks": total, "left_out": left_out, "unsized": unsized}
    columns: dict[str, Any] = {
        "size": pa.array(steps, pa.int64()),
        "num_jobs": pa.array(jobs, pa.int64()),
        "job_share": pa.array([j / n if n else None for j in jobs], pa.float64()),
        "num_tasks": pa.array(tasks, pa.int64()),
        "task_share": pa.array([t / total if total else None for t in tasks], pa.float64()),
        **{name: pa.array([value] * len(steps), pa.int64()) for name, value in rest.items()},
    }
    return pa.table(columns)
