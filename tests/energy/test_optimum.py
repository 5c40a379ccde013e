"""The analytic optimum: by hand, against the published values, and what must always hold."""

from __future__ import annotations

import csv
import math
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from toy import JOB, TOY

from windtunnel.energy import (
    Configuration,
    Workload,
    configurations,
    default_configuration,
    energy_potential,
    open_workload,
    optimum,
    pareto_front,
    ranked,
)
from windtunnel.errors import InfeasibleError, SpecError

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


def test_by_hand() -> None:
    best = optimum(TOY, 0.5)
    assert best == Configuration(16, 100, True, 6.0, 60.0, 6000.0, 9000.0)
    assert default_configuration(TOY, 0.5) == Configuration(
        32, 200, True, 9.0, 63.0, 12600.0, 12600.0
    )
    assert [one.label for one in ranked(TOY, 0.5)] == [
        *("16@100", "16@200", "32@200", "32@100", "8@200", "8@100"),
    ]
    front = pareto_front(configurations(TOY, 0.5))
    assert [one.label for one in front] == ["16@200", "16@100"]
    potential = energy_potential(TOY)
    assert potential is not None
    # Default 12600 J; 16@200 8640 J, 32@100 9000 J, 16@100 6000 J.
    assert (potential.batch_size, potential.power_limit, potential.both) == pytest.approx(
        (1 - 8640 / 12600, 1 - 9000 / 12600, 1 - 6000 / 12600)
    )


def test_eta_0_is_time_and_eta_1_energy() -> None:
    assert optimum(TOY, 0.0).tta_s == min(one.tta_s for one in configurations(TOY, 0.0))
    assert optimum(TOY, 1.0).eta_j == min(one.eta_j for one in configurations(TOY, 1.0))
    for one in configurations(TOY, 0.0):
        assert one.cost_j == 200 * one.tta_s


def test_a_size_with_one_failing_run_is_not_feasible() -> None:
    for bad in (math.nan, 21.0):
        workload = replace(TOY, epochs={**TOY.epochs, 16: np.array([6.0, bad])})
        assert workload.feasible_batch_sizes == (8, 32)
        assert optimum(workload, 0.5).batch_size == 32
    exactly = replace(TOY, epochs={**TOY.epochs, 16: np.array([6.0, 20.0])})
    assert 16 in exactly.feasible_batch_sizes


def test_nothing_feasible_is_reported() -> None:
    hopeless = replace(TOY, job=replace(JOB, max_epochs=5))
    with pytest.raises(InfeasibleError, match=r"no batch size reached 0.9 within 5 epochs"):
        optimum(hopeless, 0.5)
    with pytest.raises(SpecError, match=r"eta: found -0.1"):
        optimum(TOY, -0.1)


def test_a_default_that_fails_has_no_potential() -> None:
    assert energy_potential(replace(TOY, job=replace(JOB, max_epochs=8))) is None


@given(
    points=st.lists(
        st.tuples(st.integers(1, 8), st.integers(1, 8), st.booleans()), min_size=1, max_size=30
    )
)
def test_the_front_is_what_nothing_beats(points: list[tuple[int, int, bool]]) -> None:
    found = [
        Configuration(place, 100, feasible, 1.0, float(time), float(energy), 0.0)
        for place, (time, energy, feasible) in enumerate(points)
    ]
    front = pareto_front(found)

    def beaten(one: Configuration) -> bool:
        return any(
            other.tta_s <= one.tta_s
            and other.eta_j <= one.eta_j
            and (other.tta_s, other.eta_j) != (one.tta_s, one.eta_j)
            for other in found
            if other.feasible
        )

    assert set(front) == {one for one in found if one.feasible and not beaten(one)}
    assert [one.tta_s for one in front] == sorted(one.tta_s for one in front)


@given(eta=st.floats(0, 1))
def test_the_optimum_lies_on_the_front(eta: float) -> None:
    """A weighted sum of time and energy is smallest where neither can be had for nothing."""
    best = optimum(TOY, eta)
    front = pareto_front(configurations(TOY, eta))
    assert best.cost_j == pytest.approx(min(one.cost_j for one in front), rel=1e-12)


@pytest.mark.data
def test_the_published_table(zeus_dir: Path, measured: Callable[[str, str], Workload]) -> None:
    with (zeus_dir / "expected_optimum.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == 60
    for row in rows:
        workload, eta = measured(row["gpu"], row["dataset"]), float(row["eta_knob"])
        order = ranked(workload, eta)
        best, second, default = order[0], order[1], default_configuration(workload, eta)
        front = pareto_front(configurations(workload, eta))
        close = {
            "max_power_w": workload.max_power_w,
            "n_batch_sizes": len(workload.batch_sizes),
            "n_feasible_batch_sizes": len(workload.feasible_batch_sizes),
            "n_configs": len(configurations(workload, eta)),
            "n_feasible_configs": len(order),
            "default_batch_size": default.batch_size,
            "default_power_limit_w": default.power_limit,
            "opt_batch_size": best.batch_size,
            "opt_power_limit_w": best.power_limit,
            "opt_mean_epochs": best.mean_epochs,
            "opt_tta_s": best.tta_s,
            "opt_eta_j": best.eta_j,
            "opt_cost_j": best.cost_j,
            "default_tta_s": default.tta_s,
            "default_eta_j": default.eta_j,
            "default_cost_j": default.cost_j,
            "eta_reduction_pct": 100 * (1 - best.eta_j / default.eta_j),
            "tta_change_pct": 100 * (best.tta_s / default.tta_s - 1),
            "cost_reduction_pct": 100 * (1 - best.cost_j / default.cost_j),
            "runner_up_batch_size": second.batch_size,
            "runner_up_power_limit_w": second.power_limit,
            "runner_up_cost_gap_pct": 100 * (second.cost_j / best.cost_j - 1),
        }
        for name, value in close.items():
            assert value == pytest.approx(float(row[name]), rel=1e-6, abs=1e-6), (row, name)
        labels = ";".join(one.label for one in front)
        assert labels == row["pareto_front_tta_ascending"]


@pytest.mark.data
def test_the_published_potentials(measured: Callable[[str, str], Workload]) -> None:
    names = ("cifar100", "imagenet", "librispeech", "movielens-1m", "squad", "sentiment140")
    found = {name: energy_potential(measured("v100", name)) for name in names}
    percents = {
        name: tuple(round(100 * share, 1) for share in (one.batch_size, one.power_limit, one.both))
        for name, one in found.items()
        if one is not None
    }
    assert percents["cifar100"] == (63.2, 31.4, 74.7)
    assert percents["librispeech"] == (18.0, 16.2, 42.8)
    assert percents["squad"] == (6.7, 17.8, 27.6)
    both = [one[2] for one in percents.values()]
    assert (min(both), max(both)) == (23.8, 74.7)


def test_made_up_measurements_have_a_best_size_in_the_middle() -> None:
    for gpu in ("v100", "a40", "p100", "rtx6000"):
        workload = open_workload("synthetic", gpu)
        best, default = optimum(workload, 0.5), default_configuration(workload, 0.5)
        assert default.feasible
        assert min(workload.batch_sizes) < best.batch_size < default.batch_size
        assert best.power_limit < max(workload.power_limits)
        assert len(pareto_front(configurations(workload, 0.5))) > 3
        assert workload.notes[0].startswith("The measurements are made up")
        again = open_workload("synthetic", gpu)
        for size, epochs in workload.epochs.items():
            assert np.array_equal(again.epochs[size], epochs, equal_nan=True)
    with pytest.raises(SpecError, match="Did you mean 'v100'"):
        open_workload("synthetic", "v10")
