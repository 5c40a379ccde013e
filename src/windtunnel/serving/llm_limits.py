"""Promises of a service as limits on figures, and whether any number of replicas keeps them.

No number of replicas beats the latencies of requests that have a replica to themselves.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from windtunnel.checked import checked_choice
from windtunnel.errors import SpecError, quote
from windtunnel.serving.llm_costs import LinearCost, RooflineCost
from windtunnel.serving.llm_engine import UNIT_TOKENS
from windtunnel.serving.llm_outcome import LATENCIES, PERCENTS
from windtunnel.serving.llm_simulate import simulate_llm

if TYPE_CHECKING:
    from collections.abc import Mapping

    from windtunnel.serving.llm_model import LlmModel
    from windtunnel.serving.llm_outcome import LlmOutcome
    from windtunnel.serving.request_traces import RequestTrace


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
            checked_choice("limits", name, (*AT_MOST, *AT_LEAST))
            number = isinstance(bound, int | float) and not isinstance(bound, bool)
            if not number or not 0 < bound < math.inf:
                where = name.partition("_")[2] if name in AT_MOST else name
                raise SpecError(where, f"must be > 0, not {quote(bound)}.")
            if name == "slo_attainment" and bound > 1:
                raise SpecError(name, f"found {quote(bound)}; expected a share, at most 1.")

    def figures(self, outcome: LlmOutcome) -> dict[str, float | None]:
        """Return the limited figures of a run."""
        return {
            name: outcome.figure(name) if name in AT_MOST else self._rate(name, outcome)
            for name in self.bounds
        }

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


_LATENCIES = ("ttft", "tpot", "e2e")
#: Forms of cost that rise with each kind of token.
_RISING = (LinearCost, RooflineCost)
#: Requests that are served in one go.
_TOGETHER = 4096


class Alone:
    """Requests, each on a replica of its own; once for models that differ in nothing but pools.

    Args:
        requests: with prompt and output tokens.
    """

    def __init__(self, requests: RequestTrace) -> None:
        self.requests = requests
        self._known: list[tuple[LlmModel, bool, dict[str, np.ndarray]]] = []

    def latencies(self, model: LlmModel) -> dict[str, np.ndarray] | None:
        """Return ``ttft``, ``tpot`` and ``e2e`` of each request, shape (n,), s.

        Other requests only slow one down, but for what it finds in a prefix cache: there, all that
        another request has, too, is taken for found. None where that is no bound, as measured
        times need not rise with tokens.
        """
        caches = model.pages.prefix_caching and len(self.requests.blocks) > 0
        costs = [model.cost, *(pool.cost for pool in model.pools())]
        if caches and not all(isinstance(one, _RISING) for one in costs):
            return None
        alike = _without_pools(model)
        for known, cached, latencies in self._known:
            if known == alike and cached == caches:
                return latencies
        prompt = self.requests.prompt_tokens
        if caches:
            prompt = prompt - _findable(self.requests, model.pages.block_size)
        found = _served_alone(self.requests, prompt, alike)
        self._known.append((alike, caches, found))
        return found


def _findable(requests: RequestTrace, size: int) -> np.ndarray:
    """Return the tokens at each prompt's begin that a cache may hold at best, shape (n,)."""
    units, start = requests.units
    shared = np.bincount(units)[units] > 1
    own = np.append(np.flatnonzero(~shared), len(units))
    ends = np.minimum(own[np.searchsorted(own, start[:-1])], start[1:])
    most = (requests.prompt_tokens - 1) // size * size
    return np.asarray(np.clip((ends - start[:-1]) * UNIT_TOKENS, 0, np.maximum(most, 0)))


def _without_pools(model: LlmModel) -> LlmModel:
    """Return a model that serves a lone request alike: without caches, one replica of each pool."""
    lone = model.but(prefix_caching=False) if model.pages.prefix_caching else model
    if lone.split is None:
        return lone
    one: dict[str, Any] = {"prefill_replicas": 1, "decode_replicas": 1}
    return replace(lone, split=replace(lone.split, decode_dispatch="round_robin", **one))


def _served_alone(
    requests: RequestTrace, prompts: np.ndarray, model: LlmModel
) -> dict[str, np.ndarray]:
    lengths = np.stack([prompts, requests.output_tokens])
    both, row = np.unique(lengths, axis=1, return_inverse=True)
    parts: dict[str, list[np.ndarray]] = {name: [] for name in _LATENCIES}
    for start in range(0, both.shape[1], _TOGETHER):
        prompt, output = both[:, start : start + _TOGETHER]
        each = replace(
            requests,
            arrival=np.zeros(len(prompt)),
            function=np.zeros(len(prompt), dtype=np.int64),
            prompt_tokens=prompt,
            output_tokens=output,
            images=np.empty(0, dtype=np.int64),
            blocks=(),
        )
        run = simulate_llm(each, model, len(prompt), "round_robin")
        for name, found in parts.items():
            found.append(run.latencies[name])
    return {name: np.concatenate(found)[row.ravel()] for name, found in parts.items()}
