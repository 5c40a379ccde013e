"""What a model's file holds, checked where it stands."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from windtunnel.checked import checked_choice
from windtunnel.errors import SpecError, quote

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping


#: Tokens, blocks, requests: the product of two is a number that the kernel can hold.
MOST = 10**9


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
        checked_choice(f"{where}.{key}", key, names)
    return given


def needed(where: str, given: Mapping[str, Any], key: str) -> Any:
    """Return the value of a key.

    Raises:
        SpecError: it is missing.
    """
    if key not in given:
        raise SpecError(f"{where}.{key}", "is missing.")
    return given[key]
