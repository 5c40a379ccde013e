"""Arrivals: the published values, moments, and refusals."""

from __future__ import annotations

import math

import numpy as np
import pytest

from windtunnel import serving
from windtunnel.errors import SpecError
from windtunnel.serving import Deterministic, Gamma, MarkovModulated, model_rates, poisson


def test_published_arrivals() -> None:
    times = poisson(10.0).arrivals(1000.0)
    assert len(times) == 10_086
    assert times[:3] == pytest.approx([0.07958745, 0.20518053, 0.29750284], abs=5e-9)
    bursty = Gamma(10.0, 5.0).arrivals(1000.0)
    gaps = np.diff(bursty)
    assert len(bursty) == 9_698
    assert 1 / gaps.mean() == pytest.approx(9.704, abs=5e-4)
    assert gaps.std() / gaps.mean() == pytest.approx(5.1145, abs=1e-4)
    assert len(Gamma(2.0, 4.0).arrivals(200.0, 3)) == 418


def test_a_start_moves_everything() -> None:
    plain, later = (Gamma(5.0, 2.0).arrivals(50.0, 7, start) for start in (0.0, 64.0))
    assert later == pytest.approx(plain + 64.0)


def test_markov_modulated() -> None:
    process = MarkovModulated((2.0, 6.0), (30.0, 2.0))
    assert process.mean_rate == 9.0
    times = process.arrivals(20_000.0, 1)
    assert len(times) == 180_000
    assert (np.diff(times) >= 0).all()
    assert times[-1] == pytest.approx(20_000, rel=0.05)
    steady = MarkovModulated((3.0,), (4.0,)).arrivals(20_000.0, 1)
    gaps = np.diff(steady)
    assert gaps.std() / gaps.mean() == pytest.approx(1.0, abs=0.02)
    # Counts of windows much shorter than a sojourn: a mixture of two Poisson laws.
    counts = np.bincount((times / 0.05).astype(int))
    mixed = 9.0 * 0.05 + 0.05**2 * (0.25 * 30**2 + 0.75 * 2**2 - 81)
    assert counts.var() == pytest.approx(mixed, rel=0.05)
    assert len(MarkovModulated((1.0, 1.0), (0.0, 0.0)).arrivals(10.0)) == 0


def test_rates_over_models() -> None:
    assert model_rates(7, 4.0, "triangle_decay") * 0.75 == pytest.approx(
        [1, 0.5, 0.5, 0.25, 0.25, 0.25, 0.25]
    )
    power = model_rates(4, 10.0, "power_law")
    assert power.sum() == pytest.approx(10)
    assert power[0] / power[3] == pytest.approx(2)
    assert model_rates(2, 3.0, [1, 3]).tolist() == [0.75, 2.25]


def test_zero_rates_and_deterministic() -> None:
    workload = serving.generate(["a", "b"], duration=10.0, rate=0.0, cv=3.0)
    assert len(workload) == 0
    assert Deterministic(0.0).arrivals(5.0).tolist() == []
    even = serving.generate(["a", "b"], duration=2.0, rate=2.0, cv=0.0)
    assert even.arrival.tolist() == [0, 0, 1, 1]
    assert even.model.tolist() == [0, 1, 0, 1]


def test_scaling() -> None:
    workload = serving.generate(["a", "b"], duration=100.0, rate=20.0, slo=[1.0, 2.0])
    fast = workload.compress(4.0)
    assert fast.span == pytest.approx(workload.span / 4)
    assert (workload.repeat(3).rates() / workload.rates()) == pytest.approx([3, 3])
    thin = workload.thin(0.25, seed=1)
    assert len(thin) == pytest.approx(len(workload) / 4, rel=0.15)
    assert len(workload.thin(1.0)) == len(workload)
    cut = workload.window(10.0, 20.0, rebase=True)
    assert 0 <= cut.arrival.min() <= cut.arrival.max() < 10
    assert set(cut.slo[cut.model == 1]) == {2.0}


@pytest.mark.parametrize("bad", [math.nan, -1.0, math.inf])
def test_refusals(bad: float) -> None:
    with pytest.raises(SpecError):
        Gamma(bad)
    with pytest.raises(SpecError):
        Gamma(1.0, bad)
    with pytest.raises(SpecError):
        model_rates(2, 1.0, [bad, 1.0])
    with pytest.raises(SpecError):
        serving.generate(["a"], duration=bad, rate=1.0)
    with pytest.raises(SpecError):
        MarkovModulated((1.0,), (bad,))
    with pytest.raises(SpecError, match="Did you mean 'power_law'"):
        model_rates(2, 1.0, "power-law")
