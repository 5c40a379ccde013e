"""What became of requests to a language model: times of tokens, and figures of them."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Protocol

import numpy as np

from windtunnel.checked import checked_number
from windtunnel.errors import SpecError, quote
from windtunnel.quantiles import quantiles

if TYPE_CHECKING:
    from windtunnel.serving.llm_model import LlmModel
    from windtunnel.serving.request_traces import RequestTrace

#: Percentiles that are reported of each latency.
PERCENTS = (50, 90, 99)
LATENCIES = ("ttft", "tpot", "e2e", "itl")
_HOUR = 3600.0
_MINUTE = 60.0
_KWH = 3.6e6


class Intensity(Protocol):
    """Something of a kWh that changes over time, such as `windtunnel.energy.Series`."""

    def integral(self, when: np.ndarray) -> np.ndarray:
        """Return its integral up to each time, same shape; value x s."""


def check_prices(**prices: float | Intensity | None) -> None:
    """Refuse prices and the like that are no number from 0 to the most that a price may be.

    Raises:
        SpecError: one is none; of what changes over time nothing is checked.
    """
    from windtunnel.characterize.cost import MOST_PRICE

    for name, value in prices.items():
        if isinstance(value, int | float):
            words = f"a number from 0 to {MOST_PRICE:g}"
            checked_number(name, value, words, least=0, most=MOST_PRICE)


def latencies(requests: RequestTrace, first: np.ndarray, last: np.ndarray) -> dict[str, np.ndarray]:
    """Return ttft, tpot and e2e of requests by their first and last tokens, shape (n,) each, s.

    NaN where a time is, and the tpot of a single token.
    """
    output, arrival = requests.output_tokens, requests.arrival
    further = np.where(output > 1, output - 1.0, np.nan)
    return {"ttft": first - arrival, "tpot": (last - first) / further, "e2e": last - arrival}


def latency_figure(values: np.ndarray, point: str) -> float | None:
    """Return the mean, or a percentile such as ``p99``, of known values; None without any."""
    known = values[~np.isnan(values)]
    if not len(known):
        return None
    return float(known.mean() if point == "mean" else quantiles(known, int(point[1:]) / 100))


@dataclass(frozen=True)
class LlmOutcome:
    """What became of n requests.

    Attributes:
        requests: what was served.
        model: of each replica.
        replica: where a request went first, shape (n,); -1 where refused.
        first_token: when its first token came, shape (n,), s; NaN where refused.
        finish: when its last token came, shape (n,), s; NaN where refused.
        restarts: how often it was evicted, shape (n,).
        cached_tokens: of its prompt, found when it was first admitted, shape (n,).
        gaps: between consecutive tokens of a request, of all requests, ascending, shape (k,), s;
            distinguished to 1e-13 s, less finely where more than 262,144 are different.
        gap_counts: how often each occurred, shape (k,).
        gap_total: of all gaps, s.
        busy: time in iterations, shape (replicas,), s; of pipelines, of each stage.
        prefilling: the part of it that is in iterations with a prefill, shape (replicas,), s.
        iterations: shape (replicas,).
        minutes: time in the iterations that start in each minute from the first arrival on: with
            a prefill and others of the first pool, then of the second, shape (k, 4), s.
        prefill_tokens: computed, those computed anew too.
        peak_blocks: most KV blocks held at once, shape (replicas,).
        gpus: of each replica, shape (replicas,).
    """

    requests: RequestTrace
    model: LlmModel
    replica: np.ndarray
    first_token: np.ndarray
    finish: np.ndarray
    restarts: np.ndarray
    cached_tokens: np.ndarray
    gaps: np.ndarray
    gap_counts: np.ndarray
    gap_total: float
    busy: np.ndarray
    prefilling: np.ndarray
    iterations: np.ndarray
    minutes: np.ndarray
    prefill_tokens: int
    peak_blocks: np.ndarray
    gpus: np.ndarray

    @cached_property
    def latencies(self) -> dict[str, np.ndarray]:
        """The ``ttft``, ``tpot`` and ``e2e`` of each request, shape (n,), s; NaN where refused."""
        return latencies(self.requests, self.first_token, self.finish)

    @property
    def ttft(self) -> np.ndarray:
        """Time to the first token, shape (n,), s; NaN where refused."""
        return self.latencies["ttft"]

    @property
    def e2e(self) -> np.ndarray:
        """Time to the last token, shape (n,), s; NaN where refused."""
        return self.latencies["e2e"]

    @property
    def tpot(self) -> np.ndarray:
        """Mean time of each further token, shape (n,), s; NaN where there is none."""
        return self.latencies["tpot"]

    @property
    def peak_kv(self) -> np.ndarray:
        """Most tokens that KV memory was held for at once, shape (replicas,)."""
        if self.model.reserves_exactly:  # token by token
            return self.peak_blocks
        pools = self.model.pools()
        counts = np.array([pool.replicas for pool in pools])
        sizes = [pool.engine.block_size for pool in pools]
        each = np.repeat(sizes, counts * (len(self.gpus) // counts.sum()))
        return np.asarray(self.peak_blocks * each)

    @property
    def span(self) -> float:
        """Time from the first arrival to the last token, s; 0 where nothing was served."""
        served = self.replica >= 0
        return float(self.finish[served].max() - self.requests.arrival[0]) if served.any() else 0.0

    @property
    def tokens_made(self) -> int:
        """Tokens that all requests got."""
        served = self.replica >= 0
        return int(np.maximum(self.requests.output_tokens[served], 1).sum())

    def attained(
        self, ttft: float = math.inf, tpot: float = math.inf, e2e: float = math.inf
    ) -> np.ndarray:
        """Return which requests meet all SLOs, shape (n,); those refused do not.

        Raises:
            SpecError: an SLO is not > 0.
        """
        for name, slo in (("ttft", ttft), ("tpot", tpot), ("e2e", e2e)):
            if not slo > 0:
                raise SpecError(name, f"must be > 0, not {quote(slo)}.")
        served = self.replica >= 0
        return np.asarray(served & (self.ttft <= ttft) & ~(self.tpot > tpot) & (self.e2e <= e2e))

    def figure(self, name: str) -> float | None:
        """Return a latency's figure, such as ``p99_ttft`` or ``mean_itl``; None where unknown."""
        point, _, latency = name.partition("_")
        if latency == "itl":
            return self._of_gaps(point)
        return latency_figure(getattr(self, latency), point)

    def _of_gaps(self, point: str) -> float | None:
        total = int(self.gap_counts.sum())
        if not total:
            return None
        if point == "mean":
            return self.gap_total / total
        at = (total - 1) * int(point[1:]) / 100
        known = np.cumsum(self.gap_counts)
        low, high = self.gaps[np.searchsorted(known, [math.floor(at), math.ceil(at)], "right")]
        return float(low + (high - low) * (at - math.floor(at)))

    def metrics(
        self,
        ttft: float = math.inf,
        tpot: float = math.inf,
        e2e: float = math.inf,
        carbon: float | Intensity | None = None,
        price: float | None = None,
        *,
        tariff: float | Intensity | None = None,
    ) -> dict[str, float | None]:
        """Return mean, p50, p90, p99 of served requests' latencies, goodput, use and energy.

        Args:
            ttft: SLO of the first token, s.
            tpot: SLO of the mean time of further tokens, s; met where there is none.
            e2e: SLO of the last token, s.
            carbon: g/kWh, or how it changes over the trace's time.
            price: of a GPU for an hour.
            tariff: of a kWh, or how it changes over the trace's time.

        ``slo_attainment`` is the share of all requests that meet the three, refused ones do not;
        ``goodput`` is their number per s from the first arrival to the last token. Energy is None
        where the model tells no power.

        Raises:
            SpecError: an SLO is not > 0.
        """
        good = self.attained(ttft, tpot, e2e)
        served = self.replica >= 0
        span, gpus = self.span, int(self.gpus.sum())
        goodput = float(good.sum()) / span if span else 0.0
        made = self.tokens_made
        cached = int(self.cached_tokens.sum())
        prompts = int(self.requests.prompt_tokens[served].sum())
        figures: dict[str, float | None] = {
            "num_requests": len(served),
            "num_rejected": int((~served).sum()),
            "gpus": gpus,
            "slo_attainment": float(good.mean()),
            "goodput": goodput,
            "goodput_per_gpu": goodput / gpus,
            "output_tokens_per_s": made / span if span else 0.0,
            "utilization": float(self.busy.mean()) / span if span else 0.0,
            "num_restarts": int(self.restarts.sum()),
            "num_iterations": int(self.iterations.sum()),
            "prefill_tokens": self.prefill_tokens,
            "cached_tokens": cached,
            "prefix_hit_rate": cached / prompts if prompts else 0.0,
            "peak_kv": int(self.peak_kv.max()),
            "peak_blocks": int(self.peak_blocks.max()),
        }
        for name in LATENCIES:
            for point in ("mean", *(f"p{percent}" for percent in PERCENTS)):
                figures[f"{point}_{name}"] = self.figure(f"{point}_{name}")
        return figures | self._priced(made, carbon, price, tariff)

    @property
    def joules(self) -> float | None:
        """Energy of all GPUs from the first arrival to the last token, J; None without power."""
        power = self.model.power
        if power is None:
            return None
        watts = power.prefill_w * self.prefilling
        watts = watts + power.decode_w * (self.busy - self.prefilling)
        watts = watts + power.idle_w * (self.span - self.busy)
        return float((self.gpus * watts).sum())

    def emitted(self, intensity: float | Intensity) -> float | None:
        """Return what the energy of all GPUs emits or costs; None without power.

        Args:
            intensity: of a kWh: g, or money; where it changes over time, iterations count as drawn
                evenly over the minute in which they start.
        """
        power, joules = self.model.power, self.joules
        if power is None or joules is None:
            return None
        if isinstance(intensity, int | float):
            return joules / _KWH * intensity
        start = float(self.requests.arrival[0])
        edges = start + _MINUTE * np.arange(len(self.minutes) + 1)
        mean = np.diff(intensity.integral(edges)) / _MINUTE
        whole = np.diff(intensity.integral(np.array([start, start + self.span])))[0]
        above = np.array([power.prefill_w, power.decode_w] * 2) - power.idle_w
        above *= np.repeat(self.gpus[[0, -1]], 2)
        idle = power.idle_w * int(self.gpus.sum())
        return float(idle * whole + mean @ self.minutes @ above) / _KWH

    def _priced(
        self,
        made: int,
        carbon: float | Intensity | None,
        price: float | None,
        tariff: float | Intensity | None,
    ) -> dict[str, float | None]:
        check_prices(carbon=carbon, price=price, tariff=tariff)
        joules = self.joules
        hours = float(self.gpus.sum()) * self.span / _HOUR
        grams = None if carbon is None else self.emitted(carbon)
        power = None if tariff is None else self.emitted(tariff)
        known = [
            one for one in (None if price is None else hours * price, power) if one is not None
        ]
        return {
            "energy_kwh": None if joules is None else joules / _KWH,
            "joules_per_output_token": joules / made if joules is not None and made else None,
            "carbon_kg": None if grams is None else grams / 1000,
            "gpu_hours": hours,
            "money": sum(known) if known else None,
        }
