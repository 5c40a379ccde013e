"""Threads of a time-line: every stay has its GPUs, and no two stays overlap on one of them."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING

import numpy as np
from flight_cases import Case, cases, device_cases
from hypothesis import given, settings
from hypothesis import strategies as st

from windtunnel.report.stays import stay_times
from windtunnel.report.threads import SLOTS, num_threads, slices
from windtunnel.sim.observe.holdings import has_nodes

if TYPE_CHECKING:
    import windtunnel as wt


def check(outcome: wt.Outcome) -> None:
    flight = outcome.flight
    drawn = slices(outcome, np.arange(len(flight.segment_job)))
    start, end = stay_times(outcome)
    threads = set(zip(drawn.process.tolist(), drawn.thread.tolist(), strict=True))
    columns = zip(drawn.process.tolist(), drawn.column.tolist(), drawn.lane.tolist(), strict=True)
    assert len(threads) == len(set(columns))
    assert np.bincount(drawn.stay, minlength=len(start)).tolist() == num_threads(outcome).tolist()
    seen: dict[tuple[int, int, int], list[tuple[float, float]]] = {}
    for stay, *thread in zip(
        *(values.tolist() for values in (drawn.stay, drawn.process, drawn.column, drawn.lane)),
        strict=True,
    ):
        seen.setdefault(tuple(thread), []).append((start[stay], end[stay]))
    for spans in seen.values():
        ordered = sorted(spans)
        assert all(a[1] <= b[0] for a, b in itertools.pairwise(ordered))
    if not has_nodes(outcome):
        return
    sizes = [kind.gpus for kind in outcome.cluster.node_types for _ in range(kind.count)]
    for process, column, lane in seen:
        if column < SLOTS:
            assert column < sizes[process]
            assert lane == 0 or outcome.settings["sharing"] == "devices"


@given(cases())
@settings(max_examples=200)
def test_counted_gpus_are_enough_and_never_shared(case: Case) -> None:
    check(case.fly("reference"))


@given(device_cases())
@settings(max_examples=150)
def test_devices_are_those_of_the_run(case: Case) -> None:
    outcome = case.fly("reference")
    check(outcome)
    flight = outcome.flight
    if len(flight.devices):
        drawn = slices(outcome, np.arange(len(flight.segment_job)))
        stay = np.repeat(np.arange(len(flight.segment_job)), np.diff(flight.node_offset))
        held = {
            (int(s), int(node), gpu)
            for s, node, bits in zip(stay, flight.nodes, flight.devices.tolist(), strict=True)
            for gpu in range(bits.bit_length())
            if bits >> gpu & 1
        }
        gpus = drawn.column < SLOTS
        assert held == set(
            zip(
                drawn.stay[gpus].tolist(),
                drawn.process[gpus].tolist(),
                drawn.column[gpus].tolist(),
                strict=True,
            )
        )


@given(cases(), st.data())
@settings(max_examples=50)
def test_a_part_of_the_stays_has_threads_of_its_own(case: Case, data: st.DataObject) -> None:
    outcome = case.fly("reference")
    stays = len(outcome.flight.segment_job)
    some = np.array(sorted(data.draw(st.sets(st.integers(0, max(stays - 1, 0))))), dtype=np.int64)
    some = some[some < stays]
    assert set(slices(outcome, some).stay.tolist()) == set(some.tolist())
