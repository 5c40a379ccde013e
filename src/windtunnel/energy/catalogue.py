"""Optimisers by name, and how a user's own is found.

A batch-size optimiser is given as an object (`BatchSizeOptimizer` instance or class, or a function
``(workload, trials) -> batch size``), as ``package.module:name``, or by a built-in name, with its
parameters behind it where it takes any (``zeus:window=10``). Power-limit optimisers are given the
same way, except that there are no functions.
"""

from __future__ import annotations

import copy
import inspect
from typing import Any, TypeVar

from windtunnel.energy.baselines import Default, Grid, Oracle
from windtunnel.energy.contract import BatchSizeOptimizer, FunctionOptimizer, PowerLimitOptimizer
from windtunnel.energy.power_limits import JustInTime, Known, Largest
from windtunnel.energy.zeus import Zeus
from windtunnel.errors import PolicyError, SpecError, quote
from windtunnel.plugins import imported, parameter_value, parameters

OPTIMIZERS: dict[str, type[BatchSizeOptimizer]] = {
    kind.name: kind for kind in (Zeus, Default, Grid, Oracle)
}
POWER_LIMITS: dict[str, type[PowerLimitOptimizer]] = {
    kind.name: kind for kind in (JustInTime, Known, Largest)
}
Kind = TypeVar("Kind", BatchSizeOptimizer, PowerLimitOptimizer)


def resolve_optimizer(given: Any) -> BatchSizeOptimizer:
    """Return a new batch-size optimiser, as an argument asks for it.

    Raises:
        SpecError: no such name, module, attribute or parameter; the nearest name is suggested.
        PolicyError: the object is none.

    >>> resolve_optimizer("zeus:window=10").window
    10
    """
    found = _named(given, OPTIMIZERS, "optimizer") if isinstance(given, str) else given
    if callable(found) and not isinstance(found, type | BatchSizeOptimizer):
        return FunctionOptimizer(found)
    return _made(found, BatchSizeOptimizer, "an optimiser's name, BatchSizeOptimizer or function")


def resolve_power_limits(given: Any) -> PowerLimitOptimizer:
    """Return a new power-limit optimiser, as an argument asks for it.

    Raises:
        SpecError: no such name, module, attribute or parameter; the nearest name is suggested.
        PolicyError: the object is none.

    >>> resolve_power_limits("jit:by=energy").name
    'jit:by=energy'
    """
    found = _named(given, POWER_LIMITS, "power limits") if isinstance(given, str) else given
    expected = "a power-limit optimiser's name or PowerLimitOptimizer"
    return _made(found, PowerLimitOptimizer, expected)


def _made(given: Any, kind: type[Kind], expected: str) -> Kind:
    """Return an instance for one simulation alone.

    Raises:
        PolicyError: the object is of no such kind, or a class that needs arguments.
    """
    if isinstance(given, type) and issubclass(given, kind):
        try:
            made: Kind = given()
        except TypeError as error:
            message = f"the class needs arguments ({error}); pass an instance"
            raise PolicyError(given.__name__, message) from error
    elif isinstance(given, kind):
        made = copy.deepcopy(given)
    else:
        raise PolicyError(type(given).__name__, f"expected {expected}")
    if not made.name:
        made.name = type(made).__name__
    return made


def _named(text: str, known: dict[str, type[Kind]], what: str) -> Any:
    """Return a built-in optimiser with its parameters, or what an import string stands for."""
    name, *words = text.split(":")
    kind = known.get(name.lower())
    if kind is None:
        if ":" in text:
            found = imported(text, what, known)
            if isinstance(found, str):
                raise SpecError(what, f"{quote(text)} is a text; expected an optimiser.")
            return found
        raise SpecError.unknown(what, text, known)
    takes = list(inspect.signature(kind).parameters)
    given = parameters(words, takes, where=f"{what} {text}")
    try:
        made = kind(**{key: parameter_value(value) for key, value in given.items()})
    except (TypeError, ValueError) as error:
        raise SpecError(f"{what} {text}", f"the parameters do not fit: {error}.") from error
    if words:
        made.name = text
    return made
