"""Text for people: names made harmless, numbers with units."""

from __future__ import annotations

import doctest
import importlib
import unicodedata

import pytest

from windtunnel.report import format as fmt
from windtunnel.report.names import MAX_NAME, clean, labels


@pytest.mark.parametrize(
    "module", ["format", "names", "measures", "curves", "findings", "palette", "charts"]
)
def test_the_examples_in_the_docstrings_run(module: str) -> None:
    result = doctest.testmod(importlib.import_module(f"windtunnel.report.{module}"))
    assert result.failed == 0


def test_clean_leaves_no_control_or_direction_character(hostile_names: tuple[str, ...]) -> None:
    for name in hostile_names:
        shown = clean(name)
        assert 0 < len(shown) <= MAX_NAME
        assert not [c for c in shown if unicodedata.category(c) in {"Cc", "Cf", "Cs"}]
        assert "\x1b" not in shown


def test_clean_keeps_names_of_any_script() -> None:
    assert clean("集群-东") == "集群-东"
    assert clean("Zürich été") == "Zürich été"
    assert clean("a" + "\u0301" * 50).count("\u0301") == 3


def test_labels_stay_distinct_after_cleaning() -> None:
    names = ["x" * 100, "x" * 101, "a\x00", "a", "a (2)"]
    assert len(set(labels(names))) == len(names)


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0, "0 s"),
        (1e-9, "0 s"),
        (-5e-14, "0 s"),
        (9.96, "10 s"),
        (59.4, "59 s"),
        (59.6, "1 m 00 s"),
        (3599.6, "1 h 00 m"),
        (86399, "1 d 00 h"),
        (2 * 86400 + 23.6 * 3600, "3 d 00 h"),
        (1000 * 86400, "1,000 d 00 h"),
        (float("nan"), "\u2013"),
        (float("inf"), "never"),
    ],
)
def test_durations_carry_over_at_the_edges(seconds: float, text: str) -> None:
    assert fmt.duration(seconds) == text


@pytest.mark.parametrize(
    "write",
    [fmt.duration, fmt.count, fmt.number, fmt.percent, fmt.gpu_time, fmt.times],
)
def test_unknown_is_a_dash_everywhere(write: object) -> None:
    assert callable(write)
    assert write(None) == write(float("nan")) == fmt.UNKNOWN
