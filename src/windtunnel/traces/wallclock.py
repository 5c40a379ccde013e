"""Wall-clock times of a source and the seconds of the simulator.

A site's log prints local time, often without a zone. Twice a year that is not a number line: an
hour is skipped in spring and repeated in autumn. `to_utc` says which of its inputs stand in the
repeated hour, so that a reader can tell its user.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

import numpy as np
import pyarrow as pa

from windtunnel.errors import SpecError, TraceError, quote

if TYPE_CHECKING:
    from collections.abc import Callable

#: Offsets from UTC change on multiples of this, in every zone since 1970.
_SLOT_S = 900
_MICROSECONDS = 1_000_000
#: The first second of year 1: before it no calendar of Python's reaches, but Arrow parses year 0.
FIRST_SECOND = -62_135_596_800.0


class OddTimeError(ValueError):
    """A text is no time; `row` says which, from 0."""

    def __init__(self, row: int) -> None:
        super().__init__(row)
        self.row = row


def read_times(cells: pa.Array | pa.ChunkedArray, *, zoned: bool = False) -> np.ndarray:
    """Return texts as seconds since 1970, of their own wall clock or, with an offset, of UTC.

    Args:
        cells: strings as YYYY-MM-DD HH:MM:SS, null = unknown, shape (rows,).
        zoned: they have an offset from UTC behind them.

    Returns:
        float64, shape (rows,), NaN = unknown.

    Raises:
        OddTimeError: one is no such time, or before year 1.
    """
    kind = pa.timestamp("us", "UTC" if zoned else None)
    try:
        moments = cells.cast(kind).cast(pa.int64()).cast(pa.float64(), safe=False)
    except pa.ArrowInvalid as error:
        raise OddTimeError(first_failure(cells, kind)) from error
    array = moments.combine_chunks() if isinstance(moments, pa.ChunkedArray) else moments
    seconds = np.asarray(array.to_numpy(zero_copy_only=False)) / _MICROSECONDS
    early = np.flatnonzero(seconds < FIRST_SECOND)
    if len(early):
        raise OddTimeError(int(early[0]))
    return seconds


def first_failure(cells: pa.Array | pa.ChunkedArray, kind: pa.DataType) -> int:
    """Return the first index whose value does not cast, by bisection; one does not."""
    low, high = 0, len(cells)
    while high - low > 1:
        middle = (low + high) // 2
        try:
            cells.slice(low, middle - low).cast(kind)
        except pa.ArrowInvalid:
            high = middle
        else:
            low = middle
    return low


def zone_info(zone: str) -> ZoneInfo:
    """Return the zone of an IANA name.

    Raises:
        SpecError: there is no such zone on this machine.
    """
    try:
        return ZoneInfo(zone)
    except (ZoneInfoNotFoundError, ValueError, OSError) as error:
        raise SpecError(
            "zone",
            f"unknown time zone {quote(zone)}; expected an IANA name such as America/Los_Angeles "
            "(pip install tzdata where the system has no zone files)",
        ) from error


def to_utc(local: np.ndarray, zone: str) -> tuple[np.ndarray, np.ndarray]:
    """Turn local wall-clock times into UTC instants.

    A time in the repeated hour of autumn counts as its first pass (summer time); `second_pass`
    gives the other reading. A time in the skipped hour of spring is read with the offset before
    the change.

    Args:
        local: float64, shape (rows,): wall-clock time as seconds since 1970-01-01 00:00 on the
            same wall clock; NaN = unknown.

    Returns:
        UTC seconds since 1970, float64, shape (rows,), NaN kept; and which times are ambiguous,
        bool, shape (rows,).

    Raises:
        SpecError: there is no such zone.
    """
    first = _offsets(local, zone, fold=0)
    second = _offsets(local, zone, fold=1)
    return local - first, first > second


def second_pass(local: np.ndarray, zone: str) -> np.ndarray:
    """Return what `to_utc` returns first, with ambiguous times read as their second pass."""
    instants: np.ndarray = local - _offsets(local, zone, fold=1)
    return instants


def _offsets(local: np.ndarray, zone: str, *, fold: int) -> np.ndarray:
    """Return the offset from UTC in seconds at each local time, shape (rows,)."""
    info = zone_info(zone)
    known = np.isfinite(local)
    slots, inverse = np.unique(np.floor(local[known] / _SLOT_S), return_inverse=True)
    at: Callable[[float], float] = lambda slot: _offset(slot * _SLOT_S, info, fold)  # noqa: E731
    table = np.fromiter(map(at, slots.tolist()), np.float64, len(slots))
    offsets = np.full(len(local), np.nan)
    offsets[known] = table[inverse]
    return offsets


def _offset(seconds: float, info: ZoneInfo, fold: int) -> float:
    moment = datetime(1970, 1, 1) + timedelta(seconds=seconds)  # noqa: DTZ001 (a wall clock)
    offset = moment.replace(tzinfo=info, fold=fold).utcoffset()
    return 0.0 if offset is None else offset.total_seconds()


def iso(seconds: float) -> str:
    """Return a UTC instant as ISO 8601 text.

    >>> iso(0)
    '1970-01-01T00:00:00+00:00'
    """
    # Whole microseconds first: float seconds since 1970 carry about a quarter of one.
    whole, part = divmod(round(seconds * _MICROSECONDS), _MICROSECONDS)
    moment = datetime.fromtimestamp(whole, UTC) + timedelta(microseconds=part)
    return moment.isoformat()


def named_epoch(file: str, epoch: float | None) -> str | None:
    """Return an epoch (UTC seconds since 1970) as ISO 8601 text, None where there is none.

    Raises:
        TraceError: its year has no such text.
    """
    if epoch is None:
        return None
    try:
        return iso(epoch)
    except (ValueError, OverflowError, OSError) as error:
        raise TraceError(
            file,
            "times of the years 1 to 9999, in UTC",
            column="submit_time",
            hint="The earliest of the column is not.",
        ) from error


def repeated_hour_note(count: int, zone: str) -> str:
    """Return the sentence on times in the hour that autumn's clock change repeats."""
    return (
        f"{count:,} wall-clock times fall into the hour that the end of summer time in {zone} "
        "repeats and are read as its first pass."
    )
