"""Two models on two GPUs: the lecture's example, its law, and the search that finds its answer."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np
import pytest
from laws import md1, pipeline

from windtunnel import serving
from windtunnel.serving import Parallel

if TYPE_CHECKING:
    from windtunnel.serving import Placement, Profile, Workload

SIMPLE = serving.as_placement([{"parallel": [1, 1, 1], "models": [i]} for i in range(2)])
PIPELINE = serving.as_placement([{"parallel": [1, 1, 2], "models": [0, 1]}])


def requests(rates: tuple[float, float] = (1.0, 1.0), cv: float = 1.0) -> Workload:
    return serving.generate(["bert-6.7b"] * 2, duration=20_000.0, rate=3.0, rates=rates, cv=cv)


def mean(placement: Placement, workload: Workload, profile: Profile) -> float:
    run = serving.simulate(placement, workload, profile, overheads="alpaserve")
    return float(run.metrics(10.0)["mean_latency"])


@pytest.mark.data
@pytest.mark.parametrize(
    ("rates", "cv", "simple", "pipelined"),
    [
        ((1.0, 1.0), 1.0, 0.7122, 0.5757),
        ((0.2, 0.8), 1.0, 4.0420, 0.5710),
        ((1.0, 1.0), 3.0, 4.0968, 2.2361),
    ],
)
def test_published_means(
    published: Profile, rates: tuple[float, float], cv: float, simple: float, pipelined: float
) -> None:
    workload = requests(rates, cv)
    assert mean(SIMPLE, workload, published) == pytest.approx(simple, abs=5.1e-5)
    assert mean(PIPELINE, workload, published) == pytest.approx(pipelined, abs=5.1e-5)


@pytest.mark.data
def test_published_law(published: Profile) -> None:
    """Theory of the source's table, 11 ms included: 0.7060 and 3.9440 s, 0.5713 s."""
    latency = published.latency("bert-6.7b") * 1.009
    stages = published.stages("bert-6.7b", Parallel(1, 1, 2)).latency * 1.018
    half = md1(1.5, latency) + 0.011
    assert half == pytest.approx(0.7060, abs=6e-5)
    skewed = 0.2 * md1(0.6, latency) + 0.8 * md1(2.4, latency) + 0.011
    assert skewed == pytest.approx(3.9440, abs=6e-5)
    assert pipeline(3.0, stages) + 0.011 == pytest.approx(0.5713, abs=6e-5)


@pytest.mark.data
@pytest.mark.parametrize(("rates", "cv"), [((1.0, 1.0), 1.0), ((0.2, 0.8), 1.0), ((1.0, 1.0), 3.0)])
def test_the_search_finds_the_pipeline(
    published: Profile, rates: tuple[float, float], cv: float
) -> None:
    found = serving.search(requests(rates, cv), published, 2, overheads="alpaserve")
    assert found.placement.normal() == PIPELINE


def simple(p: float, rate: float, latency: float) -> float:
    """Return the mean of one model a GPU, shares p and 1 - p."""
    waits = [
        share * (share * rate * latency**2 / (2 * (1 - share * rate * latency)))
        for share in (p, 1 - p)
    ]
    return latency + sum(waits)


@pytest.mark.parametrize(
    ("load", "alpha", "beta"),
    [
        (0.1, 1.01281, 1.39928),
        (0.5, 1.06916, 1.33333),
        (1.0, 1.13148, 1.23607),
        (1.5, 1.11111, 1.12311),
        (1.9, 1.02492, 1.02498),
    ],
)
def test_break_even_overheads(load: float, alpha: float, beta: float) -> None:
    """With these overheads a pipeline of two is worth exactly two GPUs by themselves (D = 1)."""
    assert simple(0.5, load, 1.0) == pytest.approx(1 + load / (4 - 2 * load))
    assert pipeline(load, np.array([0.5, 0.5])) - 1 == pytest.approx(load / (8 - 4 * load))
    root = math.sqrt(64 - 96 * load + 56 * load**2 - 12 * load**3 + load**4)
    slower = (load**2 - 8 + root) / (3 * (load**2 - 2 * load))
    uneven = (math.sqrt(load**2 - 4 * load + 8) - load) / (2 - load)
    assert (slower, uneven) == (pytest.approx(alpha, abs=6e-6), pytest.approx(beta, abs=6e-6))
    alone = simple(0.5, load, 1.0)
    assert pipeline(load, np.array([slower, slower]) / 2) == pytest.approx(alone)
    assert pipeline(load, np.array([uneven / 2, 1 - uneven / 2])) == pytest.approx(alone)
