"""How is a measurement distributed over all devices and all time?

The semantics of AcmeTrace's utilisation figures (``generate_utilization_pkl.ipynb``): samples of
all devices and instants are pooled, blanks left out, quantiles by linear interpolation.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow as pa

from windtunnel.characterize.relation import relation
from windtunnel.characterize.telemetry_counts import checked_percents, pooled

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from windtunnel.companions import Relation

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
    columns: dict[str, Any] = {
        "metric": pa.array([row["metric"] for row in found], pa.string()),
        "percent": pa.array([row["percent"] for row in found], pa.float64()),
        "value": pa.array([row["value"] for row in found], pa.float64()),
        "n": pa.array([row["n"] for row in found], pa.int64()),
        "zero_share": pa.array([row["zeros"] / row["n"] for row in found], pa.float64()),
        "mean": pa.array([row["mean"] for row in found], pa.float64()),
    }
    return pa.table(columns)


def chosen(samples: Relation, metric: str | Collection[str] | None) -> Any:
    """Return the samples of some metrics as an Ibis table: metric, value, shared (false)."""
    import ibis

    table = relation(samples, ("metric", "value"))
    if metric is not None:
        names = [metric] if isinstance(metric, str) else list(metric)
        table = table.filter(table.metric.isin(names))
    return table.mutate(shared=ibis.literal(False))
