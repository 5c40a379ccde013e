"""Search: at least as good as published, the same for any number of workers, never over memory."""

from __future__ import annotations

import itertools
import json
import math
import time
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from windtunnel import serving
from windtunnel.errors import InfeasibleError, SpecError
from windtunnel.serving import MEM_BUDGET, Overheads, Parallel, partition_layers
from windtunnel.serving.schedule import Switch, simulate_schedule
from windtunnel.serving.search.cost import refuse_large_search
from windtunnel.serving.search.evolving import Evolution
from windtunnel.serving.search.layouts import (
    compositions,
    latency_buckets,
    plausible,
    search_layouts,
)
from windtunnel.serving.search.policies import POLICIES, search
from windtunnel.serving.search.problem import Problem, Scored
from windtunnel.serving.search.replacing import search_schedule

if TYPE_CHECKING:
    from pathlib import Path

    from windtunnel.serving import Profile, Workload

MADE_UP = serving.synthetic_profile()


def workload(count: int = 9, rate: float = 25.0, scale: float = 4.0) -> Workload:
    models = [MADE_UP.models[i % 3] for i in range(count)]
    slo = serving.slos(models, MADE_UP, scale)
    return serving.generate(models, duration=100.0, rate=rate, cv=3.0, slo=slo)


def published_cases(data_dir: Path) -> list[dict[str, Any]]:
    cases, known = [], set()
    for name in ("fidelity_real_vs_sim.jsonl", "general_synthetic_bert.jsonl"):
        for text in (data_dir / "alpaserve" / name).read_text(encoding="utf-8").splitlines():
            row = json.loads(text)
            keys = ("num_devices", "num_models", "total_rate", "cv", "slo_scale", "policy")
            key = tuple(row[key] for key in keys)
            large = row["num_devices"] > 48 or row["policy"] == "mp-search-sep"
            if row["mode"] == "simulate" and key not in known and not large:
                known.add(key)
                cases.append(row)
    return cases


def searched(row: dict[str, Any], profile: Profile, **options: Any) -> tuple[float, Any]:
    models = [row["model_set"][i % len(row["model_set"])] for i in range(row["num_models"])]
    requests = serving.generate(
        models,
        duration=row["duration_s"],
        rate=row["total_rate"],
        rates="power_law",
        cv=row["cv"],
        slo=serving.slos(models, profile, row["slo_scale"]),
    )
    budget = row["mem_budget_bytes"]
    found = search(
        requests,
        profile,
        row["num_devices"],
        row["policy"],
        mem_budget=budget,
        overheads="alpaserve",
        **options,
    )
    again = serving.simulate(
        found.placement, requests, profile, overheads="alpaserve", mem_budget=budget
    )
    assert found.placement.num_gpus == row["num_devices"]
    assert found.attainment == pytest.approx(again.metrics()["slo_attainment"])
    return again.metrics(10.0)["slo_attainment"], found


@pytest.mark.data
@pytest.mark.slow
def test_published_search(data_dir: Path, published: Profile) -> None:
    cases = published_cases(data_dir)
    assert len(cases) > 60
    by_case: dict[tuple[Any, ...], dict[str, float]] = {}
    for row in cases:
        attainment, _ = searched(row, published)
        assert attainment > row["goodput"] - 0.02, row
        key = (row["num_models"], row["num_devices"], row["slo_scale"], row["cv"])
        by_case.setdefault((*key, row["total_rate"]), {})[row["policy"]] = attainment
    for gpus in (16, 24, 32):
        here = by_case[42, gpus, 5.0, 4, 64.0]
        assert here["mp-search"] > here["sr-greedy"] + 0.15


@pytest.mark.data
def test_buckets_beat_the_published_ones(data_dir: Path, published: Profile) -> None:
    (row,) = [
        {**row, "policy": "mp-search-sep"}
        for row in published_cases(data_dir)
        if (row["experiment"], row["num_devices"], row["policy"])
        == ("goodput_vs_num_devices", 16, "mp-search")
    ]
    attainment, _ = searched(row, published, workers=2)
    assert attainment > 0.701 - 0.02  # published


@pytest.mark.data
def test_deadlines_choose_the_parallelism(data_dir: Path, published: Profile) -> None:
    tight, loose = (
        {
            "model_set": ["bert-2.6b"], "num_models": 24, "duration_s": 200, "total_rate": 40.0,
            "cv": 4, "slo_scale": scale, "num_devices": 16, "mem_budget_bytes": MEM_BUDGET,
            "policy": "mp-search",
        }
        for scale in (1.0, 5.0)
    )  # fmt: skip
    assert {g.parallel for g in searched(tight, published)[1].placement.groups} == {(1, 4, 1)}
    assert {g.parallel for g in searched(loose, published)[1].placement.groups} == {(1, 1, 8)}


@pytest.mark.data
def test_the_two_model_example_is_found(published: Profile) -> None:
    requests = serving.generate(["bert-6.7b"] * 2, duration=2000.0, rate=3.0)
    alone = search(requests, published, 2, "sr-greedy", overheads="alpaserve").placement
    assert sorted(group.models for group in alone.groups) == [(0,), (1,)]
    (group,) = search(requests, published, 2, overheads="alpaserve").placement.groups
    assert group == serving.Group(Parallel(1, 1, 2), (0, 1))


