"""Delimited text as a table of strings with exact line numbers, and casts that name the line.

`read_text` takes a whole file in or raises one `TraceError`; no row is dropped. Values are cast by
the methods of `TextTable`: a cell that does not parse is named by file, line, column and value.
Line numbers count lines as an editor does, from 1; a record is known by its first line.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pcsv

from windtunnel.arrow_csv import parsed_csv
from windtunnel.errors import SpecError, TraceError, quote
from windtunnel.traces.header import MAX_LINE, checked_text, first_text, not_utf8, read_header
from windtunnel.traces.parquet import MAGIC, read_parquet
from windtunnel.traces.records import field_counts, line_numbers, locate
from windtunnel.traces.source import plain_message, read_bytes, source_name
from windtunnel.traces.wallclock import OddTimeError, first_failure, read_times

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

#: No gang has more tasks, as the jobs table counts them in 32 bits.
MAX_GANG = 2**31 - 1
#: A table of jobs has a few dozen columns; hundreds of thousands are none.
MAX_COLUMNS = 20_000


@dataclass(frozen=True)
class TextTable:
    """Rows of text and where each stands in its file.

    Attributes:
        file: what to call the source in messages.
        table: Arrow table of strings, or of numbers where they come from Parquet; null = empty.
        lines: 1-based line of each row in the file, shape (rows,).
    """

    file: str
    table: pa.Table
    lines: Sequence[int] | np.ndarray

    @property
    def num_rows(self) -> int:
        """Number of rows."""
        return int(self.table.num_rows)

    def has(self, name: str) -> bool:
        """Whether there is a column of this name; of many columns faster than their names."""
        return bool(self.table.schema.get_field_index(name) >= 0)

    def require(self, *names: str) -> None:
        """Check that columns are there.

        Raises:
            TraceError: one is missing; the nearest name in the file is suggested.
        """
        for name in names:
            if not self.has(name):
                raise TraceError.missing_column(self.file, name, self.table.column_names)

    def text(self, name: str) -> pa.ChunkedArray:
        """Return a column as it stands in the file, strings, null = empty.

        Raises:
            TraceError: there is no such column.
        """
        self.require(name)
        return self.table[name].cast(pa.string())

    def _cells(self, name: str) -> pa.ChunkedArray:
        """Return a column; strings without surrounding blanks, blank ones as null."""
        self.require(name)
        cells = self.table[name]
        if not pa.types.is_string(cells.type):
            return cells
        trimmed = pc.utf8_trim_whitespace(cells)
        return pc.if_else(pc.equal(trimmed, ""), pa.scalar(None, pa.string()), trimmed)

    def floats(self, name: str, *, what: str = "a number") -> pa.ChunkedArray:
        """Return a column as float64; an empty cell is null.

        Args:
            what: what its cells should be, for the message (``a number of seconds``).

        Raises:
            TraceError: there is no such column, or a cell is not a number.
        """
        return self._cast(name, pa.float64(), what)

    def finite(self, name: str, *, what: str = "a number") -> pa.ChunkedArray:
        """Return a column as `floats` does, without infinite numbers; NaN is kept: unknown.

        For columns that no rule of the schema looks at.

        Raises:
            TraceError: there is no such column, or a cell is not a number or too large for one.
        """
        numbers = self.floats(name, what=what)
        self.refuse(name, pc.is_inf(numbers), f"{what} that is finite")
        return numbers

    def integers(
        self, name: str, *, what: str = "a whole number", largest: int | None = None
    ) -> pa.ChunkedArray:
        """Return a column as int64; ``8.0`` counts as 8, an empty cell is null.

        Args:
            largest: bound of their size; None = that of 64 bits.

        Raises:
            TraceError: there is no such column, or a cell is not such a whole number.
        """
        cells = self._cells(name)
        # Arrow takes 0x10 for 16 here, but not where it reads a number with a fraction.
        self.refuse(name, pc.match_substring(self.text(name), "x", ignore_case=True), what)
        try:
            numbers = cells.cast(pa.int64())
        except pa.ArrowInvalid:
            floats = self.floats(name, what=what)
            try:
                numbers = floats.cast(pa.int64())
            except pa.ArrowInvalid as error:
                raise self._bad(name, cells, first_failure(floats, pa.int64()), what) from error
        if largest is not None:
            beyond = pc.or_(pc.greater(numbers, largest), pc.less(numbers, -largest))
            self.refuse(name, beyond, f"{what}, at most {largest:,}")
        return numbers

    def clock(self, name: str) -> np.ndarray:
        """Return a column of wall-clock times as seconds since 1970-01-01 00:00 of that clock.

        Returns:
            float64, shape (rows,), NaN = empty cell. `windtunnel.traces.wallclock.to_utc` turns
            it into instants.

        Raises:
            TraceError: there is no such column, or a cell is not such a time.
        """
        what = "a time as YYYY-MM-DD HH:MM:SS without a zone, from year 1 on"
        return self._times(name, what, zoned=False)

    def instants(self, name: str) -> np.ndarray:
        """Return a column of times with an offset from UTC as UTC seconds since 1970.

        Returns:
            float64, shape (rows,), NaN = empty cell.

        Raises:
            TraceError: there is no such column, or a cell is not such a time.
        """
        what = "a time with its offset, as YYYY-MM-DD HH:MM:SS+HH:MM"
        return self._times(name, what, zoned=True)

    def _times(self, name: str, what: str, *, zoned: bool) -> np.ndarray:
        cells = self._cells(name).cast(pa.string())
        try:
            return read_times(cells, zoned=zoned)
        except OddTimeError as error:
            raise self._bad(name, cells, error.row, what) from error

    def mapped(self, name: str, meaning: Mapping[str, str | None]) -> pa.ChunkedArray:
        """Return a column with each word replaced by its meaning; null stays null.

        Raises:
            TraceError: there is no such column, or a cell holds none of the words.
        """
        _, ours, strange = self._meant(name, meaning)
        self.refuse(name, strange, f"one of {', '.join(meaning)}")
        return ours

    def words(
        self, name: str, meaning: Mapping[str, str | None], other: str | None
    ) -> tuple[Any, list[tuple[str, int]]]:
        """Return a column with each word replaced by its meaning, other words by ``other``.

        Returns:
            Strings, null = empty cell; and the words without a meaning, the most frequent first.

        Raises:
            TraceError: there is no such column.
        """
        cells, ours, strange = self._meant(name, meaning)
        found = pc.value_counts(cells.filter(strange)).to_pylist()
        counts = sorted(((w["values"], w["counts"]) for w in found), key=lambda w: (-w[1], w[0]))
        return pc.if_else(strange, pa.scalar(other, pa.string()), ours), counts

    def _meant(self, name: str, meaning: Mapping[str, str | None]) -> tuple[Any, Any, Any]:
        """Return a column's words, what they mean, and which have no meaning."""
        cells = self._cells(name).cast(pa.string())
        index = pc.index_in(cells, value_set=pa.array(list(meaning), pa.string()))
        ours = pc.take(pa.array(list(meaning.values()), pa.string()), index)
        return cells, ours, pc.and_(pc.is_null(index), pc.is_valid(cells))

    def _cast(self, name: str, kind: pa.DataType, what: str) -> pa.ChunkedArray:
        cells = self._cells(name)
        try:
            return cells.cast(kind)
        except pa.ArrowInvalid as error:
            raise self._bad(name, cells, first_failure(cells, kind), what) from error

    def refuse(self, name: str, wrong: Any, what: str) -> None:
        """Refuse a column in which a cell is wrong, bool, null = right.

        Args:
            wrong: which of its cells are.

        Raises:
            TraceError: one is; names the first.
        """
        if pc.any(wrong).as_py():
            raise self._bad(name, self._cells(name), pc.index(wrong, True).as_py(), what)

    def _bad(self, name: str, cells: pa.ChunkedArray, row: int, what: str) -> TraceError:
        """Return the error for a cell."""
        line, value = int(self.lines[row]), cells[row].as_py()
        return TraceError(self.file, what, row=line, column=name, value=value)


