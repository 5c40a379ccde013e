"""Goodput models as files: what they offer, on which GPU types, and who flies them."""

from __future__ import annotations

import csv
import json
from typing import TYPE_CHECKING, Any

import pytest
from click.testing import CliRunner

import windtunnel as wt
from windtunnel.cli.root import windtunnel
from windtunnel.errors import TraceError
from windtunnel.throughput.model_file import read_models

if TYPE_CHECKING:
    from pathlib import Path

#: A step of 0.02 s + 1 ms an example; GPUs agree within 0.05 s, 0.1 s over nodes; no overlap.
STEP = {
    "alpha_c": 0.02,
    "beta_c": 0.001,
    "alpha_n": 0.1,
    "beta_n": 0.0,
    "alpha_r": 0.05,
    "beta_r": 0.0,
    "gamma": 1.0,
}
FILE: dict[str, Any] = {
    "format": "windtunnel goodput model 1",
    "name": "net",
    "title": "A net",
    "step": STEP,
    "first_batch": 64,
    "largest_batch": 64,
    "least_local": 8,
    "most_local": 64,
    "noise_scale": 1000.0,
    "trusted_gpus": 8,
    "trusted_nodes": 2,
}
JOBS = {
    "job_id": ["a", "b", "c"],
    "submit_time": [0.0, 0.0, 100.0],
    "duration": [3000.0, 2000.0, 500.0],
    "num_gpus": [1, 2, 1],
    "template": ["net", "net", "net"],
}
POLICIES = ("pollux:pollux", "pollux:sia", "pollux:optimus", "pollux:tiresias", "morphling")


def _folder(tmp_path: Path, *changes: dict[str, Any]) -> Path:
    folder = tmp_path / "models"
    folder.mkdir(exist_ok=True)
    for number, change in enumerate(changes or ({},)):
        (folder / f"{number}.json").write_text(json.dumps(FILE | change))
    return folder


def test_options_are_the_goodput_of_the_best_batch(tmp_path: Path) -> None:
    model = read_models(_folder(tmp_path))["net"]
    options = model.options(node_gpus=4, node_cpus=48, num_nodes=3)
    found = {option.shape: option.iteration_time for option in options}
    # A batch of 64 alone, as large as it may be: 84 ms; 32 a GPU: 52 ms + 50 ms to agree.
    assert found[1,] == pytest.approx(0.084, abs=1e-6)
    assert found[2,] == pytest.approx(0.102, abs=1e-6)
    assert found[1, 1] == pytest.approx(0.152, abs=1e-6)
    assert max(map(sum, found)) == 8  # 8 examples a GPU at least
    assert max(map(len, found)) == 2  # trusted on two nodes


def test_larger_batches_count_for_what_they_teach(tmp_path: Path) -> None:
    model = read_models(_folder(tmp_path, {"largest_batch": 512}))["net"]
    times = {
        o.shape: o.iteration_time for o in model.options(node_gpus=8, node_cpus=48, num_nodes=1)
    }
    every = []
    for batch in range(64, 513):
        local = batch / 8
        efficiency = (1000 + 64) / (1000 + batch)
        every.append(64 / (batch / (0.02 + 0.001 * local + 0.05) * efficiency))
    assert times[8,] == pytest.approx(min(every), rel=0.005)  # 50 batch sizes are tried
    assert times[8,] < times[4,] < times[1,]


@pytest.mark.parametrize("policy", POLICIES)
def test_policies_fly_it_alike_on_every_engine(tmp_path: Path, policy: str) -> None:
    if policy == "pollux:sia":
        pytest.importorskip("highspy")
    folder = _folder(
        tmp_path,
        {"gpu_type": "slow", "largest_batch": 512},
        {"gpu_type": "fast", "largest_batch": 512, "step": STEP | {"beta_c": 0.0005}},
    )
    runs = [
        wt.simulate(
            JOBS, "2x4:slow,1x4:fast", policy, models=str(folder), penalty=20.0, engine=engine
        )
        for engine in ("compiled", "reference")
    ]
    assert runs[0].table.equals(runs[1].table)
    assert runs[0].metrics()["num_finished"] == 3


