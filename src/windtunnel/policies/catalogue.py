"""The policies by name, and how a user's own is found.

A policy is given as an object (`Policy` instance or class, or a function of one, two or three
arguments) or by a name as in `windtunnel.plugins`, with its parameters behind it where it takes any
(``las:quantum=30``, ``tiresias:bounds=600/6000``, ``sjf:by=rolling:last=20``).
"""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING, Any

from windtunnel.errors import PolicyError, SpecError, quote
from windtunnel.plugins import Catalogue, declared_in, parameters, takes_others
from windtunnel.sim.contract import FunctionPolicy, Policy, check_every

if TYPE_CHECKING:
    from collections.abc import Callable

#: What the engine calls the methods of a policy with.
_ARGUMENTS = {
    "rank": ("jobs",),
    "key": ("job", "now"),
    "decide": ("now", "queue", "cluster"),
    "fill": ("now", "queue", "cluster"),
    "for_run": ("problem",),
    "started": ("job", "now"),
    "stopped": ("job", "now"),
}


def as_policy(name: str, given: Any) -> Policy:
    """Return the policy that an object is, by this name where it has none of its own.

    Raises:
        PolicyError: it is none.
    """
    if isinstance(given, type) and issubclass(given, Policy):
        try:
            made = given()
        except TypeError as error:
            message = f"the class needs arguments ({error}); pass an instance"
            raise PolicyError(given.__name__, message) from error
        return _checked(made)
    if isinstance(given, Policy):
        return _checked(given)
    if callable(given):
        return FunctionPolicy(given, "" if ":" in name else name)
    found = f"{name} is {quote(given)}; " if name else ""
    message = f"{found}expected a policy's name, Policy or function"
    raise PolicyError(str(type(given).__name__), message)


def _checked(made: Policy) -> Policy:
    _ = made.tier  # raises if the class defines none of the methods
    check_every(made.label, made.every)
    if made.fills and (made.every is None or made.tier < 3):  # noqa: PLR2004 - the tier's name
        raise PolicyError(made.label, "fills=True; expected decide(...) with every=seconds")
    if made.fills and type(made).fill is Policy.fill:
        raise PolicyError(made.label, "fills=True; expected a method fill(now, queue, cluster)")
    if not isinstance(made, FunctionPolicy):
        _check_arguments(made)
    return made


def _check_arguments(made: Policy) -> None:
    """Check that the methods of a class can be called as the engine will.

    Raises:
        PolicyError: one takes other arguments.
    """
    for name, arguments in _ARGUMENTS.items():
        if getattr(type(made), name) is getattr(Policy, name):
            continue
        if others := takes_others(getattr(made, name), *arguments):
            message = f"its method is {name}{others}; expected {name}({', '.join(arguments)})"
            raise PolicyError(made.label, message)


def _built_in() -> dict[str, Policy]:
    """Return the policies that the modules of `windtunnel.policies` declare, by name."""
    return {name: kind() for name, kind in declared_in("windtunnel.policies", Policy).items()}


POLICIES: Catalogue[Policy] = Catalogue(
    "policy",
    "policies",
    _built_in,
    made=as_policy,
    aliases={"fcfs": "fifo"},  # other names of the field for the same policies
)
#: Parameters that name a predictor: words behind them that are none of the policy's are its own.
_PREDICTED = ("by", "estimates")


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
    POLICIES.check_name(name)

    def register(function: Callable[..., Any]) -> FunctionPolicy:
        made = FunctionPolicy(
            function,
            name,
            queueing=queueing,
            preemptive=preemptive,
            every=every,
            elastic=elastic,
        )
        POLICIES.register(name, made)
        return made

    return register


def resolve_policy(given: Any) -> Policy:
    """Return the policy an argument stands for.

    Raises:
        SpecError: no such name, module or attribute; the nearest name is suggested.
        PolicyError: the object is not a policy.
    """
    if not isinstance(given, str):
        return POLICIES.resolve(given)
    if given.lower().startswith("gavel:"):
        from windtunnel.policies.gavel.in_rounds import GavelPolicy

        return GavelPolicy.of(given)
    if given.lower().startswith("shockwave:"):
        from windtunnel.policies.shockwave.in_rounds import ShockwavePolicy

        return ShockwavePolicy.of(given)
    if given.lower().startswith("pollux:"):
        from windtunnel.policies.pollux.in_ticks import PolluxPolicy

        return PolluxPolicy.of(given)
    name, words = POLICIES.split(given)
    found = POLICIES.resolve(name)
    return _with_parameters(given, found, words) if words else found


def _with_parameters(text: str, found: Policy, words: list[str]) -> Policy:
    """Return the policy with the parameters that words give; its label is the whole text.

    Raises:
        SpecError: the policy takes no such parameter, or the value is none for it.
    """
    kind, where = type(found), f"policy {text}"
    known = [] if kind is FunctionPolicy else list(inspect.signature(kind).parameters)
    given = parameters(words, known, where=where, nested=_PREDICTED)
    try:
        made = kind(**{name: _value(value) for name, value in given.items()})
    except (TypeError, ValueError) as error:
        raise SpecError(where, f"the parameters do not fit: {error}.") from error
    made.name = text  # type: ignore[misc] # of this one alone: two settings have two labels
    return _checked(made)


def _value(text: str) -> float | str | tuple[float, ...]:
    """Return a parameter's value: a number, numbers joined by ``/``, or the text itself."""
    try:
        numbers = tuple(float(part) for part in text.split("/"))
    except ValueError:
        return text
    return numbers if len(numbers) > 1 else numbers[0]
