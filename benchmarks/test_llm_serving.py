"""Speed of language-model serving: requests per CPU second, and capacity searches."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from windtunnel import serving
from windtunnel.serving.llm_costs import LinearCost

if TYPE_CHECKING:
    from collections.abc import Callable

    from conftest import Figures

COST = LinearCost(0.008, 4e-5, 2e-5, 4e-8)


def drawn(count: int, rate: float, *, shared: bool = False) -> serving.RequestTrace:
    """Return requests of usual lengths: prompts of 1,000 tokens, answers of 200, log-normal."""
    rng = np.random.default_rng(0)
    prompt = np.clip(rng.lognormal(6.6, 0.8, count), 10, 8000).astype(np.int64)
    output = np.clip(rng.lognormal(4.9, 0.9, count), 1, 1500).astype(np.int64)
    users = rng.integers(0, 50, count).tolist()
    blocks = [
        [1000 * user + k if 512 * k < size / 2 else -(100 * i + k) for k in range(-(-size // 512))]
        for i, (user, size) in enumerate(zip(users, prompt.tolist(), strict=True))
    ]
    arrival = np.cumsum(rng.exponential(1 / rate, count))
    return serving.RequestTrace(
        arrival=arrival, prompt_tokens=prompt, output_tokens=output, blocks=blocks if shared else ()
    )


def test_vllm(figures: Figures, cpu_seconds: Callable[..., float]) -> None:
    requests = drawn(100_000, 40.0)
    engine = serving.Engine(num_blocks=4000, max_num_seqs=128)
    model = serving.LlmModel(cost=COST, engine=engine)

    def run() -> None:
        serving.simulate_llm(requests, model, 64).metrics(1.0, 0.05)

    figures.rate("language models, vllm_v1, 64 replicas", 100_000, cpu_seconds(run, rounds=3), 1e5)


def test_vllm_with_evictions_and_a_cache(
    figures: Figures, cpu_seconds: Callable[..., float]
) -> None:
    requests = drawn(20_000, 40.0, shared=True)
    engine = serving.Engine(num_blocks=600, max_num_seqs=128, prefix_caching=True)
    model = serving.LlmModel(cost=COST, engine=engine)
    requests.units  # noqa: B018 - numbered once

    def run() -> None:
        found = serving.simulate_llm(requests, model, 16).metrics(1.0, 0.05)
        assert (found["num_restarts"] or 0) > 0

    figures.rate("language models, evicted and cached", 20_000, cpu_seconds(run, rounds=3), 3e4)
