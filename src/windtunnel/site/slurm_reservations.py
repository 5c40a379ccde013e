"""Read advance reservations as ``scontrol show reservation`` prints them, one line each or several.

Their times are dates on the site's clock; `windtunnel.site.slurm_changes.site_at` puts them on a
trace's.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime

from windtunnel.errors import TraceError
from windtunnel.site.host_list import hosts
from windtunnel.site.slurm import SlurmReservation
from windtunnel.site.slurm_words import words

_BEGIN = re.compile(r"(?=\bReservationName=)")
_PEOPLE = ("Users", "Accounts", "Flags")
_REPEATED = {"HOURLY", "DAILY", "WEEKDAY", "WEEKEND", "WEEKLY"}
_NONE = "No reservations in the system"
_PAIR = re.compile(r"(\w+)=(\S*)")


def read_reservations(text: str, file: str, nodes: tuple[str, ...]) -> tuple[SlurmReservation, ...]:
    """Return the reservations that a text tells of.

    Args:
        text: what scontrol printed; "No reservations in the system" is none.
        file: what to call it in messages.
        nodes: the site's, which ``Nodes=ALL`` means.

    Raises:
        TraceError: a reservation has no name, dates or nodes, names nodes that are not there, or
            comes again; or the text tells of no reservation.
    """
    found = []
    before, *records = _BEGIN.split(text)
    if before.strip() not in {"", _NONE}:
        raise TraceError(file, "ReservationName=..., as scontrol show reservation prints it", row=1,
                         value=before.strip().splitlines()[0])  # fmt: skip
    for record in records:
        fields = dict(_PAIR.findall(record))
        name = fields["ReservationName"]
        row = text[: text.index(record)].count("\n") + 1
        start, end = (
            _date(fields.get(key, ""), file, row, key) for key in ("StartTime", "EndTime")
        )
        try:
            mine = (
                nodes if fields.get("Nodes", "").upper() == "ALL" else tuple(hosts(fields["Nodes"]))
            )
        except (KeyError, ValueError):
            mine = ()
        lacking = sorted(set(mine) - set(nodes))
        if not name or not mine or lacking:
            value = ",".join(lacking) or fields.get("Nodes", "")
            raise TraceError(file, "a name, and nodes of the site", row=row, column="Nodes",
                             value=value)  # fmt: skip
        if not end > start:
            raise TraceError(file, "an end after the start", row=row, column="EndTime",
                             value=fields["EndTime"])  # fmt: skip
        users, accounts, flags = (words(fields.get(key, "")) for key in _PEOPLE)
        if flags & _REPEATED:
            what = "a reservation of one date; write each time that it comes as one of its own"
            raise TraceError(file, what, row=row, column="Flags", value=fields["Flags"])
        found.append(
            SlurmReservation(name, mine, start, end, users, accounts, flags, is_dated=True)
        )
    return tuple(found)


def _date(text: str, file: str, row: int, column: str) -> float:
    """Return a date as seconds since 1970 on the same clock."""
    try:
        return datetime.fromisoformat(text).replace(tzinfo=UTC).timestamp()
    except ValueError as error:
        what = "a date as 2025-01-31T08:00:00"
        raise TraceError(file, what, row=row, column=column, value=text) from error
