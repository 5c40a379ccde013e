"""What the study of prediction flies: first come first served, shortest first, and its cures.

All orders here go on past a job that does not fit (``skip``), as PAI's simulator does, but for the
reservations, which are EASY backfilling planned with the predictions.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from windtunnel.checked import checked_number
from windtunnel.errors import SpecError, quote
from windtunnel.policies import resolve_policy
from windtunnel.predictors import resolve_predictor

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence


#: Predictors asked where none is given: the bound, PAI's group and user means, its tree.
MODELS: tuple[str, ...] = ("oracle", "sjg", "sju", "cart")
#: Words for PAI's estimates, by what they go by.
ALIASES = {"group": "sjg", "user": "sju"}
#: Seconds of waiting that make up for a second of predicted run time.
AGINGS: tuple[float, ...] = (1.0, 3.0, 10.0, 30.0, 100.0)
#: Offered loads.
LOADS: tuple[float, ...] = (0.9, 1.0, 1.1)

BASELINE, SHORTEST, AGED, RESERVED = "fifo", "shortest", "aging", "reservation"


@dataclass(frozen=True)
class Setting:
    """One way to run the queue.

    Attributes:
        label: what it is called in results; distinct.
        policy: its name, as `windtunnel.simulate` takes it.
        queueing: the head-of-line rule.
        kind: ``fifo``, ``shortest``, ``aging`` or ``reservation``.
        model: the predictor; None for ``fifo``.
        aging: seconds of waiting for a second of run time; None = waiting does not count.
    """

    label: str
    policy: str
    queueing: str
    kind: str
    model: str | None = None
    aging: float | None = None

    @property
    def estimates(self) -> str | None:
        """What a reservation is planned with; None = it plans nothing."""
        return self.model if self.kind == RESERVED else None


FIFO = Setting("fifo", "fifo", "skip", BASELINE)


def shortest(model: str) -> Setting:
    """Return shortest predicted first."""
    name = f"sjf:by={model}"
    return Setting(name, name, "skip", SHORTEST, model)


def cures(model: str, agings: Iterable[float], *, reservations: bool) -> list[Setting]:
    """Return what may keep shortest first from starving big jobs.

    Args:
        model: the predictor.
        agings: aging parameters, in order.
        reservations: also EASY: for the shortest (``sjf ... easy``), and for the first to come,
            with the shortest backfilled first (``easy-sjbf``).
    """
    found = []
    for aging in agings:
        name = f"sjf:by={model}:aging={aging:g}"
        found.append(Setting(name, name, "skip", AGED, model, aging))
    if reservations:
        name = f"sjf:by={model}"
        easy = Setting(f"{name} + easy", name, "easy", RESERVED, model)
        name = f"easy-sjbf:estimates={model}"
        sjbf = Setting(name, name, "easy_sjbf", RESERVED, model)
        found += [easy, sjbf]
    return found


def checked_models(models: Sequence[str], seed: int) -> tuple[list[str], frozenset[str]]:
    """Return the predictors' names, `ALIASES` resolved, and which of them know the truth.

    Raises:
        SpecError: none, an unknown one, or one twice.
    """
    if not models:
        raise SpecError("models", "expected at least one predictor, such as sjg,cart.")
    peeking = set()
    seen: set[str] = set()
    names = [ALIASES.get(name, name) for name in models]
    for name in names:
        predictor = resolve_predictor(name, seed=seed)
        if predictor.label in seen:
            raise SpecError("models", f"found {quote(predictor.label)} twice; name each once.")
        seen.add(predictor.label)
        resolve_policy(shortest(name).policy)
        if predictor.peeks:
            peeking.add(name)
    return names, frozenset(peeking)


def checked_numbers(where: str, values: Sequence[float], *, least: int) -> list[float]:
    """Return numbers above 0, each once, as given.

    Raises:
        SpecError: one is not above 0 or comes twice, or there are fewer than ``least``.
    """
    for value in values:
        checked_number(where, value, "numbers above 0", above=0)
    if len(values) < least or len(set(values)) < len(values):
        raise SpecError(where, f"found {list(values)}; expected {least} or more, each once.")
    return [float(value) for value in values]


#: How much longer, as a factor, the big jobs may wait than under first come first served.
TOLERANCE = 1.1


@dataclass(frozen=True)
class Choice:
    """What the rule picked.

    Attributes:
        policy: the setting's label; None = no setting gains anything without starving big jobs.
        queueing: its head-of-line rule; None without a choice.
        by_load: the same at each load alone: load -> label, or None.
        kept: load -> share of the gain of shortest first by the same predictor that the choice
            keeps; empty without a choice.
    """

    policy: str | None
    queueing: str | None
    by_load: dict[float, str | None]
    kept: dict[float, float | None]


def judged(runs: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the runs with what they gain and whether they starve the big jobs.

    Args:
        runs: rows of `windtunnel.study.prediction_effect.PredictionEffect.runs`, with a run of
            kind ``fifo`` at each load.

    Returns:
        The rows with ``wait_saved`` (1 - mean wait / that under first come first served; None
        where nobody waits there), ``gain_kept`` (what it saves over what shortest first by the
        same predictor saves; None where that saves nothing), ``big_p99_ratio`` and
        ``big_max_ratio`` (waits of the big jobs over those under first come first served) and
        ``starves`` (either is above `TOLERANCE`).
    """
    base = {row["load"]: row for row in runs if row["kind"] == "fifo"}
    plain = {(row["load"], row["model"]): row for row in runs if row["kind"] == "shortest"}
    found = []
    for row in runs:
        first = base[row["load"]]
        whole = plain.get((row["load"], row["model"]))
        saved = first["avg_wait"] - row["avg_wait"]
        gain = 0.0 if whole is None else first["avg_wait"] - whole["avg_wait"]
        ratios = [_ratio(row[key], first[key]) for key in ("big_p99_wait", "big_max_wait")]
        found.append(
            {
                **row,
                "wait_saved": saved / first["avg_wait"] if first["avg_wait"] > 0 else None,
                "gain_kept": saved / gain if gain > 0 else None,
                "big_p99_ratio": ratios[0],
                "big_max_ratio": ratios[1],
                "starves": max(ratios) > TOLERANCE,
            }
        )
    return found


