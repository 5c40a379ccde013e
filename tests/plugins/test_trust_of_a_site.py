"""A site file that names code: refused before the code is imported, flown where it is trusted."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import pytest
from click.testing import CliRunner

import windtunnel as wt
from windtunnel.cli.root import windtunnel
from windtunnel.plugins import UntrustedNameError
from windtunnel.study.grid import Study
from windtunnel.study.site_file import read_site

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

pytestmark = pytest.mark.usefixtures("plugins_forgotten")
MODULE = """\
import windtunnel as wt

open("ran", "w").close()


def cluster():
    return wt.ClusterSpec.uniform(2, 2)


def shortest(jobs):
    return jobs.duration
"""
SITE = '[site]\ncluster = "theirs:cluster"\n[scheduler]\npolicy = "theirs:shortest"\n'
LOG = """\
job_id,submit_time,start_time,end_time,num_gpus,user
a,0,0,30,2,x
b,0,0,10,2,y
c,1,10,35,2,x
d,4,30,70,2,y
"""
JOBS: dict[str, Any] = {"submit_time": [0, 0, 1], "duration": [30, 10, 25], "num_gpus": [2, 2, 4]}


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A log with a site file beside it, whose module leaves a mark of having been run."""
    (tmp_path / "theirs.py").write_text(MODULE)
    (tmp_path / "site.toml").write_text(SITE)
    (tmp_path / "log.csv").write_text(LOG)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])
    yield tmp_path
    sys.modules.pop("theirs", None)


@pytest.mark.parametrize("words", [(), ("--site", "site.toml")], ids=["beside", "named"])
@pytest.mark.parametrize(
    "command",
    [
        "simulate log.csv",
        "compare log.csv --policies fifo,sjf",
        "report log log.csv",
        "report queue log.csv",
        "report cost log.csv --price 2",
        "validate log.csv",
        "whatif log.csv --nodes +1 --anyway",
        "plan reliability log.csv --disruptions mtbf:30d/mttr:4h/cost:60 --repeats 2",
    ],
)
def test_every_command_that_reads_a_site_file(
    folder: Path, command: str, words: tuple[str, ...]
) -> None:
    asked = [*command.split(), *words, "--json"]
    refused = CliRunner().invoke(windtunnel, asked)
    assert (refused.exit_code, refused.stdout) == (2, ""), refused.output
    assert "site.toml: cluster: 'theirs:cluster' names code to run" in refused.stderr
    assert "--trust" in refused.stderr
    assert not (folder / "ran").exists()
    flown = CliRunner().invoke(windtunnel, [*asked, "--trust"])
    assert flown.exit_code == 0, flown.output
    assert "--trust" in flown.stdout
    assert (folder / "ran").exists()


def test_the_lab(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def taken(port: int) -> None:
        raise wt.SpecError("--port", f"{port} is taken.")

    monkeypatch.setattr("windtunnel.lab.server.check_installed", lambda: None)
    monkeypatch.setattr("windtunnel.lab.server.listen", taken)
    asked = ["lab", "log.csv", "--site", "site.toml"]
    refused = CliRunner().invoke(windtunnel, asked)
    assert "site.toml: cluster: 'theirs:cluster' names code to run" in refused.stderr
    assert not (folder / "ran").exists()
    trusted = CliRunner().invoke(windtunnel, [*asked, "--trust"])
    assert "is taken" in trusted.stderr  # the site was read before
    assert (folder / "ran").exists()


@pytest.mark.parametrize(
    "line",
    [
        '[site]\ncluster = "theirs:cluster"',
        '[scheduler]\npolicy = "theirs:shortest"',
        '[scheduler]\npolicy = "sjf:by=theirs:shortest"',
        '[scheduler]\nplacement = "theirs:shortest"',
        '[scheduler]\nestimates = "theirs:shortest"',
    ],
)
def test_code_is_refused_wherever_it_is_named(folder: Path, line: str) -> None:
    (folder / "site.toml").write_text(line)
    with pytest.raises(UntrustedNameError, match=r"^site.toml: .* names code to run"):
        read_site("site.toml")
    read_site("site.toml", trust=True)  # what it names is imported when it is flown
    assert not (folder / "ran").exists()


def test_in_python(folder: Path) -> None:
    for given in ({}, {"trust": False}):
        with pytest.raises(UntrustedNameError, match=r"trust=True"):
            wt.simulate(JOBS, "site.toml", **given)
    with pytest.raises(wt.SpecError, match="names code"):
        wt.simulate(JOBS, "site.toml", trust="yes")
    assert not (folder / "ran").exists()
    flown = wt.simulate(JOBS, "site.toml", trust=True)
    assert flown.cluster.num_gpus == 4
    same = wt.simulate(JOBS, wt.ClusterSpec.uniform(2, 2), "sjf")
    assert flown.metrics()["avg_jct"] == same.metrics()["avg_jct"]
    assert "trust" not in flown.settings
    other = wt.compare(JOBS, "site.toml", ["theirs:shortest"], trust=True)
    assert other.outcomes["shortest"].cluster.num_gpus == 4


def test_no_file_says_of_itself_that_it_is_trusted(folder: Path) -> None:
    (folder / "site.toml").write_text(f"{SITE}trust = true\n")
    with pytest.raises(wt.SpecError, match="unknown name 'trust'"):
        read_site("site.toml")
    raw = {"traces": ["log.csv"], "policies": ["fifo"], "options": {"trust": True}}
    with pytest.raises(wt.SpecError, match="unknown name 'trust'"):
        Study.from_mapping(raw)


@pytest.mark.parametrize(
    "scheduler",
    [
        'policy = "{x}fifo:shortest"',
        'placement = "{x}best_fit:shortest"',
        'policy = "easy"\nestimates = "{x}cart:shortest"',
    ],
)
def test_braces_do_not_hide_a_module(folder: Path, scheduler: str) -> None:
    """In a site file they stand for themselves, and a module may have such a name."""
    for name in ("fifo", "best_fit", "cart"):
        (folder / f"{{x}}{name}.py").write_text(MODULE)
    (folder / "site.toml").write_text(f'[site]\ncluster = "2x8"\n[scheduler]\n{scheduler}\n')
    with pytest.raises(UntrustedNameError):
        read_site(folder / "site.toml")
    study = 'traces = ["synthetic:kalos:jobs=20"]\nclusters = ["2x8"]\npolicies = ["easy"]\n'
    (folder / "STUDY.toml").write_text(f'{study}[options]\nestimates = "{{x}}cart:shortest"\n')
    with pytest.raises(UntrustedNameError):
        Study.load(folder / "STUDY.toml")
    assert not (folder / "ran").exists()
