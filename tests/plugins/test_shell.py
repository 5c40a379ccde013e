"""Plug-ins of an installed package, from the shell: one that is a stranger to us."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pyarrow.parquet as pq
import pytest

if TYPE_CHECKING:
    import subprocess
    from collections.abc import Callable
    from pathlib import Path

    Shell = Callable[..., subprocess.CompletedProcess[str]]

LOG = "0 100 2\n1 50 1\n2 20 4\n3 10 1\n"


@pytest.fixture
def log(tmp_path: Path) -> str:
    (tmp_path / "log.theirs").write_text(LOG)
    return "log.theirs"


def out_of(shell: Shell, *words: object) -> Any:
    found = shell(*words, "--json")
    assert found.returncode == 0, found.stderr
    return json.loads(found.stdout)


def test_a_reader_and_a_placement(shell: Shell, log: str, tmp_path: Path) -> None:
    words = ("simulate", log, "--cluster", "2x4", "--out", "jobs.parquet")
    found = out_of(shell, *words, "--placement", "from-behind")
    assert found["num_finished"] == 4
    assert found["settings"]["placement"] == "from-behind"
    flown = pq.read_table(tmp_path / "jobs.parquet")
    assert flown["nodes"].to_pylist()[:2] == [[1], [1]]
    assert "--placement from-behind" in found["command"]


@pytest.mark.slow
def test_all_of_them_at_once(shell: Shell, log: str) -> None:
    words = ("--cluster", "theirs", "--placement", "their_cluster:from_behind")
    found = out_of(
        shell, "compare", log, *words, "--policies", "fifo,ssf,their_cluster:smallest_service"
    )
    assert [run["policy"] for run in found["runs"]] == ["fifo", "ssf", "smallest_service"]
    found = out_of(
        shell, "simulate", log, *words, "--policy", "sjf:by=hour", "--format", "their-log"
    )
    assert found["settings"]["order_by"].startswith("predictor")


@pytest.mark.slow
def test_a_metric(shell: Shell, log: str) -> None:
    words = ("simulate", log, "--cluster", "theirs", "--metrics", "third,their_cluster:third_wait")
    found = out_of(shell, *words)
    assert (found["third.s"], found["third.before"], found["third_wait.s"]) == (0, 0, 0)
    assert "--metrics third,their_cluster:third_wait" in found["command"]
    assert "third.before" in shell(*words).stdout
    assert "third.before" in shell("compare", *words[1:], "--policies", "fifo,sjf").stdout


@pytest.mark.slow
def test_lists_and_models(shell: Shell) -> None:
    found = out_of(shell, "traces")
    assert {"name": "their-log", "extensions": [".theirs"]} in found["formats"]
    assert "theirs" in [cluster["name"] for cluster in found["clusters"]]
    assert out_of(shell, "throughput", "curve", "tiny", "--gpus", "2")
    for words in (("--policy", "sssf"), ("--placement", "from_behind")):
        found = shell("simulate", "synthetic:kalos:jobs=10", *words)
        assert found.returncode == 2
        assert "Did you mean" in found.stderr


STUDY = 'traces = ["log.theirs"]\nclusters = ["theirs"]\nplacements = ["from-behind"]\n'
CODE = f"""{STUDY}policies = ["fifo", "their_cluster:{{x}}"]
[parameters]
x = ["smallest_service"]
"""


def test_a_study_that_names_code_is_refused(shell: Shell, log: str, tmp_path: Path) -> None:
    (tmp_path / "code.toml").write_text(CODE)
    found = shell("study", "run", "code.toml", "--json")
    assert (found.returncode, found.stdout) == (2, "")
    assert "'their_cluster:smallest_service' names code to run" in found.stderr
    assert "--trust" in found.stderr
    assert not (tmp_path / "code").exists()


@pytest.mark.slow
def test_a_study_flies_what_is_installed_and_code_it_trusts(
    shell: Shell, log: str, tmp_path: Path
) -> None:
    (tmp_path / "named.toml").write_text(f'{STUDY}policies = ["ssf", "sjf:by=hour"]\n')
    with (tmp_path / "named.toml").open("a") as file:
        file.write('options = {metrics = ["third"]}\n')
    found = shell("study", "run", "named.toml", "--json")
    assert found.returncode == 0, found.stderr
    assert json.loads(found.stdout)["num_failed"] == 0
    shown = shell("study", "show", "named", "--metric", "third.s")
    assert (shown.returncode, "third.s" in shown.stdout) == (0, True), shown.stderr
    (tmp_path / "code.toml").write_text(CODE)
    found = shell("study", "run", "code.toml", "--json", "--trust")
    assert found.returncode == 0, found.stderr
    assert json.loads(found.stdout)["num_finished"] == 2
    assert "--trust" in json.loads(found.stdout)["command"]


@pytest.mark.slow
def test_their_writer_takes_what_a_reader_read(shell: Shell, log: str, tmp_path: Path) -> None:
    found = shell("convert", log, "again.theirs", "--json")
    assert found.returncode == 0, found.stderr
    data = json.loads(found.stdout)
    assert (data["to"], data["rows_out"]) == ("their-log", data["rows_in"])
    assert data["not_carried"] == ["All but submission, duration and GPUs."]
    again = shell("convert", "again.theirs", "again.csv")
    assert again.returncode == 0, again.stderr
    assert len((tmp_path / "again.csv").read_text().splitlines()) == data["rows_in"] + 1
