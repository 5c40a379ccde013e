"""Kubernetes' quantities (``500m``, ``36Gi``, ``1e3``) as whole numbers."""

from __future__ import annotations

import math
import re
from decimal import Decimal
from typing import Any

from windtunnel.errors import SpecError, quote
from windtunnel.traces.kubernetes.resources import exact

_SECONDS = {"h": Decimal(3600), "m": Decimal(60), "s": Decimal(1), "ms": Decimal("0.001")}
#: The largest amount that Kueue counts.
MOST = 2**63 - 1


def amount(resource: str, given: Any, path: str) -> int:
    """Return a quantity of a resource: CPU in thousandths, anything else in pieces, rounded up.

    Args:
        resource: the resource.
        given: a number, or text with a suffix.
        path: where it stands, for messages.

    Raises:
        SpecError: no quantity, a negative one, or one that a signed number of 64 bits cannot hold.
    """
    try:
        value = exact(given) * (1000 if resource == "cpu" else 1)
    except ValueError:
        message = f"found {quote(given)}; expected a quantity such as 8, 500m or 36Gi."
        raise SpecError(path, message) from None
    if abs(value) > MOST:
        raise SpecError(
            path, f"found {quote(given)} of {quote(resource)}; expected at most 2^63 - 1 units."
        )
    if value < 0:
        raise SpecError(path, f"found {quote(given)} of {quote(resource)}; expected 0 or more.")
    return math.ceil(value)


def go_duration(given: Any, path: str) -> float:
    """Return a duration as Kubernetes writes it, such as ``1h30m`` or ``5m0s``, in s.

    Raises:
        SpecError: it is none.

    >>> go_duration("1h30m", "timeout")
    5400.0
    """
    words = str(given)
    if not re.fullmatch(r"0|(?:\d{1,12}(?:\.\d{1,9})?(?:h|ms|m|s))+", words, re.ASCII):
        raise SpecError(path, f"found {quote(given)}; expected a duration such as 5m or 1h30m0s.")
    parts = re.findall(r"([\d.]+)(h|ms|m|s)", words)
    return float(sum((Decimal(number) * _SECONDS[unit] for number, unit in parts), Decimal(0)))


def shown(resource: str, given: int) -> str:
    """Return an amount as an operator writes it: ``1500m`` of CPU, ``36Gi`` of memory."""
    if resource == "cpu":
        return f"{given // 1000:,}" if given % 1000 == 0 else f"{given}m"
    if resource in ("memory", "ephemeral-storage"):
        for power, letter in ((4, "Ti"), (3, "Gi"), (2, "Mi"), (1, "Ki")):
            if given and given % 1024**power == 0:
                return f"{given // 1024**power:,}{letter}"
    return f"{given:,}"
