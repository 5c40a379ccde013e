"""Fitted predictors: what they are trained on and when, and what they are where that is known."""

from __future__ import annotations

import importlib.util
import math
import sys
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pytest
from job_histories import history

from windtunnel.errors import SpecError
from windtunnel.predictors import (
    backtest,
    predict_online,
    resolve_predictor,
)
from windtunnel.predictors.features import SUBMISSION
from windtunnel.predictors.online import Refreshing
from windtunnel.predictors.trees import Cart, Gbdt
from windtunnel.schema import as_jobs

if TYPE_CHECKING:
    from collections.abc import Iterator

DAY = 86400.0
needs_sklearn = pytest.mark.skipif(
    importlib.util.find_spec("sklearn") is None, reason="scikit-learn is of the extra ml"
)


class Spy:
    """An estimator that remembers what it was shown, and predicts how much that was."""

    seen: list[tuple[pa.Table, np.ndarray]]

    def __init__(self) -> None:
        self.seen = []

    def __deepcopy__(self, _: Any) -> Spy:
        return self

    def fit(self, jobs: pa.Table, durations: np.ndarray) -> None:
        self.seen.append((jobs, durations))

    def predict(self, jobs: pa.Table) -> np.ndarray:
        return np.full(jobs.num_rows, float(self.seen[-1][0].num_rows))


@pytest.mark.parametrize("refresh_jobs", [None, 7])
def test_a_model_is_trained_on_the_last_jobs_that_had_ended_and_on_nothing_else(
    refresh_jobs: int | None,
) -> None:
    jobs = history(120)
    span = 600.0
    spy = Spy()
    found = predict_online(
        jobs,
        spy,
        refresh=None if refresh_jobs else span,
        refresh_jobs=refresh_jobs,
        min_history=5,
        train_last=20,
    )
    ends, submit = (np.asarray(jobs[name]) for name in ("end_time", "submit_time"))
    order = np.argsort(ends, kind="stable")
    expected = []
    for row in range(120):
        if refresh_jobs:
            known = int((ends <= submit[row]).sum()) // refresh_jobs * refresh_jobs
        else:
            start = submit[0] + math.floor((submit[row] - submit[0]) / span) * span
            known = int((ends < start).sum())
        expected.append(known if known >= 5 else None)
    assert found["trained_on"].to_pylist() == [n if n is None else min(n, 20) for n in expected]
    assert found["source"].to_pylist() == [
        value if n is None else "model"
        for n, value in zip(
            expected, predict_online(jobs, "rolling")["source"].to_pylist(), strict=True
        )
    ]
    assert found["predicted"].to_pylist() == [
        value if n is None else min(n, 20)
        for n, value in zip(expected, predict_online(jobs, "rolling")["predicted"].to_pylist(),
                           strict=True)
    ]  # fmt: skip
    trainings = list(dict.fromkeys(n for n in expected if n is not None))
    assert len(spy.seen) == len(trainings) > 5
    for known, (table, durations) in zip(trainings, spy.seen, strict=True):
        rows = order[max(0, known - 20) : known]
        assert table.column_names == list(SUBMISSION)
        assert table["submit_time"].to_pylist() == submit[rows].tolist()
        assert durations.tolist() == np.asarray(jobs["duration"])[rows].tolist()


def test_an_estimator_must_answer_for_every_job() -> None:
    spy = Spy()
    spy.predict = lambda _: np.zeros(1)  # type: ignore[method-assign]
    with pytest.raises(SpecError, match="one number a job"):
        predict_online(history(60), spy, min_history=5, refresh=600.0)
    with pytest.raises(SpecError, match="no method predict"):
        resolve_predictor(type("Half", (), {"fit": print})())


@needs_sklearn
@pytest.mark.parametrize("by", ["user", "user+template", "user+template+num_gpus"])
def test_a_fully_grown_tree_on_identities_is_the_mean_of_each_cell(by: str) -> None:
    jobs = history(400, spread=1.0)
    durations = np.asarray(jobs["duration"])
    tree = Cart(by=by, min_samples_leaf=1, target="seconds").fit(jobs, durations)
    names = by.split("+")
    cells = list(zip(*(jobs[name].to_pylist() for name in names), strict=True))
    expected = [durations[[other == own for other in cells]].mean() for own in cells]
    assert tree.predict(jobs) == pytest.approx(expected, rel=1e-9)
    mean = resolve_predictor(f"mean:{by}").fit(jobs, durations)
    assert tree.predict(jobs) == pytest.approx(mean.predict(jobs), rel=1e-9)


@needs_sklearn
@pytest.mark.parametrize("name", ["cart", "cart:user+template", "gbdt", "quantile"])
def test_names_that_were_never_seen_are_predicted_too(name: str) -> None:
    jobs = history(300)
    model = resolve_predictor(name).fit(jobs, np.asarray(jobs["duration"]))
    strange = as_jobs(
        {"submit_time": [1e9, 1e9], "duration": [None, None], "num_gpus": [512.0, None],
         "user": ["nobody", None], "template": ["nothing", None], "vc": [None, "vc1"]}
    )  # fmt: skip
    found = model.explain(strange)
    lowest, highest = min(jobs["duration"].to_pylist()), max(jobs["duration"].to_pylist())
    assert ((found.seconds >= lowest) & (found.seconds <= highest)).all()
    assert found.source.tolist() == [0, 0]


