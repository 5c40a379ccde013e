"""Speed of model serving: requests per CPU second of the simulators, and placement search."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import numpy as np
import pytest

from windtunnel import serving
from windtunnel.serving.compiled import kernels, tables
from windtunnel.serving.search.policies import search
from windtunnel.serving.simulate import DISPATCH

if TYPE_CHECKING:
    from collections.abc import Callable

    from conftest import Figures
    from windtunnel.serving import Placement, Workload

PROFILE = serving.synthetic_profile()
MODELS = ["medium"] * 24
PIPELINES = serving.as_placement([{"parallel": [1, 1, 8], "models": list(range(24))}] * 2)


def drawn(duration: float) -> Workload:
    slo = serving.slos(MODELS, PROFILE, 5.0)
    return serving.generate(MODELS, duration=duration, rate=50.0, cv=4.0, slo=slo)


@pytest.fixture(scope="module")
def million() -> Workload:
    return drawn(20_000.0)


def test_core(million: Workload, figures: Figures, cpu_seconds: Callable[..., float]) -> None:
    arrays = tables(PIPELINES, MODELS, PROFILE, serving.Overheads())
    serve = kernels().serve_at_once

    def run() -> None:
        clocks = np.zeros(arrays.clock_start[-1])
        rule = DISPATCH.index("least_work")
        serve(million.arrival, million.model, million.slo, *arrays, 0.0, clocks, rule, 0)

    run()
    seconds = cpu_seconds(run, rounds=5)
    figures.rate("serving, immediate, kernel alone", len(million), seconds, 3e6)


def test_end_to_end(figures: Figures, cpu_seconds: Callable[..., float]) -> None:
    def run() -> None:
        serving.simulate(PIPELINES, drawn(20_000.0), PROFILE).metrics(10.0)

    serving.simulate(PIPELINES, drawn(10.0), PROFILE)
    seconds = cpu_seconds(run, rounds=3)
    figures.rate("serving, arrivals to metrics, 24 models", 1_000_000, seconds, 500e3)


@pytest.mark.parametrize(
    ("name", "run"),
    [("events", serving.simulate_events), ("batching", serving.simulate_batches)],
)
def test_other_simulators(
    million: Workload,
    figures: Figures,
    cpu_seconds: Callable[..., float],
    name: str,
    run: Callable[[Placement, Workload, serving.Profile], object],
) -> None:
    run(PIPELINES, drawn(10.0), PROFILE)
    seconds = cpu_seconds(lambda: run(PIPELINES, million, PROFILE), rounds=3)
    figures.rate(f"serving, {name} simulator, whole call", len(million), seconds, 200e3)


def test_bucketed_search(figures: Figures) -> None:
    models = [PROFILE.models[i % 3] for i in range(60)]
    slo = serving.slos(models, PROFILE, 5.0)
    workload = serving.generate(models, duration=200.0, rate=64.0, cv=4.0, slo=slo)
    search(workload, PROFILE, 1)
    begin = time.perf_counter()
    search(workload, PROFILE, 32, "mp-search-sep", workers=2)
    seconds = time.perf_counter() - begin
    figures.amount("bucketed search, 60 models on 32 GPUs", seconds, "s wall, 2 threads", 30)


def test_language_model(figures: Figures, cpu_seconds: Callable[..., float]) -> None:
    """20,000 requests of 200 tokens: a recorded hour, on as many replicas as they need."""
    arrival = serving.Gamma(5.5, 1.1).arrivals(3600.0, 0)
    rng = np.random.default_rng(0)
    count = len(arrival)
    prompt, output = (
        np.maximum(rng.lognormal(np.log(median), 1.0, count), 1).astype(np.int64)
        for median in (1000, 130)
    )
    zeros = np.zeros(count, dtype=np.int64)
    trace = serving.RequestTrace("made", "vidur", arrival, zeros, ("",), prompt, output)
    model = serving.synthetic_llm()
    serving.simulate_llm(trace.window(0.0, 10.0), model)
    seconds = cpu_seconds(lambda: serving.simulate_llm(trace, model, 64), rounds=3)
    figures.rate("serving, language model, output tokens", int(output.sum()), seconds, 2e6)
    seconds = cpu_seconds(lambda: serving.llm_capacity(trace, model, 0.6), rounds=1)
    figures.amount("serving, replicas for an hour of requests", seconds, "CPU s", 10)
