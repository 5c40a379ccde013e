"""Requests for several models, in order of arrival, each with its deadline."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from windtunnel.checked import checked_count, checked_number
from windtunnel.errors import SpecError
from windtunnel.serving.arrivals import Deterministic, Gamma, check_count, model_rates

if TYPE_CHECKING:
    from collections.abc import Sequence

    import pyarrow as pa

    from windtunnel.serving.arrivals import ArrivalProcess
    from windtunnel.serving.profile import Profile


@dataclass(frozen=True)
class Workload:
    """Requests, in order of arrival; requests of one instant by model.

    Attributes:
        models: the profile's name of each model.
        arrival: arrival times, ascending, shape (n,), s.
        model: index of the model, shape (n,).
        slo: time within which a request must be answered, shape (n,), s; infinite without a
            deadline.

    Raises:
        SpecError: shapes differ, arrivals descend or are not finite, an index is out of range, or
            a deadline is NaN.
    """

    models: tuple[str, ...]
    arrival: np.ndarray
    model: np.ndarray
    slo: np.ndarray

    def __post_init__(self) -> None:
        if not self.arrival.shape == self.model.shape == self.slo.shape == (len(self.arrival),):
            raise SpecError("workload", "expected arrival, model and slo of one length.")
        if not np.isfinite(self.arrival).all() or (np.diff(self.arrival) < 0).any():
            raise SpecError("workload.arrival", "expected finite times in ascending order.")
        if len(self.model) and not 0 <= self.model.min() <= self.model.max() < len(self.models):
            raise SpecError("workload.model", f"expected indices 0 to {len(self.models) - 1}.")
        if np.isnan(self.slo).any():
            raise SpecError("workload.slo", "expected times; infinity where there is no deadline.")

    def __len__(self) -> int:
        return len(self.arrival)

    @property
    def span(self) -> float:
        """Time from the first to the last arrival, s; 0 without requests."""
        return float(self.arrival[-1] - self.arrival[0]) if len(self) else 0.0

    @property
    def table(self) -> pa.Table:
        """The requests as a table: ``model``, ``arrival`` (s), ``slo`` (s; null without)."""
        import pyarrow as pa

        slo = pa.array(self.slo, mask=np.isinf(self.slo))
        return pa.table({"model": self.model, "arrival": self.arrival, "slo": slo})

    def arrays(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return arrival, model and slo as the kernels take them."""
        return (
            np.ascontiguousarray(self.arrival, dtype=np.float64),
            np.ascontiguousarray(self.model, dtype=np.int64),
            np.ascontiguousarray(self.slo, dtype=np.float64),
        )

    def rates(self) -> np.ndarray:
        """Return each model's requests per second over the span, shape (models,)."""
        counts = np.bincount(self.model, minlength=len(self.models))
        return counts / self.span if self.span else np.zeros(len(self.models))

    def only(self, models: Sequence[int]) -> Workload:
        """Return the requests of some models; indices and names stay."""
        return self.rows(np.isin(self.model, np.asarray(models, dtype=np.int64)))

    def window(self, start: float, stop: float, *, rebase: bool = False) -> Workload:
        """Return the requests with start <= arrival < stop, at time 0 from ``start`` on demand."""
        rows = slice(*np.searchsorted(self.arrival, [start, stop]))
        cut = self.rows(rows)
        return replace(cut, arrival=cut.arrival - start) if rebase else cut

    def compress(self, factor: float) -> Workload:
        """Return the requests ``factor`` times as fast: time runs from the first arrival."""
        checked_number("factor", factor, above=0)
        if not len(self) or factor == 1:  # not even rounded
            return self
        start = self.arrival[0]
        return replace(self, arrival=start + (self.arrival - start) / factor)

    def thin(self, share: float, seed: int = 0) -> Workload:
        """Return each request with probability ``share``, independently of the others.

        Raises:
            SpecError: the share is not in [0, 1].
        """
        checked_number("share", share, "0 to 1", least=0, most=1)
        return self.rows(np.random.default_rng(seed).random(len(self)) < share)

    def repeat(self, times: int) -> Workload:
        """Return each request ``times`` times, at its own instant."""
        checked_count("times", times)
        check_count(float(len(self)) * times)
        return self.rows(np.repeat(np.arange(len(self)), times))

    def with_slo(self, slo: Sequence[float] | np.ndarray | float) -> Workload:
        """Return the requests with other deadlines.

        Args:
            slo: seconds, for all models or one a model; infinite = none.
        """
        by_model = np.broadcast_to(np.asarray(slo, dtype=float), len(self.models))
        return replace(self, slo=by_model[self.model])

    def rows(self, rows: np.ndarray | slice) -> Workload:
        """Return some of the requests."""
        return replace(self, arrival=self.arrival[rows], model=self.model[rows], slo=self.slo[rows])


