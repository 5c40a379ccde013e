"""What every simulation keeps: deadlines, queues, stages; and plain Python says the same."""

from __future__ import annotations

import heapq
import itertools
import math
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from laws import attainment

from windtunnel import serving
from windtunnel.errors import InfeasibleError, SpecError
from windtunnel.serving import Group, Overheads, Parallel, Placement, Workload
from windtunnel.serving.schedule import Schedule, Switch, simulate_schedule
from windtunnel.serving.simulate import DELAYS, DISPATCH, Delays

if TYPE_CHECKING:
    from pathlib import Path

PROFILE = serving.synthetic_profile()
MODELS = ("small", "medium", "large", "small")
COSTS = Overheads(0.01, 0.02)


@st.composite
def cases(draw: st.DrawFn) -> tuple[Placement, Workload]:
    gaps = draw(st.lists(st.sampled_from([0.0, 0.01, 0.1, 0.4, 1.5]), max_size=50))
    models = draw(st.lists(st.integers(0, 3), min_size=len(gaps), max_size=len(gaps)))
    scale = draw(st.sampled_from([1.05, 1.5, 3.0, math.inf]))
    groups = [
        Group(
            Parallel(1, draw(st.sampled_from([1, 2])), draw(st.sampled_from([1, 2, 4]))),
            tuple(sorted(draw(st.sets(st.integers(0, 3))))),
        )
        for _ in range(draw(st.integers(1, 4)))
    ]
    latency = np.array([PROFILE.latency(model) for model in MODELS])
    workload = Workload(
        MODELS,
        np.cumsum(np.array(gaps)),
        np.array(models, dtype=np.int64),
        scale * latency[np.array(models, dtype=np.int64)],
    )
    return Placement(tuple(groups)), workload


def times_of(placement: Placement, group: int, model: int) -> list[float]:
    """Return the stage times of a model on a group, with `COSTS`."""
    parallel = placement.groups[group].parallel
    latency = PROFILE.stages(MODELS[model], parallel).latency
    return [float(time) for time in latency * (1 + COSTS.by_stage * parallel.pp)]


def passed(clocks: list[float], times: list[float], now: float) -> list[float]:
    """Return when a request that comes now leaves each stage."""
    left = []
    for clock, time in zip(clocks, times, strict=True):
        now = max(now, clock) + time
        left.append(now)
    return left


def in_plain_python(
    placement: Placement, workload: Workload, dispatch: str
) -> tuple[list[int], list[float]]:
    """Return group and finish by the rules of the immediate simulator."""
    clocks = [[0.0] * group.parallel.pp for group in placement.groups]
    groups: list[int] = []
    finishes: list[float] = []
    rows = (workload.arrival.tolist(), workload.model.tolist(), workload.slo.tolist())
    for arrival, model, slo in zip(*rows, strict=True):
        hosts = [g for g, group in enumerate(placement.groups) if model in group.models]
        after = {g: passed(clocks[g], times_of(placement, g, model), arrival) for g in hosts}
        flying = [g for g, end in zip(groups, finishes, strict=True) if end > arrival]
        key = {
            "least_work": lambda g: clocks[g][-1],
            "shortest_queue": lambda g, flying=flying: flying.count(g),
            "earliest_finish": lambda g, after=after: after[g][-1],
        }[dispatch]
        chosen = min(hosts, key=key, default=-1)
        groups.append(chosen)
        finish = after[chosen][-1] + COSTS.fixed if hosts else math.nan
        finishes.append(finish if finish - arrival <= slo else math.nan)
        if finish - arrival <= slo:
            clocks[chosen] = after[chosen]
    return groups, finishes


@pytest.mark.parametrize("dispatch", ["least_work", "shortest_queue", "earliest_finish"])
@given(case=cases())
def test_plain_python_says_the_same(case: tuple[Placement, Workload], dispatch: str) -> None:
    placement, workload = case
    found = serving.simulate(placement, workload, PROFILE, overheads=COSTS, dispatch=dispatch)
    groups, finishes = in_plain_python(placement, workload, dispatch)
    assert found.group.tolist() == groups
    np.testing.assert_array_equal(found.finish, finishes)


