"""The wall clock of a trace: from seconds since its epoch to hours, weekdays and months there.

The offset of a zone from UTC is constant between two changes of the clock; the changes that lie in
a trace are looked up once, and the rest is arithmetic that every backend does alike. A trace
without an epoch (relative times) counts its time 0 as a Monday's midnight, UTC.
"""

from __future__ import annotations

import itertools
import math
from bisect import bisect_right
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

from windtunnel.characterize.grids import steps
from windtunnel.errors import SpecError, quote
from windtunnel.traces.wallclock import zone_info

if TYPE_CHECKING:
    from zoneinfo import ZoneInfo

HOUR = 3_600
DAY = 86_400
#: Monday 1970-01-05: where time 0 lies that has no date.
_NO_DATE = 4 * DAY
_ZERO = datetime(1970, 1, 1, tzinfo=UTC)
#: Years 2 to 9998: what Python's calendar can do in every zone.
_FIRST = (datetime(2, 1, 1, tzinfo=UTC) - _ZERO).total_seconds()
_LAST = (datetime(9998, 12, 31, tzinfo=UTC) - _ZERO).total_seconds()
#: A trace of more years than this is not drawn by its calendar.
_MAX_YEARS = 200


@dataclass(frozen=True)
class Clock:
    """The wall clock over one span of time.

    Attributes:
        zero: the epoch, s since 1970-01-01 UTC.
        changes: instants at which the offset changes, s since the epoch, rising.
        offsets: offsets from UTC in s: before the first change, after it, ...;
            ``len(changes) + 1``.
    """

    zero: float
    changes: tuple[float, ...]
    offsets: tuple[float, ...]

    def local(self, time: float) -> float:
        """Return the wall clock at a time (s since the epoch) as s since 1970 of that clock."""
        return self.zero + time + self.offsets[bisect_right(self.changes, time)]

    def local_of(self, time: Any) -> Any:
        """Return `local` of an Ibis column."""
        return time + self.zero + steps(time, self.changes, self.offsets)

    def pieces(self, first: float, last: float) -> list[tuple[float, float, float]]:
        """Return (from, until, shift) between two times: times of the trace of one offset each.

        ``shift`` added to a time (s since the epoch) is the wall clock, s since 1970.
        """
        cuts = [first, *(c for c in self.changes if first < c < last), last]
        return [(start, end, self.local(start) - start) for start, end in itertools.pairwise(cuts)]

    def time_of(self, local: float) -> float:
        """Return the first time (s since the epoch) at which the wall clock shows ``local``.

        Where the clock skips it, the time with the offset before the change.
        """
        times = [local - self.zero - offset for offset in self.offsets]
        fits = [time for time in times if self.local(time) == local]
        return min(fits) if fits else max(times)


def clock(epoch: str | None, zone: str | None, first: float, last: float) -> Clock:
    """Return the wall clock of a trace between two of its times.

    Args:
        epoch: UTC instant of time 0 as ISO 8601 text (`TraceMetadata.epoch`); None = a Monday's
            midnight.
        zone: IANA zone (`TraceMetadata.zone`); None = UTC.
        first: earliest time asked about, s since the epoch.
        last: latest.

    Raises:
        SpecError: the epoch is not such text, there is no such zone, or the times lie outside the
            calendar.
    """
    zero = epoch_seconds(epoch)
    begin, end = zero + first, zero + last
    fits = begin >= _FIRST and end <= _LAST and end - begin <= _MAX_YEARS * 366 * DAY
    if not fits:
        raise SpecError(
            "zone",
            f"expected times within the calendar and {_MAX_YEARS} years of each other; they reach "
            f"from {quote(first)} to {quote(last)} s after {epoch or 'a Monday'}.",
        )
    if zone is None:
        return Clock(zero, (), (0.0,))
    info = zone_info(zone)
    changes: list[float] = []
    offsets = [_offset(begin, info)]
    day = begin
    while day < end:
        after = min(day + DAY, end)
        if _offset(after, info) != offsets[-1]:
            change = _change(day, after, info)
            changes.append(change - zero)
            offsets.append(_offset(change, info))
        day = after
    return Clock(zero, tuple(changes), tuple(offsets))


def month_starts(first: float, last: float) -> list[float]:
    """Return where the months from ``first`` to ``last`` begin, all s since 1970 of a clock."""
    moment = _ZERO + timedelta(seconds=math.floor(first))
    month = moment.replace(day=1, hour=0, minute=0, second=0)
    starts = []
    while (start := (month - _ZERO).total_seconds()) <= last:
        starts.append(start)
        month = (month + timedelta(days=32)).replace(day=1)
    return starts


def wall_text(local: float, form: str) -> str:
    """Return a wall-clock time (s since 1970 of that clock) in a form of ``strftime``."""
    return (_ZERO + timedelta(seconds=local)).strftime(form)


def epoch_seconds(epoch: str | None) -> float:
    """Return an epoch as s since 1970-01-01 UTC; that of None is a Monday's midnight.

    Raises:
        SpecError: it is not ISO 8601 text with an offset from UTC.
    """
    if epoch is None:
        return _NO_DATE
    try:
        moment = datetime.fromisoformat(epoch)
    except ValueError as error:
        raise SpecError(
            "epoch", f"expected a time such as 2023-03-01T00:00:00+00:00, not {quote(epoch)}."
        ) from error
    if moment.tzinfo is None:
        raise SpecError("epoch", f"expected a time with its offset from UTC, not {quote(epoch)}.")
    return (moment - _ZERO).total_seconds()


def _offset(seconds: float, info: ZoneInfo) -> float:
    """Return the offset from UTC, s, at an instant (s since 1970)."""
    offset = (_ZERO + timedelta(seconds=seconds)).astimezone(info).utcoffset()
    return 0.0 if offset is None else offset.total_seconds()


def _change(before: float, after: float, info: ZoneInfo) -> float:
    """Return the whole second from which on the offset is another one than at ``before``."""
    low, high = math.floor(before), math.ceil(after)
    old = _offset(low, info)
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if _offset(middle, info) == old else (low, middle)
    return float(high)
