"""One mechanism for every kind of plug-in: names, slips, parameters, and files that name code."""

from __future__ import annotations

import importlib.metadata
import subprocess
import sys
from importlib.metadata import EntryPoint
from typing import TYPE_CHECKING, Any

import pytest

from windtunnel import SpecError
from windtunnel.cluster.presets import SITES
from windtunnel.placements import PLACEMENTS
from windtunnel.plugins import (
    Catalogue,
    UntrustedNameError,
    imported,
    names_of_file,
    parameters,
    registrations_forgotten,
)
from windtunnel.policies import POLICIES
from windtunnel.predictors import PREDICTORS
from windtunnel.study.grid import Study
from windtunnel.throughput.morphling_models import THROUGHPUTS
from windtunnel.traces.readers import READERS
from windtunnel.traces.writers import WRITERS

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

pytestmark = pytest.mark.usefixtures("plugins_forgotten")
CATALOGUES: list[Catalogue[Any]] = [
    POLICIES,
    PLACEMENTS,
    PREDICTORS,
    READERS,
    SITES,
    THROUGHPUTS,
    WRITERS,
]
SEARCH = 'policies = ["fifo"]\n[search]\nobjective = "avg_wait"\n'
BY_KIND = pytest.mark.parametrize("catalogue", CATALOGUES, ids=lambda c: c.group)


