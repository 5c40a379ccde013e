"""One way in for tables: Arrow in memory, or an Ibis table on whatever backend holds it.

Every function of this package is written against Ibis expressions, so that the same text runs on
DuckDB inside this process and on a cluster, and asks for its result only at its end.

Which rows can a question not use, and why? The first reason that holds is the one that counts.

Every answer of this package names the rows that are not in it, so that rows in = rows used + rows
named.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from windtunnel.errors import SchemaError, Violation, nearest

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    import pyarrow as pa

    from windtunnel.companions import Relation


def relation(table: Relation, columns: Iterable[str]) -> Any:
    """Return some columns of a table as an Ibis table, in the order asked for.

    Args:
        table: an Arrow table (it is queried in DuckDB, not copied), or an Ibis table.
        columns: names, each once or more often.

    Raises:
        SchemaError: the table lacks a column; the nearest name that it has is suggested.
    """
    import ibis
    import pyarrow as pa

    names = list(dict.fromkeys(columns))
    has = column_names(table)
    lacking = [name for name in names if name not in has]
    if lacking:
        raise SchemaError(
            "table",
            [Violation(name, f"a column of this name.{nearest(name, has)}") for name in lacking],
        )
    return ibis.memtable(table.select(names)) if isinstance(table, pa.Table) else table[names]


def column_names(table: Relation) -> list[str]:
    """Return the names of a table's columns, in order."""
    import pyarrow as pa

    return list(table.column_names) if isinstance(table, pa.Table) else list(table.columns)


def rows(expression: Any) -> list[dict[str, Any]]:
    """Return the rows of an Ibis table expression as dictionaries."""
    found: list[dict[str, Any]] = expression.to_pyarrow().to_pylist()
    return found


def known_columns(table: Relation, names: Iterable[str]) -> set[str]:
    """Return those of ``names`` that the table has with at least one value that is not null."""
    has = set(column_names(table))
    asked = [name for name in dict.fromkeys(names) if name in has]
    if not asked:
        return set()
    held = relation(table, asked)
    (counts,) = rows(held.aggregate(**{name: held[name].count() for name in asked}))
    return {name for name in asked if counts[name]}


def typed(names: str, letters: str) -> pa.Schema:
    """Return the schema of some names.

    Args:
        names: of the columns, blanks between them.
        letters: the kind of each: t text, i whole number, f float.

    >>> typed("state num_jobs share", "tif").types
    [DataType(string), DataType(int64), DataType(double)]
    """
    import pyarrow as pa

    kinds = {"t": pa.string(), "i": pa.int64(), "f": pa.float64()}
    columns = zip(names.split(), letters, strict=True)
    return pa.schema([(name, kinds[letter]) for name, letter in columns])


LeftOut = dict[str, int]


def split_off(table: Any, reasons: Mapping[str, Any]) -> tuple[Any, int, LeftOut]:
    """Return the usable rows of a table, their number, and the numbers of all the others.

    Args:
        table: an Ibis table.
        reasons: reason -> Ibis boolean column that is true where a row is unusable for it. A row
            counts for the first of its reasons; a null condition counts as false.

    Returns:
        The table without those rows (same columns); how many it has; reason -> rows, reasons of
        no row omitted, in the order given.
    """
    import ibis

    first = ibis.literal(len(reasons))
    for place, condition in reversed(list(enumerate(reasons.values()))):
        first = ibis.cases((condition.fill_null(False), place), else_=first)
    keyed = table.mutate(_reason=first)
    counts = {
        row["_reason"]: row["n"] for row in rows(keyed.group_by("_reason").agg(n=keyed.count()))
    }
    left_out = {reason: counts[place] for place, reason in enumerate(reasons) if place in counts}
    kept = keyed.filter(keyed["_reason"] == len(reasons)).drop("_reason")
    return kept, counts.get(len(reasons), 0), left_out


def why(left_out: LeftOut) -> str:
    """Return the reasons as one text, for a column of a table; empty where there are none.

    >>> why({"no start_time": 3000, "no node": 1})
    'no start_time: 3,000; no node: 1'
    """
    return "; ".join(f"{reason}: {count:,}" for reason, count in left_out.items())


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
