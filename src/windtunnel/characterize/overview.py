"""How big is a trace, how long, whose, and what do its records lack?"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from windtunnel.characterize.distributions import distributions
from windtunnel.characterize.relation import relation, rows
from windtunnel.schema import COLUMNS

if TYPE_CHECKING:
    from windtunnel.companions import Relation


def overview(jobs: Relation) -> dict[str, Any]:
    """Return a trace in numbers.

    Returns:
        ``num_jobs``; ``num_gpu_jobs`` and ``num_cpu_jobs`` (jobs asking for GPUs, for none; a job
        of unknown size is neither); ``num_users``, ``num_vcs`` (distinct known names);
        ``first_submit``, ``last_submit`` (s since the epoch) and ``span_s`` between them, None
        where no job has one; ``gpu_time`` (GPU-seconds: GPUs x duration, over the
        ``gpu_time_n`` jobs that have both); ``missing`` (column -> rows that lack it, every
        column of the schema); ``duration``, ``wait`` (recorded, s) and ``num_gpus``, each as
        `windtunnel.characterize.distribution` returns it.
    """
    table = relation(jobs, (column.name for column in COLUMNS))
    held = table.num_gpus * table.duration
    asked = {
        "num_jobs": table.count(),
        "num_gpu_jobs": (table.num_gpus > 0).sum(),
        "num_cpu_jobs": (table.num_gpus == 0).sum(),
        "first_submit": table.submit_time.min(),
        "last_submit": table.submit_time.max(),
        "gpu_time": held.sum(),
        "gpu_time_n": held.count(),
        **{f"has_{column.name}": table[column.name].count() for column in COLUMNS},
    }
    (row,) = rows(table.aggregate(**asked))
    # Apart: beside other sums, the database would copy all their columns to count what differs.
    (names,) = rows(table.aggregate(num_users=table.user.nunique(), num_vcs=table.vc.nunique()))
    has = {column.name: row.pop(f"has_{column.name}") for column in COLUMNS}
    counts = {key: row[key] or 0 for key in ("num_gpu_jobs", "num_cpu_jobs")}
    first, last = row["first_submit"], row["last_submit"]
    return {
        **row,
        **names,
        **counts,
        "gpu_time": row["gpu_time"] or 0.0,
        "span_s": None if first is None else last - first,
        "missing": {name: row["num_jobs"] - known for name, known in has.items()},
        **distributions(jobs, ("duration", "wait", "num_gpus")),
    }
