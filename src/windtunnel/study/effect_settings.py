"""What the study of prediction flies: first come first served, shortest first, and its cures.

All orders here go on past a job that does not fit (``skip``), as PAI's simulator does, but for the
reservations, which are EASY backfilling planned with the predictions.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from windtunnel.errors import SpecError, quote
from windtunnel.policies import resolve_policy
from windtunnel.predictors import resolve_predictor

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from windtunnel.sim.contract import Policy

#: Predictors asked where nothing is said: the bound, PAI's group and user means, its tree.
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
        estimates: what a reservation is planned with; None = it plans nothing.
    """

    label: str
    policy: str
    queueing: str
    kind: str
    model: str | None = None
    aging: float | None = None
    estimates: str | None = None

    def resolved(self) -> Policy:
        """Return the policy.

        Raises:
            SpecError: no such policy, or a parameter is none.
        """
        return resolve_policy(self.policy)


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
        easy = Setting(f"{name} + easy", name, "easy", RESERVED, model, estimates=model)
        name = f"easy-sjbf:estimates={model}"
        sjbf = Setting(name, name, "easy_sjbf", RESERVED, model, estimates=model)
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
        shortest(name).resolved()
        if predictor.peeks:
            peeking.add(name)
    return names, frozenset(peeking)


def checked_numbers(where: str, values: Sequence[float], *, least: int) -> list[float]:
    """Return numbers above 0, each once, as given.

    Raises:
        SpecError: one is not above 0 or comes twice, or there are fewer than ``least``.
    """
    for value in values:
        if not 0 < value < float("inf"):
            raise SpecError(where, f"found {value!r}; expected numbers above 0.")
    if len(values) < least or len(set(values)) < len(values):
        raise SpecError(where, f"found {list(values)}; expected {least} or more, each once.")
    return [float(value) for value in values]
