"""The analytic model: its formula, its fit, the published errors, 3D plans, memory."""

from __future__ import annotations

import csv
import dataclasses
import math
from functools import lru_cache
from typing import TYPE_CHECKING

import msgspec
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from windtunnel.errors import SpecError
from windtunnel.throughput import Plan, training_model, training_models
from windtunnel.throughput.accuracy import prediction_errors
from windtunnel.throughput.analytic import (
    Bandwidths,
    Parameters,
    data_parallel,
    overlapped,
    published_3d,
)
from windtunnel.throughput.fitting import START, fit
from windtunnel.throughput.memory import estimate
from windtunnel.throughput.objective import Objective
from windtunnel.throughput.prediction import predicted_time, three_d_rows
from windtunnel.throughput.tables import ProfiledPoint
from windtunnel.throughput.three_d import Sizes, cards, features, fit_costs, predict
from windtunnel.throughput.validation import validate

if TYPE_CHECKING:
    from pathlib import Path

    from windtunnel.throughput.fitting import Fit
    from windtunnel.throughput.training import TrainingModel

pytest.importorskip("scipy")
FITTED = ("vit", "roberta", "bert", "t5", "gpt2")


@lru_cache
def refit(model: TrainingModel) -> Fit:
    links, parameters = model.bandwidths, model.parameters
    assert links is not None
    assert parameters is not None
    return fit(model.profile, theta=parameters / 2**20, pcie=links.pcie, nvlink=links.nvlink)


@pytest.mark.parametrize(
    ("name", "plan", "threads", "milliseconds"),
    [
        ("bert", "ga", 1, (666.136, 394.637, 247.196, 162.710)),
        ("bert", "gc", 1, (891.136, 519.637, 317.509, 201.503)),
        ("bert", "zero-offload", 1, (2154.870, 1157.648, 647.347, 381.430)),
        ("bert", "zero-offload", 8, (919.934, 540.180, 338.613, 227.063)),
        ("gpt2", "ga", 1, (3755.834, 1943.306, 1037.042, 583.910)),
        ("gpt2", "zero-dp", 1, (3755.834, 1904.555, 978.915, 516.096)),
        ("gpt2", "gc", 1, (4855.834, 2493.306, 1312.042, 721.410)),
        ("gpt2", "zero-offload", 8, (4783.011, 2418.157, 1235.731, 644.517)),
    ],
)
def test_published_predictions(
    name: str, plan: str, threads: int, milliseconds: tuple[float, ...]
) -> None:
    """With the stored parameters; recomputed from the published code."""
    model = training_model(name)
    stored = model.stored
    assert stored is not None
    assert model.forward_time is not None
    for gpus, expected in zip((1, 2, 4, 8), milliseconds, strict=True):
        phases = data_parallel(
            stored.fitted,
            stored.bandwidths,
            Plan.parse(plan),
            forward=1000 * model.forward_time / model.forward_divisors.get(gpus, gpus),
            theta=stored.parameters / 2**20,
            gpus=gpus,
            threads=threads,
        )
        assert phases.total == pytest.approx(expected, abs=5.1e-4)


def test_published_3d_by_hand() -> None:
    """One GPU a stage, no overlap: every term is a whole number."""
    model = Parameters(2, 1, 0.5, 0, 1, 0, 0)
    phases = published_3d(
        model,
        Bandwidths(1, 1),
        (2, 1, 2),
        forward=10,
        theta=80,
        nodes=2,
        gpus_per_node=2,
        batch=4,
        layers=6,
        activation=2**16,
    )
    # data: 8 * 0.5 * 80 / 2 = 160 over NVLink; backward 20; pipeline 2 * (16 * 2 / 16) / 20 = 0.2
    assert phases.sync == pytest.approx(180.2)
    assert (phases.forward, phases.update) == (10, 20)
    assert phases.total == pytest.approx(211.2)


@given(st.floats(0.01, 1e4), st.floats(0.01, 1e4), st.floats(1, 1e5))
def test_overlap_lies_between_both_and_the_longer(one: float, other: float, k: float) -> None:
    found = overlapped(one, other, k)
    assert max(one, other) <= found * (1 + 1e-12)
    assert found <= (one + other) * (1 + 1e-12)


@pytest.mark.sample(1)
@pytest.mark.parametrize("name", FITTED)
def test_published_errors(name: str) -> None:
    """Each cell within 0.05 points, by the parameters that come with us and by a fresh fit."""
    model = training_model(name)
    fresh = refit(model)
    for parameters in (None, fresh.parameters):
        cells = validate(name, parameters)
        assert len(cells) == 4
        for cell in cells:
            assert cell.mean_percent == pytest.approx(cell.published_mean, abs=0.05)
            assert cell.max_percent == pytest.approx(cell.published_max, abs=0.05)


@pytest.mark.parametrize(("name", "cells"), [("llama7", 3), ("llama30", 2), ("t5_3B", 0)])
def test_published_errors_of_hand_kept_parameters(name: str, cells: int) -> None:
    found = validate(name)
    assert len(found) == cells
    for cell in found:
        assert cell.mean_percent == pytest.approx(cell.published_mean, abs=0.001)
        assert cell.max_percent == pytest.approx(cell.published_max, abs=0.001)


