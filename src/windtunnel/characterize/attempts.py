"""What did each attempt of a job wait for? Retries, and the queueing figures of Philly.

Semantics of the Philly notebook (msr-fiddle/philly-traces, Jeon et al., ATC'19). Figure 2: run time
by `PHILLY_SIZES`, which is ``count_cdf(jobs, "duration", at, by="philly_size")``. Figure 3: every
wait counts, from submission to the first start, and from each end to the next start; waits of zero
are dropped; the size of a job is that of its first attempt. Figure 4: the wait for the first start
against the number of nodes of the first attempt, for jobs of five GPUs and more.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from windtunnel.characterize.cdf import curves
from windtunnel.characterize.grids import checked_grid
from windtunnel.characterize.groups import group_columns, group_of
from windtunnel.characterize.relation import relation
from windtunnel.characterize.spread import PERCENTS, spread_by

if TYPE_CHECKING:
    from collections.abc import Sequence

    import pyarrow as pa

    from windtunnel.companions import Relation

#: Figure 4 is about jobs of this many GPUs and more.
MANY_GPUS = 5


def retries(jobs: Relation, by: str | None = None, *, where: str = "gpu") -> pa.Table:
    """Return how many attempts jobs took, one row a group.

    Args:
        jobs: a jobs table with a column ``num_attempts`` (Philly's own log has it).
        by: a property, ``status`` or ``num_gpus`` for one; None = all jobs together.
        where: ``gpu``, ``cpu`` or ``all`` jobs.

    Returns:
        As `windtunnel.characterize.spread.spread_by` of ``num_attempts``.

    Raises:
        SpecError: an argument names nothing known, or the jobs have no ``num_attempts``.
    """
    return spread_by(jobs, "num_attempts", by=by, where=where, percents=(50, 90, 99))


def waits_by_nodes(
    jobs: Relation,
    *,
    min_gpus: float = MANY_GPUS,
    percents: Sequence[float] = PERCENTS,
) -> pa.Table:
    """Return the wait for the first start by the number of nodes (Philly notebook, figure 4).

    Args:
        jobs: a jobs table with a column ``num_nodes`` (nodes of the first attempt).
        min_gpus: jobs of fewer GPUs are not asked about.
        percents: the quantiles.

    Returns:
        As `windtunnel.characterize.spread.spread_by` of ``wait`` (s) by ``num_nodes``.

    Raises:
        SpecError: a percent is out of range.
        SchemaError: the jobs have no ``num_nodes``.
    """
    table = relation(jobs, ("num_nodes", "num_gpus", "submit_time", "start_time"))
    large = table.filter((table.num_gpus >= min_gpus) | table.num_gpus.isnull())
    return spread_by(large, "wait", by="num_nodes", where="gpu", percents=percents)


def attempt_waits(jobs: Relation, holdings: Relation, *, by: str | None = None) -> Any:
    """Return every wait of every job (Philly notebook, figure 3).

    An attempt is what a job held from one instant to another, on however many GPUs. An attempt
    that starts before the one before it has ended did not wait.

    Args:
        jobs: a jobs table (`windtunnel.schema`).
        holdings: which job had which GPU when (`windtunnel.companions.HOLDING_COLUMNS`), on the
            same backend as the jobs. Attempts that held no named node are not in it.
        by: a property of the jobs.

    Returns:
        An Ibis table, one row an attempt, and one row a job without any: ``place``, ``label``
        (`windtunnel.characterize.groups.group_of`), ``job_id``, ``attempt`` (from 1; null without
        attempts), ``wait`` (s; null where the submission or the end before it is not known, and
        without attempts).

    Raises:
        SpecError: ``by`` is unknown.
        SchemaError: a table lacks a column.
    """
    import ibis

    names = ("job_id", "submit_time", *(group_columns(jobs, by) if by else ()))
    table = relation(jobs, names)
    place, label = group_of(table, by)
    asked = table.select("job_id", "submit_time", place=place, label=label)
    held = relation(holdings, ("job_id", "start_time", "end_time")).distinct()
    order = ibis.window(
        group_by="job_id", order_by=[held.start_time, held.end_time.asc(nulls_first=False)]
    )
    attempts = held.select(
        of_job=held.job_id,
        attempt=ibis.row_number().over(order) + 1,
        start_time=held.start_time,
        end_before=held.end_time.lag().over(order),
    )
    both = asked.left_join(attempts, asked.job_id == attempts.of_job)
    since = ibis.ifelse(both.attempt == 1, both.submit_time, both.end_before)
    wait = both.start_time - since
    return both.select(
        "place",
        "label",
        "job_id",
        "attempt",
        wait=ibis.ifelse(wait < 0, ibis.literal(0.0), wait),
    )


def attempt_wait_cdf(
    jobs: Relation,
    holdings: Relation,
    at: Sequence[float],
    *,
    by: str = "philly_size",
    vc: str | None = None,
) -> pa.Table:
    """Return the distribution of all waits longer than zero (Philly notebook, figure 3).

    Args:
        jobs: a jobs table (`windtunnel.schema`).
        holdings: see `attempt_waits`.
        at: rising thresholds, s.
        by: a property of the jobs: one curve a group.
        vc: only jobs of this virtual cluster; None = of all.

    Returns:
        As `windtunnel.characterize.cdf.count_cdf`, counting waits and not jobs: ``n`` waits above
        zero, ``left_out`` waits that are not known and jobs without an attempt, and in the place
        of ``unsized`` a column ``zero``: waits of zero, which are in no curve.

    Raises:
        SpecError: ``by`` is unknown, or the thresholds do not rise.
        SchemaError: a table lacks a column.
    """
    import ibis

    grid = checked_grid(at)
    if vc is not None:
        names = ("job_id", "submit_time", "vc", *group_columns(jobs, by))
        table = relation(jobs, names)
        jobs = table.filter(table.vc == vc)
    waits = attempt_waits(jobs, holdings, by=by)
    zero = (waits.wait == 0).fill_null(False)
    asked = waits.mutate(asked=~zero, wait=ibis.ifelse(zero, ibis.null("float64"), waits.wait))
    found = curves(asked, asked.wait, None, grid, by)
    return found.rename_columns({"unsized": "zero"})
