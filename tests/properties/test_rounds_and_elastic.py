"""Gavel's rounds and elastic jobs with every other feature: both engines do the same."""

from __future__ import annotations

import math
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from elastic_composed import elastic_composed
from flight_cases import draws
from gavel_cases import gavel_composed

from windtunnel.testing import assert_outcomes_equal

if TYPE_CHECKING:
    from composition_cases import Composed

    import windtunnel as wt

SEEDS = range(draws(160))
STEP = 20
#: Sums of seconds are exact to this.
NEAR = 1e-6


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
        _everybody_is_accounted_for(out)
        _capacity_is_kept(out)
        _work_is_done(out)
    except Exception as error:
        raise AssertionError(f"seed {case.seed}: {case}") from error


def _stays(out: wt.Outcome) -> list[tuple[int, float, float, list[Any], list[Any]]]:
    """Return row, begin, end, nodes and GPUs there of each stay."""
    rows = out.segments.to_pylist()
    until = out.settings["until"]
    last = math.inf if until is None else until
    return [
        (
            row["row"],
            row["start"],
            last if row["end"] is None else row["end"],
            row["nodes"],
            row["node_gpus"],
        )
        for row in rows
    ]


def _everybody_is_accounted_for(out: wt.Outcome) -> None:
    stays = _stays(out)
    for row, status in enumerate(out.table["status"].to_pylist()):
        own = [stay for stay in stays if stay[0] == row]
        assert all(one[2] <= other[1] for one, other in pairwise(own))
        if status in {"finished", "failed"}:
            assert out.flight.end[row] == own[-1][2]
        if status == "rejected":
            assert not own
    if out.flight.interruptions is None and out.flight.power is None:
        known = {"finished", "rejected"}
        if out.settings["until"] is None:
            assert set(out.table["status"].to_pylist()) <= known


def _capacity_is_kept(out: wt.Outcome) -> None:
    """No node gives more GPUs than it has; jobs that share a whole place count once."""
    if out.settings["placement"] == "pool":
        return
    sizes = [kind.gpus for kind in out.cluster.node_types for _ in range(kind.count)]
    stays = [stay for stay in _stays(out) if stay[2] > stay[1]]
    devices = out.flight.devices
    shared = out.flight.gpu_time is not None
    for now in sorted({stay[1] for stay in stays}):
        held = dict.fromkeys(range(len(sizes)), 0.0)
        seen = set()
        for at, (_, begin, end, nodes, gpus) in enumerate(stays):
            if begin <= now < end:
                place = (tuple(nodes), tuple(gpus)) if shared else at
                if place in seen and not len(devices):
                    continue
                seen.add(place)
                for node, number in zip(nodes, gpus, strict=True):
                    held[node] += number
        if not (shared and len(devices)):
            assert all(held[node] <= size + NEAR for node, size in enumerate(sizes))


def _work_is_done(out: wt.Outcome) -> None:
    """What was held is useful, overhead, lost, or taken by slow-downs; launches are paid."""
    seconds, flight = out.flight.interruptions, out.flight
    if seconds is not None:
        slowed = 0.0 if flight.slowdown_time is None else flight.slowdown_time
        parts = seconds.useful_time + seconds.overhead_time + seconds.lost_time + slowed
        np.testing.assert_allclose(parts, flight.run_time, atol=NEAR)
    kinds = flight.stretches
    if kinds is None or seconds is not None or flight.slowdown_time is not None:
        return
    if "power_cap" in out.settings and out.settings["power_cap"] is not None:
        return  # limits slow jobs down, too
    done = np.zeros(len(out.jobs))
    for at, (row, begin, end, _, _) in enumerate(_stays(out)):
        done[row] += (end - begin - kinds.penalty_time[at]) / kinds.iteration_time[at]
    over = flight.status == 0
    np.testing.assert_allclose(done[over], kinds.iterations[over], atol=NEAR)
