"""Numbers of a model's file, checked where they stand."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from windtunnel.errors import SpecError, quote

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping


#: Tokens, blocks, requests: the product of two is a number that the kernel can hold.
MOST = 10**9


def amount(where: str, value: Any, *, positive: bool = False) -> float:
    """Return a finite number >= 0.

    Raises:
        SpecError: it is none, or 0 where it must be more.
    """
    number = isinstance(value, int | float) and not isinstance(value, bool)
    if not number or not 0 <= value < math.inf or (positive and value == 0):
        expected = f"a finite number {'>' if positive else '>='} 0"
        raise SpecError(where, f"found {quote(value)}; expected {expected}.")
    return float(value)


def count(where: str, value: Any, least: int = 1, most: int = MOST) -> int:
    """Return a whole number > 0, or from another least one on.

    Raises:
        SpecError: it is none, or more than the most.
    """
    if not isinstance(value, int) or isinstance(value, bool) or value < least:
        wanted = "> 0" if least == 1 else f">= {least}"
        raise SpecError(where, f"found {quote(value)}; expected a whole number {wanted}.")
    if value > most:
        raise SpecError(where, f"found {quote(value)}; expected a whole number, at most {most}.")
    return value


def flag(where: str, value: Any) -> bool:
    """Return true or false.

    Raises:
        SpecError: it is neither.
    """
    if not isinstance(value, bool):
        raise SpecError(where, f"found {quote(value)}; expected true or false.")
    return value


def known_keys(where: str, given: Any, known: Iterable[str]) -> Mapping[str, Any]:
    """Return a table whose keys are all known.

    Raises:
        SpecError: it is no table, or one is not.
    """
    if not isinstance(given, dict):
        raise SpecError(where, f"found {quote(given)}; expected a table.")
    names = tuple(known)
    for key in given:
        if key not in names:
            raise SpecError.unknown(f"{where}.{key}", key, names)
    return given


def needed(where: str, given: Mapping[str, Any], key: str) -> Any:
    """Return the value of a key.

    Raises:
        SpecError: it is missing.
    """
    if key not in given:
        raise SpecError(f"{where}.{key}", "is missing.")
    return given[key]
