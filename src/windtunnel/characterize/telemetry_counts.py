"""Samples pooled by value: exact statistics whose memory grows with distinct values, not samples.

Measurements are rounded: a year of GPU utilisation has a hundred distinct values. So samples are
first counted per value, and every statistic is computed from the counts. Where values are not
rounded the backend keeps the counts as it keeps any group (DuckDB: on disk beyond its memory
limit). Quantiles are those of `windtunnel.quantiles`: linear interpolation at rank (n - 1) p.

How is a measurement distributed over all devices and all time?

The semantics of AcmeTrace's utilisation figures (``generate_utilization_pkl.ipynb``): samples of
all devices and instants are pooled, blanks left out, quantiles by linear interpolation.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from windtunnel.characterize.relation import relation, typed
from windtunnel.errors import SpecError, quote

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from windtunnel.companions import Relation


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


#: Percents of `percentiles` where none are asked for.
AT: tuple[float, ...] = (10, 25, 50, 75, 90, 95, 99)


def percentiles(
    samples: Relation,
    metric: str | Collection[str] | None = None,
    *,
    at: Sequence[float] = AT,
) -> pa.Table:
    """Return percentiles of measurements, with how many samples there are and how many are zero.

    Args:
        metric: one metric, or several; None = all.
        at: percents from 0 to 100.

    Returns:
        One row a metric and percent, metrics by name, percents in the order asked: ``metric``,
        ``percent``, ``value`` (exact, linear interpolation, in the metric's unit), ``n`` int64
        (samples), ``zero_share`` (0..1), ``mean``. A metric without samples has no rows.

    Raises:
        SchemaError: a column is missing.
        SpecError: a percent is none.
    """
    asked = checked_percents(at)
    found = pooled(chosen(samples, metric), ("metric",), asked).to_pyarrow().to_pylist()
    order = {percent: place for place, percent in enumerate(asked)}
    found.sort(key=lambda row: (row["metric"], order[row["percent"]]))
    rows = [{**row, "zero_share": row["zeros"] / row["n"]} for row in found]
    schema = typed("metric percent value n zero_share mean", "tffiff")
    return pa.Table.from_pylist(rows, schema=schema)


def chosen(samples: Relation, metric: str | Collection[str] | None) -> Any:
    """Return the samples of some metrics as an Ibis table: metric, value, shared (false)."""
    import ibis

    table = relation(samples, ("metric", "value"))
    if metric is not None:
        names = [metric] if isinstance(metric, str) else list(metric)
        table = table.filter(table.metric.isin(names))
    return table.mutate(shared=ibis.literal(False))
