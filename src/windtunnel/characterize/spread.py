"""How far do the values of a fact spread, group by group? Quantiles, exact.

Linear interpolation between order statistics, as everywhere (`windtunnel.quantiles`). The curve of
all quantiles is the cumulative distribution with ordinate 100 i / (n - 1) that the notebooks of
Philly and PAI draw.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from windtunnel.characterize.groups import grouped_table
from windtunnel.characterize.population import counted, population
from windtunnel.characterize.relation import rows
from windtunnel.errors import SpecError, quote

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
    import pyarrow as pa

    names = _names(percents)
    table = population(jobs, (value,), where=where, by=by)
    found = rows(_spread(table, names))
    if by is None and not found:
        found = [_nothing(names)]
    columns = {
        **dict.fromkeys(("n", "left_out", "unsized"), pa.int64()),
        **dict.fromkeys(("avg", "min", *names, "max"), pa.float64()),
    }
    return grouped_table(found, by, columns)


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
    import pyarrow as pa

    names = _names(percents)
    table = population(jobs, (value,), where=where, by=by)
    wide = rows(_spread(table, names))
    if by is None and not wide:
        wide = [_nothing(names)]
    found = [
        {**row, "percent": percent, "value": row[name]}
        for row in wide
        for name, percent in names.items()
    ]
    columns = {
        **dict.fromkeys(("percent", "value"), pa.float64()),
        **dict.fromkeys(("n", "left_out", "unsized"), pa.int64()),
    }
    return grouped_table(found, by, columns)


def _names(percents: Sequence[float]) -> dict[str, float]:
    """Return column name -> percent.

    Raises:
        SpecError: there is none, or one is not in [0, 100].
    """
    found = {f"p{float(p):.15g}": float(p) for p in percents}
    if not found:
        raise SpecError("percents", "expected at least one percent.")
    for p in found.values():
        if not (math.isfinite(p) and 0 <= p <= 100):  # noqa: PLR2004 (percent)
            raise SpecError("percents", f"expected numbers from 0 to 100, not {quote(p)}.")
    return found


def _spread(table: Any, names: dict[str, float]) -> Any:
    value = table.fact_0
    edges = {name: getattr(value, how)() for name, how in _EDGES.items()}
    quantiles = {name: value.quantile(percent / 100) for name, percent in names.items()}
    return table.group_by(["place", "label"]).aggregate(
        **counted(table, value), **edges, **quantiles
    )


def _nothing(names: dict[str, float]) -> dict[str, Any]:
    """Return the row that a table without jobs would give."""
    counts = dict.fromkeys(("n", "left_out", "unsized"), 0)
    return {"place": 0.0, "label": "", **counts, **dict.fromkeys((*_EDGES, *names))}
