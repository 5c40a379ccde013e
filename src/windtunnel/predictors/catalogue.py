"""The predictors by name, and how their parameters are given in a word.

``rolling`` is one with its defaults, ``rolling:last=20:statistic=median`` with others. Where the
first parameter says what is predicted from, its name may be left out: ``mean:user+template``,
``column:user_dur``. ``none`` as a value is None, ``yes`` and ``no`` are truth values.
"""

from __future__ import annotations

import inspect
from typing import Any

from windtunnel.errors import SpecError, quote
from windtunnel.predictors.convention import Given, Predictor
from windtunnel.predictors.fitted import Adapted, Fitted
from windtunnel.predictors.given import Column, Noise, Oracle, Requested
from windtunnel.predictors.quantile_trees import QuantileTrees
from windtunnel.predictors.recalling import Recalling
from windtunnel.predictors.rolling import CellMean, QssfRolling, Rolling, Sjg, Sjgg, Sju
from windtunnel.predictors.trees import Cart, Gbdt

PREDICTORS: dict[str, type[Predictor]] = {
    kind.name: kind
    for kind in (
        *(Rolling, QssfRolling, CellMean, Sju, Sjg, Sjgg),
        *(Cart, Gbdt, QuantileTrees),
        *(Requested, Column, Oracle, Noise),
    )
}
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
    if isinstance(given, str):
        return _by_name(given, seed)
    if isinstance(given, type) and issubclass(given, Predictor):
        given = _made(given, {})
    if not isinstance(given, Predictor):
        return Adapted(given)
    if not isinstance(given, Given | Recalling | Fitted):
        raise SpecError(
            f"predictor {given.name}",
            f"{type(given).__name__} does not say when it learns; "
            "derive it from Given, Recalling or Fitted.",
        )
    return given


def _by_name(text: str, seed: int) -> Predictor:
    name, *words = [word.strip() for word in text.split(":")]
    kind = PREDICTORS.get(name.lower())
    if kind is None:
        raise SpecError.unknown("predictor", name, PREDICTORS)
    known = list(inspect.signature(kind).parameters)
    params: dict[str, Any] = {}
    for place, word in enumerate(words):
        key, equals, value = word.partition("=")
        if not equals and place == 0 and known:
            key, value = known[0], word
        elif not equals:
            raise SpecError(
                f"predictor {name}", f"found {quote(word)}; expected NAME=VALUE behind the colon."
            )
        if key not in known:
            raise SpecError.unknown(f"predictor {name}", key, known)
        if key in params:
            raise SpecError(f"predictor {name}", f"found {quote(key)} twice; give it once.")
        params[key] = _value(value)
    if "seed" in known:
        params.setdefault("seed", seed)
    return _made(kind, params)


def _value(text: str) -> Any:
    """Return what a word stands for: a number, None, a truth value, or itself."""
    if text.lower() in _WORDS:
        return _WORDS[text.lower()]
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text


def _made(kind: type[Predictor], params: dict[str, Any]) -> Predictor:
    """Return a predictor.

    Raises:
        SpecError: a parameter that must be given is missing, or is out of range.
    """
    for name, parameter in inspect.signature(kind).parameters.items():
        if parameter.default is parameter.empty and name not in params:
            raise SpecError(
                f"predictor {kind.name}", f"expected a {name}, such as {kind.name}:user_dur."
            )
    return kind(**params)
