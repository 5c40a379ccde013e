"""`windtunnel pack`: table, JSON, files and refusals."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING, Any

import pyarrow.csv as pcsv
import pyarrow.parquet as pq
import pytest

from windtunnel.cli.root import windtunnel

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

NODES = (
    "sn,cpu_milli,memory_mib,gpu,model\n"
    "n0,32000,262144,0,\nn1,64000,262144,2,P100\nn2,64000,262144,2,T4\n"
)
PODS = "name,cpu_milli,memory_mib,num_gpu,gpu_milli\n" + "".join(
    f"p{i},{4000 + 1000 * (i % 3)},1024,{gpus},{milli}\n"
    for i, (gpus, milli) in enumerate([(1, 460), (1, 1000), (0, 0), (2, 1000), (1, 300)])
)


@pytest.fixture(autouse=True)
def command(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(windtunnel._homes, "pack", "windtunnel.cli.pack")


@pytest.fixture
def files(tmp_path: Path) -> tuple[Path, Path]:
    nodes, pods = tmp_path / "nodes.csv", tmp_path / "pods.csv"
    nodes.write_text(NODES)
    pods.write_text(PODS)
    return nodes, pods


def test_json_has_ends_runs_and_curves(run: Callable[..., Any], files: tuple[Path, Path]) -> None:
    ran = run("pack", *files, "--placement", "fgd, best_fit", "--seeds", 2, "--json")
    assert (ran.code, ran.err) == (0, "")
    data = ran.json
    assert set(data) == {
        *("trace", "cluster", "settings", "placements", "runs", "curves", "rejected", "notes"),
        *("command", "out"),
    }
    assert [end["placement"] for end in data["placements"]] == ["fgd", "best_fit"]
    assert data["settings"]["num_gpus"] == 4
    assert data["settings"]["seeds"] == [42, 43]
    assert "1 nodes without GPUs were left out." in data["notes"]
    for end in data["runs"]:
        assert end["allocation_percent"] == pytest.approx(100 - 25 * end["unallocated_gpus"])
    assert set(data["placements"][0]["frag_ratio_at"]) == {"40", "60", "80", "90"}


def test_the_command_gives_the_same_again(
    run: Callable[..., Any], files: tuple[Path, Path], tmp_path: Path
) -> None:
    out = tmp_path / "it's.csv"
    words = ("pack", *files, "--seeds", 1, "--seed", 7, "--target", 0.9, "--all-nodes")
    first = run(*words, "--scores", "float", "--node-order", "name", "--out", out, "--json").json
    rows = pcsv.read_csv(out).to_pylist()
    assert {row["seed"] for row in rows} == {7}
    out.unlink()
    again = run(*shlex.split(first["command"])[1:])
    assert again.code == 0
    assert pcsv.read_csv(out).to_pylist() == rows
    assert first["settings"]["num_nodes"] == 3


def test_curves_and_numbers_are_written(
    run: Callable[..., Any], files: tuple[Path, Path], tmp_path: Path
) -> None:
    for ending in ("html", "svg", "parquet"):
        ran = run("pack", *files, "--seeds", 2, "--out", tmp_path / f"curves.{ending}")
        assert ran.code == 0, ran
    page = (tmp_path / "curves.html").read_text("utf-8")
    assert "frag" in page.lower()
    assert 'src="http' not in page
    svg = (tmp_path / "curves.svg").read_text("utf-8")
    assert svg.startswith("<svg")
    assert svg.count("(n = ") == 2, "each panel tells how many seeds"
    table = pq.read_table(tmp_path / "curves.parquet")
    assert table.column_names[:4] == ["placement", "seed", "arrived_percent", "num_arrivals"]


def test_the_terminal_tells_allocation_and_fragments(
    run: Callable[..., Any], files: tuple[Path, Path]
) -> None:
    ran = run("pack", *files, "--placement", "openb_best_fit,random", "--seeds", 3)
    assert ran.code == 0
    for words in ("openb_best_fit", "random", "allocated %", "frag@80", "±", "windtunnel pack"):
        assert words in ran.out


def test_a_cluster_may_be_named(run: Callable[..., Any], files: tuple[Path, Path]) -> None:
    data = run("pack", "2x4:A100,1x2:T4", files[1], "--seeds", 1, "--json").json
    assert data["cluster"]["num_gpus"] == 10
    assert data["settings"]["num_nodes"] == 3


def test_wrong_input_is_refused_in_one_message(
    refused: Callable[..., str], files: tuple[Path, Path], tmp_path: Path
) -> None:
    nodes, pods = files
    assert "Did you mean 'fgd'" in refused("pack", nodes, pods, "--placement", "fdg")
    assert "each once" in refused("pack", nodes, pods, "--placement", "fgd,fgd")
    assert "ending '.gif'" in refused("pack", nodes, pods, "--out", tmp_path / "x.gif")
    assert "pool" in refused("pack", "pool:8", pods)
    assert "share of 0 to 100" in refused("pack", nodes, pods, "--target", -1)
    assert "nowhere.csv" in refused("pack", tmp_path / "nowhere.csv", pods)
    nodes.write_text(NODES.replace("n2,64000,262144,2", "n2,64000,262144,many"))
    message = refused("pack", nodes, pods)
    assert "line 4" in message
    assert "'many'" in message
    nodes.write_text(NODES)
    pods.write_text(PODS + "p9,1000,1024,1,1500\n")
    assert "several devices" in refused("pack", nodes, pods)
