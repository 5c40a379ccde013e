"""Times and spans as people write them: seconds, or ``"90m"``, ``"12h"``, ``"30d"``."""

from __future__ import annotations

import math

from windtunnel.errors import SpecError, quote

_UNITS = {"s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}

#: Seconds, or text such as ``"12h"``.
Span = float | str


def seconds(where: str, given: object, *, positive: bool = False, endless: bool = False) -> float:
    """Return a time or a span in seconds.

    Args:
        where: what it is, for the message.
        given: a number of seconds, or a number with one of the units s, m, h, d.
        positive: 0 is refused.
        endless: infinity is allowed.

    Raises:
        SpecError: it is neither, negative, or not finite.

    >>> seconds("half_life", "7d"), seconds("aging", 90)
    (604800.0, 90.0)
    """
    text = str(given).strip().lower()
    unit = _UNITS.get(text[-1:], 0.0)
    try:
        number = float(text[:-1]) * unit if unit else float(text)
    except ValueError:
        number = math.nan
    finite = number < math.inf or (endless and number == math.inf)
    if not (number >= 0 and finite) or (positive and number == 0):
        least = "> 0" if positive else ">= 0"
        also = ", or inf" if endless else ""
        raise SpecError(
            where, f"found {quote(given)}; expected seconds {least}, or 90m, 12h, 30d{also}."
        )
    return number