def read_text(path: str | Path) -> TextTable:
    """Read a CSV file with a header line whole; plain or gzip, ``-`` = standard input.

    Raises:
        TraceError: the file cannot be read as such a table; says where and what was expected.
    """
    return parse_text(read_bytes(path), source_name(path))


def typed_rows(table: pa.Table, file: str) -> TextTable:
    """Return the rows of a Parquet file as those of text: numbers stay, all else is text.

    Lists become their items joined by ``|``.

    Raises:
        TraceError: a column holds neither text nor numbers nor lists of them.
    """
    for place, field in enumerate(table.schema):
        cells, kind = table.column(place), field.type
        if pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_string(kind):
            continue
        try:
            if pa.types.is_list(kind) or pa.types.is_large_list(kind):
                joined = pc.binary_join(cells.cast(pa.list_(pa.string())), "|")
                cells = pc.if_else(pc.equal(joined, ""), pa.scalar(None, pa.string()), joined)
            else:
                cells = cells.cast(pa.string())
        except pa.ArrowException as error:
            hint = "The column holds neither text nor numbers."
            what, value = "a whole Parquet file of text and numbers", str(kind)
            raise TraceError(file, what, column=field.name, value=value, hint=hint) from error
        table = table.set_column(place, field.name, cells)
    return TextTable(file, table, range(1, table.num_rows + 1))


