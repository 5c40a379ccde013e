"""Simulated queues meet queueing theory, at loads up to 0.6 within 2 %."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from laws import attainment, md1, md_c, pipeline

from windtunnel import serving
from windtunnel.serving import Gamma, Group, Parallel, Placement, Profile, Stages

UNKNOWN = np.array([math.nan])


def profile(**models: list[float]) -> Profile:
    """Return models by the times of their stages."""
    entries = {}
    for name, times in models.items():
        nothing = np.zeros(len(times))
        stages = Stages(np.array(times), nothing, nothing)
        entries[name, Parallel(1, 1, len(times)), 1] = stages
    return Profile("law", entries)


def mean(
    costs: Profile,
    stages: int,
    models: list[str],
    rates: list[float],
    count: int = 1,
    cv: float = 1,
) -> dict[str, Any]:
    """Return the figures of some 200,000 requests without deadline on equal groups."""
    workload = serving.generate(
        models, duration=200_000 / sum(rates), processes=[Gamma(rate, cv) for rate in rates]
    )
    group = Group(Parallel(1, 1, stages), tuple(range(len(models))))
    return serving.simulate(Placement((group,) * count), workload, costs).metrics()


@pytest.mark.parametrize("load", [0.3, 0.6])
def test_one_server(load: float) -> None:
    found = mean(profile(m=[0.15]), 1, ["m"], [load / 0.15])
    assert found["mean_latency"] == pytest.approx(md1(load / 0.15, 0.15), rel=0.02)
    assert found["utilization"] == pytest.approx(load, rel=0.02)


def test_several_models_on_one_server() -> None:
    times, rates = [0.15, 0.24], [1.5, 1.0]
    second = sum(r * t * t for r, t in zip(rates, times, strict=True))
    load = sum(r * t for r, t in zip(rates, times, strict=True))
    wait = second / (2 * (1 - load))
    found = mean(profile(a=[0.15], b=[0.24]), 1, ["a", "b"], rates)
    assert [one["mean_latency"] for one in found["by_model"]] == pytest.approx(
        [wait + time for time in times], rel=0.02
    )


@pytest.mark.parametrize("stages", [[0.2, 0.1], [0.05, 0.2, 0.1], [0.1] * 4])
def test_pipeline(stages: list[float]) -> None:
    rate = 0.6 / max(stages)
    found = mean(profile(m=stages), len(stages), ["m"], [rate])
    assert found["mean_latency"] == pytest.approx(pipeline(rate, np.array(stages)), rel=0.02)


def test_replicas() -> None:
    assert md_c(4.0, 0.15, 1) == pytest.approx(md1(4.0, 0.15), rel=1e-9)
    found = mean(profile(m=[0.15]), 1, ["m"], [8.0], count=2)
    assert found["mean_latency"] == pytest.approx(md_c(8.0, 0.15, 2), rel=0.02)


@pytest.mark.parametrize(
    ("load", "scale", "share"),
    [(0.9, 1.15, 0.5432), (0.9, 2, 0.7458), (0.9, 5, 0.9331), (1.2, 2, 0.6512), (0.5, 3, 0.9691)],
)
def test_admission(load: float, scale: float, share: float) -> None:
    """The table's law has the source's service and overhead: 0.15245 s and 11 ms of 0.15109 s."""
    latency, fixed = 0.15109131071302626, 0.011
    service = latency * 1.009
    rate = load / service
    assert attainment(rate, service, scale * latency - fixed) == pytest.approx(share, abs=6e-5)
    workload = serving.generate(["m"], duration=200_000 / rate, rate=rate, slo=scale * latency)
    placement = Placement((Group(Parallel(), (0,)),))
    found = serving.simulate(
        placement, workload, profile(m=[latency]), overheads="alpaserve"
    ).metrics()
    assert found["slo_attainment"] == pytest.approx(share, rel=0.01)


def test_limits_of_admission() -> None:
    assert attainment(4.0, 0.15, 0.15) == pytest.approx(1 / 1.6)
    assert attainment(10.0, 0.15, 6.0) == pytest.approx(1 / 1.5, rel=1e-6)
    assert attainment(1.0, 0.15, 0.1) == 0


@pytest.mark.parametrize("cv", [2.0, 3.0])
def test_kingman(cv: float) -> None:
    found = mean(profile(m=[0.15]), 1, ["m"], [4.0], cv=cv)
    assert found["mean_latency"] - 0.15 <= cv**2 / (2 * 4.0 * 0.4)


@given(
    gaps=st.lists(st.floats(0, 2), min_size=1, max_size=60),
    stages=st.lists(st.floats(0.01, 1), min_size=1, max_size=6),
)
@settings(max_examples=200)
def test_a_pipeline_waits_as_its_slowest_stage(gaps: list[float], stages: list[float]) -> None:
    """Sample path: sojourn = sum of stages + the wait at a server as slow as the slowest."""
    workload = serving.merge(["m"], [np.cumsum(gaps)])
    costs = profile(m=stages)
    placement = Placement((Group(Parallel(1, 1, len(stages)), (0,)),))
    free, expected = -math.inf, []
    for arrival in workload.arrival.tolist():
        begin = max(free, arrival)
        free = begin + max(stages)
        expected.append(sum(stages) + begin - arrival)
    for found in (
        serving.simulate(placement, workload, costs),
        serving.simulate_events(placement, workload, costs),
    ):
        assert found.latency == pytest.approx(expected, abs=1e-9)
