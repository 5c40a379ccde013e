"""How are several columns of one table distributed? Count CDFs at given points."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from windtunnel.characterize.grids import checked_grid, interval
from windtunnel.characterize.relation import rows

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import pyarrow as pa


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

    text, real, whole = pa.string(), pa.float64(), pa.int64()
    columns = ("value", "x", "count", "percent", "n", "left_out")
    types = dict(zip(columns, (text, real, whole, real, whole, whole), strict=True))
    out: dict[str, list[Any]] = {name: [] for name in types}
    for name, value in values.items():
        grid = checked_grid(at[name])
        keyed = table.select(place=interval(value.cast("float64"), grid))
        amounts, lacking = np.zeros(len(grid) + 1, dtype=np.int64), 0
        for row in rows(keyed.group_by("place").aggregate(count=keyed.count())):
            if row["place"] is None:
                lacking = row["count"]
            else:
                amounts[row["place"]] = row["count"]
        reached = np.cumsum(amounts)
        n, count = int(reached[-1]), len(grid)
        out["value"] += [name] * count
        out["x"] += grid
        out["count"] += reached[:-1].tolist()
        out["percent"] += (100.0 * reached[:-1] / n).tolist() if n else [None] * count
        out["n"] += [n] * count
        out["left_out"] += [lacking] * count
    return pa.table({name: pa.array(out[name], kind) for name, kind in types.items()})
