"""What users give as numbers and words: odd values get the message, not an error of Python's."""

from __future__ import annotations

import re
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from windtunnel.checked import checked_choice, checked_count, checked_number
from windtunnel.errors import SpecError


@pytest.mark.parametrize("value", [10**400, -(10**400), "1", None, True, float("nan"), [1]])
def test_what_is_no_finite_number(value: Any) -> None:
    with pytest.raises(SpecError, match=r"load: found .* expected a finite number > 0"):
        checked_number("load", value, above=0)


@pytest.mark.parametrize("value", [10**400, 2**31, 0, 1.0, "1", None, False, float("inf")])
def test_what_is_no_whole_number_in_bounds(value: Any) -> None:
    with pytest.raises(SpecError, match="seeds: found"):
        checked_count("seeds", value)


@pytest.mark.parametrize("value", [[1], {}, None, "cpx"])
def test_what_is_no_word(value: Any) -> None:
    with pytest.raises(SpecError, match="unknown name " + re.escape(repr(value))):
        checked_choice("kind", value, {"cpu": 1, "gpu": 2})


def test_numbers_of_other_kinds() -> None:
    assert checked_number("x", np.float32(2), least=2) == 2.0
    assert checked_number("x", Fraction(1, 4), below=1) == 0.25
    assert checked_count("x", np.int64(3)) == 3
    assert checked_choice("x", np.str_("cpu"), ["cpu"]) == "cpu"
