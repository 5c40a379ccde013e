"""Both engines return the same flight, bit for bit, whatever slows the jobs."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from hypothesis import given, settings
from slowed_cases import slowed_cases

from windtunnel.testing import assert_outcomes_equal

if TYPE_CHECKING:
    from flight_cases import Case

    import windtunnel as wt

pytestmark = pytest.mark.engines


@settings(max_examples=300)
@given(slowed_cases())
def test_every_kind_of_factor(drawn: tuple[Case, wt.Slowdown]) -> None:
    case, model = drawn
    compiled = case.fly("compiled", slowdown=model)
    assert_outcomes_equal(case.fly("reference", slowdown=model), compiled)
    assert compiled.flight.slowdown_time is not None
