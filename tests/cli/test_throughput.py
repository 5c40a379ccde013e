"""``windtunnel throughput``: the published examples, a model of one's own, wrong input."""

from __future__ import annotations

import json
from itertools import product
from typing import TYPE_CHECKING

import pytest

from windtunnel.throughput import Plan, training_model
from windtunnel.throughput.figure7 import published_speed_of
from windtunnel.throughput.model_file import read_model
from windtunnel.throughput.options import parse_placement

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from conftest import Ran

MINE = """\
plan,placement,iteration_time,cpu_threads,global_batch_size,parameters,gpu_memory_gib
ga,1,0.657,,32,336297858,80
ga,4,0.2257,,32,336297858,80
ga,44,0.2100,,32,336297858,80
zero-dp,2,0.3652,,32,336297858,80
zero-dp,8,0.155,,32,336297858,80
zero-offload,2,0.58,4,32,336297858,80
zero-offload,8,0.284,4,32,336297858,80
"""


SEVEN = ("k_bwd", "k_sync", "k_opt", "k_os_offload", "k_const", "k_off", "k_swap")


@pytest.fixture
def mine(tmp_path: Path) -> Path:
    path = tmp_path / "mine.csv"
    path.write_text(MINE, encoding="utf-8")
    return path


def test_four_gpus_for_two_jobs(run: Callable[..., Ran]) -> None:
    """MLSys'25, figure 8, as its program prints it."""
    found = run("throughput", "allocate", "roberta", "t5_3B", "--gpus", "4", "--json").json
    jobs = {
        name: [
            (j["job"], j["num_gpus"], j["iteration_time"], j["plan"],
             round(j["normalized_throughput"], 2))
            for j in one["jobs"]
        ]
        for name, one in found["schedulers"].items()
    }  # fmt: skip
    assert jobs == {
        "simple": [
            ("roberta", 2, 0.697693418, "zero-dp", 0.53),
            ("t5_3B", 2, 3.2757, "zero-offload", 0.25),
        ],
        "morphling": [
            ("roberta", 1, 0.68361435, "zero-dp", 0.55),
            ("t5_3B", 3, 0.9301, "tp+ga", 0.89),
        ],
    }


def test_plans_under_shrinking_limits(run: Callable[..., Ran]) -> None:
    """MLSys'25, figure 7: seconds and plans."""
    found = run("throughput", "plan", "--json").json["limits"]
    plans = {
        (r["approach"], r["placement"], r["cpu_threads"]): (r["iteration_time"], r["plan"])
        for r in found
        if r["plan"]
    }
    offload = "zero-offload+gc"
    published = {
        "Morphling": [
            (1.165, "244"), (1.803, "441"), (5.107, "221"), (66, offload), (46, offload)
        ],
        "TP+DP": [(1.306, "184"), (2.372, "144"), (5.704, "141")],
        "TP+PP": [(1.36, "481"), (1.803, "441"), (5.704, "141")],
        "Megatron 3D": [(1.269, "228"), (2.084, "224"), (5.107, "221")],
        "ZeRO-offload+GC": [None, (15, offload), (30, offload), (66, offload), (46, offload)],
    }  # fmt: skip
    limits = [("8888", 2), ("4444", 2), ("4", 2), ("1", 2), ("1", 4)]
    expected = {
        (name, *limit): cell
        for name, row in published.items()
        for limit, cell in zip(limits, row, strict=False)
        if cell is not None
    }
    assert plans == expected


@pytest.mark.parametrize(
    ("placement", "plan", "speed"),
    [
        ("8888", "184", 7.1199), ("8888", "228", 3.4236), ("8888", "148", 2.2786),
        ("8888", "244", 8.0946), ("8888", "418", 5.9059), ("4444", "144", 4.3206),
        ("4444", "224", 6.4200), ("4444", "242", 11.8063), ("4444", "441", 13.0764),
        ("4444", "zero-offload+gc", 2.8303), ("4", "221", 12.1716), ("4", "141", 8.8862),
        ("4", "zero-offload+gc", 0.8789), ("1", "zero-offload+gc", 0.2305),
    ],
)  # fmt: skip
def test_published_predictions_of_figure_7(placement: str, plan: str, speed: float) -> None:
    shape = parse_placement(placement)
    found = published_speed_of(training_model("llama7b_bsz16"), Plan.parse(plan), shape, 2)
    assert found == pytest.approx(speed, abs=5.1e-5)


