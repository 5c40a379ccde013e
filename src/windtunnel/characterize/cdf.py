"""How much lies at or below each threshold: cumulative distributions on a grid, exactly.

Definitions of the AcmeTrace analysis notebook (InternLM/AcmeTrace, NSDI'24, figures 2, 3 and 6):
the count CDF at x is 100 x (values <= x) / n, with n the values that are known; the sum CDF of a
key k weighted by t at x is 100 x (sum of k t over k <= x) / (sum of k t), over rows that have both.
n stands beside every curve: four in ten PAI tasks, for one, drop out of the published figure
because they have no duration.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from windtunnel.characterize.grids import (
    GPU_GRID,
    POWERS_DURATION,
    POWERS_QUEUE,
    checked_grid,
    interval,
)
from windtunnel.characterize.population import (
    as_one_group,
    counted,
    group_label,
    group_order,
    population,
)
from windtunnel.characterize.relation import rows, typed

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import pyarrow as pa

    from windtunnel.companions import Relation


__all__ = ["GPU_GRID", "POWERS_DURATION", "POWERS_QUEUE", "count_cdf", "sum_cdf"]


def count_cdf(
    jobs: Relation,
    value: str,
    at: Sequence[float],
    *,
    by: str | None = None,
    where: str = "gpu",
) -> pa.Table:
    """Return how many jobs have a fact at or below each threshold.

    Args:
        value: the fact (`windtunnel.characterize.facts`): ``duration``, ``wait``, ``num_gpus``,
            ``gpu_time``, ``source_duration``, ``source_queue`` ...
        at: rising thresholds, in the fact's unit.

    Returns:
        One row a group and threshold, groups in their order: the column named as ``by`` (text;
        absent without ``by``), ``x``, ``count`` (jobs with value <= x), ``percent`` (of n; null
        where n is 0), ``n`` (jobs that have the fact), ``left_out`` (jobs that lack it),
        ``unsized`` (jobs of unknown GPU count, which may belong here).

    Raises:
        SpecError: an argument names nothing known, or the thresholds do not rise.
    """
    grid = checked_grid(at)
    table = population(jobs, (value,), where=where, by=by)
    return curves(table, table.fact_0, None, grid, by)


def sum_cdf(
    jobs: Relation,
    key: str,
    weight: str,
    at: Sequence[float],
    *,
    by: str | None = None,
    where: str = "gpu",
) -> pa.Table:
    """Return the sum of key times weight over the jobs whose key is at or below each threshold.

    ``sum_cdf(jobs, "num_gpus", "duration", GPU_GRID)`` is GPU time by number of GPUs.

    Args:
        key: the fact that is compared with the thresholds.
        weight: the fact that it is multiplied with.
        at: rising thresholds, in the key's unit.

    Returns:
        As `count_cdf`, with ``sum`` (key x weight) for ``count``; ``percent`` of the sum over all
        n jobs (null where that is 0); ``n`` jobs that have both facts, ``left_out`` those that
        lack one.

    Raises:
        SpecError: an argument names nothing known, or the thresholds do not rise.
    """
    grid = checked_grid(at)
    table = population(jobs, (key, weight), where=where, by=by)
    product = table.fact_0 * table.fact_1
    return curves(table, table.fact_0, product, grid, by)


def curves(table: Any, value: Any, product: Any | None, grid: list[float], by: str | None) -> Any:
    """Return the curves of a population; see `count_cdf` and `sum_cdf`.

    Args:
        value: what is compared with the thresholds, an Ibis column of it.
        product: what is added up, null where it leaves a row out; None = jobs are counted.
        grid: rising thresholds.
        by: the property that the labels are of, None = one curve.
    """
    import pyarrow as pa

    counts = product is None
    amount = value if product is None else product
    keyed = table.mutate(
        amount=amount,
        interval=interval(value, grid).fill_null(0),  # null amounts add nothing
    )
    sums = keyed.group_by(["place", "label", "interval"]).aggregate(
        reached=keyed.amount.count() if counts else keyed.amount.sum().fill_null(0.0),
        **counted(keyed, keyed.amount),
    )
    found = rows(sums)
    if by is None and not found:
        found = [_nothing(counts=counts)]
    groups: dict[tuple[float, str], list[dict[str, Any]]] = {}
    for row in sorted(found, key=lambda row: (*group_order(row), row["interval"])):
        groups.setdefault((row["place"], row["label"]), []).append(row)
    name = "count" if counts else "sum"
    kind = pa.int64() if counts else pa.float64()
    labels: list[str] = []
    parts: dict[str, list[Any]] = {key: [] for key in ("x", name, "percent", *_COUNTS)}
    for (place, label), members in groups.items():
        amounts = np.zeros(len(grid) + 1, dtype=np.int64 if counts else np.float64)
        for row in members:
            amounts[row["interval"]] += row["reached"]
        reached = np.cumsum(amounts)
        total = reached[-1]
        labels += [group_label(by, place, label)] * len(grid)
        parts["x"] += grid
        parts[name] += reached[:-1].tolist()
        parts["percent"] += (100.0 * reached[:-1] / total).tolist() if total else [None] * len(grid)
        for key in _COUNTS:
            parts[key] += [sum(row[key] for row in members)] * len(grid)
    columns = {} if by is None else {by: pa.array(labels, pa.string())}
    columns |= {
        "x": pa.array(parts["x"], pa.float64()),
        name: pa.array(parts[name], kind),
        "percent": pa.array(parts["percent"], pa.float64()),
        **{key: pa.array(parts[key], pa.int64()) for key in _COUNTS},
    }
    return pa.table(columns)


#: What stands beside every point of a curve.
_COUNTS = ("n", "left_out", "unsized")


def _nothing(*, counts: bool) -> dict[str, Any]:
    """Return the row that a table without jobs would give."""
    row = dict.fromkeys(_COUNTS, 0)
    return {"place": 0.0, "label": "", "interval": 0, "reached": 0 if counts else 0.0, **row}


def column_cdfs(
    table: Any, values: Mapping[str, Any], at: Mapping[str, Sequence[float]]
) -> pa.Table:
    """Return the count CDF of each of several values: 100 * #{v <= x} / n.

    Args:
        table: an Ibis table.
        values: name -> Ibis numeric column of it; null = unknown, left out of its own curve.
        at: name -> rising points x, in the value's unit; the same names.

    Returns:
        Columns ``value`` (its name), ``x``, ``count`` int64, ``percent`` (null where n is 0),
        ``n`` int64 (rows that have it), ``left_out`` int64 (rows that lack it); in the order of
        ``values``, then of ``at``.

    Raises:
        SpecError: points do not rise.
    """
    import pyarrow as pa

    parts = [typed("value x count percent n left_out", "tfifii").empty_table()]
    for name, value in values.items():
        one = as_one_group(table.select(fact_0=value.cast("float64")))
        found = curves(one, one.fact_0, None, checked_grid(at[name]), None)
        names = pa.array([name] * found.num_rows, pa.string())
        parts.append(found.drop_columns(["unsized"]).add_column(0, "value", names))
    return pa.concat_tables(parts).combine_chunks()
