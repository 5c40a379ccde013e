"""Our own format: the jobs table itself as CSV or Parquet, read and written.

CSV: a header line with the names of `windtunnel.schema.COLUMNS` in any order; an empty cell is
unknown; a text that a spreadsheet would run has an apostrophe in front. ``job_id``,
``submit_time``, ``num_gpus`` and ``duration`` (or ``start_time`` and ``end_time``) are required,
the others may be absent. Further columns are kept as text, but for the numbers of a source that the
analysis knows (`SOURCE_NUMBERS`). Parquet: the same columns with any types that cast to the
schema's.
"""

from __future__ import annotations

import contextlib
import gzip
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pcsv
import pyarrow.parquet as pq

from windtunnel.errors import SchemaError, TraceError, Violation, quote
from windtunnel.schema import BY_NAME, as_jobs, conform_rows
from windtunnel.traces.parquet import MAGIC, read_parquet
from windtunnel.traces.readers import reader
from windtunnel.traces.source import read_bytes, short_name, source_name
from windtunnel.traces.spreadsheet import guarded, unguarded
from windtunnel.traces.tabular import MAX_GANG, parse_text
from windtunnel.traces.target import in_one_piece
from windtunnel.traces.trace import Trace, TraceMetadata
from windtunnel.traces.writers import writer

if TYPE_CHECKING:
    from pathlib import Path
    from typing import Any

#: A source's own figures, which `windtunnel.characterize.facts` draws beside ours, and what a job
#: needs to go on once it was stopped: s, but ``plan_gpu`` in hundredths of a GPU.
SOURCE_NUMBERS = frozenset(
    {"source_duration", "source_queue", "plan_gpu", "instance_start", "task_end", "restore_time"}
)


@reader("native", extensions=(".csv", ".parquet"))
def read_native(path: str | Path, *, delimiter: str = ",", bad_rows: str = "raise") -> Trace:
    """Read a jobs table in our own schema.

    Args:
        path: a ``.csv``, ``.csv.gz`` or ``.parquet`` file, or ``-`` for CSV or Parquet on
            standard input.
        delimiter: what separates the fields of a CSV file.
        bad_rows: ``raise``, or ``drop``: leave out, counted, rows that break a rule.

    Raises:
        TraceError: the file is not such a table; names line and column.
        SchemaError: rules of the schema are broken; lists all of them.
    """
    file = source_name(path)
    lines: Any = None
    if str(path).endswith(".parquet"):
        table = _typed(read_parquet(path, file), file)
    elif (data := read_bytes(path)).startswith(MAGIC):
        table = _typed(read_parquet(pa.BufferReader(data), file), file)
    else:
        text = parse_text(data, file, delimiter=delimiter)
        table = pa.table({n: _column(text, n) for n in text.table.column_names})
        lines = text.lines
    jobs, dropped = conform_rows(table, bad_rows=bad_rows, source=file, lines=lines)
    about = TraceMetadata(short_name(path), file, rows_read=table.num_rows, dropped=dropped)
    return Trace(jobs, about)


def _column(text: Any, name: str) -> pa.ChunkedArray:
    """Return one column in the schema's type; one that the schema lacks stays text."""
    known = BY_NAME.get(name)
    if name in SOURCE_NUMBERS:
        return text.finite(name)
    if known is None:
        return unguarded(text.text(name))
    if known.type == pa.float64():
        time = name.endswith("_time") or name in {"duration", "estimate"}
        return text.floats(name, what="a number of seconds" if time else "a number")
    if known.type == pa.int32():
        return text.integers(name, largest=MAX_GANG)
    cells = unguarded(text.text(name))
    if name in {"job_id", "status", "gpu_type"}:  # where an empty text can mean nothing
        return pc.if_else(pc.equal(cells, ""), pa.scalar(None, pa.string()), cells)
    return cells