def test_curve(run: Callable[..., Ran], tmp_path: Path) -> None:
    out = tmp_path / "curve.csv"
    found = run("throughput", "curve", "bert", "--gpus", "1..8", "--json", "--out", out).json
    rows = found["curve"]
    assert [row["gpus"] for row in rows] == list(range(1, 9))
    assert [row["num_gpus"] for row in rows] == [1, 2, 2, 4, 4, 4, 4, 8]
    assert (rows[7]["plan"], rows[7]["placement"], rows[7]["measured"]) == ("zero-dp", "8", True)
    assert rows[3]["throughput"] == pytest.approx(32 / 0.2256736842105263)
    assert out.read_text().count("\n") == 9
    small = run("throughput", "curve", "llama30", "--gpus", "20..24", "--json").json["curve"]
    assert [row["plan"] for row in small] == [None, None, None, None, "641"]


def test_published_curve(run: Callable[..., Ran]) -> None:
    """Check values of the published scheduler: its best speeds, and one plan's iterations."""
    words = ("throughput", "curve", "bert", "--gpus", "1..9", "--compat", "morphling", "--json")
    rows = run(*words).json["curve"]
    speeds = [48.0383, 81.0872, 81.0872, 129.4518, 129.4518, 129.4518, 129.4518, 196.6691, 196.6691]
    assert [row["throughput"] for row in rows] == pytest.approx(speeds, abs=5.1e-5)
    assert {row["plan"] for row in rows} == {"zero-dp"}
    plan = ("--plan", "zero-offload", "--threads", "8")
    rows = run(*words, *plan).json["curve"]
    seconds = {1: 0.919934, 2: 0.540180, 4: 0.338613, 8: 0.227063}
    for gpus, expected in seconds.items():
        assert rows[gpus - 1]["iteration_time"] == pytest.approx(expected, abs=1e-6)
    assert rows[2]["plan"] is None
    only = run("throughput", "curve", "bert", "--plan", "ga", "--gpus", "8", "--json").json["curve"]
    assert (only[0]["plan"], only[0]["iteration_time"]) == ("ga", 0.1576842105263158)


@pytest.mark.parametrize("ending", ["svg", "html", "png"])
def test_curve_is_drawn(run: Callable[..., Ran], tmp_path: Path, ending: str) -> None:
    out = tmp_path / f"curve.{ending}"
    ran = run("throughput", "curve", "t5", "--out", out)
    assert ran.code == 0
    assert "zero-dp" in ran.out
    assert out.stat().st_size > 1000
    if ending == "svg":
        assert "Speed, samples/s" in out.read_text()


def test_figures_are_drawn(run: Callable[..., Ran], tmp_path: Path) -> None:
    plans, shares = tmp_path / "plans.svg", tmp_path / "shares.svg"
    assert run("throughput", "plan", "--out", plans).code == 0
    assert "Megatron 3D" in plans.read_text()
    assert "Measured speed, samples/s" in plans.read_text()
    words = ("allocate", "roberta", "t5_3B", "roberta", "--gpus", "4", "--out", shares)
    assert run("throughput", *words).code == 0
    assert "3 GPUs, tp+ga" in shares.read_text()
    assert "roberta (2)" in shares.read_text()


def test_errors(run: Callable[..., Ran]) -> None:
    found = run("throughput", "errors", "--json").json
    assert len(found["published"]) == 25
    for cell in found["published"]:
        assert cell["mean_percent"] == pytest.approx(cell["published_mean"], abs=0.05)
        assert cell["max_percent"] == pytest.approx(cell["published_max"], abs=0.05)
    points = sum(one["points"] for one in found["measured"])
    assert points == 95 + 120 + 72 + 92 + 74 + 48 + 11 + 6 + 17
    ran = run("throughput", "errors", "llama7")
    assert "1.898/2.898" in ran.out
    refused = {
        (one["model"], one["plan"], one["several_nodes"])
        for one in found["measured"]
        if not one["trusted"]
    }
    assert {("vit", plan, True) for plan in ("ga", "gc", "zero-dp", "zero-offload")} <= refused
    far_off = [(model, plan) for model in ("roberta", "t5") for plan in ("ga", "zero-dp")]
    far_off += [("roberta", "zero-offload"), ("t5", "gc"), ("t5", "zero-offload")]
    assert {(model, plan, False) for model, plan in far_off} <= refused