def test_sia_takes_the_type_that_is_worth_most(tmp_path: Path) -> None:
    folder = _folder(
        tmp_path,
        {"gpu_type": "slow"},
        {"gpu_type": "fast", "step": STEP | {"alpha_c": 0.0, "beta_c": 0.0005}},
    )
    job: dict[str, list[Any]] = {"submit_time": [0.0], "num_gpus": [1], "template": ["net"]}
    job |= {"duration": [840.0], "steps": [10_000]}
    run = wt.simulate(job, "1x1:slow,1x1:fast", "pollux:sia", models=str(folder), penalty=10.0)
    # From its first round on, on the fast GPU: 10 s of launching, 32 ms an iteration.
    assert run.table["jct"].to_pylist() == [pytest.approx(330.0, abs=0.01)]
    both = {name: values * 2 for name, values in job.items()}
    run = wt.simulate(both, "1x1:slow,1x1:fast", "pollux:sia", models=str(folder), penalty=10.0)
    first, second = sorted(run.table["jct"].to_pylist())
    assert first == pytest.approx(330.0, abs=0.01)
    # 5.5 rounds of 60 s on the slow GPU teach 350 s' worth; then it moves, or stays for 850 s.
    assert second <= 850.01


def test_the_shell_fits_and_flies_it(tmp_path: Path) -> None:
    pytest.importorskip("scipy")
    points, models = tmp_path / "steps.csv", tmp_path / "models"
    models.mkdir()
    limits = "first_batch,largest_batch,least_local,most_local,noise_scale"
    rows = [f"nodes,num_gpus,local_batch,step_time,sync_time,{limits}"]
    for nodes, gpus in ((1, 1), (1, 2), (1, 4), (2, 8)):
        for local in (16, 32, 64):
            sync = 0.0 if gpus == 1 else 0.05 * nodes
            step = 0.02 + 0.001 * local + sync
            rows.append(f"{nodes},{gpus},{local},{step},{sync},64,512,8,64,1000")
    points.write_text("\n".join(rows) + "\n")
    words = ["throughput", "fit", str(points), "--name", "net", "--out", str(models / "net.json")]
    done = CliRunner().invoke(windtunnel, words)
    assert done.exit_code == 0, done.output
    read = json.loads((models / "net.json").read_text())
    assert read["mean_percent"] < 2
    assert (read["trusted_gpus"], read["trusted_nodes"]) == (8, 2)
    assert read["step"]["beta_c"] == pytest.approx(0.001, rel=0.1)
    trace = tmp_path / "jobs.csv"
    with trace.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(JOBS)
        writer.writerows(zip(*JOBS.values(), strict=True))
    words = ["compare", str(trace), "--cluster", "2x4", "--models", str(models), "--json"]
    done = CliRunner().invoke(windtunnel, [*words, "--policies", "pollux:pollux,pollux:optimus"])
    assert done.exit_code == 0, done.output


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"mean_percent": 40.0}, "mean error up to 14 %"),
        ({"largest_batch": 32}, "largest_batch"),
        ({"step": STEP | {"gamma": 0.5}}, "gamma"),
        ({"step": STEP | {"alpha_c": 0.0, "beta_c": 0.0}}, "alpha_c or beta_c"),
        ({"trusted_gpus": 0}, "trusted_gpus"),
        ({"surprise": 1}, "surprise"),
    ],
)
def test_what_is_no_such_model(tmp_path: Path, change: dict[str, Any], message: str) -> None:
    with pytest.raises(TraceError, match=message):
        read_models(_folder(tmp_path, change))


def test_files_of_one_name_need_types(tmp_path: Path) -> None:
    with pytest.raises(TraceError, match="gpu_type each"):
        read_models(_folder(tmp_path, {}, {"gpu_type": "slow"}))
    with pytest.raises(TraceError, match="gpu_type each"):
        read_models(_folder(tmp_path, {"gpu_type": "Slow"}, {"gpu_type": "slow"}))
