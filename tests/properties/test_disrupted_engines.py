"""Both engines return the same flight whatever goes wrong, and whichever event comes first."""

from __future__ import annotations

from disrupted_cases import Disrupted, assert_same_interruptions, disrupted_cases
from flight_cases import MORE, NOT_PREEMPTIVE, Case, cases
from hypothesis import given, settings
from hypothesis import strategies as st

from windtunnel.testing import assert_outcomes_equal

STATIC = NOT_PREEMPTIVE
IN_TURN = st.sampled_from(("submissions_first", "completions_first"))


def check(case: Disrupted) -> None:
    """Fly on both engines."""
    found = case.fly("compiled")
    assert found.settings["engine"] == "compiled"
    assert_same_interruptions(case.fly("reference"), found)


@settings(max_examples=300 * MORE)
@given(disrupted_cases(STATIC, ("strict", "skip")))
def test_orders_without_preemption(case: Disrupted) -> None:
    check(case)


@settings(max_examples=200 * MORE)
@given(cases(policy=st.sampled_from(STATIC)), IN_TURN)
def test_one_event_at_a_time(case: Case, events: str) -> None:
    assert_outcomes_equal(case.fly("reference", events=events), case.fly("compiled", events=events))
