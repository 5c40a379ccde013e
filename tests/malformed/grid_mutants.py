"""Changes to cells, columns and rows of delimited text."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from bad_cells import PLAIN, QUOTED
from hypothesis import strategies as st
from mutants import Mutant, changed, shown

if TYPE_CHECKING:
    from collections.abc import Callable

    from grids import Grid
    from samples import Sample

_SURROGATE = "surrogatepass"
_PLACE = st.integers(0, 10_000)


@st.composite
def of_cell(draw: st.DrawFn, sample: Sample) -> Mutant:
    """Draw a sample with one cell replaced, written as a careful writer would where that can be."""
    given = sample.grid
    assert given is not None
    row = draw(st.integers(0, len(given.rows) - 1))
    column = draw(st.integers(0, len(given.columns) - 1))
    text = draw(st.one_of(st.sampled_from(PLAIN), st.sampled_from(PLAIN + QUOTED),
                          st.text(max_size=8), st.floats().map(repr),
                          st.integers().map(str)))  # fmt: skip
    change = f"record {row}, column {given.columns[column]}: {shown(text)}"
    data = given.with_cell(row, column, text).text().encode(errors=_SURROGATE)
    kept = (row, given.columns[column]) if _is_one_cell(given, text) else None
    return Mutant(data, change, cell=kept)


@st.composite
def of_raw_cell(draw: st.DrawFn, sample: Sample) -> Mutant:
    """Draw a sample with one cell replaced by a text as it stands: it may tear the row apart."""
    given = sample.grid
    assert given is not None
    row = draw(st.integers(0, len(given.rows) - 1))
    column = draw(st.integers(0, len(given.columns) - 1))
    text = draw(st.sampled_from(QUOTED))
    data = given.with_cell(row, column, text).text(raw=(row, column)).encode()
    return Mutant(data, f"record {row}, column {given.columns[column]}: raw {shown(text)}")


def _is_one_cell(given: Grid, text: str) -> bool:
    """Return whether a record with this cell still has its fields, on one line or in quotes."""
    if any("\ud800" <= c <= "\udfff" for c in text) or "\0" in text:
        return False
    torn = "\r\n" if given.quoted else f'{given.mark}\r\n\t\v\f\x1c\x1d\x1e\x85\u2028\u2029 "'
    return not any(c in text for c in torn)


def _header(change: Callable[[list[str], int], None]) -> Callable[[Grid, int, int], Grid]:
    def changed_header(given: Grid, at: int, _: int) -> Grid:
        names = list(given.columns)
        change(names, at % len(names))
        return replace(given, columns=tuple(names))

    return changed_header


def _set(names: list[str], at: int, name: str) -> None:
    names[at] = name


def _swap(names: list[str], at: int) -> None:
    other = (at + 1) % len(names)
    names[at], names[other] = names[other], names[at]


def _row(change: Callable[[list[str], int], object]) -> Callable[[Grid, int, int], Grid]:
    def changed_row(given: Grid, at: int, other: int) -> Grid:
        row = at % len(given.rows)
        cells = list(given.rows[row])
        change(cells, other % len(cells))
        return replace(given, rows=(*given.rows[:row], tuple(cells), *given.rows[row + 1 :]))

    return changed_row


def _column(change: Callable[[list[str], int], object]) -> Callable[[Grid, int, int], Grid]:
    def changed_column(given: Grid, at: int, _: int) -> Grid:
        place = at % len(given.columns)
        names = list(given.columns)
        change(names, place)
        rows = []
        for cells in given.rows:
            listed = list(cells)
            change(listed, place)
            rows.append(tuple(listed))
        return replace(given, columns=tuple(names), rows=tuple(rows))

    return changed_column


def _rows(change: Callable[[list[tuple[str, ...]], int, int], object]) -> Callable[..., Grid]:
    def changed_rows(given: Grid, at: int, other: int) -> Grid:
        rows = list(given.rows)
        change(rows, at % len(rows), other % len(rows))
        return replace(given, rows=tuple(rows))

    return changed_rows


def _exchange(rows: list[tuple[str, ...]], at: int, other: int) -> None:
    rows[at], rows[other] = rows[other], rows[at]


#: Changes to a table: (the table, two numbers) -> another.
CHANGES: dict[str, Callable[[Grid, int, int], Grid]] = {
    "rename a column": _header(lambda names, at: _set(names, at, f"{names[at]}x")),
    "a column without a name": _header(lambda names, at: _set(names, at, "")),
    "a column in capitals": _header(lambda names, at: _set(names, at, names[at].upper())),
    "blanks around a name": _header(lambda names, at: _set(names, at, f" {names[at]} ")),
    "a name with control characters": _header(lambda names, at: _set(names, at, "\x1b[31m\x07")),
    "a name of a million characters": _header(lambda names, at: _set(names, at, "n" * 10**6)),
    "a name twice": _header(lambda names, at: _set(names, at, names[at - 1])),
    "swap names": _header(_swap),
    "one name less": _header(lambda names, at: names.pop(at)),
    "one name more": _header(lambda names, at: names.insert(at, "more")),
    "all names in capitals": lambda given, *_: replace(
        given, columns=tuple(name.upper() for name in given.columns)
    ),
    "no header": lambda given, *_: replace(given, has_header=False),
    "a header where none is": lambda given, *_: replace(given, has_header=True),
    "header again": lambda given, at, _: replace(
        given,
        rows=(*given.rows[: at % 5], given.columns, *given.rows[at % 5 :]),
    ),
    "one cell less": _row(lambda cells, at: cells.pop(at)),
    "one cell more": _row(lambda cells, at: cells.insert(at, "")),
    "one cell twice": _row(lambda cells, at: cells.insert(at, cells[at])),
    "swap cells": _row(_swap),
    "all cells empty": _row(lambda cells, _: cells.__setitem__(slice(None), [""] * len(cells))),
    "one cell alone": _row(lambda cells, at: cells.__setitem__(slice(None), [cells[at]])),
    "drop a column": _column(lambda cells, at: cells.pop(at)),
    "a column twice": _column(lambda cells, at: cells.insert(at, cells[at])),
    "swap columns": _column(_swap),
    "empty a column": lambda given, at, _: replace(
        given,
        rows=tuple(
            (*cells[: at % len(cells)], "", *cells[at % len(cells) + 1 :]) for cells in given.rows
        ),
    ),
    "drop a row": _rows(lambda rows, at, _: rows.pop(at)),
    "a row twice": _rows(lambda rows, at, other: rows.insert(other, rows[at])),
    "swap rows": _rows(_exchange),
    "reverse the rows": _rows(lambda rows, *_: rows.reverse()),
    "no rows": lambda given, *_: replace(given, rows=()),
    "one row": lambda given, at, _: replace(given, rows=given.rows[at % 5 : at % 5 + 1]),
    "comments gone": lambda given, *_: replace(given, before=""),
}


@st.composite
def of_table(draw: st.DrawFn, sample: Sample) -> Mutant:
    """Draw a sample with columns or rows changed, and perhaps a change of bytes behind it."""
    given = sample.grid
    assert given is not None
    kind, at, other = draw(st.sampled_from(list(CHANGES))), draw(_PLACE), draw(_PLACE)
    data = CHANGES[kind](given, at, other).text().encode()
    start = Mutant(data, f"{sample.name}; {kind} ({at}, {other})")
    return draw(changed(start)) if draw(st.integers(0, 4)) == 0 else start
