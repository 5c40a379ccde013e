"""What do failures cost? How many jobs fail, after how long, and what GPU time goes with them.

Failed are the statuses of `windtunnel.characterize.states.FAILED` (AcmeTrace's convention) and
``out_of_memory``, a word of newer Slurm. `failures_by` with ``by="status"`` tells them apart.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from windtunnel.characterize.cdf import curves
from windtunnel.characterize.grids import checked_grid
from windtunnel.characterize.population import grouped, grouped_table, population
from windtunnel.characterize.relation import typed
from windtunnel.characterize.states import FAILED

if TYPE_CHECKING:
    from collections.abc import Sequence

    import pyarrow as pa

    from windtunnel.companions import Relation

#: Statuses that count as a failure.
FAILURES: tuple[str, ...] = (*FAILED, "out_of_memory")


def failures_by(
    jobs: Relation,
    by: str | None = None,
    *,
    where: str = "gpu",
    statuses: Sequence[str] = FAILURES,
) -> pa.Table:
    """Return what fails, and what it costs, in each group of jobs.

    Returns:
        One row a group, in their order: the column named as ``by`` (absent without), ``num_jobs``,
        ``num_failed``, ``failed_share`` (0..1 of the group's jobs; null without jobs),
        ``no_status`` (jobs whose end is not known), ``gpu_time`` (GPU-seconds of all),
        ``gpu_time_failed`` (of the failed: lost, unless a checkpoint saved some), ``lost_share``
        (0..1 of the group's GPU time), ``part_of_lost`` (0..1 of what all groups lost),
        ``avg_run``, ``p50_run``, ``p90_run``, ``max_run`` (time to failure, s), ``n`` (failed jobs
        with a known run time), ``left_out`` (failed jobs without), ``unsized``.

    Raises:
        SpecError: an argument names nothing known.
    """
    import ibis

    table = population(jobs, ("duration", "gpu_time"), where=where, by=by, columns=("status",))
    failed = table.asked & table.status.isin(list(statuses)).fill_null(False)
    keyed = table.mutate(failed=failed)
    run = ibis.ifelse(keyed.failed, keyed.fact_0, ibis.null("float64"))
    lost = ibis.ifelse(keyed.failed, keyed.fact_1, ibis.null("float64"))
    keyed = keyed.mutate(run=run, lost=lost)
    found = grouped(
        keyed,
        by,
        {
            "num_jobs": keyed.asked.sum().fill_null(0),
            "num_failed": keyed.failed.sum().fill_null(0),
            "no_status": (keyed.asked & keyed.status.isnull()).sum().fill_null(0),
            "gpu_time": keyed.fact_1.sum().fill_null(0.0),
            "gpu_time_failed": keyed.lost.sum().fill_null(0.0),
            "avg_run": keyed.run.mean(),
            "p50_run": keyed.run.quantile(0.5),
            "p90_run": keyed.run.quantile(0.9),
            "max_run": keyed.run.max(),
            "n": keyed.run.count(),
            "left_out": (keyed.failed & keyed.run.isnull()).sum().fill_null(0),
            "unsized": (~keyed.asked).sum().fill_null(0),
        },
    )
    all_lost = sum(row["gpu_time_failed"] for row in found)
    for row in found:
        row["failed_share"] = _ratio(row["num_failed"], row["num_jobs"])
        row["lost_share"] = _ratio(row["gpu_time_failed"], row["gpu_time"])
        row["part_of_lost"] = _ratio(row["gpu_time_failed"], all_lost)
    names = "num_jobs num_failed failed_share no_status gpu_time gpu_time_failed lost_share "
    names += "part_of_lost avg_run p50_run p90_run max_run n left_out unsized"
    return grouped_table(found, by, typed(names, "iififfffffffiii"))


def time_to_failure(
    jobs: Relation,
    at: Sequence[float],
    *,
    by: str | None = None,
    where: str = "gpu",
    statuses: Sequence[str] = FAILURES,
) -> pa.Table:
    """Return how long jobs run until they fail: the distribution of failed jobs' run times.

    Args:
        at: rising thresholds, s (`windtunnel.characterize.grids.POWERS_DURATION`).

    Returns:
        As `windtunnel.characterize.cdf.count_cdf` of the failed jobs. Jobs without a status are
        not among them; `failures_by` counts them.

    Raises:
        SpecError: an argument names nothing known, or the thresholds do not rise.
    """
    grid = checked_grid(at)
    table = population(jobs, ("duration",), where=where, by=by, columns=("status",))
    failed = table.filter(table.status.isin(list(statuses)))
    return curves(failed, failed.fact_0, None, grid, by)


def _ratio(part: float, whole: float) -> float | None:
    return part / whole if whole else None
