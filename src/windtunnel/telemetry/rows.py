"""Rows of a block of delimited text, and precise words for those that cannot be read."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pcsv

from windtunnel.arrow_csv import parsed_csv
from windtunnel.errors import TraceError
from windtunnel.traces.header import MAX_LINE, not_utf8
from windtunnel.traces.records import field_counts, line_numbers
from windtunnel.traces.source import plain_message

if TYPE_CHECKING:
    from collections.abc import Sequence

    from windtunnel.telemetry.blocks import Block

#: What exporters write where there is no measurement.
BLANKS: tuple[str, ...] = ("", "NaN", "nan", "NA", "N/A", "null", "None", "-")


class RowParser:
    """Parses blocks of one file.

    Args:
        names: its columns, in order.
        numbers: columns of numbers (float64, `BLANKS` = null); the others stay text.

    Attributes:
        skipped: rows of the block that was parsed last that were left out.
    """

    def __init__(self, file: str, names: Sequence[str], numbers: Sequence[str]) -> None:
        self.file = file
        self.names = list(names)
        self.numbers = list(numbers)
        kinds = dict.fromkeys(self.names, pa.string()) | dict.fromkeys(numbers, pa.float64())
        self._convert = pcsv.ConvertOptions(
            column_types=kinds,
            null_values=list(BLANKS),
            strings_can_be_null=True,
            quoted_strings_can_be_null=True,
        )
        self.skipped = 0
        self._read = pcsv.ReadOptions(column_names=self.names, block_size=4 * MAX_LINE)

    def parse(self, block: Block, *, skip_odd: bool = False) -> pa.Table:
        """Return a block's rows.

        Args:
            block: whole lines behind the header.
            skip_odd: leave out rows of another number of fields.

        Raises:
            TraceError: a row has another number of fields, a number is none, or bytes are no
                UTF-8; names line, column and value.
        """
        if skip_odd:  # Arrow hands odd rows over as text, and loses those that are none
            self._check_text(block)
        skipped: list[int] = []

        def skip(row: pcsv.InvalidRow) -> str:
            skipped.append(row.actual_columns)
            return "skip"

        handler = skip if skip_odd else None
        parse = pcsv.ParseOptions(newlines_in_values=False, invalid_row_handler=handler)
        try:
            table = parsed_csv(
                block.data,
                read_options=self._read,
                parse_options=parse,
                convert_options=self._convert,
            )
        except pa.ArrowInvalid as error:
            if not block.data.strip():
                return self.empty()
            raise self._explained(block, error, skip_odd=skip_odd) from error
        finally:
            self.skipped = len(skipped)
        if b'"' in block.data:
            self._check_quotes(block, table.num_rows + len(skipped))
        return table

    def _check_text(self, block: Block) -> None:
        try:
            block.data.decode()
        except UnicodeDecodeError as error:
            raise not_utf8(block.data, self.file, block.line - 1, error) from error

    def _check_quotes(self, block: Block, rows: int) -> None:
        """Check that no quote swallowed the end of a line, and so a row."""
        lines = line_numbers(block.data, self.file, first_line=block.line, quoted=False)
        if len(lines) != rows:
            odd = [text.count(b'"') % 2 for text in block.data.splitlines()]
            raise TraceError(
                self.file,
                "every opened double quote closed on its line",
                row=block.line + odd.index(1) if 1 in odd else None,
            )

    def empty(self) -> pa.Table:
        """Return no rows."""
        kinds = {n: pa.float64() if n in self.numbers else pa.string() for n in self.names}
        return pa.table({name: pa.array([], kind) for name, kind in kinds.items()})

    def line(self, block: Block, row: int) -> int:
        """Return the 1-based line of a row, counted from 0 in the block that was parsed last."""
        return int(self._lines(block)[row])

    def _lines(self, block: Block) -> np.ndarray:
        """Return the line of each row of the block that was parsed last."""
        lines = line_numbers(block.data, self.file, first_line=block.line, quoted=False)
        if not self.skipped:
            return lines
        counts = field_counts(block.data, ",", quoted=True)
        return lines[counts == len(self.names)] if len(counts) == len(lines) else lines

    def _explained(self, block: Block, error: pa.ArrowInvalid, *, skip_odd: bool) -> TraceError:
        """Return the error that says what is wrong in a block that Arrow refused."""
        self._check_text(block)
        lines = line_numbers(block.data, self.file, first_line=block.line, quoted=False)
        counts = field_counts(block.data, ",", quoted=True)
        wrong = np.flatnonzero(counts != len(self.names))
        if len(wrong) and not skip_odd:
            first = int(wrong[0])
            last = first == len(counts) - 1 and counts[first] < len(self.names)
            return TraceError(
                self.file,
                f"{len(self.names)} fields, found {int(counts[first])}",
                row=int(lines[first]),
                hint="It is the last line: the file seems to be cut." if last else "",
            )
        if not self.numbers:  # it is not the numbers that cannot be read
            return TraceError(
                self.file,
                "well-formed delimited text",
                row=block.line,
                hint=f"From that line on: {plain_message(error)}.",
            )
        texts = RowParser(self.file, self.names, ()).parse(block, skip_odd=skip_odd)
        self.skipped = len(lines) - texts.num_rows
        lines = self._lines(block)
        for name in self.numbers:
            row = _first_no_number(texts[name])
            if row is not None:
                return TraceError(
                    self.file,
                    "a number",
                    row=int(lines[row]) if len(lines) == texts.num_rows else None,
                    column=name,
                    value=texts[name][row].as_py(),
                )
        return TraceError(self.file, "well-formed delimited text", hint=f"({plain_message(error)})")


def _first_no_number(cells: pa.ChunkedArray) -> int | None:
    trimmed = pc.utf8_trim_whitespace(cells)
    try:
        trimmed.cast(pa.float64())
    except pa.ArrowInvalid:
        for row, cell in enumerate(trimmed):
            try:
                cell.cast(pa.float64())
            except pa.ArrowInvalid:
                return row
    return None