@pytest.fixture
def module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """A module that leaves a trace of having been run."""
    (tmp_path / "theirs.py").write_text("open('ran', 'w').close()\n\ndef thing(jobs): ...\n")
    (tmp_path / "broken.py").write_text("1 / 0\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])
    yield "theirs"
    for name in ("theirs", "broken"):
        sys.modules.pop(name, None)


@BY_KIND
def test_slips_are_reported_alike(catalogue: Catalogue[Any], module: str) -> None:
    known = next(iter(catalogue))
    slip = f"{known[:-1]}~"
    with pytest.raises(
        SpecError, match=rf"^{catalogue.kind}: unknown name '{slip}'\. Did you mean"
    ):
        catalogue.resolve(slip)
    with pytest.raises(
        SpecError, match=f"^{catalogue.kind}: cannot import 'no_such:thing': No mod"
    ):
        catalogue.resolve("no_such:thing")
    with pytest.raises(SpecError, match=r"cannot import 'broken:thing': ZeroDivisionError: div"):
        catalogue.resolve("broken:thing")
    with pytest.raises(SpecError, match=r"theirs: unknown name 'thng'. Did you mean 'thing'\?"):
        catalogue.resolve("theirs:thng")
    assert catalogue.spelt(known.upper()) == known
    assert catalogue.split(f"{known.upper()}:a=b") == (known, ["a=b"])


@BY_KIND
@pytest.mark.parametrize("name", ["", "a b", "a:b", "a=b", "a,b"])
def test_names_that_could_not_be_typed(catalogue: Catalogue[Any], name: str) -> None:
    with pytest.raises(SpecError, match="expected one without"):
        catalogue.check_name(name)
    with pytest.raises(SpecError, match=r"is a built-in .*; choose another name"):
        catalogue.check_name(next(iter(catalogue)).upper())


def entry(name: str, value: str, group: str) -> EntryPoint:
    return EntryPoint(name=name, value=value, group=group)


@BY_KIND
def test_an_installed_one_is_imported_when_it_is_asked_for(
    catalogue: Catalogue[Any], module: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def installed(*, group: str) -> list[EntryPoint]:
        assert group == catalogue.group
        return [
            entry("Bad", "broken:thing", group),
            entry("Twice", "theirs:thing", group),
            entry("Twice", "others:thing", group),
            entry(next(iter(before)), "theirs:thing", group),
        ]

    before = dict.fromkeys(catalogue)
    monkeypatch.setattr(importlib.metadata, "entry_points", installed)
    assert list(catalogue) == [*before, "Bad", "Twice"]
    assert catalogue.spelt("bad") == "Bad"
    assert not (tmp_path / "ran").exists()
    with pytest.raises(
        SpecError, match=r"'broken:thing' of .* cannot be loaded: ZeroDivisionError"
    ):
        catalogue.resolve("bad")
    with pytest.raises(SpecError, match="'Twice' is installed twice; say which: theirs:thing and"):
        catalogue.resolve("twice")
    assert catalogue[next(iter(before))] is not None  # what is built in stays what it is
    assert not (tmp_path / "ran").exists()


@BY_KIND
def test_a_file_may_name_no_code(catalogue: Catalogue[Any], module: str, tmp_path: Path) -> None:
    with (
        names_of_file("their.toml", trust=False),
        pytest.raises(UntrustedNameError, match=r"^their.toml: .*'theirs:thing' names code to run"),
    ):
        catalogue.resolve("theirs:thing")
    assert not (tmp_path / "ran").exists()
    with names_of_file("their.toml", trust=True):
        assert imported("theirs:thing", "policy")
    assert (tmp_path / "ran").exists()


@pytest.mark.parametrize(
    "line",
    [
        'policies = ["fifo", "theirs:thing"]',
        'policies = [{policy = "theirs:thing"}]',
        'policies = ["theirs:thing:every=60"]',
        'policies = ["sjf:by=theirs:thing"]',
        'policies = [{policy = "easy", estimates = "theirs:thing"}]',
        'policies = [{policy = "fifo", placement = "theirs:thing"}]',
        'policies = ["fifo"]\nplacements = ["best_fit", "theirs:thing"]',
        'policies = ["fifo"]\nclusters = ["theirs:thing"]',
        'policies = ["easy"]\noptions = {estimates = "theirs:thing"}',
        'policies = ["easy"]\nparameters = {estimates = ["recorded", "theirs:thing"]}',
        'policies = ["fifo"]\noptions = {metrics = ["theirs:thing"]}',
        'policies = ["{a}:{b}"]\nparameters = {a = ["las", "theirs"], b = ["quantum=3", "thing"]}',
        'policies = ["theirs:thing{n}"]\nparameters = {n = [1, 2]}',
        f'{SEARCH}policy = "{{a}}"\nspace.a = ["fifo", "theirs:thing"]',
        f'{SEARCH}policy = "theirs:thing{{n}}"\nspace.n = {{low = 1, high = 9, whole = true}}',
    ],
)
def test_a_study_may_name_no_code_anywhere(line: str, module: str, tmp_path: Path) -> None:
    path = tmp_path / "study.toml"
    path.write_text(f'traces = ["synthetic:kalos"]\n{line}\n')
    with pytest.raises(UntrustedNameError, match=r"study.toml: .* names code to run"):
        Study.load(path)
    assert not (tmp_path / "ran").exists()
    assert Study.load(path, trust=True).policy_entries()


def test_what_is_no_code_passes(tmp_path: Path) -> None:
    path = tmp_path / "study.toml"
    path.write_text(
        'traces = ["synthetic:kalos"]\nclusters = ["v100:8,p100:16", "pool:8:A100"]\n'
        'policies = ["gavel:fifo", "las:quantum={q}", "sjf:by=rolling:last=20", "ffio:x"]\n'
        "parameters = {q = [1, 2]}\n"
    )
    with pytest.raises(UntrustedNameError, match=r"'ffio:x' names code .* Did you mean 'fifo'"):
        Study.load(path)
    path.write_text(path.read_text().replace(', "ffio:x"', ""))
    assert len(Study.load(path).policies) == 3


def test_parameters() -> None:
    known = ["by", "last"]
    given = parameters(["user", "last=3"], known, where="x", first="by")
    assert given == {"by": "user", "last": "3"}
    for words, message in (
        (["by=a", "by=b"], "x: found 'by' twice"),
        (["lst=3"], r"x.*unknown name 'lst'. Did you mean 'last'\?"),
        (["last=3", "7"], "x: found '7'; expected NAME=VALUE behind the colon"),
    ):
        with pytest.raises(SpecError, match=message):
            parameters(words, known, where="x")


def test_registrations_are_forgotten() -> None:
    with registrations_forgotten():
        POLICIES.register("gone", lambda jobs: jobs.duration)
        assert "gone" in POLICIES
    assert "gone" not in POLICIES


def test_a_fresh_process_finds_every_reader_and_writer() -> None:
    """Also those whose modules nothing else has imported yet."""
    code = (
        "import importlib, pkgutil, windtunnel.traces as room\n"
        "from windtunnel.traces import readers, writers\n"
        "found = [*readers.READERS], [*writers.WRITERS]\n"
        "for module in pkgutil.walk_packages(room.__path__, 'windtunnel.traces.'):\n"
        "    importlib.import_module(module.name)\n"
        "assert found == ([*readers._built_in()], [*writers._built_in()]), found\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=240)  # noqa: S603 - our own