def events_in_plain_python(
    placement: Placement, workload: Workload, delays: Delays, seed: int
) -> list[float]:
    """Return each request's finish by the rules of the event-driven simulator."""
    client, to_manager, to_engine = (d.tolist() for d in delays.draw(len(workload), seed))
    foreseen = [[0.0] * group.parallel.pp for group in placement.groups]
    free = [[0.0] * group.parallel.pp for group in placement.groups]
    flying = [0] * len(placement.groups)
    group = [-1] * len(workload)
    finish = [math.nan] * len(workload)
    arrival, model = workload.arrival.tolist(), workload.model.tolist()
    # At one instant what is under way comes before what reaches the controller.
    heap = [(arrival[i] + client[i], 1, i, i, "controller") for i in range(len(workload))]
    heapq.heapify(heap)
    turn = itertools.count()
    while heap:
        now, _, _, i, what = heapq.heappop(heap)
        g = group[i]
        if what == "controller":
            hosts = [h for h, held in enumerate(placement.groups) if model[i] in held.models]
            if not hosts:
                continue
            g = group[i] = min(hosts, key=lambda h: flying[h])
            flying[g] += 1
            heapq.heappush(heap, (now + to_manager[i], 0, next(turn), i, "manager"))
        elif what == "manager":
            after = passed(foreseen[g], times_of(placement, g, model[i]), now)
            if after[-1] + (delays.margin + COSTS.fixed) - arrival[i] > workload.slo[i]:
                flying[g] -= 1
                continue
            foreseen[g] = after
            heapq.heappush(heap, (now + to_engine[i], 0, next(turn), i, "0"))
        elif what == "done":
            finish[i] = now + COSTS.fixed
            flying[g] -= 1
        else:
            stage = int(what)
            free[g][stage] = max(now, free[g][stage]) + times_of(placement, g, model[i])[stage]
            last = stage + 1 == len(free[g])
            following = "done" if last else str(stage + 1)
            heapq.heappush(heap, (free[g][stage], 0, next(turn), i, following))
    return finish


@pytest.mark.parametrize("name", sorted(DELAYS))
@given(case=cases())
def test_plain_python_says_the_same_event_by_event(
    case: tuple[Placement, Workload], name: str
) -> None:
    placement, workload = case
    found = serving.simulate_events(
        placement, workload, PROFILE, overheads=COSTS, delays=name, seed=7
    )
    expected = events_in_plain_python(placement, workload, DELAYS[name], 7)
    np.testing.assert_array_equal(found.finish, expected)


def runs(placement: Placement, workload: Workload) -> list[Any]:
    rules = [
        serving.simulate(placement, workload, PROFILE, overheads=COSTS, dispatch=rule, seed=3)
        for rule in DISPATCH
    ]
    return [
        *rules,
        serving.simulate_events(placement, workload, PROFILE, overheads=COSTS, delays="alpaserve"),
        serving.simulate_batches(placement, workload, PROFILE, overheads=COSTS),
    ]


@given(case=cases())
def test_invariants(case: tuple[Placement, Workload]) -> None:
    placement, workload = case
    hosted = {model for group in placement.groups for model in group.models}
    for found in runs(placement, workload):
        there = found.accepted
        assert (found.group[there] >= 0).all()
        for group, model in zip(found.group.tolist(), workload.model.tolist(), strict=True):
            assert (group >= 0) == (model in hosted)
            assert group < 0 or model in placement.groups[group].models
        if np.isinf(workload.slo).all():
            assert there.tolist() == [model in hosted for model in workload.model.tolist()]
        if found.settings["simulator"] != "events":
            assert (found.good == there).all()
        assert (found.start[there] >= workload.arrival[there]).all()
        for row in np.flatnonzero(there).tolist():
            parallel = placement.groups[found.group[row]].parallel
            least = PROFILE.stages(MODELS[workload.model[row]], parallel).latency.sum()
            assert found.finish[row] - found.start[row] >= least - 1e-9
        assert (found.batch > 0).tolist() == there.tolist()
        utilization = found.utilization()
        assert utilization is None or 0 < utilization <= 1 + 1e-9
        times, queue = found.queue()
        assert (queue >= 0).all()
        assert not len(queue) or queue[-1] == 0
        if len(times) > 1:
            area = float((queue[:-1] * np.diff(times)).sum())
            assert area == pytest.approx(float(np.nansum(found.latency)))


@given(case=cases(), factor=st.sampled_from([0.5, 4.0]))
def test_scaling_time_scales_latency(case: tuple[Placement, Workload], factor: float) -> None:
    placement, workload = case
    entries = {
        key: replace(stages, latency=stages.latency * factor)
        for key, stages in PROFILE._entries.items()
    }
    slower = replace(workload, arrival=workload.arrival * factor, slo=workload.slo * factor)
    scaled = serving.simulate(placement, slower, serving.Profile("scaled", entries))
    plain = serving.simulate(placement, workload, PROFILE)
    np.testing.assert_array_equal(scaled.latency, plain.latency * factor)  # powers of two: exact


@given(case=cases())
def test_one_group_without_delays_is_the_same_event_by_event(
    case: tuple[Placement, Workload],
) -> None:
    placement, workload = case
    alone = Placement((Group(placement.groups[0].parallel, (0, 1, 2, 3)),))
    event = serving.simulate_events(alone, workload, PROFILE, overheads=COSTS)
    immediate = serving.simulate(alone, workload, PROFILE, overheads=COSTS)
    np.testing.assert_allclose(event.finish, immediate.finish, rtol=1e-12)