def test_a_model_of_ones_own(run: Callable[..., Ran], mine: Path, tmp_path: Path) -> None:
    pytest.importorskip("scipy")
    out = tmp_path / "model.json"
    found = run("throughput", "fit", mine, "--json", "--out", out, "--nvlink", "200").json
    assert json.loads(out.read_text()).items() <= found.items()
    assert tuple(found["fitted"]) == SEVEN
    assert found["bandwidths"]["nvlink"] == 200
    assert found["fit"]["fitted_too"] == ["forward", "pcie"]
    assert found["name"] == "mine"
    assert max(error["max_percent"] for error in found["errors"]) < 3
    model = read_model(out)
    assert model.iteration_time(Plan.parse("ga"), (4, 4)) == 0.21
    between = model.iteration_time(Plan.parse("zero-dp"), (4,))
    assert between == pytest.approx(0.3652 * 2 / 3 + 0.155 / 3)
    curve = run("throughput", "curve", out, "--gpus", "8", "--json").json["curve"]
    assert [row["gpus"] for row in curve] == [8]
    shared = run("throughput", "allocate", out, "t5_3B", "--gpus", "4", "--json").json
    assert shared["schedulers"]["simple"]["jobs"][0]["job"] == "mine"


@pytest.mark.slow
def test_published_profile(run: Callable[..., Ran], data_dir: Path) -> None:
    pytest.importorskip("scipy")
    folder = data_dir / "morphling/profile"
    found = run("throughput", "fit", folder / "t5.data.csv", "--json").json
    assert found["fit"]["objective"] == pytest.approx(0.8322111, rel=1e-4)
    assert (found["global_batch_size"], found["parameters"]) == (16, 1240809472)
    assert any(note.startswith("Line 3: forward time 4 ms on 4 GPUs") for note in found["notes"])
    bert = run("throughput", "fit", folder / "bert.config.csv", "--json").json["fitted"]
    fitted = training_model("bert").fitted
    assert fitted is not None
    assert list(bert.values()) == pytest.approx(fitted.as_tuple(), rel=1e-4)


def test_published_tables(run: Callable[..., Ran], data_dir: Path) -> None:
    pytest.importorskip("scipy")
    table = data_dir / "morphling/throughput/llama7.placements.csv"
    found = run("throughput", "fit", table, "--json").json
    assert found["three_d"] == pytest.approx(training_model("llama7").three_d, rel=1e-6, abs=1e-9)
    assert len(found["points"]) == 48


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("ga,4,0.2257", "gaa,4,0.2257", "line 3, column 'plan': found 'gaa'; expected a plan"),
        ("ga,4,0.2257", "ga,40,0.2257", "line 3, column 'placement': found '40'"),
        ("ga,4,0.2257", "ga,4,-1", "line 3, column 'iteration_time': found -1.0"),
        ("ga,4,0.2257", "ga,4,", "line 3, column 'iteration_time'"),
        ("ga,4,0.2257", "ga,4,fast", "line 3, column 'iteration_time': found 'fast'"),
        ("ga,4,0.2257", "ga,4,nan", "line 3, column 'iteration_time'"),
        ("ga,4,0.2257", "ga,1,0.2257", "line 3, column 'placement': found '1'; expected each"),
        ("8,0.284,4", "8,0.284,0", "line 8, column 'cpu_threads'"),
        ("0.2100,,32", "0.2100,,33", "line 4, column 'global_batch_size': found 33"),
        ("ga,4,0.2257", "244,4,0.2257", "found '4'; expected 32 GPUs, which plan 244 needs"),
        ("iteration_time", "seconds", "column 'seconds'"),
        ("placement,", "place,", "column 'place'"),
    ],
)
def test_wrong_points(
    refused: Callable[..., str], mine: Path, old: str, new: str, message: str
) -> None:
    mine.write_text(MINE.replace(old, new, 1), encoding="utf-8")
    assert message in refused("throughput", "fit", mine)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("curve", "robert"), "Did you mean 'roberta'"),
        (("curve", "bert", "--gpus", "8..1"), "expected GPUs as 1..64"),
        (("curve", "bert", "--gpus", "x"), "expected GPUs as 1..64"),
        (("curve", "bert", "--threads", "4"), "goes with --compat morphling"),
        (("curve", "bert", "--plan", "gaa"), "unknown name 'gaa'"),
        (("curve", "nowhere.json"), "nowhere.json: expected a readable training model"),
        (("curve", "bert", "--out", "x.gif"), "found the ending '.gif'"),
        (("allocate", "llama30", "--gpus", "4"), "llama30 was not measured on 4 GPUs or fewer"),
        (("allocate", "bert"), "--gpus"),
        (("plan", "bert"), "not measured at the limits"),
        (("errors", "brt"), "Did you mean 'bert'"),
        (("fit", "nowhere.csv"), "nowhere.csv"),
    ],
)
def test_wrong_words(refused: Callable[..., str], words: tuple[str, ...], message: str) -> None:
    assert message in refused("throughput", *words)


