"""Box plots: quartiles, whiskers and how many lie beyond them.

Convention of matplotlib (and of Tukey): the whiskers end at the last datum within 1.5 times the
interquartile range of the box; what lies beyond is an outlier. A whisker never ends inside the box.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from windtunnel.characterize.groups import grouped_table
from windtunnel.characterize.population import counted, population
from windtunnel.characterize.relation import rows

if TYPE_CHECKING:
    import pyarrow as pa

    from windtunnel.companions import Relation

#: Whiskers reach this many interquartile ranges from the box.
REACH = 1.5


def box_statistics(
    jobs: Relation, value: str, *, by: str | None = None, where: str = "all"
) -> pa.Table:
    """Return the box plot of a fact.

    Returns:
        One row a group, in their order: the column named as ``by`` (absent without ``by``),
        ``whisker_low``, ``q1``, ``median``, ``q3``, ``whisker_high``, ``min``, ``max``, ``mean``
        (null where n is 0), ``outliers_low``, ``outliers_high`` (jobs beyond the whiskers), ``n``
        (jobs that have the fact), ``left_out``, ``unsized``.

    Raises:
        SpecError: an argument names nothing known.
    """
    table = population(jobs, (value,), where=where, by=by)
    return boxes(table, by)


def boxes(table: Any, by: str | None) -> pa.Table:
    """Return the box plot of ``fact_0`` of a population; see `box_statistics`."""
    import ibis
    import pyarrow as pa

    keys = ["place", "label"]
    value = table.fact_0
    quarters = table.group_by(keys).aggregate(
        q1=value.quantile(0.25),
        median=value.quantile(0.5),
        q3=value.quantile(0.75),
        mean=value.mean(),
        min=value.min(),
        max=value.max(),
        **counted(table, value),
    )
    reach = (quarters.q3 - quarters.q1) * REACH
    fences = quarters.select(
        fence_place=quarters.place,
        fence_label=quarters.label,
        low=quarters.q1 - reach,
        high=quarters.q3 + reach,
    )
    fenced = table.inner_join(
        fences, [table.place == fences.fence_place, table.label == fences.fence_label]
    )
    inside = fenced.group_by(keys).aggregate(
        last_low=fenced.fact_0.min(where=fenced.fact_0 >= fenced.low),
        last_high=fenced.fact_0.max(where=fenced.fact_0 <= fenced.high),
        outliers_low=(fenced.fact_0 < fenced.low).sum().fill_null(0),
        outliers_high=(fenced.fact_0 > fenced.high).sum().fill_null(0),
    )
    ends = inside.rename(end_place="place", end_label="label")
    joined = quarters.inner_join(
        ends, [quarters.place == ends.end_place, quarters.label == ends.end_label]
    )
    full = joined.mutate(
        whisker_low=ibis.least(joined.last_low, joined.q1),
        whisker_high=ibis.greatest(joined.last_high, joined.q3),
    )
    numbers = ("whisker_low", "q1", "median", "q3", "whisker_high", "min", "max", "mean")
    counts = ("outliers_low", "outliers_high", "n", "left_out", "unsized")
    columns = {**dict.fromkeys(numbers, pa.float64()), **dict.fromkeys(counts, pa.int64())}
    found = rows(full.select(*keys, *columns))
    if by is None and not found:
        nothing = {**dict.fromkeys(numbers), **dict.fromkeys(counts, 0)}
        found = [{"place": 0.0, "label": "", **nothing}]
    return grouped_table(found, by, columns)
