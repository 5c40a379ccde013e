"""One table of OpenDC, Parquet or CSV, under the names and of the types that it has had."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from windtunnel.errors import TraceError
from windtunnel.traces.parquet import MAGIC, read_parquet
from windtunnel.traces.source import STDIN, read_bytes, read_head, said, source_name
from windtunnel.traces.tabular import TextTable, parse_text

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path


@dataclass(frozen=True)
class MillisTable:
    """Rows of a table whose times are milliseconds.

    Attributes:
        file: what to call it in messages.
        table: the columns; strings where ``text`` is not None.
        text: the same as text of a CSV file; None = Parquet.
        known: our name of a column -> the names it may have, the newest first.
        lines: line of each row in the CSV file; of a Parquet file its row, from 1.
    """

    file: str
    table: pa.Table
    text: TextTable | None
    known: dict[str, tuple[str, ...]]
    lines: Sequence[int]

    @property
    def num_rows(self) -> int:
        """Number of rows."""
        return int(self.table.num_rows)

    @property
    def names(self) -> list[str]:
        """The names of the columns, as the file spells them."""
        return list(self.table.column_names)

    @property
    def unread(self) -> list[str]:
        """Columns that are none of the known."""
        known = {name for names in self.known.values() for name in names}
        return [name for name in self.names if name not in known]

    def has(self, name: str) -> bool:
        """Whether the file has a column, under any of its names."""
        return self._spelt(name) is not None

    def require(self, *names: str) -> None:
        """Check that columns are there.

        Raises:
            TraceError: one is missing; the nearest name in the file is suggested.
        """
        for name in names:
            if not self.has(name):
                raise TraceError.missing_column(self.file, name, self.names)

    def numbers(self, name: str, *, what: str) -> Any:
        """Return a column as float64, instants as milliseconds; all null where it is not there.

        Raises:
            TraceError: a cell is no number.
        """
        spelt = self._spelt(name)
        if spelt is None:
            return pa.nulls(self.num_rows, pa.float64())
        if self.text is not None:
            return self.text.floats(spelt, what=what)
        values = self.table[spelt]
        try:
            if pa.types.is_timestamp(values.type):
                values = values.cast(pa.timestamp("ms", values.type.tz), safe=False)
                values = values.cast(pa.int64())
            return values.cast(pa.float64())
        except pa.ArrowException as error:
            raise TraceError(
                self.file, what, column=spelt, value=str(values.type), hint=f"({said(error)})"
            ) from error

    def words(self, name: str) -> Any:
        """Return a column as text, a list as its items joined by ``|``; null where not there.

        Raises:
            TraceError: the column is of a type that is no text, number or list.
        """
        spelt = self._spelt(name)
        if spelt is None:
            return pa.nulls(self.num_rows, pa.string())
        if self.text is not None:
            return self.text.text(spelt)
        values = self.table[spelt]
        try:
            if pa.types.is_list(values.type) or pa.types.is_large_list(values.type):
                joined = pc.binary_join(values.cast(pa.list_(pa.string())), "|")
                return pc.if_else(pc.equal(joined, ""), pa.scalar(None, pa.string()), joined)
            return values.cast(pa.string())
        except pa.ArrowException as error:
            raise TraceError(
                self.file, "text or numbers", column=spelt, value=str(values.type)
            ) from error

    def _spelt(self, name: str) -> str | None:
        return next((spelt for spelt in self.known[name] if spelt in self.names), None)


def open_table(path: str | Path, known: dict[str, tuple[str, ...]]) -> MillisTable:
    """Read a table whole.

    Args:
        path: Parquet, or plain or gzip CSV; ``-`` = CSV on standard input.
        known: our name of a column -> the names it may have, the newest first.

    Raises:
        TraceError: it is neither, or empty, or has a column twice.
    """
    file = source_name(path)
    if str(path) != STDIN and read_head(path, len(MAGIC)) == MAGIC:
        table = read_parquet(path, file)
        return MillisTable(file, table, None, known, range(1, table.num_rows + 1))
    if str(path).endswith(".parquet"):
        read_bytes(path)  # says what is wrong with the file, if it cannot be read at all
        raise TraceError(file, "a whole Parquet file", hint="It is cut or of another format.")
    text = parse_text(read_bytes(path), file)
    return MillisTable(file, text.table, text, known, text.lines)  # type: ignore[arg-type]
