"""When requests for one model arrive: deterministic, Poisson, Gamma and Markov-modulated.

Seeding is AlpaServe's (OSDI'23 artifact): NumPy's legacy generator, a seed a model, so that its
published workloads come out bit by bit.
"""

from __future__ import annotations

from dataclasses import dataclass
from operator import mul
from typing import TYPE_CHECKING, Protocol

import numpy as np

from windtunnel.checked import checked_count, checked_number
from windtunnel.errors import SpecError

if TYPE_CHECKING:
    from collections.abc import Sequence

#: A block of gaps is this much longer than the expected number of arrivals.
_BLOCK = 1.2
#: Ways to share a total rate among models.
RATE_SHAPES = ("uniform", "power_law", "triangle_decay")
#: Exponent of the power law over models.
_EXPONENT = -0.5
#: Gaps of a larger cv are 0 in floating point, so that no time would ever pass.
_MOST_CV = 1000.0
#: Requests that are drawn at most at once: 2 GiB with what comes of them.
MOST_REQUESTS = 20_000_000
#: Legacy seeds are 32-bit words.
_SEEDS = 2**32


class ArrivalProcess(Protocol):
    """A stream of arrivals."""

    def arrivals(self, duration: float, seed: int = 0, start: float = 0.0) -> np.ndarray:
        """Return arrival times from ``start`` on, ascending, shape (n,), s."""
        ...  # pragma: no cover


@dataclass(frozen=True)
class Deterministic:
    """Evenly spaced arrivals, the first at the start.

    Attributes:
        rate: requests per second, >= 0.
    """

    rate: float

    def __post_init__(self) -> None:
        checked_number("rate", self.rate, least=0)

    def arrivals(self, duration: float, seed: int = 0, start: float = 0.0) -> np.ndarray:
        """Return int(duration x rate) arrivals, shape (n,), s; the seed is not used.

        >>> Deterministic(2.0).arrivals(2.0)
        array([0. , 0.5, 1. , 1.5])
        """
        checked_number("duration", duration, least=0)
        check_count(duration * self.rate)
        del seed
        count = int(duration * self.rate)
        return start + np.arange(count) / self.rate if count else np.empty(0)


@dataclass(frozen=True)
class Gamma:
    """Independent Gamma gaps; cv 1 is Poisson.

    Attributes:
        rate: requests per second, >= 0.
        cv: coefficient of variation of the gaps, > 0 and at most 1000: a burst has about cv^2 / 2
            requests at one instant.
    """

    rate: float
    cv: float = 1.0

    def __post_init__(self) -> None:
        checked_number("rate", self.rate, least=0)
        checked_number(
            "cv",
            self.cv,
            f"> 0 (deterministic arrivals have cv 0) and <= {_MOST_CV:g}",
            above=0,
            most=_MOST_CV,
        )

    def arrivals(self, duration: float, seed: int = 0, start: float = 0.0) -> np.ndarray:
        """Return the arrivals before start + duration, shape (n,), s.

        Gaps come from ``RandomState(seed)`` in blocks of max(int(1.2 x rate x duration), 1); the
        first arrival is the first gap.

        >>> len(Gamma(10.0, 5.0).arrivals(1000.0))
        9698
        """
        checked_number("duration", duration, least=0)
        if self.rate == 0:
            return np.empty(0)
        check_count(duration * self.rate)
        random = _legacy(seed)
        block = max(int(self.rate * duration * _BLOCK), 1)
        shape, scale = 1.0 / self.cv**2, self.cv**2 / self.rate
        end, now, parts = start + duration, start, []
        while now < end:
            gaps = random.gamma(shape, scale, size=block)
            times = np.cumsum(np.concatenate([[now], gaps]))[1:]
            now = float(times[-1])
            parts.append(times)
        times = np.concatenate(parts) if parts else np.empty(0)
        return times[: int(np.searchsorted(times, end))]


def poisson(rate: float) -> Gamma:
    """Return Poisson arrivals: Gamma gaps with cv 1, so that the published workloads match."""
    return Gamma(rate, 1.0)


