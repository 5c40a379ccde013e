"""Series from files: two columns of one's own, or carbon as its publishers hand it out."""

from __future__ import annotations

import csv
import math
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from windtunnel.energy.intensity import Series
from windtunnel.errors import SpecError, TraceError, quote
from windtunnel.traces.json_text import json_value

if TYPE_CHECKING:
    from collections.abc import Sequence

#: g/kWh in a pound a MWh.
_POUND = 0.453_592_37
#: The latest time a row may have, s: more than 3,000 years.
_LATEST = 1e11


class Quantity(NamedTuple):
    """What a series is of.

    Attributes:
        words: what a value is, for messages.
        least, most: bounds of its values.
        is_carbon: files of Electricity Maps and WattTime are of it.
    """

    words: str
    least: float
    most: float
    is_carbon: bool = False


#: A kWh of brown coal alone is below 2,000 g.
CARBON = Quantity("gCO2eq per kWh", 0.0, 10_000.0, is_carbon=True)
#: Prices may be negative.
TARIFF = Quantity("money per kWh", -1e6, 1e6)
PRICE = Quantity("a price", 0.0, 1e6)
WATTS = Quantity("W", 0.0, 1e12)
#: What a shifted job goes by: carbon or money.
EITHER = Quantity("carbon or money per kWh", -1e6, 1e6, is_carbon=True)


class _Rows(NamedTuple):
    """A file's rows.

    Attributes:
        time, value: names of the columns, for messages.
        cells: (line, time, value) of each row, as text.
        scale: what its values are multiplied by.
    """

    time: str
    value: str
    cells: list[tuple[int | None, str, str]]
    scale: float = 1.0


def read_series(path: str | Path, of: Quantity = EITHER) -> Series:
    """Read a series from a file.

    A CSV file has a header and two columns, time and value. Times are seconds since the trace's
    epoch, or ISO 8601 timestamps, which count from the first row: time 0 of the trace is the file's
    first row then. Of carbon, the files of two publishers are read as they come: Electricity Maps'
    (CSV: life-cycle intensity; JSON: ``carbonIntensity``) and WattTime's (CSV or JSON: pounds a
    MWh become g a kWh). Such a file has one zone.

    Args:
        path: the file.
        of: what it is a series of.

    Raises:
        SpecError: the file cannot be read.
        TraceError: a row is not as described, or a value is out of bounds.
    """
    file = str(path)
    try:
        text = Path(path).read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise SpecError(file, f"cannot be read as text: {error}") from error
    if of.is_carbon and text.lstrip()[:1] == "{":
        return _series(file, _published_json(file, text), of)
    return _series(file, _csv_rows(file, text, of), of)


def parse_series(
    given: Series | str | float | Path, of: Quantity = EITHER, *, name: str = "series"
) -> Series:
    """Return the series that a value stands for: itself, a number per kWh, or a file.

    Raises:
        SpecError, TraceError: as `read_series`; or it is none of these, or a number out of bounds.
    """
    if isinstance(given, Series):
        return given
    if not isinstance(given, str | int | float | Path) or isinstance(given, bool):
        raise SpecError(name, f"found {quote(given)}; expected a number, a CSV file or a Series")
    value = _number(str(given))
    if value is None:
        return read_series(str(given), of)
    if not of.least <= value <= of.most:
        raise SpecError(name, f"found {given}; expected {_bounds(of)}, or a CSV file")
    return Series.constant(value, name)


def _csv_rows(file: str, text: str, of: Quantity) -> _Rows:
    reader = csv.reader(text.splitlines())
    try:
        lines = [(reader.line_num, row) for row in reader if row]
    except csv.Error as error:
        raise TraceError(file, "a line of CSV", row=reader.line_num, hint=f"({error})") from error
    if not lines[1:]:
        raise TraceError(file, "a header, two columns (time, value per kWh) and a row")
    names = [name.strip() for name in lines[0][1]]
    layout = _published_csv(names) if of.is_carbon else None
    if layout is None and len(names) != len(_OWN):
        raise TraceError(file, "a header, two columns (time, value per kWh) and a row")
    time, value, zone, scale = layout or (0, 1, None, 1.0)
    first = None
    cells: list[tuple[int | None, str, str]] = []
    for line, row in lines[1:]:
        if len(row) != len(names):
            what = "two fields" if layout is None else f"{len(names)} fields"
            raise TraceError(file, what, row=line, value=",".join(row))
        if zone is not None:
            first = first or row[zone]
            if row[zone] != first:
                what = f"one zone only ({first})"
                raise TraceError(file, what, row=line, column=names[zone], value=row[zone])
        cells.append((line, row[time], row[value]))
    return _Rows(names[time], names[value], cells, scale)


