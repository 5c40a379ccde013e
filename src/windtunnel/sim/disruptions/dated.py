"""`DatedDisruptions`: a description whose times are dates of the site's clock, as people plan them.

They are put on a trace's clock before anything is flown; so far they are kept as the seconds that
the site's own clock shows since 1970.
"""

from __future__ import annotations

from datetime import UTC, date, datetime, time
from typing import TYPE_CHECKING, Any

import msgspec

from windtunnel.errors import SpecError, quote
from windtunnel.sim.disruptions.spec import Disruptions

if TYPE_CHECKING:
    from collections.abc import Callable

#: Where times stand.
_TABLES = ("node_failures", "maintenance", "capacity_changes", "reservations")
_TIMES = ("start", "end", "time", "until")


class DatedDisruptions(Disruptions, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Disruptions whose failures, outages, changes and reservations have dates."""

    def at(self, time_of: Callable[[float], float]) -> Disruptions:
        """Return the disruptions on a trace's clock; what was over before its time 0 is left out.

        Args:
            time_of: seconds that the site's clock shows since 1970 -> the trace's time, s.
        """
        data = msgspec.structs.asdict(self)
        for table in _TABLES:
            moved = (_moved(part, time_of) for part in data[table])
            data[table] = tuple(part for part in moved if part is not None)
        return Disruptions(**data)


def _moved(part: Any, time_of: Callable[[float], float]) -> Any:
    given = ((name, getattr(part, name, None)) for name in _TIMES)
    times = {name: time_of(at) for name, at in given if at is not None}
    if times.get("end", times.get("until", 1.0)) <= 0:
        return None
    return msgspec.structs.replace(part, **{name: max(at, 0.0) for name, at in times.items()})


def disruptions_of(raw: dict[str, Any], source: str = "$") -> Disruptions:
    """Build a description from plain data, as `Disruptions.from_mapping`; times may be dates.

    Raises:
        SpecError: as there; some times are dates and others are not; or a date has an offset.
    """
    plain, dated = _without_dates(raw, source)
    return (DatedDisruptions if dated else Disruptions).from_mapping(plain, source=source)


def _without_dates(raw: dict[str, Any], source: str) -> tuple[dict[str, Any], bool]:
    """Return the data with dates as seconds of the site's clock, and whether there are any."""
    found = dict(raw)
    plain, dated = [], False
    for table in _TABLES:
        rows = raw.get(table)
        if not isinstance(rows, list | tuple) or not all(isinstance(row, dict) for row in rows):
            continue
        found[table] = [dict(row) for row in rows]
        for at, row in enumerate(found[table]):
            for name in _TIMES:
                where = f"{source}: {table}[{at}].{name}"
                seconds = _wall_seconds(row.get(name), where)
                if seconds is not None:
                    row[name], dated = seconds, True
                elif row.get(name) is not None:
                    plain.append((where, row[name]))
    if dated and plain:
        where, value = plain[0]
        raise SpecError(where, f"found {quote(value)}; expected a date, as other times here are.")
    return (found, True) if dated else (raw, False)


def _wall_seconds(value: Any, where: str) -> float | None:
    if isinstance(value, str) and value[4:5] == "-":
        try:
            value = datetime.fromisoformat(value)
        except ValueError:
            return None
    if isinstance(value, date) and not isinstance(value, datetime):
        value = datetime.combine(value, time())
    if not isinstance(value, datetime):
        return None
    if value.tzinfo is not None:
        message = f"found {quote(value)}; expected a date of the site's clock, without an offset."
        raise SpecError(where, message)
    return value.replace(tzinfo=UTC).timestamp()
