"""Any column as numbers."""

from __future__ import annotations

import math

import pyarrow as pa
import pytest

from windtunnel.errors import SpecError
from windtunnel.sim.columns import numeric_column

TABLE = pa.table(
    {
        "whole": pa.array([1, None, 2**60 + 1], pa.int64()),
        "real": [0.5, None, -1.0],
        "digits": ["7", None, "-2.5e1"],
        "huge": pa.array(["1", "2", "inf"], pa.large_string()),
        "words": ["7", None, "seven"],
        "lists": [[1], [2], [3]],
        "flags": [True, False, None],
        "unknown": [None, None, None],
    }
)


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("whole", [1.0, math.nan, float(2**60)]),
        ("real", [0.5, math.nan, -1.0]),
        ("digits", [7.0, math.nan, -25.0]),
        ("huge", [1.0, 2.0, math.inf]),
        ("unknown", [math.nan] * 3),
    ],
)
def test_numbers_and_text_that_reads_as_such(name: str, expected: list[float]) -> None:
    assert numeric_column(TABLE, name, "here").tolist() == pytest.approx(expected, nan_ok=True)


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("words", "here: the column 'words' holds 'seven' in row 3; expected numbers."),
        ("lists", "here: the column 'lists' holds list<item: int64>; expected numbers."),
        ("flags", "here: the column 'flags' holds bool; expected numbers."),
    ],
)
def test_what_holds_no_numbers(name: str, message: str) -> None:
    with pytest.raises(SpecError) as error:
        numeric_column(TABLE, name, "here")
    assert message in str(error.value)
