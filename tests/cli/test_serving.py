"""`windtunnel serving`: JSON, files, tables and refusals."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pyarrow.parquet as pq
import pytest

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

WANTED = ("--num-models", 6, "--rate", 15, "--cv", 3, "--slo-scale", 5, "--duration", 60)


@pytest.fixture
def placement(run: Callable[..., Any], tmp_path: Path) -> Path:
    file = tmp_path / "placement.json"
    ran = run("serving", "search", "--gpus", 4, *WANTED, "--out", file)
    assert (ran.code, ran.err) == (0, "")
    assert "within SLO" in ran.out
    return file


def test_search_and_simulate_agree(run: Callable[..., Any], placement: Path) -> None:
    found = run("serving", "search", "--gpus", 4, *WANTED, "--test-seed", 50, "--json").json
    assert found["placement"] == json.loads(placement.read_text())
    served = run("serving", "simulate", "--placement", placement, *WANTED, "--json").json
    assert served["metrics"] == found["metrics"]
    other = run(
        "serving", "simulate", "--placement", placement, *WANTED, "--seed", 50, "--json"
    ).json
    assert other["metrics"] == found["test_metrics"]


def test_times_by_default_have_their_unit(run: Callable[..., Any]) -> None:
    assert "Of the workload.  [default: 200 s]" in run("serving", "simulate", "--help").out


@pytest.mark.parametrize("simulator", ["immediate", "events", "batching"])
def test_every_simulator(run: Callable[..., Any], placement: Path, simulator: str) -> None:
    ran = run(
        *(
            "serving",
            "simulate",
            "--placement",
            placement,
            *WANTED,
            "--overheads",
            "alpaserve",
            "--json",
        ),
        *("--simulator", simulator, "--warm-up", "5s"),
    )
    assert ran.err == ""
    figures = ran.json["metrics"]
    assert 0.3 < figures["slo_attainment"] < 1
    assert ran.json["settings"]["simulator"] == simulator
    assert figures["num_counted"] < figures["num_requests"]


def test_files(run: Callable[..., Any], placement: Path, tmp_path: Path) -> None:
    for name in ("fates.parquet", "chart.svg", "chart.html", "fates.csv"):
        ran = run(
            "serving", "simulate", "--placement", placement, *WANTED, "--out", tmp_path / name
        )
        assert (ran.code, ran.err) == (0, "")
    table = pq.read_table(tmp_path / "fates.parquet")
    assert table.column_names[-1] == "good"
    assert "Requests in the system" in (tmp_path / "chart.svg").read_text()
    drawn = tmp_path / "requests.parquet"
    data = run("serving", "workload", *WANTED, "--out", drawn, "--json").json
    assert pq.read_table(drawn).num_rows == data["num_requests"] == table.num_rows


def test_placing_anew(run: Callable[..., Any]) -> None:
    asked = ("serving", "replace", "--gpus", 4, "--every", "20s", *WANTED)
    data = run(*asked, "--json").json
    assert len(data["starts"]) == len(data["placements"]) == 3
    shares = {name: one["slo_attainment"] for name, one in data["metrics"].items()}
    assert set(shares) == {"once", "anew_free", "anew_paid"}
    assert shares["anew_free"] > shares["anew_paid"] > 0
    slow = run(*asked, "--load-gib-s", 0.1, "--json").json["metrics"]["anew_paid"]
    assert slow["slo_attainment"] < shares["anew_paid"]
    assert "anew, at a price" in run(*asked).out
    assert run(*asked, "--load-gib-s", 0).code == 2


def test_scaled_requests(run: Callable[..., Any]) -> None:
    plain, fast, double, fewer = (
        run("serving", "workload", *WANTED, *scale, "--json").json
        for scale in ((), ("--compress", 2), ("--repeat", 2), ("--thin", 0.5))
    )
    assert fast["span"] == pytest.approx(plain["span"] / 2)
    assert double["num_requests"] == 2 * plain["num_requests"]
    assert fewer["num_requests"] == pytest.approx(plain["num_requests"] / 2, rel=0.2)


def test_recorded_requests(run: Callable[..., Any], tmp_path: Path) -> None:
    file = tmp_path / "calls.csv"
    file.write_text("app,func,end_timestamp,duration\na,f,10,4\nb,g,7,5\na,h,21,1\n")
    data = run("serving", "workload", "--requests", file, "--json").json
    assert [model["num_requests"] for model in data["models"]] == [1, 1, 1]
    assert "3 requests in 18 s" in run("serving", "workload", "--requests", file).out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("search", "--gpus", 2, "--policy", "mp-serch"), "Did you mean 'mp-search'?"),
        (("search", "--gpus", 2, "--models", "smal"), "Did you mean 'small'?"),
        (("search", "--gpus", 2, "--group", "1"), "expected two degrees"),
        (("search", "--gpus", 2, "--out", "x.csv"), ".json"),
        (("simulate", "--placement", "missing.json"), "missing.json"),
        (("workload", "--rate", "nan"), "expected a finite number"),
        (("workload", "--cv", "-1"), "expected > 0"),
        (("workload", "--slo-scale", "0"), "expected a finite number > 0"),
        (("workload", "--profile", "missing.csv"), "missing.csv"),
    ],
)
def test_refusals(run: Callable[..., Any], arguments: tuple[Any, ...], message: str) -> None:
    ran = run("serving", *arguments)
    assert ran.code == 2
    assert message in ran.err
    assert ran.out == ""


def test_a_wrong_placement(run: Callable[..., Any], tmp_path: Path) -> None:
    file = tmp_path / "p.json"
    for text in ("{", "[]", '[{"parallel": [1, 1, 1], "models": [9]}]', '[{"models": [0]}]'):
        file.write_text(text)
        ran = run("serving", "simulate", "--placement", file)
        assert ran.code == 2
        assert "expected" in ran.err
