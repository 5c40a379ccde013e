"""From the text of a PAI table to batches of typed rows, each with its number; none gets lost.

The parser is Arrow's, with every name and type given. Where it, a rule of a column or the count of
lines objects, the file is read a second time record by record, so that the one error names the
first wrong line, its column and its value, and how many rows are wrong in all.
"""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pcsv

from windtunnel.errors import TraceError
from windtunnel.traces.pai.stream import NotTextError, open_rows, records

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from windtunnel.traces.pai.stream import RowStream
    from windtunnel.traces.pai.tables import Rule, Table


#: Bytes parsed at once; no record of a table is longer.
_BLOCK = 2**20


class Parsed:
    """One pass over a table.

    Attributes:
        schema: of the batches, the columns that are kept: text, or float64.
        rows: rows so far.

    Args:
        path: the table's file; None = there is none, which is read as no rows.
        table: which table it is.
        only: the columns to keep, all of text, of a table that was read before; None = all but
            its ``unread``.
    """

    def __init__(
        self, path: Path | None, table: Table, *, only: tuple[str, ...] | None = None
    ) -> None:
        self.rows = 0
        self._path = path
        self._table = table
        self._problem: Exception | None = None
        self._one_line_each = True
        self._first_line = 1
        kept = only or [name for name in table.columns if name not in table.unread]
        self.schema = pa.schema([(name, _type(table.columns[name])) for name in kept])
        # Numbers that are left out are looked at too: once.
        looked_at = [n for n, rule in table.columns.items() if rule.number and not only]
        self._included = [n for n in table.columns if n in {*kept, *looked_at}]

    def table(self) -> pa.Table:
        """Return all the rows, each column in one piece.

        Raises:
            TraceError: the table is not as it should be; names file, line, column and value.
        """
        with self.explained():
            table = pa.Table.from_batches(self.batches(), self.schema).combine_chunks()
        # The pieces lay as scattered as they came: what held them is of no use to anybody else.
        pa.default_memory_pool().release_unused()
        return table

    @contextmanager
    def explained(self) -> Iterator[None]:
        """Say what went wrong with the `batches` that were read within.

        Who reads them may hide the parser's error behind one of its own, which says less.

        Raises:
            TraceError: the table is not as it should be; names file, line, column and value.
        """
        try:
            yield
        except Exception:
            self.check()
            raise
        self.check()

    def check(self) -> None:
        """Say what went wrong during the pass, if anything.

        Raises:
            TraceError: the table is not as it should be; names file, line, column and value.
        """
        # Not kept: a raised error refers to the frames that it passed, and they to the database.
        problem, self._problem = self._problem, None
        if problem is None or self._path is None:
            return
        if isinstance(problem, NotTextError | pa.ArrowInvalid | _BrokenRuleError):
            raise explained(self._path, self._table, problem) from problem
        raise problem

    def lines(self) -> Sequence[int] | np.ndarray:
        """Return the line of each row in the file, shape (rows,)."""
        if self._one_line_each or self._path is None:
            return range(self._first_line, self._first_line + self.rows)
        found = (line for line, _ in records(self._path, self._table))
        return np.fromiter(found, np.int64, self.rows)

    def batches(self) -> Iterator[pa.RecordBatch]:
        """Yield the rows in the file's order, once.

        What goes wrong ends them; `check` then says what it was.
        """
        if self._path is None:
            return
        try:
            with open_rows(self._path, self._table) as stream:
                yield from self._typed(stream)
                self._first_line = stream.first_line
                self._one_line_each = stream.one_line_each(self.rows)
                if not self._one_line_each:
                    self._count_records(self._path)
        except Exception as error:
            self._problem = error
            raise

    def _typed(self, stream: RowStream) -> Iterator[pa.RecordBatch]:
        """Yield batches whose every value keeps its column's rule."""
        names = list(self._table.columns)
        try:
            reader = pcsv.open_csv(
                stream,
                read_options=pcsv.ReadOptions(column_names=names, block_size=_BLOCK),
                parse_options=pcsv.ParseOptions(newlines_in_values=True),
                convert_options=pcsv.ConvertOptions(
                    column_types={n: _type(rule) for n, rule in self._table.columns.items()},
                    include_columns=self._included,
                    check_utf8=False,  # the stream looks at every byte
                    null_values=[""],
                    strings_can_be_null=True,
                    quoted_strings_can_be_null=False,
                ),
            )
            for batch in reader:
                for name, values in zip(batch.schema.names, batch.columns, strict=True):
                    if _breaks(values, self._table.columns[name], quoted=stream.quoted):
                        raise _BrokenRuleError
                self.rows += batch.num_rows
                yield batch.select(self.schema.names)
        except (pa.ArrowException, NotTextError, TraceError) as error:
            # As in `check`: the reader, which this error's frames refer to, holds the stream.
            problem, stream.problem = stream.problem, None
            raise (problem or error) from error

    def _count_records(self, path: Path) -> None:
        """Count the records in another way, where lines alone do not tell their number."""
        count = sum(1 for _ in records(path, self._table))
        if count != self.rows:
            raise TraceError(
                str(path),
                f"{count:,} records, but {self.rows:,} can be distinguished",
                hint="A double quote stands inside a field: quote whole fields, doubling the "
                "quotes in them.",
            )


