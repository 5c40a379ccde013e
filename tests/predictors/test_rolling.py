"""RunningMean predictors along a trace, against their rules written out job by job."""

from __future__ import annotations

import difflib
import statistics
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from job_histories import history, known_before, same, small_histories

from windtunnel.errors import SchemaError, SpecError
from windtunnel.predictors import predict_online, resolve_predictor
from windtunnel.predictors.rolling import CellMean, QssfRolling, Rolling
from windtunnel.schema import as_jobs

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

Jobs = dict[str, list[Any]]
Rule = tuple[float, str, int]
NOTHING: Rule = (float("nan"), "none", 0)


def runs(jobs: Jobs, row: int, columns: Sequence[str]) -> list[float]:
    """Return the known run times of jobs with the row's values, in the order of their ends."""
    own = [jobs[name][row] for name in columns]
    if any(v is None and name != "gpu_type" for v, name in zip(own, columns, strict=True)):
        return []
    return [
        jobs["duration"][other]
        for other in known_before(jobs, row)
        if [jobs[name][other] for name in columns] == own
    ]


def first_with_runs(
    jobs: Jobs, row: int, levels: Sequence[tuple[tuple[str, ...], str, int | None]], *,
    least: int = 1, statistic: Callable[[list[float]], float] = statistics.fmean,
) -> Rule:  # fmt: skip
    for columns, source, last in levels:
        found = runs(jobs, row, columns)
        found = found if last is None else found[-last:]
        if len(found) >= least:
            return statistic(found), source, len(found)
    return NOTHING


def check(jobs: Jobs, model: Any, rule: Callable[[int], Rule]) -> None:
    for row, prediction in enumerate(predict_online(jobs, model).to_pylist()):
        seconds, source, count = rule(row)
        expected = None if source == "none" else seconds
        assert same(prediction["predicted"], expected), (row, prediction, expected)
        assert (prediction["source"], prediction["runs"]) == (source, count)
        assert prediction["history"] == len(known_before(jobs, row))
        template = jobs["template"][row]
        assert prediction["template_runs"] == (
            None if template is None else len(runs(jobs, row, ("template",)))
        )
        assert prediction["trained_on"] is None


@given(small_histories(), st.integers(1, 3), st.integers(3, 5), st.sampled_from(["mean", "median"]))
def test_rolling_asks_template_then_user_and_gpus_then_user_then_all(
    jobs: Jobs, last: int, wider: int, statistic: str
) -> None:
    levels = [(("template",), "template", last), (("user", "num_gpus"), "user", wider)]
    levels += [(("user",), "user", wider), ((), "global", wider)]
    of = statistics.median if statistic == "median" else statistics.fmean
    model = Rolling(last=last, wider=wider, statistic=statistic)
    check(jobs, model, lambda row: first_with_runs(jobs, row, levels, statistic=of))


@given(small_histories(), st.integers(1, 3))
def test_a_key_with_too_few_runs_is_not_asked(jobs: Jobs, least: int) -> None:
    levels = [(("template",), "template", None), (("user", "num_gpus"), "user", None)]
    levels += [(("user",), "user", None), ((), "global", None)]
    model = Rolling(last=None, wider=None, min_runs=least)
    check(jobs, model, lambda row: first_with_runs(jobs, row, levels, least=least))


@pytest.mark.slow
@given(small_histories())
def test_cell_means_lose_a_column_at_a_time(jobs: Jobs) -> None:
    columns = ("user", "template", "gpu_type")
    levels = [(columns, "template", None), (columns[:2], "template", None)]
    levels += [(columns[:1], "user", None), ((), "global", None)]
    for model in ("sjgg", CellMean("user+template+gpu_type")):
        check(jobs, model, lambda row: first_with_runs(jobs, row, levels))
    check(jobs, "sjg", lambda row: first_with_runs(jobs, row, levels[1:]))
    check(jobs, "sju", lambda row: first_with_runs(jobs, row, levels[2:]))


def qssf(jobs: Jobs, row: int) -> Rule:
    """Return what QSSF's rolling part says, written from its description."""
    named = (("user", "template", "num_gpus"), ("user", "template"), ("template",))
    exact = [(columns, "template", None) for columns in named]
    rest = [(("user",), "user", None), ((), "global", None)]
    template = jobs["template"][row]
    known = dict.fromkeys(jobs["template"][other] for other in known_before(jobs, row))
    if template is not None and template not in known:
        close = difflib.get_close_matches(template, [n for n in known if n], n=2, cutoff=0.6)
        for columns in named:
            found = []
            for name in close:
                there = {**jobs, "template": [*jobs["template"]]}
                there["template"][row] = name
                found += runs(there, row, columns)
            if found:
                return statistics.fmean(found), "similar", len(found)
    return first_with_runs(jobs, row, [*exact, *rest])


@given(small_histories(), st.data())
def test_qssf_asks_names_then_close_names_then_the_user(jobs: Jobs, data: st.DataObject) -> None:
    count = len(jobs["job_id"])
    names = st.sampled_from(["bert-1", "bert-2", "bert-3", "bert-10", "resnet", None])
    jobs = {**jobs, "template": data.draw(st.lists(names, min_size=count, max_size=count))}
    check(jobs, QssfRolling(), lambda row: qssf(jobs, row))


