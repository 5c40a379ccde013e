"""What holds of every run with slow-downs, found from where its jobs were, by a second method."""

from __future__ import annotations

from dataclasses import replace

import pytest
from flight_cases import Case, cases, device_cases
from hypothesis import given, settings
from hypothesis import strategies as st
from rates import Account, Rates, Terms, accounts
from slowed_cases import fitting, models, with_racks

import windtunnel as wt
from windtunnel.sim.factor_tables import ShareFactor, SpreadFactor
from windtunnel.testing import PER_JOB, PER_NODE, PER_SEGMENT

#: All of it at 1: tables and defaults.
ONES = wt.Slowdown(
    spread_by=(SpreadFactor("a", 2.0, 1.0),), share_by=(ShareFactor("a", "b", 1.0, 1.0),)
)


@settings(max_examples=150)
@given(st.one_of(cases(), device_cases()))
def test_where_all_factors_are_one_the_flight_is_the_same(case: Case) -> None:
    plain = case.fly("reference")
    model = ONES if case.sharing == "devices" else wt.Slowdown()
    if case.cluster.is_pool or case.placement == "pool":
        model = wt.Slowdown()
    again = wt.simulate(
        case.jobs, case.cluster, case.policy, queueing=case.queueing, placement=case.placement,
        sharing=case.sharing, resources=case.resources, save_time=case.save_time,
        restore_time=case.restore_time, until=case.until, oversize="reject", incomplete="reject",
        slowdown=model,
    )  # fmt: skip
    for name in (*PER_JOB, *PER_SEGMENT, *PER_NODE):
        left, right = getattr(plain.flight, name), getattr(again.flight, name)
        assert left.tobytes() == right.tobytes(), name
    assert again.flight.slowdown_time is not None
    assert not again.flight.slowdown_time.any()


@settings(max_examples=200)
@given(device_cases(), models(), st.integers(1, 3))
def test_work_done_is_the_integral_of_the_rate(
    drawn: Case, model: wt.Slowdown, per_rack: int
) -> None:
    case = with_racks(replace(drawn, sharing="devices"), per_rack)
    model = fitting(model, case)
    out = wt.simulate(
        case.jobs, case.cluster, case.policy, queueing=case.queueing, placement=case.placement,
        sharing="devices", resources=case.resources, save_time=case.save_time,
        restore_time=case.restore_time, until=case.until, oversize="reject", incomplete="reject",
        slowdown=model,
    )  # fmt: skip
    cost = case.save_time + case.restore_time
    terms = [Terms(float(work or 0), cost) for work in out.jobs["duration"].to_pylist()]
    found = accounts(Rates(out, model), {}, terms, {}, [])
    for row, job in enumerate(out.table.to_pylist()):
        own = found.get(row, Account())
        duration = case.jobs["duration"][row]
        if job["status"] == "finished":
            assert own.useful == pytest.approx(duration, abs=1e-7)
        elif job["status"] != "rejected":
            assert own.useful <= duration + 1e-7
        assert job["slowdown_time"] == pytest.approx(own.slowed, abs=1e-7)
    metrics = out.metrics()
    asked = out.jobs["num_gpus"].to_pylist()
    lost = sum((asked[row] or 0) * own.slowed for row, own in found.items())
    assert metrics["lost_to_slowdown"] == pytest.approx(lost, abs=1e-6)
