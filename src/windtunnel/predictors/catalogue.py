"""The predictors by name, and how their parameters are given in a word.

``rolling`` is one with its defaults, ``rolling:last=20:statistic=median`` with others. Where the
first parameter says what is predicted from, its name may be left out: ``mean:user+template``,
``column:user_dur``. ``none`` as a value is None, ``yes`` and ``no`` are truth values.
"""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING, Any, TypeVar

from windtunnel.errors import SpecError
from windtunnel.plugins import Catalogue, parameter_value, parameters
from windtunnel.predictors.convention import Given, Predictor
from windtunnel.predictors.fitted import Adapted, Fitted
from windtunnel.predictors.given import Column, Noise, Oracle, Requested
from windtunnel.predictors.quantile_trees import QuantileTrees
from windtunnel.predictors.rolling import CellMean, QssfRolling, Rolling, Sjg, Sjgg, Sju
from windtunnel.predictors.running_mean import RunningMean
from windtunnel.predictors.trees import Cart, Gbdt

if TYPE_CHECKING:
    from collections.abc import Callable


def as_predictor(name: str, given: Any) -> type[Predictor] | Predictor:  # noqa: ARG001 - the name is its own
    """Return the predictor, or the class of one, that an object is.

    Raises:
        SpecError: it does not say when it learns, or has no ``fit`` and ``predict``.
    """
    kind = given if isinstance(given, type) else type(given)
    if not issubclass(kind, Predictor):
        return Adapted(given() if isinstance(given, type) else given)
    if not issubclass(kind, Given | RunningMean | Fitted):
        raise SpecError(
            f"predictor {kind.name}",
            f"{kind.__name__} does not say when it learns; "
            "derive it from Given, RunningMean or Fitted.",
        )
    return given  # type: ignore[no-any-return] # it has been looked at


PREDICTORS: Catalogue[type[Predictor] | Predictor] = Catalogue(
    "predictor",
    "predictors",
    {
        kind.name: kind
        for kind in (
            *(Rolling, QssfRolling, CellMean, Sju, Sjg, Sjgg),
            *(Cart, Gbdt, QuantileTrees),
            *(Requested, Column, Oracle, Noise),
        )
    },
    made=as_predictor,
)
_Kind = TypeVar("_Kind")


def predictor(name: str) -> Callable[[_Kind], _Kind]:
    """Register the decorated class as the predictor ``name``.

    The class has ``fit(jobs, durations)`` and ``predict(jobs)``, as a scikit-learn estimator has:
    tables of the columns known at submission, and seconds. Or it is one of
    `windtunnel.predictors.Fitted`, `RunningMean`.

    Args:
        name: what users type; a second registration replaces the first.

    Raises:
        SpecError: the name is a built-in predictor's.

    >>> @predictor("hour-example")
    ... class Hour:
    ...     def fit(self, jobs, durations): ...
    ...     def predict(self, jobs):
    ...         return [3600.0] * len(jobs)
    """
    return PREDICTORS.under(name)


_WORDS: dict[str, Any] = {"none": None, "yes": True, "true": True, "no": False, "false": False}


def resolve_predictor(given: str | Predictor | Any, *, seed: int = 0) -> Predictor:
    """Return the predictor that an argument stands for.

    Args:
        given: a name with or without parameters, a `Predictor` or its class, or an object with
            ``fit`` and ``predict``.
        seed: for a name whose predictor has a seed and that says none.

    Raises:
        SpecError: no such name or parameter, or a value is out of range; the nearest is suggested.

    >>> resolve_predictor("rolling:last=20:statistic=median")
    Rolling(by='template', last=20, statistic='median', wider=100, min_runs=1, similar=False)
    """
    if not isinstance(given, str):
        found = PREDICTORS.resolve(given)
        return _made(found, {}) if isinstance(found, type) else found
    name, words = PREDICTORS.split(given)
    found, where = PREDICTORS.resolve(name), f"predictor {name}"
    if not isinstance(found, type):
        parameters(words, [], where=where)  # an object has what it has
        return found
    known = list(inspect.signature(found).parameters)
    texts = parameters(words, known, where=where, first=known[0] if known else "")
    params = {name: _value(text) for name, text in texts.items()}
    if "seed" in known:
        params.setdefault("seed", seed)
    return _made(found, params)


def _value(text: str) -> Any:
    """Return what a word stands for: a number, None, a truth value, or itself."""
    if text.lower() in _WORDS:
        return _WORDS[text.lower()]
    return parameter_value(text)


def _made(kind: type[Predictor], params: dict[str, Any]) -> Predictor:
    """Return a predictor."""
    for name, parameter in inspect.signature(kind).parameters.items():
        if parameter.default is parameter.empty and name not in params:
            raise SpecError(
                f"predictor {kind.name}", f"expected a {name}, such as {kind.name}:user_dur."
            )
    return kind(**params)