@needs_sklearn
def test_qssf_mixes_the_rolling_mean_with_the_boosted_value() -> None:
    jobs = history(400, spread=0.8)
    options: dict[str, Any] = {"refresh": 1800.0, "min_history": 50}
    rolling = np.asarray(predict_online(jobs, "qssf-rolling:similar=no")["predicted"].fill_null(-1))
    pure = predict_online(jobs, Gbdt(alpha=0.0, max_iter=20), **options)
    mixed = predict_online(jobs, Gbdt(alpha=0.25, max_iter=20), **options)
    by_model = np.asarray(pure["source"].to_pylist()) == "model"
    boosted = np.asarray(pure["predicted"].fill_null(-1))
    expected = np.where(by_model, 0.25 * rolling + 0.75 * boosted, rolling)
    assert by_model.sum() > 200
    assert np.asarray(mixed["predicted"].fill_null(-1)) == pytest.approx(expected, rel=1e-12)
    combined = Gbdt().combine(np.array([5.0, 5.0, 5.0, math.nan]), np.array([0.0, -1.0, 10.0, 3.0]))
    assert combined == pytest.approx([5.0, 5.0, 9.5, 3.0])


@needs_sklearn
@pytest.mark.parametrize("coverage", [0.8, 0.9])
def test_conformal_quantiles_cover_what_they_say(coverage: float) -> None:
    rng = np.random.default_rng(5)
    count, learnt = 6000, 4000
    user = rng.integers(0, 20, count)
    # The scatter differs from user to user: a band of one width would be wrong for most.
    duration = np.exp(5 + user / 10 + rng.normal(0, 0.1 + user / 20, count))
    jobs = as_jobs(
        {
            "submit_time": np.arange(count, dtype=float),
            "duration": duration,
            "num_gpus": np.ones(count),
            "user": [f"u{n}" for n in user],
        }
    )
    model = resolve_predictor("quantile:max_iter=30").fit(jobs.slice(0, learnt), duration[:learnt])
    low, high = model.predict_interval(jobs.slice(learnt), coverage)  # type: ignore[attr-defined]
    inside = (low <= duration[learnt:]) & (duration[learnt:] <= high)
    spread = math.sqrt(coverage * (1 - coverage) * (1 / (count - learnt) + 1 / (0.2 * learnt)))
    assert inside.mean() == pytest.approx(coverage, abs=4 * spread)
    width = high / low
    assert np.median(width[user[learnt:] > 15]) > 2 * np.median(width[user[learnt:] < 5])
    middle = model.predict(jobs.slice(learnt))
    assert (middle <= duration[learnt:]).mean() == pytest.approx(0.5, abs=0.06)


@needs_sklearn
def test_too_few_jobs_for_an_interval_give_none() -> None:
    jobs = history(40)
    model = resolve_predictor("quantile:max_iter=5").fit(jobs, np.asarray(jobs["duration"]))
    low, high = model.predict_interval(jobs, 0.95)  # type: ignore[attr-defined]
    assert (low == 0).all()
    assert np.isinf(high).all()  # eight calibration jobs cannot vouch for 95 %
    with pytest.raises(SpecError, match="no intervals of its own"):
        Cart().fit(jobs, np.asarray(jobs["duration"])).predict_interval(jobs, 0.9)


def test_what_ends_at_the_instant_of_a_training_is_for_the_next_one() -> None:
    # Refreshed at 0, 10, 20; jobs end at 4, 10 and, submitted at 10, at once.
    jobs = {
        "submit_time": [0.0, 0.0, 10.0, 10.0, 20.0],
        "duration": [4.0, 10.0, 0.0, 5.0, 5.0],
        "num_gpus": [1.0] * 5,
    }
    found = predict_online(jobs, Spy(), refresh=10.0, min_history=1)
    assert found["history"].to_pylist() == [0, 0, 2, 2, 4]
    assert found["trained_on"].to_pylist() == [None, None, 1, 1, 4]


