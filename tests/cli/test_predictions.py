"""Policies by key and predictors on the command line."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


def test_what_prediction_buys_is_one_command(run: Callable[..., Any], lecture: Path) -> None:
    policies = "fifo,sjf:by=rolling,sjf:by=noise,sjf"
    ran = run("compare", lecture, "--cluster", "pool:2", "--policies", policies, "--json")
    assert (ran.code, ran.err) == (0, "")
    runs = ran.json["runs"]
    assert [r["policy"] for r in runs] == policies.split(",")
    assert [r["settings"].get("order_by") for r in runs] == [
        None, "predictor rolling", "predictor noise", "column duration",
    ]  # fmt: skip
    assert {r["settings"]["engine"] for r in runs} == {"compiled"}
    assert "noise knows the true run times: a bound, not a predictor." in ran.json["notes"]
    again = run(*shlex.split(ran.json["command"])[1:], "--json")
    assert again.json["runs"] == runs


def test_backfilling_with_a_predictor(run: Callable[..., Any], lecture: Path) -> None:
    words = ("simulate", lecture, "--cluster", "pool:2", "--policy", "easy", "--json")
    ran = run(*words, "--estimates", "rolling:last=3")
    assert ran.code == 0
    assert ran.json["settings"]["estimates"] == "rolling:last=3"
    assert "--estimates rolling:last=3" in ran.json["command"]


def test_fair_share_says_how(run: Callable[..., Any], lecture: Path) -> None:
    words = ("simulate", lecture, "--cluster", "pool:2", "--json")
    ran = run(*words, "--policy", "fair-share:half_life=12h")
    assert ran.code == 0
    assert ran.json["settings"]["parameters"]["half_life"] == 43_200.0
    assert ran.json["settings"]["engine"] == "compiled"


def test_further_columns_of_a_csv_file_are_text_and_still_numbers(
    run: Callable[..., Any], refused: Callable[..., str], tmp_path: Path
) -> None:
    path = tmp_path / "due.csv"
    path.write_text(
        "job_id,submit_time,duration,num_gpus,deadline,votes,shell\n"
        "a,0,30,1,20,3,sh\nb,1,10,1,90,-2.5e0,sh\nc,1,25,1,,1,7\nd,4,40,1,80,2,8\n"
    )
    words = ("simulate", path, "--cluster", "pool:1", "--json", "--policy")
    data = run(*words, "edf").json
    # d to 70, b to 80, c last: only a, which ends at 30, is late, by 10 s.
    assert (data["num_deadlines"], data["num_missed_deadlines"]) == (3, 1)
    assert data["avg_tardiness"] == 10 / 3
    assert data["max_wait"] == 79.0
    assert run(*words, "sjf:by=votes").json["settings"]["order_by"] == "column votes"
    assert run(*words, "easy", "--estimates", "column:votes").code == 0
    words = ("simulate", path, "--cluster", "pool:1")
    assert "'shell' holds 'sh' in row 1" in refused(*words, "--policy", "sjf:by=shell")
    shown = run(*words, "--policy", "edf").out
    assert "Deadlines missed" in shown
    assert "Tardiness, mean" in shown


def test_wrong_names(refused: Callable[..., str], lecture: Path) -> None:
    words = ("simulate", lecture, "--cluster", "pool:2")
    assert "Did you mean 'cart'?" in refused(*words, "--policy", "sjf:by=crat")
    assert "Did you mean 'cart'?" in refused(*words, "--policy", "easy", "--estimates", "crat")
    assert "no column 'deadline'; edf:slack=2" in refused(*words, "--policy", "edf")
    assert "Did you mean 'half_life'" in refused(*words, "--policy", "fair-share:halflife=1d")
    assert "Did you mean 'multifactor'" in refused(*words, "--policy", "multifactr")