def merge(
    models: Sequence[str],
    arrivals: Sequence[np.ndarray],
    slo: Sequence[float] | np.ndarray | float = math.inf,
) -> Workload:
    """Return the arrivals of several models as one workload.

    Args:
        models: the profile's name of each model.
        arrivals: arrival times of each model, in any order, s.
        slo: seconds, for all models or one a model.

    Raises:
        SpecError: numbers of models differ, or a time is not finite.
    """
    if len(models) != len(arrivals):
        raise SpecError(
            "arrivals", f"found {len(arrivals)} for {len(models)} models; expected one each."
        )
    times = np.concatenate([np.empty(0), *(np.asarray(a, dtype=float) for a in arrivals)])
    model = np.repeat(np.arange(len(models)), [len(a) for a in arrivals])
    order = np.argsort(times, kind="stable")
    empty = Workload(tuple(models), times[order], model[order], np.full(len(times), math.inf))
    return empty.with_slo(slo)


def slos(models: Sequence[str], profile: Profile, scale: float | None) -> np.ndarray:
    """Return each model's deadline: ``scale`` times its latency on one GPU, shape (models,), s.

    Args:
        models: the profile's name of each model.
        profile: latencies.
        scale: SLO scale, > 0; None = no deadline.

    Raises:
        SpecError: the scale is not positive, or a model was not profiled on one GPU.
    """
    if scale is None:
        return np.full(len(models), math.inf)
    checked_number("slo_scale", scale, above=0)
    return np.array([scale * profile.latency(model) for model in models])


def generate(
    models: Sequence[str],
    *,
    duration: float,
    rate: float | None = None,
    rates: str | Sequence[float] = "uniform",
    cv: float = 1.0,
    processes: Sequence[ArrivalProcess] | None = None,
    slo: Sequence[float] | np.ndarray | float = math.inf,
    seed: int = 0,
) -> Workload:
    """Draw requests for several models.

    Args:
        models: the profile's name of each model.
        duration: s.
        rate: requests per second of all models.
        rates: how they are shared, see `windtunnel.serving.arrivals.model_rates`.
        cv: coefficient of variation of the Gamma gaps; 1 = Poisson, 0 = deterministic.
        processes: instead of rate, rates and cv: an arrival process for each model.
        slo: seconds, for all models or one a model (`slos`).
        seed: model i is drawn with seed + i.

    Raises:
        SpecError: a number makes no sense.

    >>> from windtunnel.serving.workload import generate
    >>> len(generate(["small"], duration=1000.0, rate=10.0))
    10086
    """
    checked_number("duration", duration, above=0)
    if processes is None:
        if rate is None:
            raise SpecError("rate", "expected requests per second, or arrival processes.")
        shares = model_rates(len(models), rate, rates).tolist()
        processes = [Deterministic(r) if cv == 0 else Gamma(r, cv) for r in shares]
    if len(processes) != len(models):
        raise SpecError("processes", f"found {len(processes)} for {len(models)} models.")
    drawn: list[np.ndarray] = []
    for i, process in enumerate(processes):
        drawn.append(process.arrivals(duration, seed + i))
        check_count(sum(map(len, drawn)))
    return merge(models, drawn, slo)
