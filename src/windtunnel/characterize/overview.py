"""How big is a trace, how long, whose, and what do its records lack?

How is a fact of the jobs distributed? Mean, percentiles and maximum, with n and what is missing.

Quantiles are DuckDB's ``quantile_cont``: exact, linear interpolation, the definition that
`windtunnel.quantiles` pins for arrays (a test holds the two together).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from windtunnel.characterize.facts import columns_for, value_of
from windtunnel.characterize.relation import relation, rows
from windtunnel.schema import COLUMNS

if TYPE_CHECKING:
    from windtunnel.companions import Relation

#: Percentiles of every distribution.
PERCENTS: tuple[int, ...] = (50, 90, 95, 99)

Distribution = dict[str, float | int | None]


def distribution(jobs: Relation, fact: str) -> Distribution:
    """Return how one fact of the jobs is distributed.

    Args:
        fact: one of `windtunnel.characterize.facts.FACTS`, or another number that the table has.

    Returns:
        ``n`` (jobs that have the fact), ``left_out`` (jobs that lack it), then ``avg``, ``p50``,
        ``p90``, ``p95``, ``p99``, ``max`` in the column's unit; None where n is 0.

    Raises:
        SpecError: ``fact`` is none of these.
    """
    return distributions(jobs, (fact,))[fact]


def distributions(jobs: Relation, facts: tuple[str, ...]) -> dict[str, Distribution]:
    """Return several distributions in one pass; see `distribution`.

    Raises:
        SpecError: a fact is none of the table's.
    """
    table = relation(jobs, columns_for(facts, jobs))
    asked: dict[str, Any] = {"rows": table.count()}
    for fact in facts:
        values = value_of(table, fact)
        asked[f"{fact}_n"] = values.count()
        asked[f"{fact}_avg"] = values.mean()
        asked[f"{fact}_max"] = values.max()
        # Together: each quantile asked for alone would gather all the values anew.
        asked[f"{fact}_quantiles"] = values.quantile([p / 100 for p in PERCENTS])
    (row,) = rows(table.aggregate(**asked))
    return {
        fact: {
            "n": row[f"{fact}_n"],
            "left_out": row["rows"] - row[f"{fact}_n"],
            "avg": row[f"{fact}_avg"],
            **_by_percent(row[f"{fact}_quantiles"]),
            "max": row[f"{fact}_max"],
        }
        for fact in facts
    }


def _by_percent(quantiles: list[float] | None) -> dict[str, float | None]:
    """Return the quantiles by their names; None = there were no values."""
    found: list[float] | list[None] = quantiles or [None] * len(PERCENTS)
    return {f"p{percent}": value for percent, value in zip(PERCENTS, found, strict=True)}


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
