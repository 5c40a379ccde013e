"""Metrics of a user's own: functions of an outcome, by name.

A metric is a function that returns a number, or a mapping from names to numbers; None where there
is nothing to measure. It is found as every plug-in is (`windtunnel.plugins`).
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeVar

from windtunnel.errors import SpecError, quote
from windtunnel.plugins import Catalogue, takes_others

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from windtunnel.sim.flown import Flown

_Metric = TypeVar("_Metric", bound="Callable[..., Any]")


def as_metric(name: str, given: Any) -> Callable[[Any], Any]:
    """Return the metric that an object is.

    Raises:
        SpecError: it is no function, or one of other arguments.
    """
    what = f"metric {name}".rstrip()
    if not callable(given) or isinstance(given, type):
        raise SpecError(what, f"found {quote(given)}; expected a function of an outcome.")
    if others := takes_others(given, "outcome"):
        raise SpecError(what, f"it takes {others}; expected a function of an outcome.")
    found: Callable[[Any], Any] = given
    return found


METRICS: Catalogue[Callable[[Any], Any]] = Catalogue("metric", "metrics", {}, made=as_metric)


def metric(name: str) -> Callable[[_Metric], _Metric]:
    """Register the decorated function of an outcome as the metric ``name``.

    Args:
        name: what users type, and the key of its number; a second registration replaces the first.

    Raises:
        SpecError: the name cannot be typed.

    >>> @metric("longest-example")
    ... def longest(outcome):
    ...     return outcome.metrics()["max_wait"]
    """
    METRICS.check_name(name)

    def register(function: _Metric) -> _Metric:
        METRICS.register(name, function)
        return function

    return register


def measured(outcome: Flown, names: Iterable[Any]) -> dict[str, float | None]:
    """Return what metrics say of a run.

    Returns:
        The key of a metric is its name, without the module; of one that returns a mapping, with the
        mapping's names behind it: ``tail.p99``.

    Raises:
        SpecError: there is no such metric, or it returned no number.
    """
    found: dict[str, float | None] = {}
    for name in names:
        function = METRICS.resolve(name)
        own = name if isinstance(name, str) else getattr(function, "__name__", "metric")
        key = own.rpartition(":")[2]
        given = function(outcome)
        several = given if isinstance(given, Mapping) else {"": given}
        for part, value in several.items():
            found[f"{key}.{part}" if part else key] = _number(own, value)
    return found


def _number(name: str, value: Any) -> float | None:
    if value is None:
        return None
    try:
        number = float(value)
    except (TypeError, ValueError, OverflowError):
        number = math.nan
    if math.isnan(number):
        raise SpecError(f"metric {name}", f"returned {quote(value)}; expected a number or None.")
    return number
