"""Predictors in runs: the same as the column they stand for, from the past alone, asked once."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import windtunnel as wt
from windtunnel.policies import resolve_policy
from windtunnel.predictors import predict_online
from windtunnel.schema import as_jobs
from windtunnel.study import predictions
from windtunnel.study.predictions import Predictions, checked_estimates
from windtunnel.testing import PER_JOB

if TYPE_CHECKING:
    import pyarrow as pa

ENGINES = ("reference", "compiled")


def trace(count: int = 60, seed: int = 0) -> dict[str, Any]:
    """Jobs of four users that recur, and overlap enough to wait on three GPUs."""
    rng = np.random.default_rng(seed)
    user = rng.integers(0, 4, count)
    submit = np.sort(rng.integers(0, count * 6, count)).astype(float)
    duration = np.round((user + 1.0) * rng.uniform(4, 9, count))
    start = submit + rng.integers(0, 20, count)
    return {
        "submit_time": submit,
        "start_time": start,
        "end_time": start + duration,
        "duration": duration,
        "num_gpus": rng.integers(1, 4, count).astype(float),
        "user": [f"u{n}" for n in user],
        "template": [f"t{n}" for n in user],
    }


def same(a: wt.Outcome, b: wt.Outcome) -> None:
    """Assert that every job fared the same in both."""
    for name in PER_JOB:
        np.testing.assert_array_equal(getattr(a.flight, name), getattr(b.flight, name), name)


def predicted(jobs: dict[str, Any], model: str, otherwise: float) -> np.ndarray:
    """Return a predictor's word on each job, and ``otherwise`` where it has none."""
    words = predict_online(jobs, model)["predicted"]
    return np.nan_to_num(np.array(words.to_numpy(), dtype=float), nan=otherwise)


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("model", ["rolling", "mean:user", "rolling:last=2", "noise"])
def test_an_order_by_a_predictor_is_one_by_its_column(engine: str, model: str) -> None:
    jobs = trace()
    known = {**jobs, "predicted": predicted(jobs, model, 0.0)}
    ours = wt.simulate(jobs, "pool:3", f"sjf:by={model}", engine=engine)
    same(ours, wt.simulate(known, "pool:3", "sjf:by=predicted", engine=engine))
    assert ours.settings["engine"] == engine
    fifo = wt.simulate(jobs, "pool:3", "fifo", engine=engine)
    assert (ours.flight.start != fifo.flight.start).any()  # else this would show nothing


@pytest.mark.sample(2)
@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("queueing", ["easy", "easy_sjbf", "conservative"])
def test_backfilling_with_a_predictor_is_as_with_such_estimates(engine: str, queueing: str) -> None:
    jobs = trace()
    known = {**jobs, "estimate": predicted(jobs, "rolling", 86_400.0)}
    options = {"queueing": queueing, "engine": engine}
    ours = wt.simulate(jobs, "pool:3", "fifo", estimates="rolling", **options)
    same(ours, wt.simulate(known, "pool:3", "fifo", **options))
    assert ours.settings["estimates"] == "rolling"
    longer = int((jobs["duration"] > known["estimate"]).sum())
    assert f"fifo: {longer} job(s) run longer than expected; they are not killed." in ours.notes
    assert ours.notes[-1] == "fifo: 6 job(s) have no prediction and are expected to take a day (6)."
    asked = {**jobs, "estimate": jobs["duration"] * 2}
    known["estimate"] = np.where(predicted(jobs, "rolling", -1.0) < 0, asked["estimate"],
                                predicted(jobs, "rolling", 0.0))  # fmt: skip
    ours = wt.simulate(asked, "pool:3", "fifo", estimates="rolling", **options)
    same(ours, wt.simulate(known, "pool:3", "fifo", **options))


@pytest.mark.parametrize("engine", ENGINES)
def test_a_policy_may_name_what_it_plans_with(engine: str) -> None:
    jobs = trace()
    names = ["easy:estimates=oracle", "easy:estimates=perfect", "easy-perfect"]
    runs = wt.compare(jobs, "pool:3", names, engine=engine)
    for name in names[1:]:
        same(runs[names[0]], runs[name])
    assert runs[names[0]].settings["estimates"] == "oracle"
    assert runs[names[0]].notes == ("oracle knows the true run times: a bound, not a predictor.",)


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 59), st.integers(0, 3))
def test_what_comes_later_changes_no_earlier_prediction(cut: int, seed: int) -> None:
    jobs = trace(seed=seed)
    now = jobs["submit_time"][cut]
    later = jobs["end_time"] > now  # unknown at this submission
    changed = dict(jobs)
    changed["duration"] = np.where(later, jobs["duration"] * 7 + 1, jobs["duration"])
    changed["end_time"] = jobs["start_time"] + changed["duration"]
    policy = "sjf:by=rolling"
    columns = [
        Predictions(as_jobs(table), 0).for_policy(resolve_policy(policy), None).columns["rolling"]
        for table in (jobs, changed)
    ]
    known = jobs["submit_time"] <= now
    np.testing.assert_array_equal(columns[0][known], columns[1][known])


def test_a_comparison_asks_each_predictor_once(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []
    along = predictions.predict_online

    def counting(jobs: Any, model: Any) -> pa.Table:
        asked.append(model.label)
        return along(jobs, model)

    monkeypatch.setattr(predictions, "predict_online", counting)
    names = ["sjf:by=rolling", "qssf:by=rolling", "easy:estimates=rolling", "sjf:by=noise"]
    runs = wt.compare(trace(), "pool:3", names, seed=4)
    assert asked == ["rolling", "noise:seed=4"]
    alone = wt.simulate(trace(), "pool:3", "qssf:by=rolling", seed=4)
    same(runs["qssf:by=rolling"], alone)
    assert runs["qssf:by=rolling"].settings == alone.settings


def test_predictions_are_of_the_recorded_log_whatever_the_arrivals() -> None:
    jobs = trace()
    known = {**jobs, "predicted": predicted(jobs, "rolling", 0.0)}
    ours = wt.simulate(jobs, "pool:3", "sjf:by=rolling", arrivals="5/10")
    same(ours, wt.simulate(known, "pool:3", "sjf:by=predicted", arrivals="5/10"))
    pai = wt.simulate(jobs, "pool:3", "sjf:by=rolling", compat="pai")
    same(pai, wt.simulate(known, "pool:3", "sjf:by=predicted", compat="pai"))
    assert pai.settings["order_by"] == "predictor rolling"


def test_a_column_comes_before_a_predictor_of_its_name() -> None:
    jobs = {**trace(), "rolling": -np.arange(60.0)}
    out = wt.simulate(jobs, "pool:3", "sjf:by=rolling")
    assert out.settings["order_by"] == "column rolling"
    assert out.notes == ()


@pytest.mark.parametrize("given", ["crat", "recorde", "rolling:lsat=3"])
def test_estimates_from_nowhere(given: str) -> None:
    for name in ("easy", f"easy:estimates={given}"):
        with pytest.raises(wt.SpecError, match="Did you mean"):
            wt.simulate(trace(), "pool:3", name, estimates=None if "=" in name else given)


def test_names_are_checked_before_any_run() -> None:
    easy = resolve_policy("easy")
    assert checked_estimates(None, easy) == "recorded"
    assert checked_estimates("rolling:last=3", easy) == "rolling:last=3"
    with pytest.raises(wt.SpecError, match=r"estimates: unknown name 'crat'. Did you mean 'cart'"):
        checked_estimates("crat", easy)
