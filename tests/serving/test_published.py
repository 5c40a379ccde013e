"""Published placements and workloads evaluate to the published figures."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from windtunnel import serving

if TYPE_CHECKING:
    from pathlib import Path

    from windtunnel.serving import Profile

pytestmark = pytest.mark.data


def rows(data_dir: Path, name: str) -> list[dict[str, Any]]:
    text = (data_dir / "alpaserve" / name).read_text(encoding="utf-8")
    return [json.loads(line) for line in text.splitlines()]


def replayed(row: dict[str, Any], profile: Profile) -> dict[str, Any]:
    models = [row["model_set"][i % len(row["model_set"])] for i in range(row["num_models"])]
    workload = serving.generate(
        models,
        duration=row["duration_s"],
        rate=row["total_rate"],
        rates=row["rate_distribution"],
        cv=row["cv"],
        slo=serving.slos(models, profile, row["slo_scale"]),
    )
    placement = serving.as_placement(row["groups"])
    budget = row["mem_budget_bytes"]
    outcome = serving.simulate(
        placement, workload, profile, overheads="alpaserve", mem_budget=budget
    )
    return outcome.metrics(warm_up=10.0)


@pytest.mark.sample(1)
@pytest.mark.parametrize(
    ("name", "count"), [("fidelity_real_vs_sim.jsonl", 40), ("general_synthetic_bert.jsonl", 114)]
)
def test_every_published_placement(
    data_dir: Path, published: Profile, name: str, count: int
) -> None:
    cases = rows(data_dir, name)
    assert len(cases) == count
    for row in cases:
        found = replayed(row, published)
        for mine, its in (
            ("num_requests", "n_requests"),
            ("num_counted", "n_counted"),
            ("num_good", "n_good"),
        ):
            assert found[mine] == row[its], row["line"]
        assert found["slo_attainment"] == pytest.approx(row["goodput_rerun"], abs=5.1e-7)
        if row["mode"] == "simulate":
            assert found["slo_attainment"] == pytest.approx(row["goodput"], abs=6e-4)
        latency_of_all = found["mean_latency"] or 0.0
        latency_of_all *= found["num_good"] / found["num_counted"]
        assert latency_of_all == pytest.approx(row["mean_latency_all_s"], abs=1e-6)


def test_simulation_is_near_the_real_cluster(data_dir: Path, published: Profile) -> None:
    real = [r for r in rows(data_dir, "fidelity_real_vs_sim.jsonl") if r["mode"] == "run"]
    errors = [abs(replayed(row, published)["slo_attainment"] - row["goodput"]) for row in real]
    assert len(errors) == 20
    assert max(errors) < 0.02


PLACEMENTS = {
    "simple": [{"parallel": [1, 1, 1], "models": [i]} for i in range(2)],
    "pipeline2": [{"parallel": [1, 1, 2], "models": [0, 1]}],
    "pipeline8": [{"parallel": [1, 1, 8], "models": list(range(8))}],
    "replication2": [{"parallel": [1, 1, 1], "models": [i, (i + 1) % 8]} for i in range(8)],
}


@pytest.mark.parametrize(
    ("name", "model", "count"),
    [
        ("expected_two_model.json", "bert-6.7b", 2),
        ("expected_rate_sweep.json", "bert-2.6b", 8),
    ],
)
def test_examples_without_deadline(
    data_dir: Path, published: Profile, name: str, model: str, count: int
) -> None:
    cases = json.loads((data_dir / "alpaserve" / name).read_text(encoding="utf-8"))
    for case in cases:
        rates = case.get("rates", "uniform")
        rate = case.get("total_rate", 3.0)
        if name == "expected_rate_sweep.json":  # the file's rates have six decimals
            steps = sorted({c["total_rate"] for c in cases})
            rate = steps[0] + (steps[-1] - steps[0]) * steps.index(rate) / (len(steps) - 1)
        workload = serving.generate(
            [model] * count, duration=case["duration_s"], rate=rate, rates=rates, cv=case["cv"]
        )
        placement = serving.as_placement(PLACEMENTS[case["placement"]])
        found = serving.simulate(placement, workload, published, overheads="alpaserve").metrics(
            warm_up=10.0
        )
        assert (found["num_requests"], found["num_counted"]) == (
            case["n_requests"],
            case["n_counted"],
        )
        assert found["slo_attainment"] == 1.0
        for key in ("mean_latency", "p50_latency", "p99_latency"):
            assert found[key] == pytest.approx(case[f"{key}_s"], abs=6e-6)
        by_model = [one["mean_latency"] for one in found["by_model"]]
        assert case.get("mean_by_model_s", by_model) == pytest.approx(by_model, abs=6e-6)


def test_the_event_simulator_is_near_the_real_cluster(data_dir: Path, published: Profile) -> None:
    """Replication on 16 real GPUs, SLO scale 5: the other simulator, not the published one."""
    (row,) = [
        r
        for r in rows(data_dir, "fidelity_real_vs_sim.jsonl")
        if r["mode"] == "run"
        and (r["policy"], r["slo_scale"], r["experiment"]) == ("mp-search", 5, "goodput_vs_slo")
    ]
    models = row["model_set"] * row["num_models"]
    workload = serving.generate(
        models,
        duration=row["duration_s"],
        rate=row["total_rate"],
        rates="power_law",
        cv=row["cv"],
        slo=serving.slos(models, published, row["slo_scale"]),
    )
    found = serving.simulate_events(
        serving.as_placement(row["groups"]),
        workload,
        published,
        delays="alpaserve",
        overheads=serving.Overheads(by_stage=0.009),
    )
    assert found.metrics(10.0)["slo_attainment"] == pytest.approx(row["goodput"], abs=0.02)