@pytest.mark.sample(4)
@pytest.mark.parametrize("policy", POLICIES)
def test_any_number_of_workers_finds_the_same(policy: str) -> None:
    options: dict[str, Any] = {"group": 2} if policy in ("beam", "mp-greedy") else {}
    count = 4 if policy == "beam" else 9
    found = [
        search(workload(count), MADE_UP, 6, policy, workers=workers, **options)
        for workers in (1, 3)
    ]
    assert found[0] == found[1]
    found[0].placement.check(workload(count).models, MADE_UP, MEM_BUDGET)
    assert found[0].placement.num_gpus == 6


def test_more_search_is_never_worse() -> None:
    plain, refined = (search(workload(), MADE_UP, 6, refine=n) for n in (0, 400))
    separate = search(workload(), MADE_UP, 6, "mp-search-sep")
    assert plain.score <= refined.score <= separate.score
    small = workload(3)
    beam, greedy = (
        search(small, MADE_UP, 2, policy, group=1, refine=0, beam=9)
        for policy in ("beam", "mp-greedy")
    )
    assert beam.score >= greedy.score


def test_grown_and_evolved_groups() -> None:
    requests = workload()
    plain = search(requests, MADE_UP, 6, refine=0)
    grown = search(requests, MADE_UP, 6, "mp-grow", refine=0)
    evolved = [
        search(requests, MADE_UP, 6, "mp-evolve", refine=0, evolution=Evolution(8, rounds, 1))
        for rounds in (0, 2, 10)
    ]
    assert evolved[0].placement == plain.placement
    scores = [one.score for one in evolved]
    assert scores == sorted(scores)
    assert scores[-1] > plain.score
    for one in (grown, *evolved):
        one.placement.check(requests.models, MADE_UP, MEM_BUDGET)
        assert one.placement.num_gpus == 6
        again = serving.simulate(one.placement, requests, MADE_UP).metrics()
        assert one.attainment == pytest.approx(again["slo_attainment"])
    # A beam as wide as there are layouts tries all of them: 1 + 3 + 4 multisets of 1 to 3 GPUs.
    small = workload(3, rate=8.0)
    widest = search(small, MADE_UP, 3, "mp-grow", beam=100, refine=0)
    one, two = Parallel(), [Parallel(1, 2, 1), Parallel(1, 1, 2)]
    layouts = [(one,) * 3, *((one, group) for group in two)]
    problem = Problem(small, MADE_UP, MEM_BUDGET, Overheads(), (0, 1, 2))
    assert widest.score == max(problem.replicate(layout).score for layout in layouts)


def test_a_search_that_is_interrupted_ends_at_its_next_simulation() -> None:
    def interrupt(_: str) -> None:
        raise KeyboardInterrupt

    requests = serving.generate(
        [MADE_UP.models[0]] * 4, duration=400.0, rate=25.0, cv=3.0, slo=[1.0] * 4
    )
    begun = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        search(requests, MADE_UP, 200, workers=2, on_done=interrupt)
    ended = time.monotonic()
    search(requests, MADE_UP, 200, "sr-greedy", refine=0)  # one of fifty layouts
    assert ended - begun < 3 * (time.monotonic() - ended) + 1
    problem = Problem(requests, MADE_UP, MEM_BUDGET, Overheads(), (0, 1, 2, 3))
    problem.stopped[0] = True
    for attempt in (problem.replicate, lambda layout: problem.refine(held(layout), 9)):
        with pytest.raises(InterruptedError):
            attempt((Parallel(),) * 4)


def held(layout: Any) -> Scored:
    """Return the first model on the first of these groups."""
    groups = [{"parallel": [1, 1, 1], "models": [0] * (at == 0)} for at in range(len(layout))]
    return Scored(serving.as_placement(groups), 0.0, 0.0, 0)


def test_a_search_of_minutes_is_asked_for() -> None:
    asked: Any = {"mem_budget": MEM_BUDGET, "group": None, "refine": None}
    for policy in POLICIES:
        refuse_large_search(workload(), MADE_UP, 8, policy, **asked)
    many = serving.generate([MADE_UP.models[0]] * 4, duration=1e5, rate=5.0, cv=3.0, slo=[1.0] * 4)
    for policy in ("sr", "mp-search", "mp-evolve", "beam"):
        with pytest.raises(SpecError, match="more than 15 s are spent only if it is set"):
            refuse_large_search(many, MADE_UP, 1000, policy, **asked)
    refuse_large_search(many, MADE_UP, 1000, "round-robin", **asked)


