"""The policies by name, and how a user's own is found.

A policy is given as an object (`Policy` instance or class, or a function of one, two or three
arguments), as ``package.module:name``, by a built-in name, with its parameters behind it where it
takes any (``las:quantum=30``, ``tiresias:bounds=600/6000``, ``sjf:by=rolling:last=20``), or by a
name that an installed package registers in the entry-point group ``windtunnel.policies``.
"""

from __future__ import annotations

import importlib
import importlib.metadata
import inspect
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from windtunnel.errors import PolicyError, SpecError, quote
from windtunnel.policies.backfilling import Conservative, Easy, EasyPerfect, EasySjbf
from windtunnel.policies.deadline_order import Edf
from windtunnel.policies.fair_share import FairShare, Multifactor
from windtunnel.policies.length_order import (
    Qssf,
    Sjf,
    SjfEstimate,
    SjfPreemptive,
    Sjg,
    Sjgg,
    Sju,
)
from windtunnel.policies.morphling.fixed_plan import FixedPlan
from windtunnel.policies.morphling.rivals import AntMan, EqualShare, Synergy
from windtunnel.policies.morphling.scheduler import Morphling, Neither, PlansOnly, ResourcesOnly
from windtunnel.policies.morphling.sia import Sia
from windtunnel.policies.queue_order import Fifo, Priority, PriorityPreemptive, Srtf
from windtunnel.policies.quota import Quota
from windtunnel.policies.reserving_packing import ReservingPacking
from windtunnel.policies.service_order import Las, Srsf, Tiresias
from windtunnel.sim.contract import FunctionPolicy, Policy

if TYPE_CHECKING:
    from collections.abc import Callable

ENTRY_POINTS = "windtunnel.policies"

POLICIES: dict[str, Policy] = {
    kind.name: kind()
    for kind in (
        *(Fifo, Sjf, SjfEstimate, SjfPreemptive, Srtf, Priority, PriorityPreemptive),
        *(Easy, EasySjbf, EasyPerfect, Conservative, Las, Tiresias, Srsf),
        *(Sju, Sjg, Sjgg, Qssf, Edf, FairShare, Multifactor),
        *(Quota, ReservingPacking),
        *(Morphling, PlansOnly, ResourcesOnly, Neither),
        *(FixedPlan, EqualShare, Synergy, AntMan, Sia),
    )
}
#: Other names of the field for the same policies.
ALIASES = {"fcfs": "fifo"}


def policy(
    name: str,
    *,
    queueing: str | None = None,
    preemptive: bool = False,
    every: float | None = None,
    elastic: bool = False,
) -> Callable[[Callable[..., Any]], FunctionPolicy]:
    """Turn a function into a policy and register it under ``name`` (a decorator).

    Args:
        name: what users type.
        queueing: default head-of-line rule.
        preemptive: rank running jobs too.
        every: seconds between rounds.
        elastic: jobs can be resized (`windtunnel.sim.elastic`).

    Raises:
        SpecError: the name is a built-in policy's.

    >>> @policy("ssf-example")
    ... def rank(jobs):
    ...     "Smallest num_gpus x duration first."
    ...     return jobs.num_gpus * jobs.duration
    """
    if name in _BUILT_IN or name in ALIASES:
        raise SpecError("policy", f"{quote(name)} is a built-in policy; choose another name")

    def register(function: Callable[..., Any]) -> FunctionPolicy:
        made = FunctionPolicy(
            function,
            name,
            queueing=queueing,
            preemptive=preemptive,
            every=every,
            elastic=elastic,
        )
        POLICIES[name] = made
        return made

    return register


_BUILT_IN = frozenset(POLICIES)
#: Parameters that name a predictor: words behind them that are none of the policy's are its own.
_PREDICTED = ("by", "estimates")


def resolve_policy(given: Any) -> Policy:
    """Return the policy an argument stands for.

    Raises:
        SpecError: no such name, module or attribute; the nearest name is suggested.
        PolicyError: the object is not a policy.
    """
    if isinstance(given, str):
        return _by_name(given)
    if isinstance(given, type) and issubclass(given, Policy):
        try:
            return _checked(given())
        except TypeError as error:
            message = f"the class needs arguments ({error}); pass an instance"
            raise PolicyError(given.__name__, message) from error
    if isinstance(given, Policy):
        return _checked(given)
    if callable(given):
        return FunctionPolicy(given)
    raise PolicyError(str(type(given).__name__), "expected a policy's name, Policy or function")


def _checked(made: Policy) -> Policy:
    _ = made.tier  # raises if the class defines none of the methods
    if made.every is not None and not 0 < made.every < float("inf"):
        raise PolicyError(made.label, f"every={made.every!r}; expected seconds > 0")
    return made


def _by_name(name: str) -> Policy:
    if name.lower().startswith("gavel:"):
        from windtunnel.policies.gavel.in_rounds import gavel_policy

        return gavel_policy(name)
    if "=" in name:
        return _with_parameters(name)
    key = ALIASES.get(name.lower(), name.lower())
    if key in POLICIES:
        return POLICIES[key]
    if name in POLICIES:
        return POLICIES[name]
    if ":" in name:
        return resolve_policy(_imported(name))
    installed = {e.name: e for e in importlib.metadata.entry_points(group=ENTRY_POINTS)}
    if name in installed:
        return resolve_policy(installed[name].load())
    raise SpecError.unknown("policy", name, [*POLICIES, *ALIASES, *installed])


def _with_parameters(text: str) -> Policy:
    """Return the policy that ``name:parameter=value:...`` asks for; its label is the whole text.

    Raises:
        SpecError: the policy takes no such parameter, or the value is none for it.
    """
    words = text.split(":")
    first = next(place for place, word in enumerate(words) if "=" in word)
    kind = type(_by_name(":".join(words[:first])))
    known = [] if kind is FunctionPolicy else list(inspect.signature(kind).parameters)
    given: dict[str, str] = {}
    last = ""
    for word in words[first:]:
        name, equals, value = word.partition("=")
        if equals and name in known:
            if name in given:
                raise SpecError(f"policy {text}", f"found {quote(name)} twice; give it once.")
            given[name], last = value, name
        elif last in _PREDICTED:
            given[last] += f":{word}"
        else:
            raise SpecError.unknown(f"policy {text}", name, known or ["(it takes none)"])
    try:
        made = kind(**{name: _value(value) for name, value in given.items()})
    except (TypeError, ValueError) as error:
        raise SpecError(f"policy {text}", f"the parameters do not fit: {error}.") from error
    made.name = text  # type: ignore[misc] # of this one alone: two settings have two labels
    return _checked(made)


def _value(text: str) -> float | str | tuple[float, ...]:
    """Return a parameter's value: a number, numbers joined by ``/``, or the text itself."""
    try:
        numbers = tuple(float(part) for part in text.split("/"))
    except ValueError:
        return text
    return numbers if len(numbers) > 1 else numbers[0]


def _imported(path: str) -> Any:
    """Import ``package.module:name``; the working folder counts, as with ``python -m``."""
    module_name, _, attribute = path.partition(":")
    here = str(Path.cwd())
    if here not in sys.path:
        sys.path.insert(0, here)
    try:
        module = importlib.import_module(module_name)
    except (ImportError, ValueError) as error:
        hint = "expected a built-in name or package.module:name"
        raise SpecError("policy", f"cannot import {quote(path)}: {error}; {hint}") from error
    try:
        return getattr(module, attribute)
    except AttributeError:
        names = [n for n in vars(module) if not n.startswith("_")]
        raise SpecError.unknown(f"policy {module_name}", attribute, names) from None
