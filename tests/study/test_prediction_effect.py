"""What prediction buys: numbers by hand where shortest first starves a gang and aging cures it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import windtunnel as wt
from windtunnel.errors import SpecError
from windtunnel.policies import resolve_policy
from windtunnel.schema import as_jobs
from windtunnel.study.big_jobs import big_jobs
from windtunnel.study.effect_settings import TOLERANCE, checked_models, choose, cures, judged
from windtunnel.study.offered_load import at_load, offered_load
from windtunnel.study.prediction_effect import PredictionEffect, num_steps, prediction_effect

#: 380 GPU-seconds asked for while 2 GPUs x 1002 s are there.
NATURAL = 380 / (2 * 1002)


def story() -> dict[str, Any]:
    """Two GPUs. A gang of two (20 s) comes at 1, pairs of 10 s at 0, 5, 15, 25 and 35.

    Whenever both GPUs are free, at 10, 20, 30 ..., first come first served takes the gang and
    shortest first the pair. At 1000, with both GPUs taken for 10 s, two jobs of 100 s come at 1001
    and two of 10 s at 1002.
    """
    pairs = [(at, 10, 1) for at in (0, 5, 15, 25, 35, 1000) for _ in range(2)]
    rest = [(1, 20, 2), (1001, 100, 1), (1001, 100, 1), (1002, 10, 1), (1002, 10, 1)]
    rows = sorted(pairs + rest)
    return {
        "submit_time": [row[0] for row in rows],
        "duration": [row[1] for row in rows],
        "num_gpus": [row[2] for row in rows],
    }


def study(**options: Any) -> PredictionEffect:
    """Return the study of the story, without reservations."""
    asked = {"loads": [NATURAL], "models": ["oracle"], "agings": [0.3, 1], "reservations": False}
    return prediction_effect(story(), "pool:2", **{**asked, **options})


def test_waits_gains_and_starvation_by_hand() -> None:
    rows = {row["policy"]: row for row in study().runs.to_pylist()}
    fifo, sjf = rows["fifo"], rows["sjf:by=oracle"]
    mild, hard = rows["sjf:by=oracle:aging=0.3"], rows["sjf:by=oracle:aging=1"]
    # The gang waits 9, the pairs from 5 on 25 each; at 1000: 9, 9, 108, 108.
    assert fifo["avg_wait"] == pytest.approx((9 + 8 * 25 + 9 + 9 + 108 + 108) / 17)
    # The pairs wait 5 each, the gang until 50; at 1000: 8, 8, 19, 19.
    assert sjf["avg_wait"] == pytest.approx((49 + 8 * 5 + 8 + 8 + 19 + 19) / 17)
    # Aging 0.3: 1 + 0.3 x 20 < 5 + 0.3 x 10: the gang first, but 1002 + 3 < 1001 + 30.
    assert mild["avg_wait"] == pytest.approx((9 + 8 * 25 + 8 + 8 + 19 + 19) / 17)
    # Aging 1: one pair goes before the gang (15 < 21), the next does not (25).
    assert hard["avg_wait"] == pytest.approx((19 + 2 * 5 + 6 * 25 + 8 + 8 + 19 + 19) / 17)
    assert [row["big_max_wait"] for row in (fifo, sjf, mild, hard)] == [9, 49, 9, 19]
    assert [row["big_max_overtaken"] for row in (fifo, sjf, mild, hard)] == [0, 8, 0, 2]
    assert [row["starves"] for row in (fifo, sjf, mild, hard)] == [False, True, False, True]
    assert sjf["big_max_ratio"] == pytest.approx(49 / 9)
    assert sjf["wait_saved"] == pytest.approx((443 - 143) / 443)
    assert sjf["gain_kept"] == 1
    assert mild["gain_kept"] == pytest.approx((443 - 263) / (443 - 143))


def test_the_rule_picks_the_aging_that_keeps_the_gain_without_the_starvation() -> None:
    found = study()
    assert found.choice.policy == "sjf:by=oracle:aging=0.3"
    assert found.choice.queueing == "skip"
    assert found.choice.kept == {NATURAL: pytest.approx(0.6)}
    assert found.big.sizes == ("2",)
    assert found.natural_load == NATURAL
    assert (found.num_flown, found.num_rejected) == (17, 0)


def test_waits_and_completions_by_size_by_hand() -> None:
    rows = {(r["policy"], r["size"]): r for r in study().sizes.to_pylist()}
    assert rows["sjf:by=oracle", "2"]["avg_jct"] == 69
    assert rows["fifo", "1"]["num_jobs"] == 16
    assert rows["fifo", "1"]["avg_wait"] == pytest.approx((443 - 9) / 16)
    assert rows["sjf:by=oracle", "1"]["max_wait"] == 19


def test_a_reservation_is_planned_with_the_predictions() -> None:
    found = study(agings=[], reservations=True)
    rows = {row["policy"]: row for row in found.runs.to_pylist()}
    # The head by arrival is promised a start: the gang goes at 10, as under fifo.
    assert rows["easy-sjbf:estimates=oracle"]["big_max_wait"] == 9
    assert rows["sjf:by=oracle + easy"]["queueing"] == "easy"
    # 1002's jobs would not end before 1001's head starts, so nothing is gained there either.
    assert rows["easy-sjbf:estimates=oracle"]["wait_saved"] == 0


def test_predictions_come_from_the_log_as_recorded_whatever_the_load() -> None:
    loads = [NATURAL, 2 * NATURAL]
    jobs = story() | {"user": ["u"] * 17, "template": ["t"] * 17}
    found = prediction_effect(
        jobs, "pool:2", loads=loads, models=["oracle", "sjg"], agings=[], reservations=False
    )
    one = prediction_effect(
        jobs, "pool:2", loads=loads[:1], models=["oracle", "sjg"], agings=[], reservations=False
    )
    assert found.predictions.equals(one.predictions)
    assert found.at(NATURAL) == one.at(NATURAL)
    assert found.model == "sjg"  # the oracle is a bound: cures go by a predictor
    (oracle, sjg) = found.predictions.to_pylist()
    assert oracle["within_25"] == 1
    # Nothing has ended at 0, 0, 1, 5 and 5; then every mean is of jobs of 10 s, and one of 20.
    assert sjg["num_unpredicted"] == 5
    assert sjg["n"] == 17


def test_same_inputs_same_tables_and_every_step_is_reported() -> None:
    labels: list[str] = []
    options: dict[str, Any] = {"agings": [0.3, 1], "reservations": True, "loads": [0.5, NATURAL]}
    one, two = study(**options, on_done=labels.append), study(**options)
    for name in ("runs", "sizes", "predictions", "errors", "within"):
        assert getattr(one, name).equals(getattr(two, name))
    assert one.choice == two.choice
    steps = num_steps(options["loads"], ["oracle"], options["agings"], reservations=True)
    assert len(labels) == steps == one.runs.num_rows


def test_jobs_that_cannot_be_flown_are_counted_and_offer_no_load() -> None:
    jobs = story()
    jobs["submit_time"] += [2000, 2001]
    jobs["duration"] += [10, None]
    jobs["num_gpus"] += [3, 1]
    found = prediction_effect(
        jobs, "pool:2", loads=[NATURAL], models=["oracle"], agings=[0.3, 1], reservations=False
    )
    assert found.runs.equals(study().runs)
    assert found.num_rejected == 2
    assert any("duration" in note for note in found.notes)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"models": []}, "expected at least one predictor"),
        ({"models": ["oracle", "oracle"]}, "twice"),
        ({"models": ["oracel"]}, "oracle"),
        ({"loads": []}, "loads"),
        ({"loads": [0.0]}, "above 0"),
        ({"loads": [float("nan")]}, "above 0"),
        ({"agings": [1, 1]}, "each once"),
    ],
)
def test_what_cannot_be_studied_is_refused(options: dict[str, Any], words: str) -> None:
    with pytest.raises(SpecError, match=words):
        study(**options)


def test_jobs_without_a_load_are_refused() -> None:
    jobs = {"submit_time": [5, 5], "duration": [1, 1], "num_gpus": [1, 1]}
    with pytest.raises(SpecError, match="offer no load"):
        prediction_effect(jobs, "pool:2")


def _row(load: float, kind: str, wait: float, p99: float, aging: float | None = None) -> Any:
    name = kind if aging is None else f"{kind}{aging:g}"
    row = {"load": load, "policy": name, "kind": kind, "queueing": "skip", "aging": aging}
    row |= {"model": None if kind == "fifo" else "m", "avg_wait": wait}
    return row | {"big_p99_wait": p99, "big_max_wait": p99}


def test_the_rule_wants_no_starvation_at_any_load_and_says_when_there_is_nothing() -> None:
    rows = [
        *(_row(1, "fifo", 100, 100), _row(1, "shortest", 50, 200)),
        *(_row(1, "aging", 60, 100 * TOLERANCE, 1), _row(1, "aging", 55, 100, 9)),
        *(_row(2, "fifo", 200, 100), _row(2, "shortest", 100, 100)),
        *(_row(2, "aging", 120, 100, 1), _row(2, "aging", 110, 111, 9)),
    ]
    found = choose(judged(rows), "m")
    assert found.policy == "aging1"
    assert found.by_load == {1: "aging9", 2: "shortest"}
    assert found.kept == {1: pytest.approx(0.8), 2: pytest.approx(0.8)}
    worse = [row | {"avg_wait": 300} if row["kind"] != "fifo" else row for row in rows]
    nothing = choose(judged(worse), "m")
    assert (nothing.policy, nothing.queueing, nothing.kept) == (None, None, {})


def test_where_nobody_waits_nothing_is_saved_and_any_wait_of_big_jobs_starves() -> None:
    rows = judged([_row(1, "fifo", 0, 0), _row(1, "shortest", 0, 0), _row(1, "aging", 1, 3, 1)])
    assert [row["wait_saved"] for row in rows] == [None] * 3
    assert [row["starves"] for row in rows] == [False, False, True]
    assert choose(rows, "m").policy is None


def test_group_and_user_are_words_for_pais_estimates() -> None:
    assert checked_models(["cart", "group", "user", "oracle"], 0) == (
        ["cart", "sjg", "sju", "oracle"],
        frozenset(["oracle"]),
    )
    with pytest.raises(SpecError, match="twice"):
        checked_models(["group", "sjg"], 0)


def test_labels_of_cures_are_distinct_and_can_be_flown() -> None:
    found = cures("cart:user+template", [1, 10], reservations=True)
    assert len({setting.label for setting in found}) == 4
    for setting in found:
        assert resolve_policy(setting.policy).label == setting.policy


@settings(deadline=None, derandomize=True)
@given(
    st.lists(st.sampled_from([0.0, 0.5, 1, 2, 3, 8, 64, 700]), min_size=1, max_size=60),
    st.floats(0.001, 1),
)
def test_big_jobs_are_the_fewest_largest_classes_with_their_share(
    sizes: list[float], share: float
) -> None:
    gpus = np.array(sizes)
    found = big_jobs(gpus, np.ones(len(gpus), dtype=bool), share)
    assert found.members.sum() >= share * len(gpus)
    assert gpus[found.members].min() == found.least
    assert gpus[~found.members].max(initial=-1) < found.least


@settings(deadline=None, derandomize=True)
@given(
    st.lists(st.tuples(st.integers(0, 1000), st.integers(1, 99)), min_size=2, max_size=30),
    st.floats(0.1, 5),
)
def test_stretched_jobs_offer_the_load_that_is_wanted(
    rows: list[tuple[int, int]], load: float
) -> None:
    rows = [*rows, (1001, 1)]
    submit, duration = zip(*rows, strict=True)
    columns = {"submit_time": submit, "duration": duration, "num_gpus": [2] * len(rows)}
    jobs, flown = as_jobs(columns), np.ones(len(rows), dtype=bool)
    natural = offered_load(jobs, 16, flown)
    stretched = at_load(jobs, natural, load, flown)
    assert offered_load(stretched, 16, flown) == pytest.approx(load)
    assert min(stretched["submit_time"].to_pylist()) == min(submit)
    order = np.argsort(submit, kind="stable")
    assert np.all(np.diff(np.array(stretched["submit_time"].to_pylist())[order]) >= 0)


def test_a_rejected_job_before_the_first_that_flies_moves_nothing() -> None:
    jobs = {
        key: [value + 50 if key == "submit_time" else value for value in values]
        for key, values in story().items()
    }
    early = {"submit_time": 0, "duration": 1, "num_gpus": 3}
    jobs = {key: [early[key], *values] for key, values in jobs.items()}
    found = prediction_effect(
        jobs, "pool:2", loads=[0.01], models=["oracle"], agings=[0.3, 1], reservations=False
    )
    assert found.runs["avg_wait"].to_pylist() == study(loads=[0.01]).runs["avg_wait"].to_pylist()
    assert found.natural_load == NATURAL


def test_on_pais_twin_groups_tell_more_than_users() -> None:
    jobs = wt.open_trace("synthetic:pai", jobs=5000, seed=0).jobs
    found = prediction_effect(
        jobs, "pai/12", loads=[1.1], models=["oracle", "sjg", "sju"], agings=[], reservations=False
    )
    within = {row["model"]: row["within_25"] for row in found.predictions.to_pylist()}
    assert within["oracle"] == 1
    assert within["sjg"] > 2 * within["sju"]
    assert found.num_rejected >= jobs["duration"].null_count
    assert found.num_flown + found.num_rejected == 5000
    sizes = [row for row in found.sizes.to_pylist() if row["policy"] == "fifo"]
    assert sum(row["num_jobs"] for row in sizes) == found.num_flown
    saved = {row["policy"]: row["wait_saved"] for row in found.at(1.1)}
    assert saved["sjf:by=oracle"] > 0