def test_close_names_are_asked_by_hand() -> None:
    # Two runs of bert-1 and one of bert-2 have ended when the first bert-3 comes; ann's own come
    # first, and with as many GPUs.
    jobs = {
        "submit_time": [0.0, 0.0, 0.0, 100.0, 100.0, 100.0, 100.0],
        "duration": [10.0, 20.0, 60.0, 1.0, 1.0, 1.0, 1.0],
        "num_gpus": [1.0, 2.0, 1.0, 2.0, 8.0, 1.0, 1.0],
        "user": ["ann", "ann", "bob", "ann", "ann", "eve", "eve"],
        "template": ["bert-1", "bert-1", "bert-2", "bert-3", "bert-3", "bert-3", "gpt"],
    }
    found = predict_online(jobs, "qssf-rolling")
    assert found["predicted"].to_pylist()[3:] == [20.0, 15.0, 30.0, 30.0]
    assert found["source"].to_pylist()[3:] == ["similar", "similar", "similar", "global"]
    assert found["runs"].to_pylist()[3:] == [1, 2, 3, 3]
    without = predict_online(jobs, "qssf-rolling:similar=no")
    assert without["source"].to_pylist()[3:] == ["user", "user", "global", "global"]
    pooled = predict_online(jobs, "rolling:similar=yes:statistic=median")
    assert pooled["predicted"].to_pylist()[3:] == [20.0, 20.0, 20.0, 20.0]
    assert pooled["source"].to_pylist()[3:] == ["similar", "similar", "similar", "global"]


def test_only_names_that_are_new_to_all_have_close_names_asked() -> None:
    # ann's bert-2 is known from bob: no new name, so her own runs come next, not those of bert-1.
    jobs = {
        "submit_time": [0.0, 0.0, 0.0, 100.0],
        "duration": [10.0, 20.0, 60.0, 1.0],
        "num_gpus": [1.0] * 4,
        "user": ["ann", "bob", "ann", "ann"],
        "template": ["bert-1", "bert-2", "gpt", "bert-2"],
    }
    found = predict_online(jobs, "rolling:user+template:similar=yes").to_pylist()[3]
    assert (found["predicted"], found["source"], found["runs"]) == (35.0, "user", 2)


def test_fitting_and_predicting_is_the_same_as_going_along_to_that_point() -> None:
    jobs = history(300)
    for name in ("rolling", "qssf-rolling", "sjgg"):
        along = predict_online(jobs, name, known_after="end")
        last = jobs.num_rows - 1
        now = jobs["submit_time"][last].as_py()
        ends = np.asarray(jobs["end_time"])
        rows = [row for row in np.argsort(ends, kind="stable") if ends[row] <= now]
        model = resolve_predictor(name).fit(jobs.take(rows), np.asarray(jobs["duration"])[rows])
        found = model.explain(jobs.slice(last, 1))
        assert found.seconds[0] == along["predicted"][last].as_py()
        assert found.runs[0] == along["runs"][last].as_py()
        # Known names and numbers of GPUs in another table are the same names.
        assert model.predict(jobs.slice(last, 1))[0] == found.seconds[0]


def test_a_second_fit_forgets_the_first() -> None:
    jobs = as_jobs(
        {"submit_time": [0, 1], "duration": [5, 9], "num_gpus": [1, 1], "user": ["a"] * 2}
    )
    model = Rolling().fit(jobs, [5.0, 9.0]).fit(jobs.slice(0, 1), [5.0])
    assert model.predict(jobs).tolist() == [5.0, 5.0]
    assert model.fit(jobs, [float("nan"), 9.0]).predict(jobs).tolist() == [9.0, 9.0]
    assert np.isnan(model.fit(jobs, [float("nan")] * 2).predict(jobs)).all()


def test_wrong_arguments_are_named() -> None:
    jobs = as_jobs({"submit_time": [0, 1], "duration": [5, 9], "num_gpus": [1, 1]})
    with pytest.raises(SpecError, match="call fit first"):
        Rolling().predict(jobs)
    with pytest.raises(SchemaError, match=r"2 values in one dimension; found the shape \(1,\)"):
        Rolling().fit(jobs, [1.0])
    with pytest.raises(SchemaError, match=r"first in row 2: -1\.0"):
        Rolling().fit(jobs, [1.0, -1.0])
    for params, words in (
        ({"by": "usr"}, "Did you mean 'user'"),
        ({"by": "user+user"}, "twice"),
        ({"by": "duration"}, "unknown name 'duration'"),
        ({"last": 0}, "whole number >= 1"),
        ({"last": None, "statistic": "median"}, "needs a number of runs"),
        ({"statistic": "mode"}, "Known: mean, median"),
        ({"min_runs": 11}, "more than the 10 runs"),
        ({"by": "user", "similar": True}, "compares templates"),
    ):
        with pytest.raises(SpecError, match=words):
            Rolling(**params)
