"""Both engines return the same flight whatever goes wrong, and whichever event comes first."""

from __future__ import annotations

from dataclasses import replace

import pytest
from disrupted_cases import Disrupted, assert_same_interruptions, disrupted_cases
from flight_cases import NOT_PREEMPTIVE, Case, cases, device_cases
from hypothesis import given, settings
from hypothesis import strategies as st

from windtunnel.policies.service_order import Srsf
from windtunnel.testing import assert_outcomes_equal

pytestmark = pytest.mark.engines

BACKFILLING = ("easy", "easy-sjbf", "easy-perfect")
PREEMPTIVE = ("srtf", "sjf-preemptive", "priority-preemptive", Srsf())
IN_TURN = st.sampled_from(("submissions_first", "completions_first"))


def check(case: Disrupted) -> None:
    """Fly on both engines."""
    found = case.fly("compiled")
    assert found.settings["engine"] == "compiled"
    assert_same_interruptions(case.fly("reference"), found)


def check_in_turn(case: Case, events: str) -> None:
    """Fly on both engines, one event at a time."""
    turned = replace(case, events=events)
    assert_outcomes_equal(turned.fly("reference"), turned.fly("compiled"))


@settings(max_examples=120)
@given(disrupted_cases(NOT_PREEMPTIVE, ("strict", "skip")))
def test_orders_without_preemption(case: Disrupted) -> None:
    check(case)


@settings(max_examples=120)
@given(
    st.one_of(
        disrupted_cases(BACKFILLING, (None,)),
        disrupted_cases(NOT_PREEMPTIVE, ("easy", "easy_sjbf")),
    )
)
def test_backfilling(case: Disrupted) -> None:
    check(case)


@settings(max_examples=120)
@given(disrupted_cases(PREEMPTIVE, (None, "strict", "skip")))
def test_preemption(case: Disrupted) -> None:
    check(case)


@settings(max_examples=120)
@given(cases(policy=st.sampled_from((*NOT_PREEMPTIVE, *PREEMPTIVE))), IN_TURN)
def test_one_event_at_a_time(case: Case, events: str) -> None:
    check_in_turn(case, events)


@settings(max_examples=60)
@given(
    cases(policy=st.sampled_from(BACKFILLING), rules=(None,)),
    IN_TURN,
)
def test_backfilling_after_every_event(case: Case, events: str) -> None:
    check_in_turn(case, events)


@settings(max_examples=60)
@given(device_cases(rules=(None, "strict", "skip", "easy", "easy_sjbf")), IN_TURN)
def test_devices_after_every_event(case: Case, events: str) -> None:
    check_in_turn(case, events)
