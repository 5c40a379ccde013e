"""Gavel's rounds and elastic jobs with every other feature: both engines do the same."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from elastic_composed import elastic_composed
from flight_cases import draws
from gavel_cases import gavel_composed
from invariants import Observed
from invariants import check as check_all

from windtunnel.testing import assert_outcomes_equal

if TYPE_CHECKING:
    from composition_cases import Composed

SEEDS = range(draws(160))
STEP = 20


@pytest.mark.parametrize("first", range(0, len(SEEDS), STEP))
def test_gavel_on_both_engines(first: int) -> None:
    for seed in SEEDS[first : first + STEP]:
        check(gavel_composed(seed))


@pytest.mark.parametrize("first", range(0, len(SEEDS), STEP))
def test_elastic_jobs_on_both_engines(first: int) -> None:
    for seed in SEEDS[first : first + STEP]:
        check(elastic_composed(seed))


def check(case: Composed) -> None:
    """Fly a case on both engines; compare everything, and look at what must hold."""
    try:
        out, other = case.fly("auto"), case.fly("reference")
        assert out.settings["engine"] == "compiled"
        assert_outcomes_equal(out, other)
        check_all(Observed(out, case.options))
    except Exception as error:
        raise AssertionError(f"seed {case.seed}: {case}") from error