def test_validated_points_are_the_published_ones(data_dir: Path) -> None:
    with (data_dir / "morphling/validation_points.csv").open() as file:
        rows = list(csv.DictReader(file))
    points = {(c.model, c.group): c.points for name in training_models() for c in validate(name)}
    published: dict[tuple[str, str], int] = {}
    for row in rows:
        key = row["model"], row["plan_group"]
        published[key] = published.get(key, 0) + 1
    assert points == published
    assert sum(points.values()) == 99


@pytest.mark.sample(1)
@pytest.mark.parametrize(
    ("name", "within", "loose"), [("vit", 3e-4, 0), ("roberta", 1e-3, 0), ("bert", 2e-3, 0.03)]
)
def test_fits_agree_with_the_authors(
    data_dir: Path, name: str, within: float, loose: float
) -> None:
    path = data_dir / "morphling/profile/history_params.csv"
    with path.open(encoding="utf-8-sig") as file:
        kept = next(row for row in csv.DictReader(file) if row["model"] == name)
    found = msgspec.structs.asdict(refit(training_model(name)).parameters)
    for key, value in found.items():
        allowed = loose if key == "k_const" and loose else within
        assert value == pytest.approx(float(kept[key]), rel=allowed), key


@pytest.mark.sample(1)
@pytest.mark.parametrize("name", FITTED)
def test_stored_fits_are_reached_again(name: str) -> None:
    model = training_model(name)
    assert model.fitted is not None
    assert model.bandwidths is not None
    assert model.parameters is not None
    fresh = refit(model)
    objective = Objective(
        model.profile,
        theta=model.parameters / 2**20,
        pcie=model.bandwidths.pcie,
        nvlink=model.bandwidths.nvlink,
    )
    stored, _ = objective(np.array(model.fitted.as_tuple()))
    assert fresh.objective == pytest.approx(stored, rel=0.01)
    assert fresh.fitted_too == ()


def test_profiles_are_the_published_ones(data_dir: Path) -> None:
    files = {"vit": "vit", "roberta": "roberta", "bert": "bert", "t5": "t5", "gpt2": "gpt2"}
    plans = {"0": "ga", "1": "zero-offload", "2": "zero-dp"}
    for name, stem in {**files, "llama7": "llama7b"}.items():
        folder = data_dir / "morphling/profile"
        with (folder / f"{stem}.config.csv").open(encoding="utf-8-sig") as file:
            settings = list(csv.DictReader(file))
        with (folder / f"{stem}.data.csv").open(encoding="utf-8-sig") as file:
            times = list(csv.DictReader(file))
        assert training_model(name).profile == tuple(
            ProfiledPoint(
                Plan.parse(plans[s["zero_type"]]),
                int(s["gpus"]),
                int(s["num_cpu_threads"]),
                *(float(t[key]) for key in ("forward_time", "Tcc", "Topt", "iter_time")),
            )
            for s, t in zip(settings, times, strict=True)
        )


@pytest.mark.parametrize("bare", [False, True])
def test_gradients_are_exact(*, bare: bool) -> None:
    from scipy.optimize import approx_fprime

    model = training_model("bert")
    points = list(model.profile)
    if bare:
        points = [dataclasses.replace(p, forward=None, sync=None, update=None) for p in points]
    objective = Objective(points, theta=320.0, pcie=None, nvlink=None)
    assert objective.extras == (("forward", "pcie", "nvlink") if bare else ("pcie", "nvlink"))
    extra = {"forward": 200.0, "pcie": 3.0, "nvlink": 1.2}
    values = np.array([*(x + 1.1 for x in START), *(extra[name] for name in objective.extras)])
    for function in (objective, objective.squares):
        slopes = approx_fprime(values, lambda x, f=function: f(x)[0], 1e-6)
        assert function(values)[1] == pytest.approx(slopes, abs=1e-4)


@pytest.mark.slow
def test_fit_finds_the_parameters_that_made_the_points() -> None:
    """Points computed from known parameters are explained without error, bandwidths included."""
    truth, links = Parameters(2.0, 1.5, 0.02, 3.0, 5.0, 10.0, 20.0), Bandwidths(12.0, 60.0)
    points = []
    for word, gpus in [(w, g) for w in ("ga", "zero-dp", "zero-offload") for g in (1, 4)]:
        plan = Plan.parse(word)
        forward = 400 / gpus
        phases = data_parallel(
            truth, links, plan, forward=forward, theta=1000, gpus=gpus, threads=4
        )
        points.append(
            ProfiledPoint(plan, gpus, 4, forward, phases.sync, phases.update, phases.total)
        )
    found = fit(points, theta=1000, refine=True)
    assert found.fitted_too == ("pcie", "nvlink")
    assert found.objective < 0.02
    for point in points:
        phases = data_parallel(
            found.parameters,
            found.bandwidths or links,
            point.plan,
            forward=point.forward or 0,
            theta=1000,
            gpus=point.gpus,
            threads=4,
        )
        assert phases.total == pytest.approx(point.total, rel=0.03)


