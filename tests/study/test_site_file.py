"""A site file describes cluster and scheduler; what is typed wins over it."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from click.testing import CliRunner

import windtunnel as wt
from windtunnel.cli.root import windtunnel
from windtunnel.study.site_file import is_site_file, read_site

if TYPE_CHECKING:
    from pathlib import Path

JOBS: dict[str, Any] = {"submit_time": [0, 0, 1], "duration": [30, 10, 25], "num_gpus": [1, 1, 2]}
FILE = """
[site]
slowdown = "spread=0.5"
[site.cluster]
node_types = [{count = 2, gpus = 2, gpu_type = "A100"}]
[scheduler]
policy = "srtf"
save_time = 2.0
"""


@pytest.fixture
def site(tmp_path: Path) -> Path:
    file = tmp_path / "site.toml"
    file.write_text(FILE)
    return file


def test_a_run_goes_by_the_file(site: Path) -> None:
    run = wt.simulate(JOBS, str(site))
    cluster = wt.ClusterSpec.uniform(2, 2, "A100", name="site")
    same = wt.simulate(JOBS, cluster, "srtf", slowdown="spread=0.5", save_time=2.0)
    wt.testing.assert_outcomes_equal(run, same)
    assert run.cluster.name == "site"


def test_what_is_given_wins(site: Path) -> None:
    assert wt.simulate(JOBS, str(site), "fifo").settings["policy"] == "fifo"
    run = wt.simulate(JOBS, str(site), save_time=0.0)
    assert (run.settings["policy"], run.settings["save_time"]) == ("srtf", 0.0)
    own = wt.simulate(JOBS, str(site), wt.Scheduler("sjf")).settings
    assert (own["policy"], own["save_time"]) == ("sjf", 0.0)


def test_commands_take_it(site: Path) -> None:
    def settings(*words: str) -> dict[str, Any]:
        asked = ["simulate", "synthetic:kalos:jobs=30", "--oversize", "reject", "--json", *words]
        ran = CliRunner().invoke(windtunnel, asked)
        assert ran.exit_code == 0, ran.output
        found: dict[str, Any] = json.loads(ran.stdout)["settings"]
        return found

    found = settings("--site", str(site))
    assert (found["policy"], found["save_time"], found["slowdown"]["spread"]) == ("srtf", 2.0, 0.5)
    found = settings("--site", str(site), "--policy", "fifo", "--save-time", "3")
    assert (found["policy"], found["save_time"]) == ("fifo", 3.0)


def test_files_are_found_from_its_folder(site: Path) -> None:
    (site.parent / "bad.toml").write_text('mtbf = "x"')
    site.write_text('[site]\ncluster = "2x2"\ndisruptions = "bad.toml"')
    with pytest.raises(wt.SpecError, match=r"bad\.toml"):
        wt.simulate(JOBS, str(site))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[site]\nclustr = '2x2'", r"site.toml: \$.site.clustr: unknown name.*'cluster'"),
        ("[site]\n[shceduler]\n", r"\$.shceduler: unknown name.*'scheduler'"),
        ("[site]\nresources = 'some'", r"\$.site.resources: unknown name 'some'"),
        ("site = 3", r"\$.site: found 3; expected a table"),
        ("[scheduler]\nqueueing = 3", r"\$.scheduler.queueing: unknown name '3'"),
        ("[scheduler]\npolicy = 'os:system'", "names code to run"),
        ("[site]\n[site.cluster]\nnodes = 3", r"\$.site.cluster: \$.nodes: unknown name"),
    ],
)
def test_what_is_wrong_is_named_with_its_place(site: Path, text: str, message: str) -> None:
    site.write_text(text)
    assert is_site_file(str(site))
    with pytest.raises(wt.SpecError, match=message):
        read_site(site)
