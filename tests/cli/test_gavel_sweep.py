"""``windtunnel gavel sweep|makespan|timeline`` and ``simulate --policy gavel:...``."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from conftest import Ran

SMALL = ("--cluster", "v100:4,k80:4", "--seeds", "0,1")


@pytest.mark.slow
def test_sweep_as_json_and_chart(run: Callable[..., Ran], tmp_path: Path) -> None:
    out = tmp_path / "sweep.svg"
    words = ("gavel", "sweep", "--rates", "0.1,0.3", "--policies", "fifo_perf,isolated", *SMALL)
    ran = run(*words, "--measure", "2:8", "--out", out, "--json")
    assert ran.code == 0
    assert [row["policy"] for row in ran.json["runs"]] == ["fifo_perf"] * 4 + ["isolated"] * 4
    assert [row["at"] for row in ran.json["hours"]] == [0.1, 0.3] * 2
    assert {row["published"] for row in ran.json["hours"]} == {None}  # another cluster
    assert "Gavel" not in out.read_text()
    assert "FIFO, aware" in out.read_text()


def test_a_blind_policy_is_flown_with_both_choices(run: Callable[..., Ran], tmp_path: Path) -> None:
    out, kept = tmp_path / "page.html", tmp_path / "runs.jsonl"
    words = ("gavel", "sweep", "--rates", "0.2", "--policies", "max_min_fairness", "--seeds", "0")
    words += ("--cluster", "v100:2,k80:2", "--measure", "0:4", "--runs", kept, "--out", out)
    ran = run(*words, "--json")
    names = [row["policy"] for row in ran.json["runs"]]
    assert names == ["max_min_fairness:choice=vertex", "max_min_fairness:choice=centre"]
    page = out.read_text()
    for expected in ("LAS, vertex", "LAS, centre", "v100:2,k80:2", "gavel sweep --rates 0.2"):
        assert expected in page
    assert run(*words, "--json").json["runs"] == ran.json["runs"]
    assert len(kept.read_text().splitlines()) == 2


def test_makespan_as_text_and_table(run: Callable[..., Ran], tmp_path: Path) -> None:
    out = tmp_path / "runs.csv"
    ran = run("gavel", "makespan", "--counts", "10", "--out", out, "--cluster", "v100:8,k80:8")
    assert ran.code == 0
    assert "min_total_duration_perf" in ran.out
    heading = out.read_text().splitlines()[0]
    assert heading == '"policy","jobs","seed","makespan","avg_jct","utilization"'


def test_timeline(run: Callable[..., Ran], tmp_path: Path) -> None:
    out = tmp_path / "page.html"
    ran = run("gavel", "timeline", "--weights", "1,2", "--hours", "3", "--out", out, "--json")
    assert ran.code == 0
    assert len(ran.json["rows"]) == 6
    assert ran.json["rows"][-1]["entity"] == "entity 1"
    assert "entity 0 (weight 1)" in out.read_text()


def test_what_sweeps_refuse(refused: Callable[..., str]) -> None:
    assert "Did you mean" in refused("gavel", "sweep", "--policies", "fifo_pref")
    assert "each once" in refused("gavel", "sweep", "--policies", "fifo,fifo")
    assert "FIRST:LAST" in refused("gavel", "sweep", "--measure", "5")
    assert "numbers joined" in refused("gavel", "sweep", "--rates", "a")
    assert "numbers joined" in refused("gavel", "sweep", "--rates", "")
    assert "v100" in refused("gavel", "sweep", "--cluster", "x100:8", "--measure", "0:1")


def test_simulate_in_rounds(run: Callable[..., Ran], refused: Callable[..., str]) -> None:
    words = ("simulate", "synthetic:gavel:jobs=20", "--cluster", "v100:8,p100:8,k80:8")
    ran = run(*words, "--policy", "gavel:max_min_fairness_perf", "--compat", "gavel", "--json")
    assert ran.code == 0
    assert ran.json["num_finished"] == 20
    assert ran.json["settings"]["parameters"]["mechanism"] == "published"
    assert "--compat gavel" in ran.json["command"]
    assert "throughputs" in refused(*words, "--policy", "fifo", "--throughputs", "x.json")
    missing = refused(*words, "--policy", "gavel:isolated", "--throughputs", "x.json")
    assert "throughput table" in missing
