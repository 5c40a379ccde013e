"""Recorded requests as workloads: functions mapped to models, replayed or drawn anew by window.

AlpaServe (OSDI'23, section 6.2): the requests of each model in each window are replaced by Gamma
arrivals fitted to them, so that rate and burstiness can be scaled.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from windtunnel.checked import checked_count, checked_number
from windtunnel.errors import SpecError
from windtunnel.serving.arrivals import Gamma, check_count
from windtunnel.serving.workload import Workload, merge

if TYPE_CHECKING:
    from collections.abc import Sequence

    from windtunnel.serving.request_traces import MinuteCounts, RequestTrace

#: How functions are dealt to models.
MAPPINGS = ("stripe", "round_robin")
#: A fitted rate above this multiple of count / window is not believed.
_CREDIBLE = 5.0
#: Added to every gap before fitting, s: a gap of 0 has no logarithm.
_TINY = 1e-6
#: Fewer arrivals than this in a window leave no shape to fit.
_FEWEST = 3
_MINUTE = 60.0
#: The digamma series: Bernoulli numbers B(2n) / 2n, used from here on.
_SERIES = (1 / 12, -1 / 120, 1 / 252, -1 / 240, 1 / 132, -691 / 32760, 1 / 12)
_ASYMPTOTIC = 10.0


def map_functions(num_functions: int, num_models: int, mapping: str = "stripe") -> np.ndarray:
    """Return the model of each function, shape (functions,).

    Args:
        num_functions: functions that were called, in file order.
        num_models: models, >= 1.
        mapping: ``stripe``, function i to model i mod models; ``round_robin``, contiguous blocks:
            models x i // functions (so named in the source).

    Raises:
        SpecError: an unknown mapping, or no models.

    >>> map_functions(5, 2, "round_robin")
    array([0, 0, 0, 1, 1])
    """
    checked_count("models", num_models)
    index = np.arange(num_functions)
    if mapping == "stripe":
        return index % num_models
    if mapping == "round_robin":
        return num_models * index // max(num_functions, 1)
    raise SpecError.unknown("mapping", mapping, MAPPINGS)


def replay(
    trace: RequestTrace,
    models: Sequence[str],
    *,
    mapping: str = "stripe",
    slo: Sequence[float] | float = math.inf,
) -> Workload:
    """Return recorded arrivals as they were (`Workload.compress`, ``thin``, ``repeat`` scale them).

    Args:
        trace: the requests.
        models: the profile's name of each model; the trace's functions are dealt to them.
        mapping: see `map_functions`.
        slo: seconds, for all models or one a model.
    """
    model = map_functions(len(trace.functions), len(models), mapping)[trace.function]
    return merge(models, [trace.arrival[model == m] for m in range(len(models))], slo)


def refit(
    workload: Workload,
    *,
    window: float,
    duration: float,
    rate_scale: float = 1.0,
    cv_scale: float = 1.0,
    seed: int = 0,
) -> Workload:
    """Draw a workload anew: in each window each model's gaps are fitted by a Gamma law.

    Maximum likelihood with location 0 on gaps + 1 us. Where the fitted rate is more than five times
    count / window, that is taken instead. Windows with fewer than three arrivals give nothing.
    Models are outer, windows inner; the seed grows by 1 with every window that has a request.

    Args:
        workload: arrivals from time 0 on; deadlines are kept by model.
        window: length of a window, s.
        duration: windows that begin before are drawn; the last is cut there.
        rate_scale: multiplies each fitted rate, >= 0.
        cv_scale: multiplies each fitted cv, > 0.
        seed: of the first window.

    Raises:
        SpecError: a number makes no sense.
    """
    _check_scales(window, duration, rate_scale, cv_scale)
    check_count(len(workload) * rate_scale)
    arrivals = []
    for model in range(len(workload.models)):
        mine = workload.arrival[workload.model == model]
        parts = [np.empty(0)]
        for start in np.arange(0.0, duration, window).tolist():
            low, high = np.searchsorted(mine, [start, min(start + window, duration)])
            if high == low:
                continue
            times = mine[low:high]
            if len(times) >= _FEWEST:
                rate, cv = fit_gamma(times, window)
                length = min(window, duration - start)
                process = Gamma(rate * rate_scale, cv * cv_scale)
                parts.append(process.arrivals(length, seed, start))
            seed += 1
        arrivals.append(np.concatenate(parts))
    return merge(workload.models, arrivals, _slo_by_model(workload))


def fit_gamma(times: np.ndarray, window: float) -> tuple[float, float]:
    """Return rate (1/s) and cv of the Gamma law that is the likeliest for the gaps of arrivals.

    Args:
        times: ascending, at least three, s.
        window: the time they come from, s; see `refit`.
    """
    gaps = np.diff(times) + _TINY
    mean = float(gaps.mean())
    spread = math.log(mean) - float(np.log(gaps).mean())
    if spread <= 1e-12:  # noqa: PLR2004 - equal gaps: the shape is infinite
        shape = 1e12
    else:  # log k - digamma(k) falls from infinity to 0; it lies between 1 / 2k and 1 / k
        low, high = 0.5 / spread, 1.0 / spread
        while (shape := (low + high) / 2) not in (low, high):
            if math.log(shape) - digamma(shape) > spread:
                low = shape
            else:
                high = shape
    rate, plain = 1.0 / mean, len(times) / window
    return (plain if rate > _CREDIBLE * plain else rate), 1.0 / math.sqrt(shape)


def digamma(x: float) -> float:
    """Return the logarithmic derivative of the Gamma function at x > 0.

    By its recurrence up to 10, then the asymptotic series (Abramowitz & Stegun 6.3.5, 6.3.18).
    """
    shifted = 0.0
    while x < _ASYMPTOTIC:
        shifted -= 1.0 / x
        x += 1.0
    square = 1.0 / (x * x)
    series = 0.0
    for term in reversed(_SERIES):
        series = (series + term) * square
    return shifted + math.log(x) - 0.5 / x - series


def from_minutes(
    counts: MinuteCounts,
    models: Sequence[str],
    *,
    cv: float,
    rate_scale: float = 1.0,
    mapping: str = "stripe",
    slo: Sequence[float] | float = math.inf,
    seed: int = 0,
) -> Workload:
    """Draw arrivals from calls by minute: Gamma gaps with count / 60 requests per second each.

    Args:
        counts: functions and their minutes.
        models: the profile's name of each model; functions are dealt to them and added up.
        cv: of every minute's gaps.
        rate_scale: multiplies every rate, >= 0.
        mapping: see `map_functions`.
        slo: seconds, for all models or one a model.
        seed: grows by 1 with every minute of a model that has calls, models outer.

    Raises:
        SpecError: a number makes no sense.
    """
    _check_scales(_MINUTE, _MINUTE, rate_scale, cv)
    check_count(float(counts.counts.sum()) * rate_scale)
    model = map_functions(len(counts.functions), len(models), mapping)
    arrivals = []
    for index in range(len(models)):
        total = counts.counts[model == index].sum(axis=0)
        parts = [np.empty(0)]
        for minute in np.flatnonzero(total).tolist():
            rate = float(total[minute]) / _MINUTE * rate_scale
            parts.append(Gamma(rate, cv).arrivals(_MINUTE, seed, minute * _MINUTE))
            seed += 1
        arrivals.append(np.concatenate(parts))
    return merge(models, arrivals, slo)


def _slo_by_model(workload: Workload) -> list[float]:
    slo = np.full(len(workload.models), math.inf)
    slo[workload.model] = workload.slo
    return [float(value) for value in slo]


def _check_scales(window: float, duration: float, rate_scale: float, cv_scale: float) -> None:
    for name, value in (("window", window), ("duration", duration), ("cv_scale", cv_scale)):
        checked_number(name, value, above=0)
    checked_number("rate_scale", rate_scale, least=0)
