"""Parquet files whole and checked: no column twice, no text that is none, no bomb.

Arrow believes a file: a column of "text" may hold any bytes, and a few kilobytes may say that they
are a billion rows. Both show long after the file was opened, as errors that name no file.
"""

from __future__ import annotations

import csv
import io
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq

from windtunnel.errors import TraceError
from windtunnel.traces.source import opened, plain_message, read_bytes

if TYPE_CHECKING:
    from collections.abc import Sequence

MAGIC = b"PAR1"
#: A file that grows by more than this factor in memory is refused (tables of jobs: 5-70) ...
MAX_RATIO = 1000
#: ... once it takes more than this.
RATIO_FLOOR = 256 * 2**20
#: What a value takes in memory at least, for columns that a file stores in no bytes at all.
_VALUE_BYTES = 8


def read_parquet(source: Any, file: str) -> pa.Table:
    """Read a Parquet file.

    Args:
        source: a path, or an Arrow reader of its bytes.

    Returns:
        The table: at least one row, each column once, all text UTF-8.

    Raises:
        TraceError: it is missing, a folder, cut, of another format, empty, a bomb, or has a column
            twice.
    """
    path = None if isinstance(source, pa.NativeFile) else Path(source)
    if path is not None:
        opened(path).close()  # says what is wrong with the file, if it cannot be read at all
    try:
        # Not read_table: that takes folder names such as vc=a on the way for columns.
        with pq.ParquetFile(source) as parquet:
            check_columns(parquet.schema_arrow.names, file)
            size = source.size() if path is None else path.stat().st_size
            check_growth(parquet.metadata, size, file)
            table = parquet.read()
            table.validate(full=True)
            table = _without_views(table)
    except (pa.ArrowException, OSError, ValueError) as error:
        raise damaged(file, error) from error
    if table.num_rows == 0:
        raise TraceError(file, "at least one row", hint="The table has columns and no rows.")
    return table


def _without_views(table: pa.Table) -> pa.Table:
    """Return a table with plain texts for views of texts, which Arrow can read but not sort."""
    plain = {pa.string_view(): pa.string(), pa.binary_view(): pa.binary()}
    for place, field in enumerate(table.schema):
        if field.type in plain:
            column = table.column(place).cast(plain[field.type])
            table = table.set_column(place, field.name, column)
    return table


def header_of(path: Path) -> bytes:
    """Return the names of a Parquet file's columns as the header line of a CSV file.

    For guessing a format only: a broken file gives nothing, because the reader that opens it next
    says precisely what is wrong.
    """
    try:
        with path.open("rb") as file:
            packed = file.read(len(MAGIC)) != MAGIC
        names = pq.read_schema(pa.BufferReader(read_bytes(path)) if packed else path).names
    except (pa.ArrowException, OSError, ValueError, TraceError):
        return b""
    line = io.StringIO()
    csv.writer(line).writerow(names)
    return line.getvalue().encode(errors="replace")


def check_columns(names: Sequence[str], file: str) -> None:
    """Check that each name stands once.

    Raises:
        TraceError: one stands twice.
    """
    seen: set[str] = set()
    for name in names:
        if name in seen:
            raise TraceError(file, "each column name once", column=name)
        seen.add(name)


def check_growth(about: pq.FileMetaData, size: int, file: str) -> None:
    """Check that a file does not say that it is far more than its bytes can be.

    Args:
        about: its metadata.
        size: its size on the disk, bytes.

    Raises:
        TraceError: it would grow by more than `MAX_RATIO`.
    """
    groups = (about.row_group(place).total_byte_size for place in range(about.num_row_groups))
    grown = max(sum(groups), about.num_rows * about.num_columns * _VALUE_BYTES)
    if grown > RATIO_FLOOR and grown > MAX_RATIO * size:
        raise TraceError(
            file,
            f"a Parquet file that grows at most {MAX_RATIO:,} times",
            hint=f"Its {size:,} bytes would be {about.num_rows:,} rows of {about.num_columns:,} "
            "columns: no job log is like that.",
        )


def damaged(file: str, error: Exception) -> TraceError:
    """Return the error for a file that Arrow cannot read."""
    hint = f"It is cut or of another format ({plain_message(error)})."
    return TraceError(file, "a whole Parquet file", hint=hint)