def _ratio(wait: float, base: float) -> float:
    """Return a wait over another; from nothing to something is infinitely longer."""
    if base > 0:
        return wait / base
    return 1.0 if wait == 0 else float("inf")


def choose(runs: Sequence[dict[str, Any]], model: str) -> Choice:
    """Return the setting of a predictor that the rule of this module picks.

    Args:
        runs: what `judged` returned.
        model: the predictor.
    """
    loads = list(dict.fromkeys(row["load"] for row in runs))
    own = [row for row in runs if row["model"] == model]
    by_load = {load: _lowest([row for row in own if row["load"] == load]) for load in loads}
    policy = _lowest(own)
    chosen = [row for row in own if row["policy"] == policy]
    return Choice(
        policy,
        chosen[0]["queueing"] if chosen else None,
        by_load,
        {row["load"]: row["gain_kept"] for row in chosen},
    )


def _lowest(rows: Sequence[dict[str, Any]]) -> str | None:
    """Return the label whose runs starve nowhere and save most on average; None = none saves."""
    best: tuple[float, str] | None = None
    for label in dict.fromkeys(row["policy"] for row in rows):
        mine = [row for row in rows if row["policy"] == label]
        if any(row["starves"] for row in mine):
            continue
        saved = float(np.mean([row["wait_saved"] or 0.0 for row in mine]))
        if saved > 0 and (best is None or saved > best[0]):
            best = (saved, label)
    return None if best is None else best[1]