def test_batches_by_hand() -> None:
    """Stage times 1 s alone, 1.5 s for two: the first goes alone, then a pair, then a late one."""
    one = serving.Stages(np.array([1.0]), np.zeros(1), np.zeros(1))
    two = serving.Stages(np.array([1.5]), np.zeros(1), np.zeros(1))
    costs = serving.Profile("hand", {("m", Parallel(), 1): one, ("m", Parallel(), 2): two})
    workload = serving.merge(["m"], [np.array([0.0, 0.1, 0.2, 0.3, 0.4])], slo=2.6)
    found = serving.simulate_batches(Placement((Group(Parallel(), (0,)),)), workload, costs)
    assert found.batch.tolist() == [1, 2, 2, 0, 0]
    assert found.finish[:3].tolist() == [1.0, 2.5, 2.5]
    assert found.busy.tolist() == [2.5]
    alone = serving.simulate_batches(
        Placement((Group(Parallel(), (0,)),)), workload, costs, max_batch=1
    )
    assert alone.finish[:2].tolist() == [1.0, 2.0]
    assert alone.accepted.tolist() == [True, True, False, False, True]
    assert alone.latency[4] == pytest.approx(2.6)


def test_a_switch_costs_what_is_loaded() -> None:
    """Model 1 replaces model 0 on one GPU at t = 10 while a request is under way until 10.5."""
    gib = 2.0**30
    stages = serving.Stages(np.array([1.5]), np.array([gib]), np.zeros(1))
    costs = serving.Profile("hand", {("m", Parallel(), 1): stages})
    workload = serving.merge(["m", "m"], [np.array([9.0]), np.array([10.0])])
    only = [Placement((Group(Parallel(), (model,)),)) for model in (0, 1)]
    schedule = Schedule((0.0, 10.0), tuple(only))
    free = simulate_schedule(schedule, workload, costs)
    assert free.finish.tolist() == [10.5, 11.5]
    paid = simulate_schedule(schedule, workload, costs, switch=Switch(gib / 2, 0.25))
    assert paid.finish.tolist() == [10.5, 10.5 + 0.25 + 2.0 + 1.5]
    both = Placement((Group(Parallel(), (0, 1)),))
    kept = simulate_schedule(
        Schedule((0.0, 10.0), (both, only[1])), workload, costs, switch=Switch(1.0)
    )
    assert kept.finish.tolist() == [10.5, 12.0]


@pytest.mark.parametrize("size", [0, 1])
def test_next_to_nothing(size: int) -> None:
    workload = serving.merge(["small"], [np.zeros(size)], slo=1.0)
    for found in runs(Placement((Group(Parallel(), (0,)),)), workload):
        figures = found.metrics()
        assert figures["num_good"] == size
        assert figures["slo_attainment"] == (1.0 if size else None)
        assert found.table.num_rows == size


def test_refusals() -> None:
    workload = serving.merge(["small", "large"], [np.arange(5.0), np.arange(5.0)])
    here = Placement((Group(Parallel(), (0, 1)),))
    with pytest.raises(SpecError, match="Did you mean 'least_work'"):
        serving.simulate(here, workload, PROFILE, dispatch="least-work")
    with pytest.raises(SpecError, match="expected 0 to 1"):
        serving.simulate(Placement((Group(Parallel(), (2,)),)), workload, PROFILE)
    with pytest.raises(SpecError, match="no entry for large"):
        serving.simulate(Placement((Group(Parallel(1, 3, 1), (1,)),)), workload, PROFILE)
    with pytest.raises(InfeasibleError, match=r"GiB a GPU of 13\.000"):
        serving.simulate(here, workload, PROFILE, mem_budget=serving.MEM_BUDGET)
    with pytest.raises(SpecError, match="nothing would be left"):
        serving.simulate(here, workload, PROFILE).metrics(warm_up=10.0)
    with pytest.raises(SpecError, match="ascending"):
        Workload(("m",), np.array([1.0, 0.0]), np.zeros(2, dtype=int), np.ones(2))
    for data in (None, [], [{"parallel": [1, 1], "models": []}], [{"models": [0]}]):
        with pytest.raises(SpecError):
            serving.as_placement(data)


@pytest.mark.data
def test_batches_of_a_real_profile(data_dir: Path) -> None:
    """The older profile of bert-1.3b has batch sizes 1 to 16, and no memory."""
    profile = serving.read_profile(data_dir / "alpaserve" / "profile_bert13b_batch_2022.csv")
    assert profile.batches("bert-1.3b", Parallel()) == (1, 2, 4, 8, 16)
    slo = serving.slos(["bert-1.3b"], profile, 5.0)
    workload = serving.generate(["bert-1.3b"], duration=2000.0, rate=14.0, slo=slo)
    placement = Placement((Group(Parallel(), (0,)),))
    alone, paired = (
        serving.simulate_batches(placement, workload, profile, max_batch=n).metrics()
        for n in (1, 16)
    )
    # 14/s is more than 1 / 0.0989 s can serve one by one, less than 2 / 0.1146 s in pairs. One by
    # one, dropping a late head is refusing it at its arrival: M/D/1 with admission.
    assert alone["slo_attainment"] == pytest.approx(
        attainment(14.0, 0.0989439, 5 * 0.0989439), rel=0.01
    )
    assert paired["slo_attainment"] > alone["slo_attainment"] + 0.15
    with pytest.raises(SpecError, match="no memory of bert"):
        serving.simulate(placement, workload, profile, mem_budget=1e10)
