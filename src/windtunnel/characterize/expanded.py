"""Quantiles of a column in which a row may stand for several: one request, made by many tasks."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from windtunnel.characterize.relation import rows

if TYPE_CHECKING:
    from collections.abc import Sequence


def expanded_quantiles(
    table: Any, value: str, times: str, q: Sequence[float]
) -> tuple[int, list[float | None]]:
    """Return quantiles of the values, each repeated as often as its row says.

    The same as `windtunnel.quantiles.quantiles` of the repeated values (linear interpolation
    between order statistics), without repeating them.

    Args:
        table: an Ibis table.
        value: numeric column, not null.
        times: column of whole numbers >= 0: how often the row's value counts.
        q: fractions in [0, 1].

    Returns:
        The number of repeated values, and the quantiles in the order asked for; None without any.
    """
    import ibis

    counted = table.group_by(value).aggregate(times=table[times].sum().cast("int64"))
    (sums,) = rows(counted.aggregate(n=counted.times.sum().fill_null(0)))
    n = int(sums["n"])
    if n == 0 or not q:
        return n, [None] * len(q)
    upto = counted.mutate(
        reached=counted.times.sum().over(ibis.window(order_by=value, preceding=None, following=0))
    )
    ranks = sorted({rank(p * (n - 1)) for p in q for rank in (math.floor, math.ceil)})
    asked = {f"r{r}": upto[value].min(where=upto.reached > r) for r in ranks}
    (found,) = rows(upto.aggregate(**asked))
    return n, [_between(found, p * (n - 1)) for p in q]


def _between(found: dict[str, float], rank: float) -> float:
    low, high = math.floor(rank), math.ceil(rank)
    lower, upper = float(found[f"r{low}"]), float(found[f"r{high}"])
    return lower + (upper - lower) * (rank - low)
