"""The fewest GPUs, and sweeps: each figure is that of the search or simulation behind it."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from windtunnel import serving
from windtunnel.errors import InfeasibleError, SpecError
from windtunnel.serving import WorkloadSpec, fewest_gpus, sweep
from windtunnel.serving.fewest import fewest
from windtunnel.serving.search.capacity import attainable
from windtunnel.serving.search.policies import named_policy, search

if TYPE_CHECKING:
    from pathlib import Path

PROFILE = serving.synthetic_profile()
SPEC = WorkloadSpec(num_models=6, duration=100.0, rate=15.0, cv=3.0, slo_scale=5.0)


@given(st.integers(1, 40), st.integers(1, 40))
def test_fewest_of_a_growing_thing(needed: int, most: int) -> None:
    asked: list[int] = []

    def reaches(number: int) -> int | None:
        asked.append(number)
        return number if number >= needed else None

    found = fewest(reaches, most)
    assert found == ((needed, needed) if needed <= most else None)
    assert len(asked) == len(set(asked))
    assert max(asked) <= most


def test_one_gpu_fewer_does_not_do() -> None:
    requests = SPEC.draw(PROFILE)
    found = fewest_gpus(requests, PROFILE, 0.9, refine=50)
    assert found.found.attainment >= 0.9
    assert found.found.placement.num_gpus == found.gpus
    less = search(requests, PROFILE, found.gpus - 1, refine=50)
    assert less.attainment < 0.9
    assert found.tried[found.gpus - 1] == less.attainment
    many = fewest_gpus(requests, PROFILE, 0.9, refine=50, workers=3)
    assert many == found


def test_a_model_that_needs_several_gpus() -> None:
    requests = SPEC.but(rate=1.0).draw(PROFILE)
    tight = PROFILE.weight("large", serving.Parallel(1, 1, 2)) * 1.01
    assert PROFILE.weight("large", serving.Parallel()) > tight
    found = fewest_gpus(requests, PROFILE, 0.99, mem_budget=tight, refine=0)
    assert found.gpus > 1
    assert found.found.unplaced == ()


def test_what_no_number_of_gpus_can_do() -> None:
    requests = SPEC.draw(PROFILE)
    with pytest.raises(InfeasibleError, match="at most 0 of the requests"):
        fewest_gpus(requests.with_slo(0.001), PROFILE, 0.5)
    with pytest.raises(InfeasibleError, match=r"reaches 0\.\d+ with 2 GPUs"):
        fewest_gpus(requests, PROFILE, 0.99, max_gpus=2)
    for goal in (0.0, 1.5, float("nan")):
        with pytest.raises(SpecError, match="attainment"):
            fewest_gpus(requests, PROFILE, goal)
    with pytest.raises(SpecError, match="no requests"):
        fewest_gpus(requests.window(-2.0, -1.0), PROFILE, 0.5)
    # A deadline between the latency on eight GPUs and on one: only some models can be in time.
    share = float((requests.model % 3 == 0).mean())
    quickest = min(
        PROFILE.stages("small", p).latency.sum() for p in PROFILE.configurations("small")
    )
    assert attainable(requests.with_slo(quickest), PROFILE, 1e12) == share


def test_sweeps_are_searches_and_simulations() -> None:
    fixed = serving.as_placement([{"parallel": [1, 1, 4], "models": list(range(6))}])
    candidates: dict[str, Any] = {"sr": "sr", "pipe": fixed}
    over = {"rate": [5.0, 20.0], "slo_scale": [2.0], "gpus": [4, 6]}
    found = sweep(SPEC, 4, over, candidates, refine=20, workers=2)
    keys = [(row["axis"], row["value"], row["candidate"]) for row in found.rows]
    expected = [(a, float(v), c) for a in over for v in over[a] for c in candidates]
    assert keys == expected
    by_key = dict(zip(keys, found.rows, strict=True))
    requests = SPEC.but(rate=20.0).draw(PROFILE)
    alone = serving.simulate(fixed, requests, PROFILE).metrics()
    row = by_key["rate", 20.0, "pipe"]
    assert [row[name] for name in ("slo_attainment", "mean_latency", "p99_latency")] == [
        alone[name] for name in ("slo_attainment", "mean_latency", "p99_latency")
    ]
    assert row["groups"] == "1 x (1,1,4)"
    placed = search(SPEC.draw(PROFILE), PROFILE, 6, "sr-greedy", refine=20)
    assert by_key["gpus", 6.0, "sr"]["slo_attainment"] == placed.attainment
    assert found.placements["sr"].num_gpus == 4
    again = sweep(SPEC, 4, over, candidates, refine=20)
    assert again.rows == found.rows


def test_points_where_nothing_fits() -> None:
    found = sweep(SPEC, 1, {"gpus": [1]}, {"mp": "mp-search"}, mem_budget=1e6)
    assert found.rows[0]["slo_attainment"] is None
    assert found.runs == {}


@pytest.mark.parametrize(
    ("over", "candidates", "message"),
    [
        ({"rat": [1.0]}, {"a": "sr"}, "Did you mean 'rate'"),
        ({"rate": []}, {"a": "sr"}, "expected values of rate"),
        ({"gpus": [1.5]}, {"a": "sr"}, "whole numbers"),
        ({"rate": [1.0]}, {}, "at least one policy"),
        ({"rate": [1.0]}, {"a": "mp-serch"}, "Did you mean 'mp-search'"),
        ({"rate": [float("nan")]}, {"a": "sr"}, "total_rate"),
        ({"rate": [0.0]}, {"a": "sr"}, "no requests"),
    ],
)
def test_sweeps_that_make_no_sense(
    over: dict[str, list[float]], candidates: dict[str, str], message: str
) -> None:
    with pytest.raises(SpecError, match=message):
        sweep(SPEC, 2, over, candidates)


def test_names_of_policies() -> None:
    assert named_policy("sr") == ("sr-greedy", None)
    assert named_policy("mp-greedy-8") == ("mp-greedy", 8)
    requests = SPEC.draw(PROFILE)
    short, long = (
        search(requests, PROFILE, 4, name, group=group, refine=0)
        for name, group in (("mp-greedy-2", None), ("mp-greedy", 2))
    )
    assert short == long


@pytest.mark.data
def test_the_lectures_figures(data_dir: Path) -> None:
    """Replication against a pipeline, 8 x bert-2.6b on 8 GPUs: the published sweep of rates."""
    cases = json.loads((data_dir / "alpaserve" / "expected_rate_sweep.json").read_text())
    rates = sorted({case["total_rate"] for case in cases})
    exact = [rates[0] + (rates[-1] - rates[0]) * i / (len(rates) - 1) for i in range(len(rates))]
    spec = WorkloadSpec(
        profile=str(data_dir / "alpaserve" / "profile_stages.csv"),
        models=("bert-2.6b",),
        num_models=8,
        duration=1000.0,
        cv=3.0,
        overheads="alpaserve",
    )
    fixed = {
        "pipeline8": [{"parallel": [1, 1, 8], "models": list(range(8))}],
        "replication2": [{"parallel": [1, 1, 1], "models": [i, (i + 1) % 8]} for i in range(8)],
    }
    candidates = {name: serving.as_placement(groups) for name, groups in fixed.items()}
    found = sweep(spec, 8, {"rate": exact}, candidates, warm_up=10.0, workers=2)
    expected = {(case["total_rate"], case["placement"]): case for case in cases}
    assert len(found.rows) == len(cases)
    for row in found.rows:
        case = expected[rates[exact.index(row["value"])], row["candidate"]]
        for name in ("mean_latency", "p50_latency", "p99_latency"):
            assert row[name] == pytest.approx(case[f"{name}_s"], abs=1e-4)
    means = {(row["value"], row["candidate"]): row["mean_latency"] for row in found.rows}
    assert all(means[rate, "pipeline8"] < means[rate, "replication2"] for rate in exact)
    # Burstiness: smooth arrivals favour replication a little, bursts the pipeline ever more.
    bursty = sweep(spec.but(rate=10.0), 8, {"cv": [0.25, 2.0, 5.0]}, candidates, warm_up=10.0)
    gains = [
        replication["mean_latency"] - pipeline["mean_latency"]
        for pipeline, replication in zip(bursty.rows[::2], bursty.rows[1::2], strict=True)
    ]
    assert gains[0] < 0 < gains[1] < gains[2]
    # SLO scale: tight deadlines favour the pipeline more than very loose ones.
    strict = sweep(spec.but(rate=20.0), 8, {"slo_scale": [2.0, 20.0]}, candidates, warm_up=10.0)
    leads = [
        pipeline["slo_attainment"] - replication["slo_attainment"]
        for pipeline, replication in zip(strict.rows[::2], strict.rows[1::2], strict=True)
    ]
    assert leads[0] > max(leads[1], 0.0)
