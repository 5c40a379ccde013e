"""Predictors by name, with parameters in a word."""

from __future__ import annotations

import pytest

from windtunnel.errors import SpecError
from windtunnel.predictors import Predictor, resolve_predictor
from windtunnel.predictors.given import Noise
from windtunnel.predictors.rolling import CellMean, Rolling


def test_a_word_holds_a_name_and_parameters() -> None:
    model = resolve_predictor("rolling:last=20:statistic=median:similar=yes")
    assert isinstance(model, Rolling)
    assert (model.last, model.statistic, model.similar, model.by) == (
        20,
        "median",
        True,
        "template",
    )
    assert model.label == "rolling:last=20:statistic=median:similar=True"
    assert resolve_predictor("rolling:user+template:last=none").get_params() == {
        **Rolling().get_params(),
        "by": "user+template",
        "last": None,
    }
    assert resolve_predictor("mean:vc").get_params() == {"by": "vc"}
    assert resolve_predictor("column:user_dur").label == "column:user_dur"


def test_a_label_gives_the_same_predictor_again() -> None:
    for word in ("rolling:last=3", "rolling:last=none", "noise:seed=4:sign=plus", "mean:vc", "sju"):
        model = resolve_predictor(word)
        assert resolve_predictor(model.label).get_params() == model.get_params()


def test_the_seed_is_for_those_that_say_none() -> None:
    for word, seed in (("noise", 5), ("noise:seed=2", 2)):
        model = resolve_predictor(word, seed=5)
        assert isinstance(model, Noise)
        assert model.seed == seed
    assert resolve_predictor(Noise(9), seed=5).get_params()["seed"] == 9


def test_classes_and_instances_stand_for_themselves() -> None:
    model = Rolling(last=4)
    assert resolve_predictor(model) is model
    assert isinstance(resolve_predictor(CellMean), CellMean)


@pytest.mark.parametrize(
    ("word", "hint"),
    [
        ("rollin", "Did you mean 'rolling'"),
        ("rolling:lst=3", "Did you mean 'last'"),
        ("rolling:last=3:last=4", "twice"),
        ("rolling:template:20", "expected NAME=VALUE"),
        ("rolling:last=many", "whole number"),
        ("sju:3", "expected NAME=VALUE"),
        ("column", "expected a column"),
        ("mean:usr", "Did you mean 'user'"),
        ("", "unknown name ''"),
    ],
)
def test_wrong_words_are_refused_with_what_is_right(word: str, hint: str) -> None:
    with pytest.raises(SpecError) as error:
        resolve_predictor(word)
    assert hint in str(error.value)


def test_a_thing_that_predicts_nothing_is_refused() -> None:
    with pytest.raises(SpecError, match="derive it from Given, RunningMean or Fitted"):
        resolve_predictor(type("Own", (Predictor,), {"name": "own"}))
    with pytest.raises(SpecError, match="no method fit"):
        resolve_predictor(3)