def test_a_small_beam_search_is_exhaustive() -> None:
    """Three models on two single GPUs: every placement, by brute force."""
    requests = workload(3, rate=8.0)
    found = search(requests, MADE_UP, 2, "beam", beam=100)
    subsets = [s for n in range(4) for s in itertools.combinations(range(3), n)]
    fitting = [
        s
        for s in subsets
        if sum(MADE_UP.weight(requests.models[m], Parallel()) for m in s) < MEM_BUDGET
    ]
    best = 0.0
    for first, second in itertools.product(fitting, fitting):
        placement = serving.as_placement(
            [{"parallel": [1, 1, 1], "models": list(models)} for models in (first, second)]
        )
        run = serving.simulate(placement, requests, MADE_UP).metrics()
        replicas = (len(first) + len(second)) / 1e6
        best = max(best, run["slo_attainment"] - (run["mean_latency"] or 0) / 1e4 + replicas)
    assert found.score == pytest.approx(best, abs=1e-12)


def test_numbers_of_candidates() -> None:
    counts = {1: 1, 2: 3, 4: 6, 8: 9, 12: 9, 16: 11, 24: 11, 32: 12, 64: 12}
    assert {gpus: len(search_layouts(gpus)) for gpus in counts} == counts
    ways = {(8, 2): 7, (16, 2): 15, (16, 3): 56, (32, 3): 171, (64, 3): 581, (12, 2): 4}
    assert {key: len(compositions(*key)) for key in ways} == ways
    assert len(plausible(compositions(64, 3), [1, 1, 1], [1, 2, 4])) < 100
    assert latency_buckets([0.395, 0.238, 0.151, 0.234, 0.171, 0.150]) == [[0], [1, 2, 3, 4, 5]]


@pytest.mark.parametrize(
    ("costs", "best"),
    [
        ([4, 3, 5, 2, 6, 1, 7, 2], [30, 16, 12, 9]),
        ([1] * 7 + [10], [17, 10, 10, 10]),
        ([2] * 6, [12, 6, 4, 4]),
        ([9, 1, 1, 1, 1, 1, 1, 9], [24, 12, 9, 9]),
    ],
)
def test_partitions_of_the_source(costs: list[float], best: list[float]) -> None:
    assert [partition_layers(costs, stages).slowest for stages in (1, 2, 3, 4)] == best


@given(st.lists(st.integers(0, 9), min_size=1, max_size=9), st.integers(1, 5))
@settings(max_examples=200)
def test_partitions_are_the_best(costs: list[int], stages: int) -> None:
    if stages > len(costs):
        with pytest.raises(SpecError):
            partition_layers(costs, stages)
        return
    bounds, slowest = partition_layers(costs, stages)
    parts = [sum(costs[low:high]) for low, high in itertools.pairwise(bounds)]
    assert max(parts) == slowest
    assert len(parts) == stages
    assert all(low < high for low, high in itertools.pairwise(bounds))
    cuts = itertools.combinations(range(1, len(costs)), stages - 1)
    every = [[0, *cut, len(costs)] for cut in cuts]
    assert slowest == min(
        max(sum(costs[low:high]) for low, high in itertools.pairwise(one)) for one in every
    )


def test_models_that_fit_nowhere() -> None:
    requests = workload(3)
    with pytest.raises(InfeasibleError, match="no model fits"):
        search(requests, MADE_UP, 4, mem_budget=1e6)
    tight = MADE_UP.weight("medium", Parallel()) * 1.01
    found = search(requests, MADE_UP, 2, "sr-greedy", mem_budget=tight)
    assert found.unplaced == (2,)
    late = search(requests.with_slo(0.01), MADE_UP, 2, refine=50)
    assert late.attainment == 0.0


def test_refusals() -> None:
    requests = workload(3)
    with pytest.raises(SpecError, match="Did you mean 'mp-search'"):
        search(requests, MADE_UP, 2, "mp_search")
    for refine in (-1, 10**40):
        with pytest.raises(SpecError, match="whole number from 0 to 1,000,000"):
            search(workload(), MADE_UP, 2, refine=refine)
    with pytest.raises(SpecError, match="no requests"):
        search(requests.window(-2.0, -1.0), MADE_UP, 2)
    for options in ({"gpus": 0}, {"workers": 0}, {"mem_budget": math.nan}, {"group": 5}):
        with pytest.raises(SpecError):
            search(requests, MADE_UP, **{"gpus": 4, "policy": "mp-greedy", **options})


def test_placing_anew_for_free_and_at_a_price() -> None:
    requests = workload(9, rate=12.0)
    schedule = search_schedule(requests, MADE_UP, 4, 20.0)
    assert len(schedule.starts) == 5
    gaps = np.diff(schedule.starts)
    assert (gaps > 20.0).all()
    free = simulate_schedule(schedule, requests, MADE_UP).metrics()["slo_attainment"]
    paid = [
        simulate_schedule(schedule, requests, MADE_UP, switch=Switch(bandwidth)).metrics()
        for bandwidth in (4e9, 1e8)
    ]
    assert free >= paid[0]["slo_attainment"] > paid[1]["slo_attainment"]
    nothing = search_schedule(requests, MADE_UP, 4, 1000.0)
    (only,) = nothing.placements
    same = serving.simulate(only, requests, MADE_UP)
    np.testing.assert_array_equal(
        simulate_schedule(nothing, requests, MADE_UP, switch=Switch()).finish, same.finish
    )