def parse_table(data: bytes, file: str) -> TextTable:
    """Return the rows of a CSV file with a header line, or of a Parquet file.

    Raises:
        TraceError: it is neither.
    """
    if not data.startswith(MAGIC):
        return parse_text(data, file)
    return typed_rows(read_parquet(pa.BufferReader(data), file), file)


def parse_text(
    data: bytes,
    file: str,
    *,
    delimiter: str = ",",
    quoted: bool = True,
    columns: Sequence[str] | None = None,
) -> TextTable:
    """Parse delimited text.

    Args:
        data: the whole text, UTF-8, with or without a byte order mark.
        quoted: double quotes may enclose a field (RFC 4180); otherwise they are plain text.
        columns: names of the columns where there is no header line.

    Raises:
        TraceError: it is not such a table.
        SpecError: the delimiter is not one character.
    """
    if len(delimiter.encode()) != 1 or delimiter in '"\r\n':
        raise SpecError("delimiter", f"found {quote(delimiter)}; expected one ASCII character")
    data = checked_text(data, file)
    start, line = first_text(data, file)
    names = list(columns) if columns is not None else None
    if names is None:
        names, start, line = read_header(data, start, line, file, delimiter, quoted=quoted)
    if len(names) > MAX_COLUMNS:
        raise TraceError(
            file, f"at most {MAX_COLUMNS:,} columns", row=line - 1, value=f"{len(names):,} columns"
        )
    body = memoryview(data)[start:]
    quote_char = '"' if quoted else None
    try:
        table = parsed_csv(
            body,
            read_options=pcsv.ReadOptions(column_names=names, block_size=MAX_LINE),
            parse_options=pcsv.ParseOptions(
                delimiter=delimiter, quote_char=quote_char or False, newlines_in_values=quoted
            ),
            convert_options=pcsv.ConvertOptions(
                column_types=dict.fromkeys(names, pa.string()),
                null_values=[""],
                strings_can_be_null=True,
                # "" in quotes is an empty text, an empty cell is unknown: a table written by us
                # comes back exactly.
                quoted_strings_can_be_null=False,
            ),
        )
    except pa.ArrowInvalid as error:
        if len(body) == 0:
            raise _no_rows(file) from error
        raise _explain(
            error,
            bytes(body),
            file,
            names=names,
            delimiter=delimiter,
            line=line,
            quoted=quoted,
        ) from error
    if table.num_rows == 0:
        raise _no_rows(file)
    lines = locate(body, table.num_rows, file, first_line=line, delimiter=delimiter, quoted=quoted)
    return TextTable(file, table, lines)


def _explain(
    error: pa.ArrowInvalid,
    body: bytes,
    file: str,
    *,
    names: Sequence[str],
    delimiter: str,
    line: int,
    quoted: bool,
) -> TraceError:
    """Return the error that says what is wrong with text which Arrow refused."""
    try:
        body.decode()
    except UnicodeDecodeError as bad:
        return not_utf8(body, file, line - 1, bad)
    for offset, text in enumerate(body.splitlines(keepends=True)):
        if len(text) > MAX_LINE:
            return TraceError(
                file,
                f"a line of at most {MAX_LINE:,} bytes",
                row=line + offset,
                value=text[:60],
                hint=f"It has {len(text):,} bytes.",
            )
    starts = line_numbers(body, file, first_line=line, quoted=quoted)
    found = field_counts(body, delimiter, quoted=quoted)
    wrong = np.flatnonzero(found != len(names))
    if len(wrong) == 0:
        return TraceError(file, "well-formed delimited text", hint=f"({plain_message(error)})")
    first = int(wrong[0])
    hint = f"{len(wrong):,} rows differ from the header." if len(wrong) > 1 else ""
    if first == len(found) - 1 and found[first] < len(names):
        hint = "It is the last line: the file seems to be cut."
    return TraceError(
        file,
        f"{len(names)} fields, found {int(found[first])}",
        row=int(starts[first]),
        hint=hint,
    )


def _no_rows(file: str) -> TraceError:
    return TraceError(file, "at least one row", hint="The file has a header line and no rows.")