#: Columns of a file of one's own.
_OWN = ("time", "value per kWh")


def _published_csv(names: Sequence[str]) -> tuple[int, int, int | None, float] | None:
    """Return where a publisher's file has time, value and zone, and its unit; None = none of them.

    Electricity Maps' portal has changed the case of its headings, and calls a life cycle LCA or
    Life cycle. WattTime's have ``point_time`` and ``value``, or ``timestamp`` and ``MOER``.
    """
    known = {name.lower(): at for at, name in enumerate(names)}
    if "datetime (utc)" in known:
        of_life = (
            at
            for name, at in known.items()
            if name.startswith("carbon intensity") and name.endswith(("(life cycle)", "(lca)"))
        )
        value = next(of_life, None)
        if value is None:
            return None
        return known["datetime (utc)"], value, known.get("zone id", known.get("zone name")), 1.0
    for time, amount in (("point_time", "value"), ("timestamp", "moer")):
        if time in known and amount in known:
            return known[time], known[amount], known.get("region", known.get("ba")), _POUND
    return None


def _published_json(file: str, text: str) -> _Rows:
    """Return the rows of a publisher's answer."""
    what = "Electricity Maps' history or data, or WattTime's data with its meta"
    found = json_value(text.encode(), file)
    meta, given = found.get("meta"), found.get("data")
    if isinstance(meta, dict) and isinstance(given, list):
        units = meta.get("units")
        if units != "lbs_co2_per_mwh":
            raise TraceError(file, "lbs_co2_per_mwh", column="meta.units", value=units)
        return _Rows("point_time", "value", _cells(file, given, "point_time", "value"), _POUND)
    for name in ("history", "data", "forecast"):
        rows = found.get(name)
        if isinstance(rows, list):
            cells = _cells(file, rows, "datetime", "carbonIntensity")
            return _Rows("datetime", "carbonIntensity", cells)
    raise TraceError(file, what)


def _cells(file: str, rows: list[Any], time: str, value: str) -> list[tuple[int | None, str, str]]:
    """Return the rows of a list; their place in it goes with the column's name."""
    found: list[tuple[int | None, str, str]] = []
    for at, row in enumerate(rows):
        if not isinstance(row, dict) or not {time, value} <= row.keys():
            expected = f"an object with {time} and {value}"
            raise TraceError(file, expected, column=f"[{at}]", value=str(row))
        amount = row[value]
        is_number = isinstance(amount, int | float) and not isinstance(amount, bool)
        found.append((None, str(row[time]), repr(amount) if is_number else str(amount)))
    if not found:
        raise TraceError(file, "one row or more")
    return found


def _series(file: str, rows: _Rows, of: Quantity) -> Series:
    times: list[float] = []
    values: list[float] = []
    stamped = _number(rows.cells[0][1]) is None
    when = "a timestamp such as 2020-01-01T00:30" if stamped else "a number of seconds"
    for at, (line, moment, amount) in enumerate(rows.cells):
        place = f"[{at}]." if line is None else ""
        time = _stamp(moment) if stamped else _number(moment)
        if time is None or abs(time) > _LATEST or (times and time <= times[-1]):
            expected = f"{when} after the row before" if times and time is not None else when
            column = place + rows.time
            raise TraceError(file, expected, row=line, column=column, value=moment)
        value = _number(amount)
        if value is None or not of.least <= value * rows.scale <= of.most:
            column, expected = place + rows.value, _bounds(of, rows.scale)
            raise TraceError(file, expected, row=line, column=column, value=amount)
        times.append(time)
        values.append(value * rows.scale)
    origin = times[0] if stamped else 0.0
    return Series(np.array(times) - origin, np.array(values), file)


def _bounds(of: Quantity, scale: float = 1.0) -> str:
    unit = of.words if scale == 1.0 else "pounds of CO2 per MWh"
    return f"a number from {of.least / scale:,.6g} to {of.most / scale:,.6g} ({unit})"


def _number(text: str) -> float | None:
    try:
        value = float(text)
    except ValueError:
        return None
    return value if math.isfinite(value) else None


def _stamp(text: str) -> float | None:
    try:
        when = datetime.fromisoformat(text.strip())
    except ValueError:
        return None
    # Without a zone, a day is 24 hours: read as UTC, whatever the machine's zone.
    known = when if when.tzinfo else datetime.fromisoformat(f"{when.isoformat()}+00:00")
    return known.timestamp()
