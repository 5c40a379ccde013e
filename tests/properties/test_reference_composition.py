"""Every feature with every other on the reference, at random: what must hold in every run."""

from __future__ import annotations

import numpy as np
import pytest
from composition_cases import Composed, composed
from flight_cases import draws
from invariants import Observed, check

SEEDS = range(draws(400))


@pytest.mark.sample(2)
@pytest.mark.parametrize("first", range(0, len(SEEDS), 20))
def test_what_holds_in_every_run(first: int) -> None:
    for seed in SEEDS[first : first + 20]:
        _check(composed(seed))


def _check(case: Composed) -> None:
    """Fly a case twice and look at everything."""
    out, again = case.fly(), case.fly()
    try:
        check(Observed(out, case.options, own_rates=type(case.policy).__name__ == "Whims"))
        np.testing.assert_array_equal(out.flight.segment_start, again.flight.segment_start)
    except AssertionError as error:
        raise AssertionError(f"seed {case.seed}: {case}") from error