def _typed(table: pa.Table, file: str) -> pa.Table:
    """Return a table whose columns of the schema have the schema's types."""
    violations = []
    for place, field in enumerate(table.schema):
        known = BY_NAME.get(field.name)
        if known is None or field.type == known.type:
            continue
        values = table.column(place)
        try:
            table = table.set_column(place, field.name, values.cast(known.type))
        except pa.ArrowException:
            violations.append(
                Violation(field.name, f"values of type {known.type}, {_odd(values, known.type)}")
            )
    if violations:
        raise SchemaError(file, violations)
    return table


def _odd(values: pa.ChunkedArray, kind: pa.DataType) -> str:
    """Return which value is not of a type, or that all are of another."""
    for row, value in enumerate(values, 1):
        try:
            value.cast(kind)
        except pa.ArrowInvalid:
            return f"not {_shown(value)} in row {row:,}"
        except pa.ArrowException:
            break
    return f"not {quote(str(values.type))}"


def _shown(value: pa.Scalar) -> str:
    """Return a value as it may be shown; one that Python has no word for by its type."""
    try:
        return quote(value.as_py())
    except (pa.ArrowException, ValueError, OverflowError):  # a time in a zone that nobody knows
        return f"a value of type {value.type}"


def write_csv(jobs: Any, path: str | Path) -> None:
    """Write a jobs table as CSV, gzipped where the name ends in ``.gz``; `read_native` reads it.

    The same table gives the same bytes. Numbers are written so that they read back exactly; texts
    that a spreadsheet would run get an apostrophe, which reading takes off
    (`windtunnel.traces.spreadsheet`).

    Raises:
        SchemaError: the table breaks the schema.
        TraceError: the file cannot be written.
    """
    table = _flat(as_jobs(jobs))
    for place, field in enumerate(table.schema):
        if field.type == pa.string():
            table = table.set_column(place, field.name, guarded(table.column(place)))
    header = ",".join(_header_cell(name) for name in table.column_names)

    with in_one_piece(path) as temporary, contextlib.ExitStack() as stack:
        file: Any = stack.enter_context(temporary.open("wb"))
        if str(path).endswith(".gz"):
            # No name and no time in the header: the same table, the same bytes.
            file = stack.enter_context(gzip.GzipFile("", "wb", 6, file, mtime=0))
        file.write(f"{header}\n".encode())
        pcsv.write_csv(table, file, pcsv.WriteOptions(include_header=False))


def write_parquet(jobs: Any, path: str | Path) -> None:
    """Write a jobs table as Parquet (zstd); `read_native` reads it back exactly.

    Args:
        jobs: anything `windtunnel.schema.as_jobs` takes.
        path: the file; it appears whole or not at all.

    Raises:
        SchemaError: the table breaks the schema.
        TraceError: the file cannot be written.
    """
    # Where the table came from (a path on this machine) is no part of it.
    table = as_jobs(jobs).replace_schema_metadata(None)

    with in_one_piece(path) as temporary, temporary.open("wb") as raw:
        pq.write_table(
            table, raw, compression="zstd"
        )  # Arrow takes a path for an address, of UTF-8


def _flat(table: pa.Table) -> pa.Table:
    """Return the table with every column of a type that CSV can hold: numbers and text."""
    for index, field in enumerate(table.schema):
        if not (pa.types.is_floating(field.type) or pa.types.is_integer(field.type)):
            try:
                cells = table[field.name].cast(pa.string())
            except pa.ArrowException as error:
                raise TraceError(
                    "CSV",
                    "a column of numbers or text",
                    column=field.name,
                    value=str(field.type),
                    hint="Write Parquet instead.",
                ) from error
            table = table.set_column(index, field.name, cells)
    return table


def _header_cell(name: str) -> str:
    doubled = name.replace('"', '""')
    return f'"{doubled}"' if any(c in name for c in ',"\n\r') else name


@writer("csv", (".csv",), dates=False)
def _csv(trace: Trace, path: Path) -> None:
    write_csv(trace.jobs, path)


@writer("parquet", (".parquet",), dates=False, packs=False)
def _parquet(trace: Trace, path: Path) -> None:
    write_parquet(trace.jobs, path)
