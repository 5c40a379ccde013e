"""Cases in the published row format: served again to the published figures, or refused."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from windtunnel import serving
from windtunnel.errors import SpecError, TraceError
from windtunnel.serving import Overheads, evaluate, read_cases

if TYPE_CHECKING:
    from pathlib import Path

    from windtunnel.serving import Profile

ROW: dict[str, Any] = {
    "model_set": ["small", "medium"],
    "num_models": 4,
    "total_rate": 12.0,
    "rate_distribution": "power_law",
    "arrival": "gamma",
    "cv": 2,
    "slo_scale": 5,
    "duration_s": 100,
    "groups": [{"parallel": [1, 1, 2], "models": [0, 1, 2, 3]}],
    "goodput": 0.5,
}


def case_of(tmp_path: Path, **changes: Any) -> serving.Case:
    file = tmp_path / "cases.jsonl"
    file.write_text("\n" + json.dumps({**ROW, **changes}) + "\n")
    (case,) = read_cases(file)
    return case


@pytest.mark.data
@pytest.mark.parametrize(
    ("name", "count"),
    [
        ("fidelity_real_vs_sim.jsonl", 40),
        pytest.param("general_synthetic_bert.jsonl", 114, marks=pytest.mark.slow),
    ],
)
def test_published_rows(data_dir: Path, published: Profile, name: str, count: int) -> None:
    cases = read_cases(data_dir / "alpaserve" / name)
    assert len(cases) == count
    for case in cases:
        found = evaluate(case, published)
        for field in ("n_requests", "n_counted", "n_good"):
            assert found[field] == case.row[field]
        assert found["goodput"] == pytest.approx(case.row["goodput_rerun"], abs=5.1e-7)
        assert found["mean_latency_all_s"] == pytest.approx(
            case.row["mean_latency_all_s"], abs=1e-6
        )
        assert found["published"] == case.row["goodput"]
        if case.row["mode"] == "simulate":
            assert abs(found["difference"]) <= 5.1e-4


def test_a_case_is_its_simulation(tmp_path: Path) -> None:
    profile = serving.synthetic_profile()
    case = case_of(tmp_path)
    assert (case.line, case.mem_budget) == (2, None)
    found = evaluate(case, profile, overheads=Overheads(), warm_up=0.0)
    models = ["small", "medium"] * 2
    requests = serving.generate(
        models,
        duration=100.0,
        rate=12.0,
        rates="power_law",
        cv=2.0,
        slo=serving.slos(models, profile, 5.0),
    )
    run = serving.simulate(serving.as_placement(ROW["groups"]), requests, profile).metrics()
    assert found["goodput"] == run["slo_attainment"]
    assert found["p99_latency_s"] == run["p99_latency"]
    assert found["difference"] == pytest.approx(run["slo_attainment"] - 0.5)


def test_what_a_row_may_leave_out(tmp_path: Path) -> None:
    profile = serving.synthetic_profile()
    case = case_of(tmp_path, slo_scale=None, cv=None, arrival="poisson", goodput=None)
    found = evaluate(case, profile)
    assert (found["goodput"], found["published"], found["difference"]) == (1.0, None, None)
    weights = case_of(tmp_path, rate_distribution=[3, 1, 1, 1])
    assert weights.workload.rates == (3, 1, 1, 1)
    nothing = evaluate(case_of(tmp_path, total_rate=0), profile)
    assert (nothing["n_requests"], nothing["goodput"], nothing["difference"]) == (0, None, None)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"num_models": "four"}, "line 2, column 'num_models'"),
        ({"num_models": True}, "column 'num_models'"),
        ({"groups": [{"models": [0]}]}, "column 'groups'"),
        ({"groups": None}, "column 'groups'"),
        ({"arrival": "weekly"}, "column 'arrival'"),
        ({"cv": -1}, "column 'cv'"),
        ({"slo_scale": float("nan")}, "column 'slo_scale'"),
        ({"mem_budget_bytes": 0}, "column 'mem_budget_bytes'"),
    ],
)
def test_rows_that_are_no_case(tmp_path: Path, changes: dict[str, Any], message: str) -> None:
    with pytest.raises(TraceError, match=message):
        case_of(tmp_path, **changes)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"model_set": ["smal"]}, "line 2: .*Did you mean 'small'"),
        ({"total_rate": float("nan")}, "line 2: total_rate"),
        ({"mem_budget_bytes": 1e9}, r"line 2: .*GiB a GPU of 0\.931"),
        ({"rate_distribution": "flat"}, "line 2: rates"),
        ({"num_models": 2}, "line 2: .*expected 0 to 1"),
    ],
)
def test_cases_that_cannot_be_served(tmp_path: Path, changes: dict[str, Any], message: str) -> None:
    with pytest.raises(SpecError, match=message):
        evaluate(case_of(tmp_path, **changes), serving.synthetic_profile())


@pytest.mark.parametrize("text", ["", "{\n", "[1]\n"])
def test_files_that_hold_no_cases(tmp_path: Path, text: str) -> None:
    file = tmp_path / "cases.jsonl"
    file.write_text(text)
    with pytest.raises(TraceError):
        read_cases(file)
