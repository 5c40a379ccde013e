"""Any column of a jobs table as numbers: what orders, deadlines and shares are read from."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from windtunnel.errors import SpecError, quote

#: Columns of times, s, that a job's user set when submitting it.
DATED: tuple[str, ...] = ("eligible_time", "deadline")


def real_numbers(given: Any) -> np.ndarray:
    """Return what somebody's own function gave as float64, of any shape.

    Raises:
        TypeError, ValueError, OverflowError: it is no array of real numbers.
    """
    found = np.asarray(given)
    if found.dtype.kind not in "biufO":
        raise TypeError(f"they are of type {found.dtype}")
    return found.astype(np.float64)


def numeric_column(table: pa.Table, name: str, where: str, what: str = "numbers") -> np.ndarray:
    """Return a column as float64, shape (rows,), NaN where it is null.

    Text that reads as numbers throughout counts as numbers: further columns of a CSV file are kept
    as text (`windtunnel.traces.native`).

    Args:
        table: a jobs table that has the column.
        name: the column.
        where: who asks, for the message.
        what: what is expected, for the message.

    Raises:
        SpecError: the column holds something else; names the first row of text that is no number.
    """
    column = table[name]
    kind = column.type
    if pa.types.is_null(kind) or pa.types.is_integer(kind) or pa.types.is_floating(kind):
        return np.asarray(column.cast(pa.float64(), safe=False).to_numpy(), dtype=np.float64)
    if pa.types.is_string(kind) or pa.types.is_large_string(kind):
        try:
            return np.asarray(column.cast(pa.float64()).to_numpy(), dtype=np.float64)
        except pa.ArrowInvalid:
            row, value = _first_word(column)
            found = f"the column {quote(name)} holds {quote(value)} in row {row:,}"
            raise SpecError(where, f"{found}; expected {what}.") from None
    raise SpecError(where, f"the column {quote(name)} holds {kind}; expected {what}.")


def with_numbers(table: pa.Table, name: str, values: np.ndarray) -> pa.Table:
    """Return a table with other numbers in a column that it has, float64, NaN as null.

    Args:
        table: a jobs table that has the column.
        name: the column.
        values: Float array (rows,).
    """
    at = table.column_names.index(name)
    field = table.schema.field(at).with_type(pa.float64())
    return table.set_column(at, field, pa.array(values, pa.float64(), from_pandas=True))


def submitted_at(table: pa.Table, submit: np.ndarray) -> pa.Table:
    """Return jobs that are submitted at other times; what is dated by that moves with them.

    Args:
        table: a jobs table.
        submit: s, NaN = not known; shape (rows,).

    Raises:
        SpecError: `DATED` columns hold no numbers.
    """
    later = submit - numeric_column(table, "submit_time", "submit_time")
    for name in DATED:
        if name in table.column_names:
            table = with_numbers(table, name, numeric_column(table, name, name) + later)
    return with_numbers(table, "submit_time", submit)


def _first_word(column: pa.ChunkedArray) -> tuple[int, str]:
    """Return the first row, from 1, whose text is no number, and the text."""
    for row, value in enumerate(column, 1):
        try:
            value.cast(pa.float64())
        except pa.ArrowInvalid:
            return row, str(value.as_py())
    raise AssertionError  # the whole column did not cast
