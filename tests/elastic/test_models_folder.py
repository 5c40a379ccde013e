"""Throughput models of one's own from the shell: a folder of files."""

from __future__ import annotations

import csv
import json
from typing import TYPE_CHECKING

import pytest
from click.testing import CliRunner

import windtunnel as wt
from windtunnel.cli.root import windtunnel
from windtunnel.errors import SpecError, TraceError
from windtunnel.throughput import training_model
from windtunnel.throughput.model_file import model_data, read_models

if TYPE_CHECKING:
    from pathlib import Path

JOBS = {
    "job_id": ["a", "b", "c"],
    "submit_time": [0.0, 10.0, 20.0],
    "duration": [900.0, 600.0, 300.0],
    "num_gpus": [4, 2, 1],
    "template": ["bert", "bert", "mine"],
    "plan": ["zero-dp", "zero-dp", None],
}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """One model, as ``throughput fit`` writes it."""
    folder = tmp_path / "models"
    folder.mkdir()
    (folder / "bert-here.json").write_text(json.dumps(model_data(training_model("bert"))))
    return folder


def test_a_folder_is_what_its_models_are(folder: Path) -> None:
    assert list(read_models(folder)) == ["bert"]
    cluster = wt.ClusterSpec.uniform(nodes=1, gpus_per_node=8, cpus_per_node=96)
    given = wt.simulate(JOBS, cluster, "morphling:priced", models=str(folder), penalty=30)
    named = {"bert": training_model("bert")}
    same = wt.simulate(JOBS, cluster, "morphling:priced", models=named, penalty=30)
    assert given.table.equals(same.table)
    assert given.settings["models"] == {"folder": str(folder), "names": ["bert"]}
    assert given.metrics()["num_reconfigurations"] == same.metrics()["num_reconfigurations"]


def test_the_commands_take_it(folder: Path, tmp_path: Path) -> None:
    trace = tmp_path / "jobs.csv"
    with trace.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(JOBS)
        writer.writerows(zip(*JOBS.values(), strict=True))
    words = [str(trace), "--cluster", "1x8", "--models", str(folder)]
    one = CliRunner().invoke(windtunnel, ["simulate", *words, "--policy", "equal-share", "--json"])
    assert one.exit_code == 0, one.output
    assert json.loads(one.output)["settings"]["models"]["names"] == ["bert"]
    two = CliRunner().invoke(
        windtunnel, ["compare", *words, "--policies", "equal-share,morphling:priced", "--json"]
    )
    assert two.exit_code == 0, two.output


def test_what_is_refused(folder: Path, tmp_path: Path) -> None:
    empty = tmp_path / "empty"
    empty.mkdir()
    for where in (empty, tmp_path / "nowhere"):
        with pytest.raises(TraceError, match="folder of training models"):
            wt.simulate(JOBS, "1x8", "equal-share", models=str(where))
    (folder / "copy.json").write_text((folder / "bert-here.json").read_text())
    with pytest.raises(TraceError, match="a name of its own"):
        read_models(folder)
    with pytest.raises(SpecError, match="models by name"):
        wt.simulate(JOBS, "1x8", "equal-share", models=3)