@needs_sklearn
def test_long_jobs_that_end_late_do_not_make_their_weekday_slow() -> None:
    # Most jobs take a minute, one of twenty six days and a bit. On a Monday the only Monday's jobs
    # among the last that ended are last week's long ones, which ended on Sunday.
    rng = np.random.default_rng(0)
    submit = np.sort(rng.uniform(0, 22 * DAY, 22 * 100))
    duration = rng.uniform(50, 70, len(submit))
    duration[::20] = 6.3 * DAY
    jobs = as_jobs({"submit_time": submit, "duration": duration, "num_gpus": np.ones(len(submit))})
    found = np.asarray(predict_online(jobs, Cart(min_samples_leaf=2), train_last=400)["predicted"])
    short = duration < 100
    by_day = [np.median(found[short & (submit // DAY == day)]) for day in range(8, 22)]
    assert max(by_day) < 600


@pytest.mark.sample(3)
@needs_sklearn
@pytest.mark.parametrize("name", ["cart", "cart:user+template", "gbdt:max_iter=10",
                                  "quantile:max_iter=5"])  # fmt: skip
@pytest.mark.parametrize("seed", [1, 2])
def test_what_comes_later_changes_no_digit_of_a_prediction(name: str, seed: int) -> None:
    jobs = history(300)
    options: dict[str, Any] = {"refresh": 3000.0, "min_history": 40, "coverage": 0.8}
    before = predict_online(jobs, name, **options)
    now = jobs["submit_time"][200].as_py()
    after = predict_online(with_another_future(jobs, now, seed), name, **options)
    for column in ("predicted", "source", "runs", "history", "trained_on", "low", "high"):
        assert after[column].to_pylist()[:201] == before[column].to_pylist()[:201]
    assert before["source"].to_pylist()[:201].count("model") > 100
    assert sum(low is not None for low in before["low"].to_pylist()[:201]) > 50
    assert after["predicted"].to_pylist()[201:] != before["predicted"].to_pylist()[201:]


def with_another_future(jobs: pa.Table, now: float, seed: int) -> pa.Table:
    """Return the jobs with all that was not known at ``now`` replaced, and later rows shuffled."""
    rng = np.random.default_rng(seed)
    known = np.asarray(jobs["end_time"]) <= now
    submit = np.asarray(jobs["submit_time"])
    later = np.flatnonzero(submit > now)
    order = np.concatenate([np.flatnonzero(submit <= now), rng.permutation(later)])
    duration = np.where(known, jobs["duration"], rng.lognormal(9, 2, len(known)))
    start = np.maximum(np.asarray(jobs["start_time"]), np.where(known, -np.inf, now))
    columns = {name: jobs[name] for name in ("job_id", "submit_time", "num_gpus", "user", "vc")}
    template = [
        name if early else f"{name}-{rng.integers(3)}"
        for name, early in zip(jobs["template"].to_pylist(), submit <= now, strict=True)
    ]
    times = {"start_time": start, "end_time": np.where(known, jobs["end_time"], start + duration)}
    exact = np.where(known, np.asarray(jobs["duration"]), duration)
    table = pa.table({**columns, **times, "duration": exact, "template": template})
    return as_jobs(table.take(order))


@needs_sklearn
@pytest.mark.parametrize("name", ["cart", "gbdt:max_iter=10", "quantile:max_iter=5"])
def test_the_same_input_gives_the_same_bytes(name: str) -> None:
    jobs = history(200)
    runs = [predict_online(jobs, name, min_history=30, refresh=6000.0, coverage=0.8) for _ in "ab"]
    assert runs[0].equals(runs[1])


@needs_sklearn
def test_estimators_keep_scikit_learns_convention() -> None:
    from sklearn.base import clone

    tree = Cart(by="user", min_samples_leaf=3)
    assert clone(tree).get_params() == tree.get_params() == tree.clone().get_params()
    jobs = history(50)
    fitted = tree.fit(jobs, np.asarray(jobs["duration"]))
    assert fitted is tree
    assert not hasattr(tree.clone(), "memory_")
    tree.set_params(min_samples_leaf=7)
    assert (tree.by, tree.min_samples_leaf) == ("user", 7)
    with pytest.raises(SpecError, match="call fit first"):
        tree.predict(jobs)
    with pytest.raises(SpecError, match="Did you mean 'max_depth'"):
        tree.set_params(max_dept=3)
    with pytest.raises(SpecError, match="no job with a known duration"):
        tree.fit(jobs, [math.nan] * 50)


@pytest.fixture
def _without_sklearn(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """As where the extra is not installed."""
    for name in [n for n in sys.modules if n.partition(".")[0] == "sklearn"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "sklearn", None)  # type: ignore[arg-type]
    return


@pytest.mark.usefixtures("_without_sklearn")
def test_without_scikit_learn_trees_say_what_to_install_and_the_others_work() -> None:
    for name in ("cart", "gbdt", "quantile"):
        with pytest.raises(SpecError, match=r'not installed; .*pip install "windtunnel\[ml\]"'):
            resolve_predictor(name)
    for name in ("rolling", "qssf-rolling", "sjgg", "requested", "oracle", "noise"):
        assert backtest(history(20), name).summary()["n"] == 20


def test_when_a_model_is_trained_must_be_possible() -> None:
    assert Refreshing.of().refresh == DAY
    for options, words in (
        ({"refresh": 1.0, "refresh_jobs": 5}, "one of them"),
        ({"refresh": 0.0}, "seconds > 0"),
        ({"refresh": math.inf}, "seconds > 0"),
        ({"refresh_jobs": 0}, "whole number >= 1"),
        ({"min_history": 0}, "whole number >= 1"),
        ({"train_last": 1.5}, "whole number >= 1"),
    ):
        with pytest.raises(SpecError, match=words):
            Refreshing.of(**options)
