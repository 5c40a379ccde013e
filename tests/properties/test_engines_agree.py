"""Both engines return the same flight, bit for bit, whatever is flown."""

from __future__ import annotations

import pytest
from flight_cases import (
    NOT_PREEMPTIVE,
    Case,
    backfilling_cases,
    cases,
    device_cases,
    policies,
    service_cases,
)
from hypothesis import given, settings
from hypothesis import strategies as st

from windtunnel.policies.service_order import Las, Srsf, Tiresias
from windtunnel.testing import assert_outcomes_equal

pytestmark = pytest.mark.engines

SERVICE = (Las(1.0), Las(2.75), Tiresias(1.0, (2.0, 8.0)), Srsf())
PREEMPTIVE = st.one_of(
    st.just("srtf"), policies().filter(lambda p: getattr(p, "preemptive", False))
)


@settings(max_examples=500)
@given(cases())
def test_every_kind_of_run(case: Case) -> None:
    assert_outcomes_equal(case.fly("reference"), case.fly("compiled"))


@settings(max_examples=200)
@given(cases(policy=PREEMPTIVE))
def test_preemption(case: Case) -> None:
    assert_outcomes_equal(case.fly("reference"), case.fly("compiled"))


@settings(max_examples=500)
@given(backfilling_cases())
def test_backfilling(case: Case) -> None:
    assert_outcomes_equal(case.fly("reference"), case.fly("compiled"))


@settings(max_examples=300)
@given(service_cases())
def test_orders_by_service(case: Case) -> None:
    assert_outcomes_equal(case.fly("reference"), case.fly("compiled"))


@settings(max_examples=500)
@given(device_cases())
def test_devices(case: Case) -> None:
    assert_outcomes_equal(case.fly("reference"), case.fly("compiled"))


@settings(max_examples=300)
@given(device_cases(policy=st.sampled_from(NOT_PREEMPTIVE), rules=("conservative",)))
def test_conservative_on_devices(case: Case) -> None:
    assert_outcomes_equal(case.fly("reference"), case.fly("compiled"))


@settings(max_examples=400)
@given(device_cases(racks=True))
def test_racks(case: Case) -> None:
    assert_outcomes_equal(case.fly("reference"), case.fly("compiled"))


@settings(max_examples=200)
@given(device_cases(policy=st.sampled_from(SERVICE)))
def test_devices_under_orders_by_service(case: Case) -> None:
    assert_outcomes_equal(case.fly("reference"), case.fly("compiled"))
