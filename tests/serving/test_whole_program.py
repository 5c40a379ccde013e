"""Replication by integer program: against every placement there is, and its invariants."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from windtunnel import serving
from windtunnel.errors import InfeasibleError, SpecError
from windtunnel.serving import Group, Parallel, Placement, Profile, Stages, Workload
from windtunnel.serving.overheads import Overheads
from windtunnel.serving.search.policies import search
from windtunnel.serving.search.problem import Problem
from windtunnel.serving.search.whole_program import replicate_on_gpus, replicate_on_groups


def problem(models: list[tuple[float, float, int]], memory: float) -> Problem:
    """Return single-GPU models given as (weight, latency, requests)."""
    entries = {
        (f"m{i}", Parallel(), 1): Stages(np.array([time]), np.array([weight]), np.zeros(1))
        for i, (weight, time, _) in enumerate(models)
    }
    names = [f"m{i}" for i in range(len(models))]
    arrivals = [np.linspace(0.0, 10.0, count) for _, _, count in models]
    workload = serving.merge(names, arrivals)
    everyone = tuple(range(len(models)))
    return Problem(workload, Profile("made", entries), memory, Overheads(), everyone)


def worth(placement: Placement, asked: Problem) -> float:
    """Return the program's objective: the smallest throughput over rate, and a little of all."""
    rates = asked.workload.rates()
    terms = []
    for model, times in asked.stage_times(Parallel()).items():
        fits = asked.weights(Parallel())[model] <= asked.mem_budget
        if fits and rates[model] > 0:
            count = sum(model in group.models for group in placement.groups)
            terms.append(count / times.max() / rates[model])
    return min(terms) + 1e-4 * sum(terms)


asked_models = st.lists(
    st.tuples(
        st.sampled_from([1.0, 2.0, 3.0, 7.0]), st.sampled_from([0.1, 0.2, 0.5]), st.integers(2, 9)
    ),
    min_size=1,
    max_size=4,
)


@settings(max_examples=60)
@given(asked_models, st.integers(1, 3), st.sampled_from([1.0, 3.0, 4.0, 5.0]))
def test_no_placement_is_better(
    models: list[tuple[float, float, int]], gpus: int, memory: float
) -> None:
    asked = problem(models, memory)
    if all(weight > memory for weight, _, _ in models):
        with pytest.raises(InfeasibleError):
            replicate_on_gpus(asked, gpus)
        return
    found = replicate_on_gpus(asked, gpus)
    found.check(asked.workload.models, asked.profile, memory)
    assert found.num_gpus == gpus
    subsets = [
        held
        for size in range(len(models) + 1)
        for held in itertools.combinations(range(len(models)), size)
        if sum(models[m][0] for m in held) <= memory
    ]
    best = max(
        worth(Placement(tuple(Group(Parallel(), held) for held in chosen)), asked)
        for chosen in itertools.combinations_with_replacement(subsets, gpus)
    )
    assert worth(found, asked) == pytest.approx(best, rel=1e-6)


def test_replicas_follow_load_by_hand() -> None:
    """One model a GPU, 4 GPUs, loads 3 : 1: three replicas and one."""
    asked = problem([(1.0, 0.1, 30), (1.0, 0.1, 10)], 1.0)
    held = [group.models for group in replicate_on_gpus(asked, 4).groups]
    assert sorted(held) == [(0,), (0,), (0,), (1,)]


def test_a_tight_deadline_takes_tensor_parallel_groups() -> None:
    """Bursts: pp 2 serves (1.0 - 0.8) // 0.4 + 1 = 1 in time, op 2 (1.0 - 0.3) // 0.3 + 1 = 3."""
    entries = {
        ("m", Parallel(), 1): [1.2],
        ("m", Parallel(1, 1, 2), 1): [0.4, 0.4],
        ("m", Parallel(1, 2, 1), 1): [0.3],
    }
    made = {
        key: Stages(np.array(times), np.ones(len(times)), np.zeros(len(times)))
        for key, times in entries.items()
    }
    arrival = np.linspace(0.0, 10.0, 20)
    requests = Workload(("m",), arrival, np.zeros(20, dtype=np.int64), np.ones(20))
    profile = Profile("made", made)
    asked = Problem(requests, profile, 1.0, Overheads(), (0,))
    with pytest.raises(InfeasibleError, match="in time"):
        replicate_on_groups(asked, 2, Parallel())
    found = search(requests, profile, 2, "mp-ilp", mem_budget=1.0)
    assert [group.parallel for group in found.placement.groups] == [Parallel(1, 2, 1)]
    with pytest.raises(InfeasibleError, match="no model fits a group and is in time"):
        search(requests.with_slo(0.1), profile, 2, "mp-ilp", mem_budget=1.0)


@pytest.mark.slow
def test_too_many_kinds_of_models() -> None:
    models = [(1.0 + i / 97, 0.1, 3) for i in range(40)]
    with pytest.raises(SpecError, match="few different weights"):
        replicate_on_gpus(problem(models, 20.0), 4)
