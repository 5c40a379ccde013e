"""Latencies of requests that have a replica to themselves: what no number of replicas beats."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from windtunnel.serving.llm_costs import LinearCost, RooflineCost
from windtunnel.serving.llm_engine import UNIT_TOKENS
from windtunnel.serving.llm_simulate import simulate_llm

if TYPE_CHECKING:
    from windtunnel.serving.llm_model import LlmModel
    from windtunnel.serving.request_traces import RequestTrace

_LATENCIES = ("ttft", "tpot", "e2e")
#: Forms of cost that rise with each kind of token.
_RISING = (LinearCost, RooflineCost)
#: Requests that are served in one go.
_TOGETHER = 4096


class Alone:
    """Requests, each on a replica of its own; told once of models that differ in nothing but pools.

    Args:
        requests: with prompt and output tokens.
    """

    def __init__(self, requests: RequestTrace) -> None:
        self.requests = requests
        self._known: list[tuple[LlmModel, bool, dict[str, np.ndarray]]] = []

    def latencies(self, model: LlmModel) -> dict[str, np.ndarray] | None:
        """Return ``ttft``, ``tpot`` and ``e2e`` of each request, shape (n,), s.

        Company only slows a request down, but for what it finds in a prefix cache: there, all that
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
