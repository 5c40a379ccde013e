"""Is waiting a matter of the short jobs? Wait against run time, by the shorter and longer half.

The PAI analysis (Weng et al., NSDI'22, figure 4): jobs are split at the median run time, and the
share of their completion time that they waited is compared: 9 % of the short and 3 % of the long
ones waited for more than half of it. Waits by workload, size, virtual cluster, GPU type or sharing
class are `windtunnel.characterize.spread.spread_by` of the fact ``wait``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from windtunnel.characterize.cdf import curves
from windtunnel.characterize.facts import source_fact
from windtunnel.characterize.grids import checked_grid
from windtunnel.characterize.population import NONE, counted, grouped_table, population, text_label
from windtunnel.characterize.relation import rows, typed
from windtunnel.checked import checked_number

if TYPE_CHECKING:
    from collections.abc import Sequence

    import pyarrow as pa

    from windtunnel.companions import Relation

#: Halves in the order of the rows.
HALVES: tuple[str, ...] = ("short", "long")


def waited_shares(jobs: Relation, *, over: float = 0.5, where: str = "all") -> pa.Table:
    """Return how much of their completion time short and long jobs waited.

    Args:
        jobs: a jobs table (`windtunnel.schema`). The wait is start - submit, the completion time
            end - submit, both as recorded; of PAI's raw tables by the source's own times, as the
            notebook takes them, even where they contradict each other
            (`windtunnel.characterize.facts.source_fact`).
        over: the share of the completion time that is asked about, 0..1.

    Returns:
        One row a half: ``half`` (``short``: run time at most the median, ``long``: above;
        ``"(none)"``: run time unknown, where there are such jobs), ``median_run`` (s, the median
        that splits), ``num_over`` (jobs that waited more than ``over`` of their completion time),
        ``over_share`` (0..1 of n), ``avg``, ``p50``, ``p90`` (of wait / completion time), ``n``
        (jobs whose ratio is known), ``left_out`` (jobs that lack a time, or took none at all),
        ``unsized``.

    Raises:
        SpecError: ``where`` is unknown, or ``over`` is not in [0, 1].
    """
    checked_number("over", over, "a number from 0 to 1", least=0, most=1)
    table, median = _halves(jobs, where)
    ratio = table.fact_1
    sums = table.group_by(["place", "label"]).aggregate(
        num_over=(ratio > over).sum().fill_null(0),
        avg=ratio.mean(),
        p50=ratio.quantile(0.5),
        p90=ratio.quantile(0.9),
        **counted(table, ratio),
    )
    found = rows(sums)
    for row in found:
        row["median_run"] = median
        row["over_share"] = row["num_over"] / row["n"] if row["n"] else None
    names = "median_run num_over over_share avg p50 p90 n left_out unsized"
    return grouped_table(found, "half", typed(names, "fiffffiii"))


def waited_share_cdf(jobs: Relation, at: Sequence[float], *, where: str = "all") -> pa.Table:
    """Return the distribution of wait / completion time of short and long jobs.

    Args:
        at: rising thresholds of the ratio, 0..1.

    Returns:
        As `windtunnel.characterize.cdf.count_cdf` by ``half`` (see `waited_shares`).

    Raises:
        SpecError: ``where`` is unknown, or the thresholds do not rise.
    """
    grid = checked_grid(at)
    table, _ = _halves(jobs, where)
    return curves(table, table.fact_1, None, grid, "half")


def _halves(jobs: Relation, where: str) -> tuple[Any, float | None]:
    """Return the jobs labelled with their half, and the median run time."""
    import ibis

    table = population(jobs, ("duration", source_fact(jobs, "wait_share")), where=where)
    (row,) = rows(table.aggregate(median=table.fact_0.quantile(0.5)))
    median = row["median"]
    if median is None:
        return table.mutate(place=ibis.literal(0.0), label=ibis.literal(NONE)), None
    short = table.fact_0 <= median
    label = short.ifelse(text_label(HALVES[0]), text_label(HALVES[1]))
    return (
        table.mutate(
            place=short.ifelse(0.0, 1.0).fill_null(2.0),
            label=table.fact_0.isnull().ifelse(NONE, label),
        ),
        median,
    )
