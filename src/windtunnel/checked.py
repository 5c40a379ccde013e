"""What users give, checked where it stands: numbers, whole numbers, words.

Each function returns what was given, or raises `SpecError` with the place, what stands there and
what was expected.
"""

from __future__ import annotations

import math
from numbers import Integral, Real
from typing import TYPE_CHECKING, Any

from windtunnel.errors import SpecError, quote

if TYPE_CHECKING:
    from collections.abc import Collection

#: The most that is counted, where nothing else is said: what 32 bits hold.
MOST = 2**31 - 1


def checked_number(
    where: str,
    value: Any,
    expected: str = "",
    *,
    least: float | None = None,
    above: float | None = None,
    most: float | None = None,
    below: float | None = None,
) -> float:
    """Return a finite number within bounds.

    Args:
        where: what it is, for the message.
        value: the number; text is none, nor are True and False.
        expected: what it should be, in words; empty = a finite number with its bounds.
        least: the smallest that is allowed.
        above: what it must be larger than.
        most: the largest that is allowed.
        below: what it must be smaller than.

    Raises:
        SpecError: it is none, or out of bounds.

    >>> checked_number("load", 0.9, above=0)
    0.9
    >>> checked_number("share", 2, above=0, most=1)
    Traceback (most recent call last):
    windtunnel.errors.SpecError: share: found 2; expected a finite number > 0 and <= 1.
    """
    fits = (
        _is_a(Real, value)
        and _is_finite(value)
        and (least is None or value >= least)
        and (above is None or value > above)
        and (most is None or value <= most)
        and (below is None or value < below)
    )
    if not fits:
        bounds = ((">=", least), (">", above), ("<=", most), ("<", below))
        words = " and ".join(f"{sign} {end:g}" for sign, end in bounds if end is not None)
        raise SpecError(
            where,
            f"found {quote(value)}; expected {expected or f'a finite number {words}'.strip()}.",
        )
    return float(value)


def checked_count(
    where: str, value: Any, expected: str = "", *, least: int = 1, most: float = MOST
) -> int:
    """Return a whole number.

    Args:
        where: what it is, for the message.
        value: the number.
        expected: what it should be, in words; empty = a whole number with the bound it breaks.
        least: the smallest that is allowed.
        most: the largest that is allowed.

    Raises:
        SpecError: it is none, or not from ``least`` to ``most``.
    """
    whole = _is_a(Integral, value)
    if not whole or not least <= value <= most:
        bound = f">= {least}" if not whole or value < least else f"of at most {most:,}"
        raise SpecError(
            where, f"found {quote(value)}; expected {expected or f'a whole number {bound}'}."
        )
    return int(value)


def checked_choice(where: str, value: Any, known: Collection[str]) -> str:
    """Return a word that must be one of a few.

    Raises:
        SpecError: it is none of them; the nearest is suggested.
    """
    if not isinstance(value, str) or value not in known:
        raise SpecError.unknown(where, value, known)
    return str(value)


def _is_a(kind: type, value: Any) -> bool:
    """Return whether a value is such a number; True and False are none."""
    return isinstance(value, kind) and not isinstance(value, bool)


def _is_finite(value: Any) -> bool:
    """Return whether a number is one as a float, too."""
    try:
        return math.isfinite(value)
    except OverflowError:
        return False
