"""Promises of a service as limits on figures, and whether any number of replicas keeps them."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from windtunnel.errors import SpecError, quote
from windtunnel.serving.llm_outcome import LATENCIES, PERCENTS

if TYPE_CHECKING:
    from collections.abc import Mapping

    from windtunnel.serving.llm_alone import Alone
    from windtunnel.serving.llm_model import LlmModel
    from windtunnel.serving.llm_outcome import LlmOutcome

#: Figures that are limited from above, and from below.
AT_MOST = tuple(
    f"{point}_{name}" for name in LATENCIES for point in ("mean", *(f"p{p}" for p in PERCENTS))
)
AT_LEAST = ("slo_attainment", "goodput", "output_tokens_per_s")


@dataclass(frozen=True)
class Limits:
    """Bounds of figures, with the SLOs that attainment and goodput count.

    Attributes:
        bounds: figure -> bound: latencies at most, s; attainment and rates at least.
        ttft, tpot, e2e: SLOs, s.

    Raises:
        SpecError: an unknown figure, or a bound that is no number > 0.
    """

    bounds: Mapping[str, float]
    ttft: float = math.inf
    tpot: float = math.inf
    e2e: float = math.inf

    def __post_init__(self) -> None:
        if not self.bounds:
            raise SpecError("limits", "expected a limit at least.")
        for name, bound in self.bounds.items():
            if name not in (*AT_MOST, *AT_LEAST):
                raise SpecError.unknown("limits", name, (*AT_MOST, *AT_LEAST))
            number = isinstance(bound, int | float) and not isinstance(bound, bool)
            if not number or not 0 < bound < math.inf:
                where = name.partition("_")[2] if name in AT_MOST else name
                raise SpecError(where, f"must be > 0, not {quote(bound)}.")
            if name == "slo_attainment" and bound > 1:
                raise SpecError(name, f"found {quote(bound)}; expected a share, at most 1.")

    def figures(self, outcome: LlmOutcome) -> dict[str, float | None]:
        """Return the limited figures of a run."""
        told: dict[str, float | None] = {}
        for name in self.bounds:
            told[name] = outcome.figure(name) if name in AT_MOST else self._rate(name, outcome)
        return told

    def _rate(self, name: str, outcome: LlmOutcome) -> float:
        if name == "slo_attainment":
            return float(outcome.attained(self.ttft, self.tpot, self.e2e).mean())
        if not outcome.span:
            return 0.0
        if name == "goodput":
            return float(outcome.attained(self.ttft, self.tpot, self.e2e).sum()) / outcome.span
        return outcome.tokens_made / outcome.span

    def broken(self, figures: Mapping[str, float | None]) -> list[str]:
        """Return the figures that break their limits; one that no request has breaks none."""
        return [
            name
            for name, bound in self.bounds.items()
            if (value := figures[name]) is not None
            and (value > bound if name in AT_MOST else value < bound)
        ]

    def check_reachable(self, alone: Alone, model: LlmModel) -> None:
        """Refuse limits that each request breaks on a replica of its own.

        Raises:
            SpecError: some latency is above its limit with any number of replicas.
        """
        bounds = {n: b for n, b in self.bounds.items() if n in AT_MOST and not n.endswith("itl")}
        least_of = alone.latencies(model) if bounds else None
        if least_of is None:
            return
        for name, bound in bounds.items():
            point, _, latency = name.partition("_")
            values = least_of[latency][~np.isnan(least_of[latency])]
            if not len(values):
                continue
            least = values.mean() if point == "mean" else np.quantile(values, int(point[1:]) / 100)
            # Times far into a trace are rounded: a hair is no reason to refuse.
            if least > bound * (1 + 1e-9):
                what = "a prompt" if latency == "ttft" else "a request"
                raise SpecError(
                    latency,
                    f"{point.upper()} is {least:.6g} s with any number of replicas: {what} alone "
                    f"takes as long.",
                )
