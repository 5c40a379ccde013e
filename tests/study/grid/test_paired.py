"""Paired comparisons: against numbers made by hand, and claims only where the truth is so."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from windtunnel.errors import SpecError
from windtunnel.report.study_rows import claims, condition_text
from windtunnel.study.grid import paired
from windtunnel.study.grid.measure import SCHEMA
from windtunnel.study.grid.paired import (
    BETTER,
    FEW,
    LEAST_DRAWS,
    NOTHING,
    UNCLEAR,
    WORSE,
    Contrast,
    compare_results,
)
from windtunnel.study.grid.store import Results


def made_results(
    values: dict[tuple[str, Any, str], list[float | None]],
    *,
    metric: str = "avg_wait",
    made: bool = True,
    groups: dict[tuple[str, Any, str], list[tuple[str, int, float]]] | None = None,
) -> Results:
    """Return results with these values: (trace, load, policy) -> one a seed; None = it failed."""
    grid, rows = [], []
    for (trace, load, policy), column in values.items():
        for seed, value in enumerate(column):
            name = f"{trace}/{load}/{policy}/{seed}"
            grid.append(
                {
                    "trace": trace,
                    "cluster": "own",
                    "load": load,
                    "placement": None,
                    "queueing": None,
                    "parameters": {},
                    "policy": policy,
                    "seed": seed,
                    "run_id": name,
                }
            )
            row: dict[str, Any] = {"run_id": name, "status": "failed" if value is None else "ok"}
            row[metric] = value
            if groups is not None:
                row["users"] = row["weeks"] = [
                    {
                        "group": group,
                        "num_jobs": n,
                        "num_started": n,
                        "num_finished": n,
                        "wait": total,
                        "jct": total,
                        "bounded_slowdown": total,
                    }
                    for group, n, total in groups[trace, load, policy]
                ]
            rows.append(row)
    manifest = {
        "name": "made",
        "grid": grid,
        "runs": [cell["run_id"] for cell in grid],
        "seeds": sorted({cell["seed"] for cell in grid}),
        "made": [cell["trace"] for cell in grid] if made else [],
    }
    return Results(Path("nowhere"), manifest, pa.Table.from_pylist(rows, schema=SCHEMA))


def _only(results: Results, **options: Any) -> Contrast:
    (contrast,) = compare_results(results, **options).contrasts
    return contrast


def test_one_condition_is_a_ratio_of_means_with_scipys_interval() -> None:
    from scipy import stats  # 1 s, for those who only collect this

    rng = np.random.default_rng(1)
    base = rng.lognormal(5, 0.5, 10)
    ours = base * rng.lognormal(-0.3, 0.1, 10)
    results = made_results({("t", None, "a"): list(base), ("t", None, "b"): list(ours)})
    found = _only(results, resamples=3000, seed=4)
    assert found.mean == pytest.approx(ours.mean(), rel=1e-12)
    assert found.baseline_mean == pytest.approx(base.mean(), rel=1e-12)
    assert found.change.estimate == pytest.approx(ours.mean() / base.mean() - 1, rel=1e-12)
    # Scipy's, at the confidence to which few draws are widened.
    tail = stats.norm.cdf(-np.sqrt(10 / 9) * stats.t.ppf(0.975, 9))
    theirs = stats.bootstrap(
        (ours, base),
        lambda x, y, axis=-1: x.mean(axis=axis) / y.mean(axis=axis) - 1,
        paired=True,
        n_resamples=3000,
        confidence_level=1 - 2 * tail,
        rng=np.random.default_rng(4),
    ).confidence_interval
    # A resample that is the sample itself, shuffled, counts as above or below it by rounding.
    assert found.change.low == pytest.approx(theirs.low, rel=1e-4)
    assert found.change.high == pytest.approx(theirs.high, rel=1e-4)
    assert found.verdict == BETTER


def test_all_conditions_together_are_the_geometric_mean() -> None:
    values: dict[tuple[str, Any, str], list[float | None]] = {}
    for trace, load, factor in (("t", 0.9, 0.5), ("t", 1.1, 2.0), ("u", 0.9, 0.8)):
        base = [100.0 + 7 * seed for seed in range(8)]
        values[trace, load, "a"] = list(base)
        values[trace, load, "b"] = [factor * value for value in base]
    found = compare_results(made_results(values), resamples=500)
    each = [c for c in found.contrasts if c.condition is not None]
    (together,) = [c for c in found.contrasts if c.condition is None]
    assert [c.change.estimate for c in each] == pytest.approx([-0.5, 1.0, -0.2])
    assert together.change.estimate == pytest.approx((0.5 * 2.0 * 0.8) ** (1 / 3) - 1)
    assert [condition_text(found, c) for c in found.contrasts] == [
        *("t, load 0.9", "t, load 1.1", "u, load 0.9", "all together"),
    ]
    assert together.mean is None


def test_conditions_of_one_trace_are_resampled_together() -> None:
    """Two loads that move opposite ways seed by seed: together nothing varies at all."""
    swing = [1.5, 0.7, 1.2, 0.9, 1.1, 0.6, 1.3, 0.8]
    values: dict[tuple[str, Any, str], list[float | None]] = {
        ("t", 0.9, "a"): [1.0] * 8,
        ("t", 1.1, "a"): list(swing),
        ("t", 0.9, "b"): list(swing),
        ("t", 1.1, "b"): [1.0] * 8,
    }
    found = compare_results(made_results(values), resamples=500)
    (together,) = [c for c in found.contrasts if c.condition is None]
    assert together.change.estimate == pytest.approx(0.0, abs=1e-12)
    assert together.change.low == pytest.approx(0.0, abs=1e-12)
    assert together.change.high == pytest.approx(0.0, abs=1e-12)
    assert found.contrasts[0].change.low is not None
    assert found.contrasts[0].change.low < -0.05


def test_weeks_and_users_are_resampled_with_all_their_jobs() -> None:
    rng = np.random.default_rng(2)
    numbers = rng.integers(1, 50, 12)
    base = numbers * rng.lognormal(3, 1, 12)
    ours = base * rng.lognormal(-0.2, 0.2, 12)
    names = [f"g{index:02d}" for index in range(12)]
    keys = (("t", None, "a"), ("t", None, "b"))
    groups = {
        key: list(zip(names, numbers.tolist(), sums.tolist(), strict=True))
        for key, sums in zip(keys, (base, ours), strict=True)
    }
    means = {key: [sum(s for _, _, s in groups[key]) / numbers.sum()] for key in keys}
    results = made_results({k: list(v) for k, v in means.items()}, made=False, groups=groups)
    for over in ("weeks", "users"):
        found = _only(results, over=over, resamples=2000)
        assert found.mean == pytest.approx(means[keys[1]][0], rel=1e-12)
        assert found.change.estimate == pytest.approx(ours.sum() / base.sum() - 1, rel=1e-12)
        assert found.change.num_draws == 12
        indices = np.random.default_rng(0).integers(0, 12, (2000, 12))
        ratios = ours[indices].sum(axis=1) / base[indices].sum(axis=1) - 1
        assert found.change.low is not None
        assert np.quantile(ratios, 0.001) <= found.change.low <= np.quantile(ratios, 0.05)


def test_seeds_of_a_log_that_vary_nothing_are_one_draw() -> None:
    values: dict[tuple[str, Any, str], list[float | None]] = {
        ("t", None, "a"): [10.0] * 9,
        ("t", None, "b"): [5.0] * 9,
    }
    one = _only(made_results(values, made=False), over="seeds")
    assert (one.change.num_draws, one.change.is_known, one.verdict) == (1, False, FEW)
    assert one.change.estimate == pytest.approx(-0.5)
    nine = _only(made_results(values, made=True), over="seeds")
    assert (nine.change.num_draws, nine.verdict) == (9, BETTER)


def test_a_pair_with_a_failed_run_is_left_out_and_counted() -> None:
    base: list[float | None] = [10.0 + seed for seed in range(9)]
    ours: list[float | None] = [0.5 * (value or 0.0) for value in base]
    ours[4] = None
    found = compare_results(made_results({("t", None, "a"): base, ("t", None, "b"): ours}))
    (contrast,) = found.contrasts
    assert (contrast.num_missing, contrast.change.num_draws) == (1, 8)
    assert contrast.change.estimate == pytest.approx(-0.5)
    assert any("1 pairs are left out" in note for note in found.notes)


@pytest.mark.parametrize(
    ("base", "ours", "metric", "verdict"),
    [
        ([10.0, 11, 12, 13, 14, 15, 16], [5.0, 5, 6, 7, 7, 7, 8], "avg_wait", BETTER),
        ([10.0, 11, 12, 13, 14, 15, 16], [5.0, 5, 6, 7, 7, 7, 8], "utilization", WORSE),
        ([5.0, 5, 6, 7, 7, 7, 8], [10.0, 11, 12, 13, 14, 15, 16], "avg_wait", WORSE),
        ([10.0, 11, 12, 13, 14, 15, 16], [11.0, 10, 13, 12, 15, 14, 16], "avg_wait", UNCLEAR),
        ([10.0, 11, 12], [5.0, 5, 6], "avg_wait", FEW),
        ([0.0] * 8, [1.0] * 8, "avg_wait", NOTHING),
        ([0.0] * 7 + [1.0], [1.0] * 8, "avg_wait", NOTHING),
        ([None] * 8, [1.0] * 8, "avg_wait", NOTHING),
    ],
)
def test_verdicts(
    base: list[float | None], ours: list[float | None], metric: str, verdict: str
) -> None:
    keys = (("t", None, "a"), ("t", None, "b"))
    results = made_results(dict(zip(keys, (base, ours), strict=True)), metric=metric)
    found = compare_results(results, metrics=(metric,))
    assert found.contrasts[0].verdict == verdict
    sentences = claims(found)
    assert bool(sentences) == (verdict in (BETTER, WORSE))
    assert all("interval" in sentence for sentence in sentences)


@given(
    st.lists(st.floats(1, 1000), min_size=2, max_size=10),
    st.lists(st.floats(0.2, 5), min_size=10, max_size=10),
)
@settings(max_examples=40)
def test_whoever_is_the_baseline_the_claim_is_the_same(
    base: list[float], factors: list[float]
) -> None:
    ours = [value * factor for value, factor in zip(base, factors, strict=False)]
    keys = (("t", None, "a"), ("t", None, "b"))
    results = made_results(dict(zip(keys, (list(base), list(ours)), strict=True)))
    forth = _only(results, resamples=200)
    back = _only(results, resamples=200, baseline="b")
    assert (forth.value, back.value) == ("b", "a")
    product = (1 + forth.change.estimate) * (1 + back.change.estimate)
    assert product == pytest.approx(1.0)
    if len(base) < LEAST_DRAWS:
        assert forth.verdict == back.verdict == FEW
    assert {forth.verdict, back.verdict} != {BETTER}
    assert {forth.verdict, back.verdict} != {WORSE}


@pytest.mark.slow
def test_without_a_difference_few_claims_are_made() -> None:
    """300 studies of two policies that are the same: about 1 in 20 makes a claim by chance."""
    rng = np.random.default_rng(8)
    wrong = 0
    for _ in range(300):
        base = rng.lognormal(3, 0.4, 10)
        ours = base * np.exp(rng.normal(0, 0.2, 10))
        keys = (("t", None, "a"), ("t", None, "b"))
        results = made_results(dict(zip(keys, (list(base), list(ours)), strict=True)))
        wrong += _only(results, resamples=400).verdict in (BETTER, WORSE)
    assert wrong / 300 < 0.10


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"between": "polcy"}, "Did you mean 'policy'"),
        ({"over": "week"}, "Did you mean 'weeks'"),
        ({"metrics": ("avg_wit",)}, "Did you mean 'avg_wait'"),
        ({"metrics": ("p99_wait",), "over": "users"}, "no mean over jobs"),
        ({"baseline": "c"}, "unknown name 'c'"),
        ({"between": "load"}, "nothing to compare"),
    ],
)
def test_wrong_questions_are_refused(options: dict[str, Any], message: str) -> None:
    keys = (("t", None, "a"), ("t", None, "b"))
    with pytest.raises(SpecError, match=message):
        compare_results(made_results({key: [1.0, 2.0] for key in keys}), **options)


def test_where_no_ratio_of_all_can_be_formed_each_condition_makes_its_claim() -> None:
    values: dict[tuple[str, Any, str], list[float | None]] = {
        ("t", 0.9, "a"): [10.0 + seed for seed in range(8)],
        ("t", 0.9, "b"): [5.0 + seed for seed in range(8)],
        ("t", 0.1, "a"): [0.0] * 8,
        ("t", 0.1, "b"): [0.0] * 8,
    }
    found = compare_results(made_results(values), resamples=200)
    assert [c.verdict for c in found.contrasts] == [BETTER, NOTHING, NOTHING]
    (claim,) = claims(found)
    assert claim.startswith("b beats a at load 0.9: wait, mean ")


def test_any_axis_can_be_compared() -> None:
    values: dict[tuple[str, Any, str], list[float | None]] = {
        ("t", 0.9, "a"): [1.0, 2.0, 3.0],
        ("t", None, "a"): [2.0, 4.0, 6.0],
    }
    found = compare_results(made_results(values), between="load", resamples=100)
    assert (found.baseline, found.contrasts[0].value) == ("0.9", "recorded")
    assert found.contrasts[0].change.estimate == pytest.approx(1.0)


@pytest.mark.slow
def test_of_these_traces_and_of_traces_like_them_are_distinguished() -> None:
    """A simulation with a known truth: each interval covers its own in 93 to 97 % of studies.

    Eight traces of twelve windows; policies differ by -20 % on traces like these, by a random
    effect of 10 % more or less on each, and windows vary by 15 %.
    """
    rng = np.random.default_rng(23)
    truth, of_traces, of_windows = np.log(0.8), 0.10, 0.15
    studies = 1000
    here = there = wrong = 0
    for _ in range(studies):
        effects = rng.normal(0, of_traces, 8)
        strata = []
        for effect in effects:
            ratio = np.exp(truth + effect + rng.normal(0, of_windows, 12) - of_windows**2 / 2)
            ones = np.ones(12)
            strata.append([np.column_stack([ratio, ones, ones, ones])])
        of_these = paired._change(strata, {"confidence": 0.95, "resamples": 600, "seed": 1})
        of_like = paired._elsewhere(strata, 0.95)
        assert of_these.low is not None
        assert of_these.high is not None
        assert of_like is not None
        assert of_like.low is not None
        assert of_like.high is not None
        mine = np.expm1(truth + effects.mean())
        here += of_these.low <= mine <= of_these.high
        there += of_like.low <= np.expm1(truth) <= of_like.high
        wrong += of_these.low <= np.expm1(truth) <= of_these.high
    assert 0.93 <= here / studies <= 0.97
    assert 0.93 <= there / studies <= 0.97
    assert wrong / studies < 0.75  # why the two must not be taken for each other