def test_fit_needs_points() -> None:
    with pytest.raises(SpecError, match="found none"):
        fit([], theta=1)


@pytest.mark.parametrize(
    ("name", "rows", "mean", "worst"),
    [("t5", 20, 1.2, 3.0), ("gpt2", 9, 1.0, 2.2), ("llama7", 44, 1.6, 7.0), ("llama30", 11, 5, 18)],
)
def test_3d_plans_are_predicted(name: str, rows: int, mean: float, worst: float) -> None:
    """Errors over all measured 3D rows, and the stored costs are what the rows give."""
    model = training_model(name)
    measured = three_d_rows(model)
    assert len(measured) == rows
    assert model.three_d is not None
    errors = [e for e in prediction_errors(model) if e.plan == "3D"]
    assert sum(e.points for e in errors) == rows
    assert all(e.mean_percent is not None and e.mean_percent < mean for e in errors)
    assert all(e.max_percent is not None and e.max_percent < worst for e in errors)
    assert model.sizes is not None
    assert model.gpus_per_card == 2
    paid = [features(plan, shape, model.sizes) for plan, shape, _ in measured]
    times = [seconds for _, _, seconds in measured]
    assert fit_costs(paid, times) == pytest.approx(model.three_d, rel=1e-6, abs=1e-9)


def test_3d_features_by_hand() -> None:
    """Pipeline 2, tensor 2, data 4 on 2 nodes of 8: replicas of a stage fill one node."""
    sizes = Sizes(8, 1000 * 2**20, 2**10, 4, 2**10, 2)
    found = features(Plan.parse("224"), (8, 8), sizes)
    # tensor: 32 * 2^20 * (1/2) * 4 layers * 2 samples / 2^20 MB = 128 MB; data: 8000 * (3/4) / 4
    assert found == pytest.approx((1 / 16, 1 / 16, 0.128, 0, 1.5, 0, 1))
    spread = features(Plan.parse("224"), (4, 4, 4, 4), sizes)
    assert spread[4:6] == pytest.approx((0, 2 * 1.5 / 2))  # two groups over the two cards
    split = features(Plan.parse("141"), (2, 2), sizes)
    assert split[2] == 0
    assert split[3] > 0
    assert predict((1, 0, 2, 0, 0, 0, 3), (1, 9, 2, 9, 9, 9, 3)) == 14


def test_3d_predictions_stay_near_the_measured() -> None:
    model = training_model("llama7b_bsz16")  # 13 measured placements: too few
    plan = Plan.parse("242")
    assert isinstance(predicted_time(model, plan, (8, 8)), float)
    assert "too few" in str(model.lookup(plan, (8, 8), None))


def test_cards() -> None:
    assert [cards(s, 2) for s in ((4, 4), (5, 3), (6, 2), (1,) * 8)] == [2, 2, 1, 1]
    assert cards((7, 7), 1) == 7


def test_memory_by_hand() -> None:
    def states(word: str, gpus: int) -> float:
        return estimate(Plan.parse(word), gpus, parameters=1).states

    assert (states("ga", 8), states("zero-dp", 7), states("zero-offload", 8)) == (16, 4, 4)
    assert states("244", 32) == 2
    assert estimate(Plan.parse("zero-offload"), 4, parameters=10).host == 30
    shape = {"parameters": 1, "hidden": 4, "layers": 9, "sequence": 2}
    assert estimate(Plan.parse("ga"), 1, **shape, micro_batch=3).activations == 34 * 4 * 2 * 9 * 3
    assert estimate(Plan.parse("gc"), 1, **shape).activations == 34 * 4 * 2 * 3
    assert math.isclose(estimate(Plan.parse("221"), 4, **shape).activations, 34 * 4 * 2 * 9 / 4)


def test_what_ran_is_estimated_to_fit() -> None:
    """Every measured row that ran fits into 80 GiB by the estimate, with single samples."""
    for model in training_models().values():
        assert model.parameters is not None
        for row in model.table.rows:
            if row.iteration_time is not None:
                need = estimate(
                    row.plan,
                    sum(row.shape),
                    parameters=model.parameters,
                    hidden=model.hidden,
                    layers=model.layers,
                    sequence=model.sequence,
                )
                assert need.gpu < 80 * 2**30, (model.name, row)
    seven = training_model("llama7").parameters or 0
    assert estimate(Plan.parse("ga"), 8, parameters=seven).gpu > 80 * 2**30  # its limit is 0, too


@pytest.mark.slow
def test_refining_finds_a_lower_objective() -> None:
    """gpt2's published fit ends in a kink; round it the objective is about half as large."""
    model = training_model("gpt2")
    assert model.bandwidths is not None
    assert model.parameters is not None
    found = fit(
        model.profile,
        theta=model.parameters / 2**20,
        pcie=model.bandwidths.pcie,
        nvlink=model.bandwidths.nvlink,
        refine=True,
    )
    assert found.objective < 0.6 * refit(model).objective
