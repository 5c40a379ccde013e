"""Outcome tables as files: whole or not at all."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from windtunnel import storage

if TYPE_CHECKING:
    from pathlib import Path

    import pyarrow as pa

#: Endings that `save_table` knows.
ENDINGS: tuple[str, ...] = (".parquet", ".csv")


def save_table(table: pa.Table, path: Path) -> None:
    """Write a table as Parquet or CSV, by the ending of its name; the same table, the same bytes.

    In CSV a list is its items with spaces between them, an unknown value is an empty cell, and a
    text that a spreadsheet would run has an apostrophe in front.

    Args:
        table: an outcome table.
        path: the file, ending in one of `ENDINGS`; it appears whole or not at all.

    Raises:
        OSError: the file cannot be written; nothing is left behind.
    """
    with storage.replacing(path) as temporary:
        if path.suffix.lower() == ".parquet":
            import pyarrow.parquet as pq

            with temporary.open("wb") as raw:
                pq.write_table(table, raw, compression="zstd")
        else:
            import pyarrow.csv as pcsv

            from windtunnel.traces.spreadsheet import guarded_table

            with temporary.open("wb") as raw:
                pcsv.write_csv(guarded_table(_flat(table)), raw)


def _flat(table: pa.Table) -> pa.Table:
    """Return the table with its lists as text."""
    import pyarrow as pa
    import pyarrow.compute as pc

    for index, field in enumerate(table.schema):
        if pa.types.is_list(field.type):
            texts: Any = table[field.name].cast(pa.list_(pa.string()))
            table = table.set_column(index, field.name, pc.binary_join(texts, " "))
    return table
