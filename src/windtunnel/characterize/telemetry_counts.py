"""Samples pooled by value: exact statistics whose memory grows with distinct values, not samples.

Measurements are rounded: a year of GPU utilisation has a hundred distinct values. So samples are
first counted per value, and every statistic is computed from the counts. Where values are not
rounded the backend keeps the counts as it keeps any group (DuckDB: on disk beyond its memory
limit). Quantiles are those of `windtunnel.quantiles`: linear interpolation at rank (n - 1) p.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from windtunnel.errors import SpecError, quote

if TYPE_CHECKING:
    from collections.abc import Sequence


def checked_percents(at: Sequence[float]) -> tuple[float, ...]:
    """Return percents as floats, each once, in the order given.

    Raises:
        SpecError: one is no number from 0 to 100.
    """
    found: dict[float, None] = {}
    for percent in at:
        try:
            number = float(percent)
        except (TypeError, ValueError):
            number = np.nan
        if not 0 <= number <= 100:  # noqa: PLR2004 (percent)
            raise SpecError("at", f"found {quote(percent)}; expected a number from 0 to 100")
        found[number] = None
    if not found:
        raise SpecError("at", "found no percent; expected at least one, from 0 to 100")
    return tuple(found)


def pooled(samples: Any, keys: Sequence[str], at: Sequence[float]) -> Any:
    """Return the statistics of samples by group, one row a group and percent.

    The samples are read once, whatever is asked.

    Args:
        samples: Ibis table with ``value`` float64 (never null), ``shared`` bool (whether the
            sample counts elsewhere too), and the keys.
        keys: columns that tell the groups apart; null is a group of its own.
        at: percents from 0 to 100, each once.

    Returns:
        Ibis table, no order: the keys, ``percent``, ``value`` (the quantile at it), ``n``,
        ``n_shared``, ``mean``, ``min``, ``max`` and ``zeros`` (samples that are 0).
    """
    import ibis
    import pyarrow as pa

    counts = samples.group_by([*keys, "value"]).aggregate(
        count=samples.count(), shared_count=samples.shared.cast("int64").sum()
    )
    # A frame over the whole sorted group: sums are added in one order, so they repeat exactly.
    group = ibis.window(group_by=list(keys), order_by="value", preceding=None, following=None)
    so_far = ibis.cumulative_window(group_by=list(keys), order_by="value")
    weighed = counts.mutate(
        reached=counts["count"].sum().over(so_far),
        n=counts["count"].sum().over(group),
        n_shared=counts.shared_count.sum().over(group),
        total=(counts.value * counts["count"]).sum().over(group),
        lowest=counts.value.min().over(group),
        highest=counts.value.max().over(group),
        zeros=ibis.ifelse(counts.value == 0, counts["count"], 0).sum().over(group),
    )
    asked = ibis.memtable(pa.table({"percent": pa.array(at, pa.float64())}))
    crossed = weighed.cross_join(asked)
    rank = (crossed.n - 1).cast("float64") * crossed.percent / 100.0
    # The one or two distinct values that the ranks just below and above fall on.
    crossed = crossed.mutate(rank=rank, below=rank.floor(), above=rank.ceil())
    near = crossed.filter(
        crossed.above >= crossed.reached - crossed["count"], crossed.below < crossed.reached
    )
    found = near.group_by([*keys, "percent"]).aggregate(
        low=near.value.min(),
        high=near.value.max(),
        part=(near["rank"] - near.below).max(),
        n=near.n.max(),
        n_shared=near.n_shared.max(),
        total=near.total.max(),
        min=near.lowest.max(),
        max=near.highest.max(),
        zeros=near.zeros.max(),
    )
    return found.select(
        *keys,
        "percent",
        value=found.low + (found.high - found.low) * found.part,
        n=found.n,
        n_shared=found.n_shared,
        mean=found.total / found.n,
        min=found["min"],
        max=found["max"],
        zeros=found.zeros,
    )
