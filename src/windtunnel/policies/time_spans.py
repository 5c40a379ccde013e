"""Time spans behind a policy's name: seconds, or ``30m``, ``12h``, ``7d``."""

from __future__ import annotations

import math

from windtunnel.errors import SpecError, quote

_UNITS = {"s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}


def seconds(where: str, given: object, *, endless: bool = False, none: bool = False) -> float:
    """Return a time span in seconds.

    Args:
        where: what it is, for the message.
        given: a number of seconds, or a number with one of the units s, m, h, d.
        endless: infinity is a span, too.
        none: so is 0.

    Raises:
        SpecError: it is none.

    >>> seconds("half_life", "7d"), seconds("aging", 90)
    (604800.0, 90.0)
    """
    text = str(given).strip().lower()
    unit = _UNITS.get(text[-1:], 0.0)
    try:
        number = float(text[:-1]) * unit if unit else float(text)
    except ValueError:
        number = math.nan
    allowed = (endless and number == math.inf) or (none and number == 0)
    if not (0 < number < math.inf or allowed):
        also = ", or inf" if endless else ""
        least = ">=" if none else "above"
        raise SpecError(
            where,
            f"found {quote(given)}; expected a time {least} 0: seconds, or 30m, 12h, 7d{also}.",
        )
    return number
