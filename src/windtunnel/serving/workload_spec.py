"""A workload in words: which models get which requests, as a TOML file or a command asks for it."""

from __future__ import annotations

from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from windtunnel.checked import checked_choice, checked_count
from windtunnel.errors import SpecError, quote
from windtunnel.serving.arrivals import Deterministic, Gamma, MarkovModulated, model_rates
from windtunnel.serving.profile import Profile, read_profile
from windtunnel.serving.refit import from_minutes, refit, replay
from windtunnel.serving.request_traces import MinuteCounts, RequestTrace, read_requests
from windtunnel.serving.synthetic_profile import synthetic_profile
from windtunnel.serving.workload import Workload, generate, slos
from windtunnel.toml_file import read_toml

if TYPE_CHECKING:
    from windtunnel.serving.arrivals import ArrivalProcess

#: Kinds of arrivals.
ARRIVALS = ("gamma", "deterministic", "mmpp")
_MINUTE = 60.0


@dataclass(frozen=True)
class WorkloadSpec:
    """Requests for several models; the attributes are the keys of a TOML file.

    Attributes:
        profile: a CSV file, or ``synthetic``.
        models: types of models; empty = all of the profile.
        num_models: model i has type i mod the number of types; 0 = one of each.
        slo_scale: deadline over a model's latency on one GPU; None = no deadline.
        overheads: ``none`` or ``alpaserve``.
        seed: model i is drawn with seed + i.
        duration: s.
        rate: requests per second of all models.
        rates: how they are shared: a shape's name, or weights.
        arrivals: ``gamma`` (with ``cv``), ``deterministic``, or ``mmpp``.
        cv: of Gamma gaps; 0 is deterministic.
        sojourns: mean time in each state of ``mmpp``, s.
        intensities: rate in each state of ``mmpp``, over each other.
        requests: recorded requests instead, a file.
        slice: of recorded requests, from and until, s; empty = all.
        mapping: how recorded functions are dealt to models.
        refit: window, s, in which Gamma arrivals replace the recorded ones; 0 = replay them.
        rate_scale: of refitted arrivals.
        cv_scale: of refitted arrivals; of calls by minute, their cv.
        compress: arrivals so many times as fast.
        thin: each request is kept with this probability.
        repeat: each request so many times.
    """

    profile: str = "synthetic"
    models: tuple[str, ...] = ()
    num_models: int = 0
    slo_scale: float | None = None
    overheads: str = "none"
    seed: int = 0
    duration: float = 200.0
    rate: float = 10.0
    rates: str | tuple[float, ...] = "uniform"
    arrivals: str = "gamma"
    cv: float = 1.0
    sojourns: tuple[float, ...] = ()
    intensities: tuple[float, ...] = ()
    requests: str | None = None
    slice: tuple[float, ...] = ()
    mapping: str = "stripe"
    refit: float = 0.0
    rate_scale: float = 1.0
    cv_scale: float = 1.0
    compress: float = 1.0
    thin: float = 1.0
    repeat: int = 1

    def but(self, **changes: Any) -> WorkloadSpec:
        """Return it with other values of some attributes.

        Raises:
            SpecError: an attribute is unknown.
        """
        for name in changes:
            _check_name("workload", name)
        return replace(self, **changes)

    def read_profile(self) -> Profile:
        """Return the profile.

        Raises:
            TraceError: the file is wrong.
            OSError: it cannot be read.
        """
        return synthetic_profile() if self.profile == "synthetic" else read_profile(self.profile)

    def draw(self, profile: Profile) -> Workload:
        """Return the requests.

        Raises:
            SpecError: a value makes no sense, or the profile does not know a model.
            TraceError: the file of recorded requests is wrong.
        """
        types = self.models or profile.models
        for model in types:
            profile.check_model(model, "models")
        checked_count("num_models", self.num_models, least=0)
        models = [types[i % len(types)] for i in range(self.num_models or len(types))]
        slo = slos(models, profile, self.slo_scale).tolist()
        drawn = self._drawn(models, slo) if self.requests is None else self._recorded(models, slo)
        return drawn.compress(self.compress).thin(self.thin, self.seed).repeat(self.repeat)

    def _drawn(self, models: list[str], slo: list[float]) -> Workload:
        shares = model_rates(len(models), self.rate, self.rates).tolist()
        return generate(
            models,
            duration=self.duration,
            processes=[self._process(share) for share in shares],
            slo=slo,
            seed=self.seed,
        )

    def _process(self, rate: float) -> ArrivalProcess:
        checked_choice("arrivals", self.arrivals, ARRIVALS)
        if self.arrivals == "mmpp":
            # Checks the states, whose intensities become rates with this mean.
            states = MarkovModulated(self.sojourns, self.intensities)
            if not states.mean_rate:
                raise SpecError("intensities", "expected one above 0.")
            scale = rate / states.mean_rate
            return MarkovModulated(self.sojourns, tuple(scale * r for r in self.intensities))
        if self.arrivals == "deterministic" or self.cv == 0:
            return Deterministic(rate)
        return Gamma(rate, self.cv)

    def _recorded(self, models: list[str], slo: list[float]) -> Workload:
        found = read_requests(str(self.requests))
        start, stop = self._slice()
        if isinstance(found, MinuteCounts):
            first, last = int(start // _MINUTE), min(stop, 86_400.0) / _MINUTE
            return from_minutes(
                found.window(first, int(np.ceil(last))), models, cv=self.cv_scale,
                rate_scale=self.rate_scale, mapping=self.mapping, slo=slo, seed=self.seed,
            )  # fmt: skip
        found = _sliced(found, start, stop) if self.slice else found
        workload = replay(found, models, mapping=self.mapping, slo=slo)
        if self.refit == 0:
            if (self.rate_scale, self.cv_scale) != (1.0, 1.0):
                raise SpecError(
                    "refit", "expected a window, s: rate_scale and cv_scale change refitted gaps."
                )
            return workload
        length = stop - start if self.slice else np.nextafter(workload.arrival[-1], np.inf)
        return refit(
            workload, window=self.refit, duration=float(length), rate_scale=self.rate_scale,
            cv_scale=self.cv_scale, seed=self.seed,
        )  # fmt: skip

    def _slice(self) -> tuple[float, float]:
        if not self.slice:
            return 0.0, np.inf
        if len(self.slice) != 2 or not 0 <= self.slice[0] < self.slice[1] < np.inf:  # noqa: PLR2004
            raise SpecError("slice", f"found {quote(self.slice)}; expected from < until, s.")
        return self.slice[0], self.slice[1]

    def data(self) -> dict[str, Any]:
        """Return it as plain data."""
        return asdict(self)


def _sliced(found: RequestTrace, start: float, stop: float) -> RequestTrace:
    cut = found.window(start, stop)
    if not len(cut):
        raise SpecError("slice", f"{found.name} has no requests from {start:g} to {stop:g} s.")
    return cut


def read_workload(path: str | Path) -> WorkloadSpec:
    """Read a workload from TOML; files named in it lie beside it.

    Raises:
        SpecError: not TOML, an unknown key, or a value of the wrong type.
    """
    import msgspec

    data = read_toml(path)
    for name in data:
        _check_name(str(path), name)
    try:
        found = msgspec.convert(data, WorkloadSpec, strict=True)
    except msgspec.ValidationError as error:
        raise SpecError(str(path), str(error)) from error
    beside = Path(path).parent
    profile, requests = found.profile, found.requests
    return replace(
        found,
        profile=profile if profile == "synthetic" else str(beside / profile),
        requests=None if requests is None else str(beside / requests),
    )


def _check_name(path: str, name: str) -> None:
    known = [field.name for field in fields(WorkloadSpec)]
    checked_choice(path, name, known)
