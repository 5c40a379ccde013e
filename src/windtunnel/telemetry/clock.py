"""Times of telemetry as UTC seconds since 1970: seconds, ISO text, or a wall clock.

Exporters write all three, and the published files differ from the raw ones in exactly this, so the
form is read from the cells of each block: numbers are seconds since 1970, text with an offset is
an instant, text without one is the wall clock of a zone.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from windtunnel.errors import SpecError, TraceError, quote
from windtunnel.traces.wallclock import FIRST_SECOND, to_utc

if TYPE_CHECKING:
    from collections.abc import Callable

#: Seconds since 1970 beyond this (year 5138) are milliseconds.
LAST_SECOND = 1e11
_INSTANT = pa.timestamp("us", "UTC")
_WALL = pa.timestamp("us")
#: Forms of a time, in the order in which they are tried.
_FORMS = (pa.float64(), _INSTANT, _WALL)
#: Rows that are asked which form is the file's, where not all rows have one.
_ASKED = 101


def moments(
    cells: pa.ChunkedArray, zone: str, *, file: str, column: str, line: Callable[[int], int]
) -> np.ndarray:
    """Return times as UTC seconds since 1970.

    Args:
        cells: strings, shape (rows,), all of one form.
        zone: IANA zone of times without an offset.
        line: row in ``cells`` -> line of the file.

    Returns:
        float64, shape (rows,). A time in autumn's repeated hour is read as its first pass.

    Raises:
        TraceError: a cell is empty or none of the three; names line, column and value.
        SpecError: no such zone.
    """
    cells = pc.utf8_trim_whitespace(cells)
    if cells.null_count:
        row = pc.index(pc.is_null(cells), True).as_py()
        raise TraceError(file, "a time in every row", row=line(row), column=column)
    for kind in _FORMS:
        found = _cast(cells, kind)
        if found is not None:
            _check(found, cells, file, column, line)
            return to_utc(found, zone)[0] if kind is _WALL else found
    row = _odd_one(cells)
    raise TraceError(
        file,
        "times of one form: YYYY-MM-DD HH:MM:SS, with or without an offset, or seconds since 1970",
        row=line(row),
        column=column,
        value=cells[row].as_py(),
    )


def epoch_seconds(epoch: str | float | None, name: str = "epoch") -> float:
    """Return an instant that the user named as UTC seconds since 1970; None = 0.

    Args:
        epoch: ISO 8601 text with an offset (without one it is UTC), or seconds since 1970.

    Raises:
        SpecError: it is neither.

    >>> epoch_seconds("2023-03-01T00:00:00+08:00")
    1677600000.0
    """
    if epoch is None:
        return 0.0
    try:
        if isinstance(epoch, str):
            moment = datetime.fromisoformat(epoch)
            aware = moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)
            return aware.timestamp()
        seconds = float(epoch)
    except (ValueError, TypeError, OverflowError) as error:
        raise SpecError(
            name, f"found {quote(epoch)}; expected ISO 8601 text or seconds since 1970"
        ) from error
    if not abs(seconds) < LAST_SECOND:
        raise SpecError(name, f"found {quote(epoch)}; expected seconds since 1970")
    return seconds


def _check(
    seconds: np.ndarray, cells: pa.ChunkedArray, file: str, column: str, line: Callable[[int], int]
) -> None:
    odd = np.flatnonzero(~((seconds >= FIRST_SECOND) & (seconds < LAST_SECOND)))
    if len(odd):
        row = int(odd[0])
        raise TraceError(
            file,
            "a time of the years 1 to 5138; if it is a number, seconds since 1970, not "
            "milliseconds",
            row=line(row),
            column=column,
            value=cells[row].as_py(),
        )


def _cast(cells: pa.ChunkedArray, kind: pa.DataType) -> np.ndarray | None:
    """Return texts of a form as seconds; None = they are of another."""
    try:
        found = cells.cast(kind)
        if pa.types.is_timestamp(kind):
            return np.asarray(found.cast(pa.int64()).to_numpy()) / 1e6
        return np.asarray(found.to_numpy(), np.float64)
    except pa.ArrowInvalid:
        return None


def _odd_one(cells: pa.ChunkedArray) -> int:
    """Return the first row that is not a time of the form that most of the first rows have."""
    asked = cells.slice(0, _ASKED)
    counts = {kind: sum(_fits(cell, kind) for cell in asked) for kind in _FORMS}
    usual = max((*_FORMS[1:], _FORMS[0]), key=lambda kind: counts[kind])  # of equals the first
    return next(row for row, cell in enumerate(cells) if not _fits(cell, usual))


def _fits(cell: pa.Scalar, kind: pa.DataType) -> bool:
    try:
        cell.cast(kind)
    except pa.ArrowInvalid:
        return False
    return True
