"""One way in for tables: Arrow in memory, or an Ibis table on whatever backend holds it.

Every function of this room is written against Ibis expressions, so that the same text runs on
DuckDB inside this process and on a cluster, and asks for its result only at its end.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from windtunnel.errors import SchemaError, Violation, nearest

if TYPE_CHECKING:
    from collections.abc import Iterable

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