def test_missing_facts(refused: Callable[..., str], tmp_path: Path) -> None:
    bare = tmp_path / "bare.csv"
    bare.write_text("plan,placement,iteration_time\nga,1,1\n")
    assert "--batch: is not given" in refused("throughput", "fit", bare)
    assert "--parameters: is not given" in refused("throughput", "fit", bare, "--batch", "8")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"fitted": {"k_bwd": 1}}, "missing required field"),
        ({"points": [{"plan": "gaa", "placement": "1", "iteration_time": 1}]}, "gaa"),
        ({"points": [{"plan": "ga", "placement": "1", "iteration_time": -1}]}, "number > 0"),
        ({"points": [{"plan": "244", "placement": "1", "iteration_time": 1}]}, "needs 32 GPUs"),
        (
            {"points": [{"plan": "ga", "placement": "1", "iteration_time": 1, "cpu_threads": 0}]},
            "cpu_threads",
        ),
        ({"offload_threads": 0}, "number > 0"),
        ({"fitted": dict.fromkeys(SEVEN, 0.5)}, "fitted.k_bwd"),
        ({"three_d": [1, 1, 1, 1, 1, 1, -1]}, "three_d"),
        ({"surprise": 1}, "unknown field"),
        ({"format": "another"}, "Invalid value 'another'"),
    ],
)
def test_wrong_model_files(
    refused: Callable[..., str], tmp_path: Path, change: dict[str, object], message: str
) -> None:
    path = tmp_path / "model.json"
    fine = {"format": "windtunnel training model 1", "name": "m", "title": "m", "points": []}
    path.write_text(json.dumps({**fine, "global_batch_size": 8, **change}))
    assert message in refused("throughput", "curve", path)


def test_losses(run: Callable[..., Ran], refused: Callable[..., str], tmp_path: Path) -> None:
    path = tmp_path / "losses.csv"
    rows = [f"{step},{10 / step},{10 / step + 0.5},{10 / step - 0.25}" for step in range(1, 61)]
    path.write_text("\n".join(["iteration,loss_181,loss_811,loss_181_seed", *rows]) + "\n")
    out = tmp_path / "losses.csv.csv"
    found = run("throughput", "losses", path, "--json", "--out", out).json
    assert [(r["run"], len(r["differences"])) for r in found["runs"]] == [
        ("811", 2), ("181_seed", 2)
    ]  # fmt: skip
    assert [r["mean"] for r in found["runs"]] == pytest.approx([0.5, 0.25])
    assert out.read_text().splitlines()[0].replace('"', "") == "last_iteration,811,181_seed"
    chart = tmp_path / "losses.svg"
    assert "811: pipeline 8" in run("throughput", "losses", path, "--out", chart).out
    assert "mean of 25 iterations" in chart.read_text()
    assert "Did you mean '181'" in refused("throughput", "losses", path, "--reference", "18")


def test_small_words_are_all_read(run: Callable[..., Ran]) -> None:
    for words in product(("curve", "allocate", "plan", "fit", "errors", "losses"), ("--help",)):
        assert run("throughput", *words).code == 0
