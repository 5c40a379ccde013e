"""Columns as data: heading, key of the rows, how a value is shown; and tables made of them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from windtunnel.report.format import UNKNOWN, count, plural
from windtunnel.report.names import clean
from windtunnel.report.sections import Cell, Line, Table

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    Row = Mapping[str, Any]
    #: (heading, key of the rows, what shows a value: as a text, or as a whole cell); where the key
    #: is empty it is given the whole row.
    Columns = Sequence[tuple[str, str, Callable[[Any], str | Cell]]]

#: Rows of a table of names; the rest is one row.
TOP = 15


def cells_of(columns: Columns, row: Row) -> list[Cell]:
    """Return a row's cells."""
    shown = (show(row[key] if key else row) for _, key, show in columns)
    return [one if isinstance(one, Cell) else Cell(one) for one in shown]


def rows_table(
    corner: str,
    columns: Columns,
    rows: Iterable[Row],
    by: str,
    label: Callable[[Any], str] = clean,
) -> Table:
    """Return a table, a row a row.

    Args:
        corner: heading of the names.
        columns: the others.
        rows: with the columns' keys, in order.
        by: key of the rows' names.
        label: what a name is called.
    """
    lines = [Line(label(row[by]), cells_of(columns, row)) for row in rows]
    return Table(corner, [head for head, _, _ in columns], lines)


def top_table(
    corner: str,
    columns: Columns,
    rows: Sequence[Row],
    by: str,
    rest: Callable[[Any], Row],
) -> Table:
    """Return a table of the first rows, and one for all others together.

    Args:
        corner: heading of the names.
        columns: the others.
        rows: in order.
        by: key of the rows' names.
        rest: adds up rows into one.
    """
    table, others = rows_table(corner, columns, rows[:TOP], by), rows[TOP:]
    if others:
        table.lines.append(Line(plural(len(others), "other"), cells_of(columns, rest(others))))
    return table


def runs_table(
    corner: str,
    runs: Mapping[str, Iterable[Row]],
    by: str,
    columns: Columns,
    *,
    order: Callable[[set[str]], list[str]] | None = None,
    label: Callable[[str], str] = clean,
) -> Table:
    """Return a row a name, and for each run the same columns of it; dashes where it has no row.

    Args:
        corner: heading of the names.
        runs: run -> its rows.
        by: key of the rows' names.
        columns: of each run.
        order: of the names; None = as they come.
        label: what a name is called.
    """
    tables = [{row[by]: row for row in rows} for rows in runs.values()]
    names = dict.fromkeys(name for table in tables for name in table)
    dashes = [Cell(UNKNOWN)] * len(columns)
    lines = [
        Line(
            label(name),
            [
                cell
                for table in tables
                for cell in (cells_of(columns, table[name]) if name in table else dashes)
            ],
        )
        for name in (order(set(names)) if order else names)
    ]
    return Table(corner, list(runs), lines, under=[head for head, _, _ in columns])


def most(number: int, nouns: str) -> str:
    """Return which rows a picture shows.

    >>> most(4, "users"), most(400, "users")
    ('All 4 users', 'The 15 of 400 users with most')
    """
    if number <= TOP:
        return f"All {count(number)} {nouns}"
    return f"The {TOP} of {count(number)} {nouns} with most"
