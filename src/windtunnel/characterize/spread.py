"""How far do the values of a fact spread, group by group? Quantiles, exact.

Linear interpolation between order statistics, as everywhere (`windtunnel.quantiles`). The curve of
all quantiles is the cumulative distribution with ordinate 100 i / (n - 1) that the notebooks of
Philly and PAI draw.

Box plots: quartiles, whiskers and how many lie beyond them.

Convention of matplotlib (and of Tukey): the whiskers end at the last datum within 1.5 times the
interquartile range of the box; what lies beyond is an outlier. A whisker never ends inside the box.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from windtunnel.characterize.population import counted, grouped, grouped_table, population
from windtunnel.characterize.relation import rows, typed
from windtunnel.checked import checked_number
from windtunnel.errors import SpecError

if TYPE_CHECKING:
    from collections.abc import Sequence

    import pyarrow as pa

    from windtunnel.companions import Relation


#: Percents of a table of quantiles.
PERCENTS: tuple[float, ...] = (25, 50, 75, 90, 95, 99)
_EDGES = {"avg": "mean", "min": "min", "max": "max"}


def spread_by(
    jobs: Relation,
    value: str,
    *,
    by: str | None = None,
    where: str = "all",
    percents: Sequence[float] = PERCENTS,
) -> pa.Table:
    """Return mean, quantiles, minimum and maximum of a fact, one row a group.

    Args:
        value: the fact (`windtunnel.characterize.facts`): ``wait``, ``duration`` ...

    Returns:
        The column named as ``by`` (absent without ``by``), ``n`` (jobs that have the fact),
        ``left_out``, ``unsized``, ``avg``, ``min``, ``pQ`` for each percent Q (``p50``,
        ``p99.9``), ``max``, in the fact's unit; null where n is 0.

    Raises:
        SpecError: an argument names nothing known, or a percent is not in [0, 100].
    """
    names = _names(percents)
    found = _spread(jobs, value, by, where, names)
    columns = f"n left_out unsized avg min {' '.join(names)} max"
    return grouped_table(found, by, typed(columns, f"iiiff{'f' * len(names)}f"))


def quantile_curve(
    jobs: Relation,
    value: str,
    percents: Sequence[float] = tuple(range(101)),
    *,
    by: str | None = None,
    where: str = "all",
) -> pa.Table:
    """Return the value at each percent: a cumulative distribution that needs no grid.

    Args:
        percents: ordinates of the curve, 0 to 100.

    Returns:
        One row a group and percent: the column named as ``by`` (absent without ``by``),
        ``percent``, ``value`` (null where n is 0), ``n``, ``left_out``, ``unsized``.

    Raises:
        SpecError: an argument names nothing known, or a percent is not in [0, 100].
    """
    names = _names(percents)
    found = [
        {**row, "percent": percent, "value": row[name]}
        for row in _spread(jobs, value, by, where, names)
        for name, percent in names.items()
    ]
    return grouped_table(found, by, typed("percent value n left_out unsized", "ffiii"))


def _names(percents: Sequence[float]) -> dict[str, float]:
    """Return column name -> percent."""
    found = {f"p{float(p):.15g}": float(p) for p in percents}
    if not found:
        raise SpecError("percents", "expected at least one percent.")
    for p in found.values():
        checked_number("percents", p, "numbers from 0 to 100", least=0, most=100)
    return found


def _spread(
    jobs: Relation, value: str, by: str | None, where: str, names: dict[str, float]
) -> list[dict[str, Any]]:
    """Return the counts, mean, extremes and quantiles of each group."""
    table = population(jobs, (value,), where=where, by=by)
    fact = table.fact_0
    edges = {name: getattr(fact, how)() for name, how in _EDGES.items()}
    quantiles = {name: fact.quantile(percent / 100) for name, percent in names.items()}
    return grouped(table, by, {**counted(table, fact), **edges, **quantiles})


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
    found = rows(full.select(*keys, *numbers, *counts))
    if by is None and not found:
        nothing = {**dict.fromkeys(numbers), **dict.fromkeys(counts, 0)}
        found = [{"place": 0.0, "label": "", **nothing}]
    columns = typed(" ".join((*numbers, *counts)), "f" * len(numbers) + "i" * len(counts))
    return grouped_table(found, by, columns)