class _BrokenRuleError(ValueError):
    """Some value of a batch breaks its column's rule."""


def explained(path: Path, table: Table, error: Exception) -> TraceError:
    """Return the error that names the first wrong record of a table, and counts them all.

    Args:
        table: which table it is.
        error: the error of the first pass, for the case that no record alone is at fault.
    """
    first: TraceError | None = None
    wrong = last = 0
    short = False
    for line, cells in records(path, table):
        last = line
        fault = _fault(cells, table)
        if fault is None:
            continue
        wrong += 1
        if first is None:
            expected, column, value = fault
            first = TraceError(str(path), expected, row=line, column=column, value=value)
            short = len(cells) < len(table.columns)
    if first is None:
        message = str(error).partition("\n")[0]
        return TraceError(str(path), "well-formed delimited text", hint=f"({message})")
    hint = f"{wrong:,} rows of the table are wrong." if wrong > 1 else ""
    if wrong == 1 and short and first.row == last:
        hint = "It is the last line: the file seems to be cut."
    return TraceError(
        first.file,
        first.expected,
        row=first.row,
        column=first.column,
        value=first.value,
        hint=hint,
    )


def _fault(cells: list[str], table: Table) -> tuple[str, str | None, str | None] | None:
    """Return what is wrong with a record: expected, column, value; None = nothing."""
    if len(cells) != len(table.columns):
        return f"{len(table.columns)} fields, found {len(cells)}", None, ",".join(cells)
    for cell, (name, rule) in zip(cells, table.columns.items(), strict=True):
        if not cell.isascii() and _has_surrogates(cell):
            return "UTF-8 text", name, cell
        if "\0" in cell:
            return "text without NUL bytes", name, cell
        if rule.number or rule.required:
            if not cell:
                if rule.required:
                    return rule.what, name, cell
            elif rule.number and not _is_number(cell, rule):
                return rule.what, name, cell
    return None


def _has_surrogates(cell: str) -> bool:
    try:
        cell.encode()
    except UnicodeEncodeError:
        return True
    return False


def _is_number(cell: str, rule: Rule) -> bool:
    """Return whether a cell is a number as the parser reads it, and keeps the rule."""
    try:
        value = pa.scalar(cell.strip(" \t")).cast(pa.float64()).as_py()
    except pa.ArrowInvalid:
        return False
    return not rule.broken(np.array([value]))[0]


def _type(rule: Rule) -> pa.DataType:
    return pa.float64() if rule.number else pa.string()


def _breaks(values: pa.Array, rule: Rule, *, quoted: bool) -> bool:
    """Return whether a value of a batch breaks its column's rule.

    Args:
        quoted: whether there may be quotes in the table; where there are none, what is empty is
            null.
    """
    if rule.required and values.null_count:
        return True
    if not rule.number:
        return rule.required and quoted and bool(pc.any(pc.equal(values, "")).as_py())
    known = values.drop_null() if values.null_count else values
    return not rule.kept(np.asarray(known))
