"""`windtunnel energy`: tables, JSON, files and refusals."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING, Any

import pyarrow.csv as pcsv
import pyarrow.parquet as pq
import pytest

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    Run = Callable[..., Any]

GROUPS = """\
group,start_time,end_time,dataset,runtime_ratio
a,0,50,synthetic,0.5
a,60,160,synthetic,1.0
b,100,200,synthetic,1.5
"""


@pytest.mark.data
def test_the_optimum_of_a_published_workload(run: Run, data_dir: Path) -> None:
    ran = run(
        "energy", "optimum", "--workload", "cifar100", "--gpu", "v100", "--eta", 0.5, "--json"
    )
    assert (ran.code, ran.err) == (0, "")
    data = ran.json
    best = data["optimum"]
    assert (best["batch_size"], best["power_limit"]) == (128, 100)
    assert best["tta_s"] == pytest.approx(339.210667, rel=1e-6)
    assert best["eta_j"] == pytest.approx(28477.86, rel=1e-6)
    assert best["cost_j"] == pytest.approx(56640.26, rel=1e-6)
    assert data["default"]["cost_j"] == pytest.approx(131125.2, rel=1e-6)
    front = [f"{one['batch_size']}@{one['power_limit']}" for one in data["pareto_front"]]
    assert front == ["256@225", "256@200", "256@175", "128@150", "128@125", "128@100"]
    assert data["potential"]["both"] == pytest.approx(0.747, abs=5e-4)
    assert data["runner_up"]["batch_size"] == 128
    assert data["workload"]["max_power_w"] == 250.0
    assert any("2048 (5 of 5)" in note for note in data["notes"])
    again = run(
        "energy", "optimum", "--workload", "cifar100", "--data", data_dir / "zeus", "--json"
    )
    assert again.json["optimum"] == best


@pytest.mark.data
def test_the_published_sequence(run: Run, data_dir: Path) -> None:
    words = ("energy", "simulate", "--workload", "cifar100", "--gpu", "v100", "--seeds", 1)
    zeus = run(*words, "--json").json["optimizers"]["zeus"]
    (only,) = zeus["runs"]
    assert (only["seed"], only["num_runs"], only["num_failed"]) == (1, 142, 2)
    assert only["energy_j"] == pytest.approx(4_598_022.2779, abs=5e-5)
    assert only["time_s"] == pytest.approx(49_689.3367, abs=5e-5)
    assert [run["batch_size"] for run in zeus["history"][:4]] == [1024, 512, 256, 128]


@pytest.mark.data
def test_all_pairs(run: Run, data_dir: Path, tmp_path: Path) -> None:
    out = tmp_path / "pairs.csv"
    words = ("energy", "optimum", "--workload", "all", "--gpu", "all", "--out", out)
    pairs = run(*words, "--json").json["pairs"]
    names = [(pair["workload"]["gpu"], pair["workload"]["dataset"]) for pair in pairs]
    assert len(set(names)) == 24
    one = run("energy", "optimum", "--workload", "squad", "--gpu", "rtx6000", "--json").json
    (same,) = (pair for pair in pairs if pair["workload"] == one["workload"])
    assert same.items() <= one.items()
    rows = pcsv.read_csv(out).to_pylist()
    assert [(row["gpu"], row["dataset"]) for row in rows] == names
    printed = run(*words)
    assert printed.code == 0
    assert "24 pairs of workload and GPU" in printed.out


def test_one_workload_on_all_gpus(run: Run, refused: Callable[..., str]) -> None:
    words = ("energy", "optimum", "--workload", "synthetic", "--gpu", "all")
    pairs = run(*words, "--json").json["pairs"]
    assert [pair["workload"]["gpu"] for pair in pairs] == ["v100", "a40", "p100", "rtx6000"]
    assert "--target: goes with one workload" in refused(*words, "--target", 0.6)
    assert "expected .csv or .parquet" in refused(*words, "--out", "x.svg")


def test_optimum_in_words(run: Run) -> None:
    ran = run("energy", "optimum", "--workload", "synthetic", "--gpu", "a40")
    assert (ran.code, ran.err) == (0, "")
    for text in ("synthetic on a40", "optimum", "default", "Pareto front", "made up"):
        assert text in ran.out
    bad = run("energy", "optimum", "--workload", "synthetic", "--default-batch-size", 2048)
    assert bad.code == 0
    assert "misses the target in some runs" in bad.out


def test_simulate_in_words(run: Run) -> None:
    ran = run(
        *("energy", "simulate", "--workload", "synthetic", "--optimizer", "zeus,grid,oracle"),
        *("--seeds", 3, "--recurrences", 60, "--within", 50),
    )
    assert (ran.code, ran.err) == (0, "")
    for text in ("60 recurrences, 3 seeds", "zeus has paid back within 50", "regret", "grid"):
        assert text in ran.out


def test_simulate_as_data(run: Run) -> None:
    words = ("energy", "simulate", "--workload", "synthetic", "--seeds", 3, "--recurrences", 30)
    data = run(*words, "--json").json
    assert set(data) == {
        *("workload", "settings", "optimum", "default", "optimizers", "notes", "command", "out"),
        "headline",
    }
    assert data["settings"]["seeds"] == [1, 2, 3]
    assert list(data["optimizers"]) == ["default", "zeus"]
    zeus = data["optimizers"]["zeus"]
    assert len(zeus["runs"]) == 3
    assert len(zeus["regret_curve"]) == 30
    assert zeus["regret_curve"][-1] == zeus["regret"]
    assert "history" not in zeus
    tight = run(*words, "--beta", 0.9, "--json").json
    assert any("pruned every batch size" in note for note in tight["notes"])


def test_the_command_gives_the_same_again(run: Run, tmp_path: Path) -> None:
    out = tmp_path / "it's.csv"
    first = run(
        *("energy", "simulate", "--workload", "synthetic", "--gpu", "P100", "--seeds", 2),
        *("--seed", 7, "--eta", 0.25, "--beta", "inf", "--recurrences", 20, "--out", out, "--json"),
    ).json
    rows = pcsv.read_csv(out).to_pylist()
    assert {row["seed"] for row in rows} == {7, 8}
    assert {row["optimizer"] for row in rows} == {"default", "zeus"}
    out.unlink()
    assert run(*shlex.split(first["command"])[1:]).code == 0
    assert pcsv.read_csv(out).to_pylist() == rows
    assert first["settings"]["beta"] is None  # infinite


@pytest.mark.slow
def test_charts_and_tables_are_written(run: Run, tmp_path: Path) -> None:
    for ending in ("html", "svg", "png", "csv", "parquet"):
        out = tmp_path / f"optimum.{ending}"
        assert run("energy", "optimum", "--workload", "synthetic", "--out", out).code == 0
        assert out.stat().st_size > 500
    assert pq.read_table(tmp_path / "optimum.parquet").num_rows == 63
    out = tmp_path / "regret.svg"
    ran = run("energy", "simulate", "--workload", "synthetic", "--seeds", 2, "--out", out)
    assert ran.code == 0
    assert "Cumulative regret" in out.read_text("utf-8")


def test_groups_of_a_file(run: Run, tmp_path: Path) -> None:
    path, out = tmp_path / "groups.csv", tmp_path / "runs.parquet"
    path.write_text(GROUPS)
    words = ("energy", "groups", path, "--workload", "synthetic", "--out", out)
    data = run(*words, "--json").json
    assert data["total"]["num_jobs"] == 3
    assert [row["group"] for row in data["groups"]] == ["a", "b"]
    assert pq.read_table(out).num_rows == data["total"]["num_runs"]
    assert data["settings"]["compat"] is None
    printed = run(*words, "--compat", "zeus")
    assert (printed.code, printed.err) == (0, "")
    assert "3 jobs of 2 groups on v100, zeus against the default" in printed.out
    assert "--compat zeus" in printed.out


def test_groups_of_a_trace_and_of_none(run: Run) -> None:
    words = ("energy", "groups", "synthetic:pai:jobs=3000", "--seed", 5)
    data = run(*words, "--workload", "synthetic", "--min-jobs", 5, "--json").json
    assert data["total"]["num_groups"] > 10
    assert data["total"]["energy_saved"] > 0
    made = run("energy", "groups", "synthetic", "--workload", "synthetic", "--json").json
    assert (made["total"]["num_groups"], made["total"]["num_jobs"]) == (12, 480)
    again = run(*shlex.split(made["command"])[1:], "--json").json
    assert again["total"] == made["total"]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("optimum",), "Missing option '--workload'"),
        (("optimum", "--workload", "synthetic", "--eta", "2"), "--eta"),
        (("optimum", "--workload", "synthetic", "--gpu", "v10"), "Did you mean 'v100'"),
        (("optimum", "--workload", "synthetic", "--target", "0.7"), "target: found 0.7"),
        (("optimum", "--workload", "synthetic", "--out", "x.gif"), "found the ending '.gif'"),
        (("optimum", "--workload", "x", "--data", "/no/folder"), "expected a folder"),
        (("optimum", "--workload", "synthetic", "--max-epochs", "3"), "no batch size reached"),
        (("simulate", "--workload", "synthetic", "--optimizer", "zues"), "Did you mean 'zeus'"),
        (("simulate", "--workload", "synthetic", "--optimizer", ","), "expected names"),
        (("simulate", "--workload", "synthetic", "--beta", "0"), "expected a number > 0"),
        (("simulate", "--workload", "synthetic", "--beta", "two"), "expected a number > 0"),
        (
            ("simulate", "--workload", "synthetic", "--recurrences", "5", "--within", "6"),
            "within: found 6",
        ),
        (
            ("simulate", "--workload", "synthetic", "--default-batch-size", "2048"),
            "the very first run, batch size 2048",
        ),
        (("simulate", "--workload", "synthetic", "--power-limits", "low"), "power limits"),
        (("groups", "synthetic", "--workload", "synthetic", "--compat", "zus"), "expected zeus"),
        (
            ("groups", "synthetic", "--workload", "synthetic", "--zone", "UTC"),
            "--zone: only traces",
        ),
        (("groups", "nowhere.csv", "--workload", "synthetic"), "nowhere.csv"),
        (("optimise",), "Did you mean 'optimum'"),
    ],
)
def test_wrong_words_are_refused(
    refused: Callable[..., str], words: tuple[str, ...], message: str
) -> None:
    assert message in refused("energy", *words)
