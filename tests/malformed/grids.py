"""Delimited text as rows of cells, written and read again in the plainest way: the oracle.

Nothing here uses the package's own parsers, nor the csv module, whose limits the readers share.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import NamedTuple

_ENDS = frozenset(("\r\n", "\r", "\n"))


class Record(NamedTuple):
    """One record of a text.

    Attributes:
        line: 1-based line on which it begins.
        cells: its fields, without the quotes around them.
    """

    line: int
    cells: tuple[str, ...]


@dataclass(frozen=True)
class Grid:
    """A file of delimited text.

    Attributes:
        columns: their names.
        rows: cells, one tuple a record.
        has_header: the names stand in the first line.
        before: comment lines before everything.
        mark: what stands between fields.
        quoted: double quotes may enclose a field.
    """

    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    has_header: bool = True
    before: str = ""
    mark: str = ","
    quoted: bool = True

    @property
    def first_line(self) -> int:
        """Line of the first record, where every record is one line."""
        return 1 + self.before.count("\n") + self.has_header

    def line_of(self, cells: tuple[str, ...], raw: int = -1) -> str:
        """Return a record's text; the cell ``raw`` stands as it is, whatever it holds."""
        return self.mark.join(
            cell if place == raw else self.cell_of(cell) for place, cell in enumerate(cells)
        )

    def cell_of(self, cell: str) -> str:
        """Return a cell as a careful writer puts it."""
        if self.quoted and any(c in cell for c in (self.mark, '"', "\n", "\r")):
            return '"' + cell.replace('"', '""') + '"'
        return cell

    def text(self, raw: tuple[int, int] = (-1, -1)) -> str:
        """Return the whole file; the cell ``raw`` (record, column) stands as it is."""
        lines = [self.line_of(self.columns)] if self.has_header else []
        lines += [
            self.line_of(cells, raw[1] if number == raw[0] else -1)
            for number, cells in enumerate(self.rows)
        ]
        return self.before + "".join(f"{line}\n" for line in lines)

    def with_cell(self, row: int, column: int, text: str) -> Grid:
        """Return the same table with another text in one cell."""
        cells = list(self.rows[row])
        cells[column] = text
        return replace(self, rows=(*self.rows[:row], tuple(cells), *self.rows[row + 1 :]))


def grid(text: str, *, mark: str = ",", quoted: bool = True, columns: str = "") -> Grid:
    """Return the grid of a well-formed text.

    Args:
        text: comment lines (``;`` or ``#``), a header line, records.
        mark: what stands between fields.
        quoted: double quotes may enclose a field.
        columns: names, separated by blanks, of a file without a header line.
    """
    lines = text.splitlines(keepends=True)
    comments = [line for line in lines if line.startswith((";", "#"))]
    found = [r.cells for r in records(text[len("".join(comments)) :], mark, quoted=quoted)]
    names = tuple(columns.split()) or found.pop(0)
    return Grid(names, tuple(found), not columns, "".join(comments), mark, quoted)


def records(text: str, mark: str, *, quoted: bool) -> list[Record]:
    """Return the records of a text; lines without a character are none.

    A quote opens a field where it is its first character, and is text elsewhere.
    """
    pieces = re.findall(rf'[^{re.escape(mark)}"\r\n]+|\r\n|.', text, re.DOTALL)
    return _Splitter(mark, quoted=quoted).split(pieces)


class _Splitter:
    """What is known of a text up to the piece that comes next."""

    def __init__(self, mark: str, *, quoted: bool) -> None:
        self.mark = mark
        self.quoted = quoted
        self.found: list[Record] = []
        self.cells: list[str] = []
        self.field: list[str] = []
        self.line = self.first = 1
        self.inside = self.had_quotes = False

    def split(self, pieces: list[str]) -> list[Record]:
        place = 0
        while place < len(pieces):
            piece = pieces[place]
            self.line += piece in _ENDS
            if not self.inside:
                self.outside_of_quotes(piece)
            elif piece != '"':
                self.field.append(piece)
            elif pieces[place + 1 : place + 2] == ['"']:
                self.field.append('"')
                place += 1
            else:
                self.inside = False
            place += 1
        self.end_record()
        return self.found

    def outside_of_quotes(self, piece: str) -> None:
        if piece == '"' and self.quoted and not self.field:
            self.inside = self.had_quotes = True
        elif piece == self.mark:
            self.end_cell()
        elif piece in _ENDS:
            self.end_record()
            self.first, self.had_quotes = self.line, False
        else:
            self.field.append(piece)

    def end_cell(self) -> None:
        self.cells.append("".join(self.field))
        self.field.clear()

    def end_record(self) -> None:
        self.end_cell()
        if len(self.cells) > 1 or self.cells[0] or self.had_quotes:
            self.found.append(Record(self.first, tuple(self.cells)))
        self.cells.clear()