@dataclass(frozen=True)
class MarkovModulated:
    """A uniform Markov-modulated Poisson process.

    A state lasts an exponential time; then each of the other states is equally likely. It starts in
    its stationary law, so that the mean rate holds from the first request on.

    Attributes:
        sojourns: mean time in each state, s, > 0.
        rates: Poisson rate in each state, requests per second, >= 0.
    """

    sojourns: tuple[float, ...]
    rates: tuple[float, ...]

    def __post_init__(self) -> None:
        if not self.sojourns or len(self.sojourns) != len(self.rates):
            raise SpecError("sojourns", "expected one mean time and one rate for each state.")
        for sojourn, rate in zip(self.sojourns, self.rates, strict=True):
            checked_number("rates", rate, least=0)
            checked_number("sojourns", sojourn, above=0)

    @property
    def mean_rate(self) -> float:
        """Requests per second in the long run: sum of sojourn x rate over sum of sojourns."""
        return float(np.dot(self.sojourns, self.rates) / np.sum(self.sojourns))

    def arrivals(self, duration: float, seed: int = 0, start: float = 0.0) -> np.ndarray:
        """Return the first int(duration x mean rate) arrivals, shape (n,), s.

        As in the source it is a number of requests, not a window of time: the last may come before
        or after start + duration.
        """
        checked_number("duration", duration, least=0)
        check_count(duration * self.mean_rate)
        check_count(max(map(mul, self.sojourns, self.rates)))
        wanted = int(duration * self.mean_rate)
        random = _legacy(seed)
        states = len(self.rates)
        weights = np.asarray(self.sojourns) / np.sum(self.sojourns)
        state = int(random.choice(states, p=weights))
        now, parts, count = start, [np.empty(0)], 0
        while count < wanted:
            stay = random.exponential(self.sojourns[state])
            arrived = random.poisson(self.rates[state] * stay)
            parts.append(now + np.sort(random.uniform(0.0, stay, size=arrived)))
            count += arrived
            now += stay
            if states > 1:
                state = (state + 1 + int(random.randint(states - 1))) % states
        return np.concatenate(parts)[:wanted]


def model_rates(
    num_models: int, total_rate: float, shape: str | Sequence[float] = "uniform"
) -> np.ndarray:
    """Share a total rate among models.

    Args:
        num_models: number of models, >= 1.
        total_rate: requests per second of all models, >= 0.
        shape: ``uniform``; ``power_law``, proportional to (i + 1)^-0.5; ``triangle_decay``, one
            model at 1, two at 1/2, four at 1/4 ...; or weights, one a model.

    Returns:
        Requests per second, shape (num_models,).

    Raises:
        SpecError: an unknown shape, or a number that makes no sense.

    >>> model_rates(3, 8.0, "triangle_decay")
    array([4., 2., 2.])
    """
    checked_number("total_rate", total_rate, least=0)
    checked_count("num_models", num_models)
    index = np.arange(num_models)
    weights: np.ndarray
    if isinstance(shape, str):
        if shape == "uniform":
            weights = np.ones(num_models)
        elif shape == "power_law":
            weights = (index + 1.0) ** _EXPONENT
        elif shape == "triangle_decay":
            weights = 0.5 ** np.floor(np.log2(index + 1.0))
        else:
            raise SpecError.unknown("rates", shape, RATE_SHAPES)
    else:
        weights = np.asarray(shape, dtype=float)
        good = weights.shape == (num_models,) and np.isfinite(weights).all() and weights.min() >= 0
        if not good or weights.sum() == 0:
            raise SpecError(
                "rates", f"expected {num_models} finite weights >= 0, not all of them 0."
            )
    shares: np.ndarray = total_rate * weights / weights.sum()
    return shares


def check_count(expected: float) -> None:
    """Check that a number of requests can be held.

    Raises:
        SpecError: it cannot; tells both numbers.
    """
    if not expected <= MOST_REQUESTS:
        message = (
            f"found about {expected:.2g} requests; expected at most {MOST_REQUESTS:,} at once: a "
            "lower rate or a shorter duration."
        )
        raise SpecError("requests", message)


def _legacy(seed: int) -> np.random.RandomState:
    checked_number("seed", seed, f"0 to {_SEEDS - 1}", least=0, below=_SEEDS)
    return np.random.RandomState(seed)
